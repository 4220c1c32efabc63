//! The text of a GBNF grammar as a tree. Errors begin with line and column.

use std::collections::HashMap;

use super::{Grammar, Node};

const MAX_RULES: usize = 4096;
const MAX_NESTING: usize = 100;
const MAX_REPEAT: u32 = 10_000;

pub fn parse(text: &str) -> Result<Grammar, String> {
    let mut parser = Parser { text: text.chars().collect(), at: 0, names: HashMap::new(), rules: Vec::new(), uses: Vec::new() };
    parser.grammar().map_err(|(at, why)| {
        let before = &parser.text[..at.min(parser.text.len())];
        let line = 1 + before.iter().filter(|c| **c == '\n').count();
        let column = 1 + before.iter().rev().take_while(|c| **c != '\n').count();
        format!("line {line}, column {column}: {why}")
    })
}

type Failed = (usize, String);

struct Parser {
    text: Vec<char>,
    at: usize,
    names: HashMap<String, usize>,
    rules: Vec<Option<Node>>,
    uses: Vec<(usize, usize, String)>, // rule, where it is named, its name
}

impl Parser {
    fn grammar(&mut self) -> Result<Grammar, Failed> {
        self.space(true);
        while self.at < self.text.len() {
            self.rule()?;
            self.space(true);
        }
        for (rule, at, name) in &self.uses {
            if self.rules[*rule].is_none() {
                return Err((*at, format!("the rule {name:?} is not defined")));
            }
        }
        let root = self.names.get("root").copied().filter(|root| self.rules[*root].is_some());
        let root = root.ok_or((self.text.len(), "the rule \"root\" is not defined".to_string()))?;
        Ok(Grammar { rules: std::mem::take(&mut self.rules).into_iter().flatten().collect(), root })
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn fail<T>(&self, why: impl Into<String>) -> Result<T, Failed> {
        Err((self.at, why.into()))
    }

    fn take(&mut self, wanted: &str) -> bool {
        let found = wanted.chars().enumerate().all(|(i, c)| self.text.get(self.at + i) == Some(&c));
        if found {
            self.at += wanted.chars().count();
        }
        found
    }

    fn space(&mut self, over_lines: bool) {
        while let Some(c) = self.peek() {
            match c {
                '#' => while self.peek().is_some_and(|c| c != '\n') {
                    self.at += 1;
                },
                ' ' | '\t' => self.at += 1,
                '\r' | '\n' if over_lines => self.at += 1,
                _ => return,
            }
        }
    }

    fn name(&mut self) -> Result<String, Failed> {
        let begin = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
            self.at += 1;
        }
        if begin == self.at {
            return self.fail("a rule name is expected");
        }
        Ok(self.text[begin..self.at].iter().collect())
    }

    fn index_of(&mut self, name: &str) -> Result<usize, Failed> {
        if let Some(index) = self.names.get(name) {
            return Ok(*index);
        }
        if self.rules.len() == MAX_RULES {
            return self.fail(format!("more than {MAX_RULES} rules"));
        }
        self.rules.push(None);
        self.names.insert(name.into(), self.rules.len() - 1);
        Ok(self.rules.len() - 1)
    }

    fn rule(&mut self) -> Result<(), Failed> {
        let begin = self.at;
        let name = self.name()?;
        let index = self.index_of(&name)?;
        self.space(false);
        if !self.take("::=") {
            return self.fail("\"::=\" is expected");
        }
        self.space(true);
        let body = self.choice(0)?;
        self.space(false);
        if self.peek().is_some_and(|c| c != '\n' && c != '\r') {
            return self.fail("the end of the rule is expected");
        }
        if self.rules[index].replace(body).is_some() {
            return Err((begin, format!("the rule {name:?} is defined twice")));
        }
        Ok(())
    }

    fn choice(&mut self, nesting: usize) -> Result<Node, Failed> {
        if nesting > MAX_NESTING {
            return self.fail(format!("nested more than {MAX_NESTING} deep"));
        }
        let mut options = vec![self.sequence(nesting)?];
        loop {
            let before = self.at;
            self.space(true);
            if !self.take("|") {
                self.at = before;
                break;
            }
            self.space(true);
            options.push(self.sequence(nesting)?);
        }
        Ok(if options.len() == 1 { options.remove(0) } else { Node::Choice(options) })
    }

    fn sequence(&mut self, nesting: usize) -> Result<Node, Failed> {
        let mut items = Vec::new();
        loop {
            self.space(nesting > 0);
            let Some(item) = self.item(nesting)? else { break };
            let item = self.repeated(item)?;
            items.push(item);
        }
        Ok(if items.len() == 1 { items.remove(0) } else { Node::Sequence(items) })
    }

    fn item(&mut self, nesting: usize) -> Result<Option<Node>, Failed> {
        let Some(c) = self.peek() else { return Ok(None) };
        Ok(Some(match c {
            '"' => self.literal()?,
            '[' => self.class()?,
            '.' => {
                self.at += 1;
                Node::Class { negated: true, ranges: Vec::new() }
            }
            '<' => self.token()?,
            '(' => {
                self.at += 1;
                let inner = self.choice(nesting + 1)?;
                self.space(true);
                if !self.take(")") {
                    return self.fail("\")\" is expected");
                }
                inner
            }
            '!' => return self.fail("negated tokens are not supported"),
            c if c.is_ascii_alphanumeric() || c == '_' => {
                let begin = self.at;
                let name = self.name()?;
                let index = self.index_of(&name)?;
                self.uses.push((index, begin, name));
                Node::Rule(index)
            }
            '\n' | '\r' | '|' | ')' => return Ok(None),
            other => return self.fail(format!("unexpected {other:?}")),
        }))
    }

