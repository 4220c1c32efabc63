//! Makes a template ready for the parser of minijinja: the few differences of the two lexers are ironed out in the
//! source, tag by tag, so that line numbers stay right.
//!
//! - line ends become `\n`, as jinja2 does before it parses;
//! - `{% generation %}` (transformers marks what the assistant wrote with it) becomes a call block whose body is a scope
//!   of its own, as in the extension of transformers;
//! - string literals are decoded with Python's escapes and written back with escapes that both know.
//!
//! The parser bounds how deep brackets and blocks nest, not how long a chain of operators or of `elif` is, and each link
//! is a level of recursion for it and for all that walks its tree. Those two are counted here, so that a stack of known
//! size is enough.

/// Ends of the three kinds of tag.
const VARIABLE: (&str, &str) = ("{{", "}}");
const BLOCK: (&str, &str) = ("{%", "%}");
const COMMENT: (&str, &str) = ("{#", "#}");
/// Words, literals and signs of one tag; no template in use has a tenth of it.
const MAX_TAG_TOKENS: usize = 8192;
const MAX_ELIFS: usize = 4096;

fn normalise_lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Python's escapes in a string literal. What it does not know stays as it is, backslash included.
fn decode(body: &str) -> Result<String, String> {
    let mut out = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let tail = &rest[at + 1..];
        let Some(c) = tail.chars().next() else { return Err("a string ends in a backslash".into()) };
        let mut used = c.len_utf8();
        match c {
            '\n' => {}
            '\\' | '\'' | '"' => out.push(c),
            'a' => out.push('\x07'),
            'b' => out.push('\x08'),
            'f' => out.push('\x0c'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'v' => out.push('\x0b'),
            '0'..='7' => {
                used = tail.bytes().take(3).take_while(|b| (b'0'..=b'7').contains(b)).count();
                out.push(code_point(u32::from_str_radix(&tail[..used], 8))?);
            }
            'x' | 'u' | 'U' => {
                let digits = match c {
                    'x' => 2,
                    'u' => 4,
                    _ => 8,
                };
                let code = tail.get(1..1 + digits).ok_or("truncated escape in a string")?;
                let (letter, extra) = hexadecimal(code, tail.get(1 + digits..).unwrap_or_default())?;
                out.push(letter);
                used = 1 + digits + extra;
            }
            other => {
                out.push('\\');
                out.push(other);
            }
        }
        rest = &tail[used..];
    }
    out.push_str(rest);
    Ok(out)
}

fn code_point(code: Result<u32, std::num::ParseIntError>) -> Result<char, String> {
    code.ok().and_then(char::from_u32).ok_or_else(|| "an escape in a string is no character".to_string())
}

/// The character of a \x, \u or \U escape and how many bytes of `rest` it used: a surrogate needs its other half.
fn hexadecimal(code: &str, rest: &str) -> Result<(char, usize), String> {
    let high = u32::from_str_radix(code, 16);
    if let Ok(high @ 0xd800..=0xdbff) = high {
        let low = rest.strip_prefix("\\u").and_then(|r| r.get(..4)).and_then(|r| u32::from_str_radix(r, 16).ok());
        if let Some(low @ 0xdc00..=0xdfff) = low {
            return Ok((code_point(Ok(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)))?, 6));
        }
    }
    Ok((code_point(high)?, 0))
}

/// A literal that the parser reads as exactly `text`. Line breaks stay real ones where they were, for line numbers.
fn encode(text: &str, quote: char) -> String {
    let mut out = String::from(quote);
    for c in text.chars() {
        if c == '\\' || c == quote {
            out.push('\\');
        }
        out.push(c);
    }
    out.push(quote);
    out
}

/// The length of the string literal that starts `text`, quotes included.
fn literal_length(text: &str) -> Option<usize> {
    let quote = text.chars().next()?;
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == quote {
            return Some(at + 1);
        }
    }
    None
}

