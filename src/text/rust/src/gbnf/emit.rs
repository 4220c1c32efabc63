//! A GBNF grammar as Lark text. GBNF speaks of characters, Lark of terminals that take the longest match: as much as is
//! regular becomes one regular expression, where there is no difference. What refers to itself stays a rule.

use std::collections::HashSet;

use super::parse::parse;
use super::{Grammar, Node};

/// Longer regular expressions are not inlined any further.
const MAX_INLINED: usize = 32 * 1024;
const MAX_LARK: usize = 1024 * 1024;

pub fn to_lark(text: &str) -> Result<String, String> {
    let grammar = parse(text)?;
    let mut emitter = Emitter::new(&grammar);
    emitter.find_regular();
    if let Some(regex) = &emitter.regular[grammar.root] {
        return Ok(format!("start: {}\n", terminal(regex)));
    }
    let mut lark = format!("start: r{}\n", grammar.root);
    for (index, rule) in grammar.rules.iter().enumerate() {
        if emitter.regular[index].is_none() {
            let body = emitter.expression(rule)?;
            lark += &format!("r{index}: {}\n", body.lark());
            if lark.len() > MAX_LARK {
                return Err("the grammar is too large".into());
            }
        }
    }
    Ok(lark)
}

#[derive(Clone)]
struct Regex {
    text: String,
    is_nullable: bool,
}

enum Piece {
    Regex(Regex),
    Lark(String),
}

impl Piece {
    fn lark(self) -> String {
        match self {
            Piece::Regex(regex) => terminal(&regex),
            Piece::Lark(text) => text,
        }
    }
}

/// A terminal is never empty: what may be is an optional one.
fn terminal(regex: &Regex) -> String {
    if regex.text.is_empty() {
        return "\"\"".into();
    }
    if regex.is_nullable {
        return format!("(/{}/ & /(?s:.)+/)?", regex.text);
    }
    format!("/{}/", regex.text)
}

struct Emitter<'a> {
    grammar: &'a Grammar,
    regular: Vec<Option<Regex>>, // by rule, where it is one regular expression
}

impl Emitter<'_> {
    fn new(grammar: &Grammar) -> Emitter<'_> {
        Emitter { grammar, regular: vec![None; grammar.rules.len()] }
    }

    /// A rule is tried once all that it names beside itself is regular.
    fn find_regular(&mut self) {
        let count = self.grammar.rules.len();
        let mut users = vec![Vec::new(); count];
        let mut missing = vec![0; count];
        for (index, rule) in self.grammar.rules.iter().enumerate() {
            let mut named = HashSet::new();
            collect_rules(rule, &mut named);
            named.remove(&index);
            missing[index] = named.len();
            named.into_iter().for_each(|other| users[other].push(index));
        }
        let mut ready: Vec<usize> = (0..count).filter(|index| missing[*index] == 0).collect();
        while let Some(index) = ready.pop() {
            self.regular[index] = self.regular_rule(index);
            if self.regular[index].is_some() {
                for user in &users[index] {
                    missing[*user] -= 1;
                    if missing[*user] == 0 {
                        ready.push(*user);
                    }
                }
            }
        }
    }

    fn regular_rule(&self, index: usize) -> Option<Regex> {
        let rule = &self.grammar.rules[index];
        bounded(self.regex(rule).or_else(|| self.right_linear(index, rule))?)
    }

    fn regex(&self, node: &Node) -> Option<Regex> {
        match node {
            Node::Class { negated, ranges } => Some(Regex { text: class(*negated, ranges), is_nullable: false }),
            Node::Rule(index) => self.regular[*index].clone(),
            Node::Token(_) => None,
            Node::Sequence(items) => {
                let parts = items.iter().map(|item| self.regex(item)).collect::<Option<Vec<_>>>()?;
                bounded(sequence(&parts))
            }
            Node::Choice(options) => {
                let parts = options.iter().map(|item| self.regex(item)).collect::<Option<Vec<_>>>()?;
                bounded(choice(&parts))
            }
            Node::Repeat(inner, least, most) => Some(repeat(&self.regex(inner)?, *least, *most)),
        }
    }

    /// x ::= a x | b, with a and b regular, is a* b.
    fn right_linear(&self, index: usize, rule: &Node) -> Option<Regex> {
        let (mut again, mut ends) = (Vec::new(), Vec::new());
        for option in options_of(rule) {
            match option {
                Node::Rule(other) if other == index => return None,
                Node::Sequence(items) if items.last() == Some(&Node::Rule(index)) => {
                    again.push(self.regex(&Node::Sequence(items[..items.len() - 1].to_vec()))?)
                }
                other => ends.push(self.regex(&other)?),
            }
        }
        if again.is_empty() || ends.is_empty() {
            return None;
        }
        bounded(sequence(&[repeat(&choice(&again), 0, None), choice(&ends)]))
    }

    fn expression(&self, node: &Node) -> Result<Piece, String> {
        if let Some(regex) = self.regex(node) {
            return Ok(Piece::Regex(regex));
        }
        Ok(Piece::Lark(match node {
            Node::Rule(index) => format!("r{index}"),
            Node::Token(name) => name.clone(),
            Node::Sequence(items) => self.sequence(items)?,
            Node::Choice(options) => self.choice(options)?,
            Node::Repeat(inner, least, most) => {
                let inner = self.expression(inner)?.lark();
                match (least, most) {
                    (_, Some(0)) => "\"\"".into(),
                    (0, None) => format!("({inner})*"),
                    (1, None) => format!("({inner})+"),
                    (0, Some(1)) => format!("({inner})?"),
                    (least, None) => format!("({inner}){{{least},}}"),
                    (least, Some(most)) => format!("({inner}){{{least},{most}}}"),
                }
            }
            Node::Class { .. } => return Err("a class is always regular".into()),
        }))
    }

    /// Neighbours that are regular make one terminal: its longest match is that of the whole run.
    fn sequence(&self, items: &[Node]) -> Result<String, String> {
        let mut parts = Vec::new();
        let mut run: Vec<Regex> = Vec::new();
        for item in items {
            match self.expression(item)? {
                Piece::Regex(regex) => run.push(regex),
                Piece::Lark(text) => {
                    flush(&mut run, &mut parts);
                    parts.push(format!("({text})"));
                }
            }
        }
        flush(&mut run, &mut parts);
        Ok(parts.join(" "))
    }

    fn choice(&self, options: &[Node]) -> Result<String, String> {
        let mut regular = Vec::new();
        let mut parts = Vec::new();
        for option in options {
            match self.expression(option)? {
                Piece::Regex(regex) => regular.push(regex),
                Piece::Lark(text) => parts.push(text),
            }
        }
        if !regular.is_empty() {
            parts.insert(0, terminal(&choice(&regular)));
        }
        Ok(format!("({})", parts.join(" | ")))
    }
}