    fn repeated(&mut self, mut item: Node) -> Result<Node, Failed> {
        loop {
            let (least, most) = match self.peek() {
                Some('*') => (0, None),
                Some('+') => (1, None),
                Some('?') => (0, Some(1)),
                Some('{') => self.bounds()?,
                _ => return Ok(item),
            };
            self.at += 1;
            item = Node::Repeat(Box::new(item), least, most);
        }
    }

    /// "{m}", "{m,}", "{,n}" or "{m,n}", up to the closing brace.
    fn bounds(&mut self) -> Result<(u32, Option<u32>), Failed> {
        self.at += 1;
        let least = self.number()?;
        self.space(false);
        let has_comma = self.take(",");
        let most = if has_comma { self.number()? } else { least };
        self.space(false);
        if self.peek() != Some('}') || (least.is_none() && most.is_none()) {
            return self.fail("\"{m}\", \"{m,}\" or \"{m,n}\" is expected");
        }
        if most.is_some_and(|most| most < least.unwrap_or(0)) {
            return self.fail("the bounds are the wrong way round");
        }
        Ok((least.unwrap_or(0), most))
    }

    fn number(&mut self) -> Result<Option<u32>, Failed> {
        self.space(false);
        let begin = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        if begin == self.at {
            return Ok(None);
        }
        let digits: String = self.text[begin..self.at].iter().collect();
        match digits.parse::<u32>() {
            Ok(number) if number <= MAX_REPEAT => Ok(Some(number)),
            _ => self.fail(format!("at most {MAX_REPEAT} repetitions can be asked for")),
        }
    }

    fn literal(&mut self) -> Result<Node, Failed> {
        let begin = self.at;
        self.at += 1;
        let mut items = Vec::new();
        loop {
            match self.peek() {
                None | Some('\n') => return Err((begin, "the string has no end".into())),
                Some('"') => break,
                Some(_) => {
                    let c = self.character()?;
                    items.push(Node::Class { negated: false, ranges: vec![(c, c)] });
                }
            }
        }
        self.at += 1;
        Ok(if items.len() == 1 { items.remove(0) } else { Node::Sequence(items) })
    }

    fn class(&mut self) -> Result<Node, Failed> {
        let begin = self.at;
        self.at += 1;
        let negated = self.take("^");
        let mut ranges = Vec::new();
        loop {
            match self.peek() {
                None | Some('\n') => return Err((begin, "the class has no end".into())),
                Some(']') => break,
                Some(_) => {
                    let first = self.character()?;
                    let is_range = self.peek() == Some('-') && self.text.get(self.at + 1).is_some_and(|c| *c != ']');
                    self.at += is_range as usize;
                    let last = if is_range { self.character()? } else { first };
                    if last < first {
                        return self.fail("the range is the wrong way round");
                    }
                    ranges.push((first, last));
                }
            }
        }
        self.at += 1;
        Ok(Node::Class { negated, ranges })
    }

    fn token(&mut self) -> Result<Node, Failed> {
        let begin = self.at;
        while self.peek().is_some_and(|c| c != '>' && !c.is_whitespace()) {
            self.at += 1;
        }
        if !self.take(">") {
            return Err((begin, "a token is written <name> or <[id]>".into()));
        }
        Ok(Node::Token(self.text[begin..self.at].iter().collect()))
    }

    fn character(&mut self) -> Result<u32, Failed> {
        let c = self.text[self.at];
        self.at += 1;
        if c != '\\' {
            return Ok(c as u32);
        }
        let Some(escape) = self.peek() else { return self.fail("an escape has no end") };
        self.at += 1;
        match escape {
            't' => Ok('\t' as u32),
            'n' => Ok('\n' as u32),
            'r' => Ok('\r' as u32),
            'x' => self.hexadecimal(2),
            'u' if self.peek() == Some('{') => self.braced(),
            'u' => self.hexadecimal(4),
            'U' => self.hexadecimal(8),
            '\\' | '"' | '[' | ']' | '-' | '^' | '/' | '.' => Ok(escape as u32),
            other => {
                self.at -= 1;
                self.fail(format!("the escape \\{other} is not known"))
            }
        }
    }

    fn braced(&mut self) -> Result<u32, Failed> {
        self.at += 1;
        let digits = self.text[self.at..].iter().take_while(|c| c.is_ascii_hexdigit()).count().min(8);
        let code = self.hexadecimal(digits)?;
        if !self.take("}") {
            return self.fail("\"}\" is expected");
        }
        Ok(code)
    }

    fn hexadecimal(&mut self, digits: usize) -> Result<u32, Failed> {
        let end = (self.at + digits).min(self.text.len());
        let text: String = self.text[self.at..end].iter().collect();
        let is_hexadecimal = digits > 0 && text.len() == digits && text.chars().all(|c| c.is_ascii_hexdigit());
        match u32::from_str_radix(&text, 16) {
            Ok(code) if is_hexadecimal && code <= 0x10FFFF => {
                self.at = end;
                Ok(code)
            }
            _ => self.fail(format!("{digits} hexadecimal digits of a character are expected")),
        }
    }
}