/// Copies one tag, opener to closer, with its string literals rewritten; returns what follows it.
fn copy_tag<'a>(text: &'a str, close: &str, out: &mut String) -> Result<&'a str, String> {
    let mut rest = text;
    let (mut braces, mut tokens, mut in_word) = (0usize, 0usize, false);
    while let Some(c) = rest.chars().next() {
        let word = c.is_alphanumeric() || c == '_';
        tokens += (!c.is_whitespace() && !(word && in_word)) as usize;
        in_word = word;
        if tokens > MAX_TAG_TOKENS {
            return Err(format!("a tag has more than {MAX_TAG_TOKENS} words and signs"));
        }
        if braces == 0 && rest.starts_with(close) {
            out.push_str(close);
            return Ok(&rest[close.len()..]);
        }
        if c == '"' || c == '\'' {
            let Some(length) = literal_length(rest) else { break };
            let body = &rest[1..length - 1];
            if body.contains('\\') {
                out.push_str(&encode(&decode(body)?, c));
            } else {
                out.push_str(&rest[..length]);
            }
            rest = &rest[length..];
            continue;
        }
        match c {
            '{' => braces += 1,
            '}' => braces = braces.saturating_sub(1),
            _ => {}
        }
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    out.push_str(rest);
    Ok("")
}

/// The word of a block tag (`{%- set x` gives "set") and the text after the opener's sign.
fn keyword(tag: &str) -> &str {
    let body = tag[BLOCK.0.len()..].trim_start_matches(['-', '+']).trim_start();
    &body[..body.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(body.len())]
}

/// `{%- generation %}` with its signs kept and its word exchanged.
fn replace_keyword(tag: &str, word: &str, with: &str) -> String {
    tag.replacen(word, with, 1)
}

/// A raw block is copied as it is; returns what follows its end tag.
fn copy_raw<'a>(text: &'a str, out: &mut String) -> &'a str {
    let mut at = 0;
    while let Some(found) = text[at..].find(BLOCK.0) {
        let start = at + found;
        if keyword(&text[start..]) == "endraw" {
            let end = text[start..].find(BLOCK.1).map_or(text.len(), |e| start + e + BLOCK.1.len());
            out.push_str(&text[..end]);
            return &text[end..];
        }
        at = start + BLOCK.0.len();
    }
    out.push_str(text);
    ""
}

fn copy_block<'a>(text: &'a str, out: &mut String) -> Result<&'a str, String> {
    let word = keyword(text);
    if word == "generation" || word == "endgeneration" {
        let with = if word == "generation" { "call __generation()" } else { "endcall" };
        let end = text.find(BLOCK.1).map_or(text.len(), |e| e + BLOCK.1.len());
        out.push_str(&replace_keyword(&text[..end], word, with));
        return Ok(&text[end..]);
    }
    out.push_str(BLOCK.0);
    let rest = copy_tag(&text[BLOCK.0.len()..], BLOCK.1, out)?;
    Ok(if word == "raw" { copy_raw(rest, out) } else { rest })
}

pub fn prepare(text: &str) -> Result<String, String> {
    let text = normalise_lines(text);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    let mut elifs = 0;
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with(VARIABLE.0) {
            out.push_str(VARIABLE.0);
            rest = copy_tag(&rest[VARIABLE.0.len()..], VARIABLE.1, &mut out)?;
        } else if rest.starts_with(BLOCK.0) {
            elifs += (keyword(rest) == "elif") as usize;
            if elifs > MAX_ELIFS {
                return Err(format!("more than {MAX_ELIFS} elif"));
            }
            rest = copy_block(rest, &mut out)?;
        } else if rest.starts_with(COMMENT.0) {
            let end = rest.find(COMMENT.1).map_or(rest.len(), |e| e + COMMENT.1.len());
            out.push_str(&rest[..end]);
            rest = &rest[end..];
        } else {
            out.push('{');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    Ok(out)
}