fn collect_rules(node: &Node, into: &mut HashSet<usize>) {
    match node {
        Node::Rule(index) => {
            into.insert(*index);
        }
        Node::Sequence(items) | Node::Choice(items) => items.iter().for_each(|item| collect_rules(item, into)),
        Node::Repeat(inner, ..) => collect_rules(inner, into),
        Node::Class { .. } | Node::Token(_) => {}
    }
}

fn flush(run: &mut Vec<Regex>, parts: &mut Vec<String>) {
    if !run.is_empty() {
        parts.push(terminal(&sequence(run)));
        run.clear();
    }
}

fn bounded(regex: Regex) -> Option<Regex> {
    (regex.text.len() <= MAX_INLINED).then_some(regex)
}

fn options_of(rule: &Node) -> Vec<Node> {
    match rule {
        Node::Choice(options) => options.iter().flat_map(options_of).collect(),
        Node::Repeat(inner, 0, Some(1)) => {
            let mut options = options_of(inner);
            options.push(Node::nothing());
            options
        }
        other => vec![other.clone()],
    }
}

fn sequence(parts: &[Regex]) -> Regex {
    Regex {
        text: parts.iter().map(|part| part.text.as_str()).collect(),
        is_nullable: parts.iter().all(|part| part.is_nullable),
    }
}

fn choice(parts: &[Regex]) -> Regex {
    if let [one] = parts {
        return one.clone();
    }
    let texts = parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join("|");
    Regex { text: format!("(?:{texts})"), is_nullable: parts.iter().any(|part| part.is_nullable) }
}

fn repeat(inner: &Regex, least: u32, most: Option<u32>) -> Regex {
    if most == Some(0) || inner.text.is_empty() {
        return sequence(&[]);
    }
    let most_text = most.map_or(String::new(), |most| most.to_string());
    Regex { text: format!("(?:{}){{{least},{most_text}}}", inner.text), is_nullable: least == 0 || inner.is_nullable }
}

fn code(c: u32) -> String {
    match char::from_u32(c) {
        Some(c) if c.is_ascii_alphanumeric() => c.to_string(),
        _ => format!("\\x{{{c:X}}}"),
    }
}

/// Without the surrogates, which are no characters.
fn class(negated: bool, ranges: &[(u32, u32)]) -> String {
    let mut text = String::new();
    for &(first, last) in ranges {
        for (low, high) in [(first, last.min(0xD7FF)), (first.max(0xE000), last)] {
            if low <= high {
                text += &if low == high { code(low) } else { format!("{}-{}", code(low), code(high)) };
            }
        }
    }
    match (text.is_empty(), negated) {
        (true, true) => "(?s:.)".into(),
        (true, false) => "[^\\x{0}-\\x{10FFFF}]".into(),
        (false, true) => format!("[^{text}]"),
        (false, false) => format!("[{text}]"),
    }
}
