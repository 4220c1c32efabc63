//! String helpers with Python's idea of white space, lines and case.

/// `str.isspace` for one character: Unicode white space plus the four separators that Rust leaves out.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
    Both,
}

/// `str.strip` and its halves; `letters` is a set of characters, white space by default.
pub fn strip(text: &str, letters: Option<&str>, side: Side) -> String {
    let cut = |c: char| letters.map_or_else(|| is_space(c), |set| set.contains(c));
    let text = if side == Side::Right { text } else { text.trim_start_matches(cut) };
    let text = if side == Side::Left { text } else { text.trim_end_matches(cut) };
    text.to_string()
}

/// `str.split(None, limit)`.
pub fn split_spaces(text: &str, limit: Option<usize>) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        if Some(parts.len()) == limit {
            parts.push(rest.to_string());
            break;
        }
        let end = rest.find(is_space).unwrap_or(rest.len());
        parts.push(rest[..end].to_string());
        rest = rest[end..].trim_start_matches(is_space);
    }
    parts
}

/// `str.rsplit(None, limit)`.
pub fn rsplit_spaces(text: &str, limit: Option<usize>) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = text.trim_end_matches(is_space);
    while !rest.is_empty() {
        if Some(parts.len()) == limit {
            parts.push(rest.to_string());
            break;
        }
        let start = rest.char_indices().rev().find(|(_, c)| is_space(*c)).map_or(0, |(i, c)| i + c.len_utf8());
        parts.push(rest[start..].to_string());
        rest = rest[..start].trim_end_matches(is_space);
    }
    parts.reverse();
    parts
}

pub fn split_lines(text: &str, keep_ends: bool) -> Vec<String> {
    let is_break = |c: char| matches!(c, '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_break(*c)) {
        let width = if rest[at..].starts_with("\r\n") { 2 } else { c.len_utf8() };
        lines.push(rest[..if keep_ends { at + width } else { at }].to_string());
        rest = &rest[at + width..];
    }
    if !rest.is_empty() {
        lines.push(rest.to_string());
    }
    lines
}

/// The most bytes that a replacement can come to.
pub fn replaced_size(text: &str, old: &str, new: &str) -> u64 {
    let places = text.len() as u64 / old.len().max(1) as u64 + 1;
    (text.len() as u64).saturating_add(places.saturating_mul(new.len() as u64))
}

/// `str.replace(old, new, limit)`; an empty `old` matches between all characters.
pub fn replace(text: &str, old: &str, new: &str, limit: Option<usize>) -> String {
    match limit {
        Some(limit) => text.replacen(old, new, limit),
        None => text.replace(old, new),
    }
}

pub fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        // Title case: an expanding first letter keeps only its first part in upper case ("ß" gives "Ss").
        Some(first) => {
            let mut upper = first.to_uppercase();
            let head: String = upper.next().into_iter().chain(upper.flat_map(char::to_lowercase)).collect();
            head + &chars.as_str().to_lowercase()
        }
        None => String::new(),
    }
}

/// `str.title`: a letter after something without case is upper, every other one lower.
pub fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_word = false;
    for c in text.chars() {
        let cased = c.is_lowercase() || c.is_uppercase();
        if in_word {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
        in_word = cased;
    }
    out
}

pub fn swap_case(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_uppercase() {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
    }
    out
}

/// Where `needle` starts, counted in code points from the start of `text`.
pub fn find(text: &str, needle: &str, from_end: bool) -> Option<usize> {
    let at = if from_end { text.rfind(needle) } else { text.find(needle) };
    at.map(|byte| text[..byte].chars().count())
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
    Center,
}

/// Pads to `width` code points. Centring puts the odd space where Python's str.center does.
pub fn pad(text: &str, width: usize, fill: char, align: Align) -> String {
    let missing = width.saturating_sub(text.chars().count());
    let left = match align {
        Align::Left => 0,
        Align::Right => missing,
        Align::Center => missing / 2 + (missing & width & 1),
    };
    let run = |n: usize| std::iter::repeat_n(fill, n).collect::<String>();
    run(left) + text + &run(missing - left)
}
