//! Patterns of JSON Schema are ECMAScript's. In the notation of the regex parser here: the same words for what both have,
//! and characters by their numbers where the two read them differently.

/// The parser finds what is left over (look-around, references) and refuses it.
pub fn to_rust(pattern: &str) -> Result<String, String> {
    let mut reader = Reader { text: pattern.chars().collect(), at: 0, out: String::new() };
    while let Some(c) = reader.next() {
        match c {
            '\\' => reader.escape(false)?,
            '[' => reader.class()?,
            c => reader.out.push(c),
        }
    }
    Ok(reader.out)
}

struct Reader {
    text: Vec<char>,
    at: usize,
    out: String,
}

impl Reader {
    fn next(&mut self) -> Option<char> {
        let c = self.text.get(self.at).copied();
        self.at += c.is_some() as usize;
        c
    }

    fn take(&mut self, wanted: &[char]) -> bool {
        let found = self.text[self.at..].starts_with(wanted);
        self.at += if found { wanted.len() } else { 0 };
        found
    }

    fn code(&mut self, code: u32) {
        self.out += &format!("\\x{{{code:X}}}");
    }

    fn class(&mut self) -> Result<(), String> {
        let is_negated = self.take(&['^']);
        if self.take(&[']']) {
            self.out += if is_negated { "(?s:.)" } else { "[^\\x{0}-\\x{10FFFF}]" };
            return Ok(());
        }
        // A class of all control characters is taken for one of all characters when it is put into a JSON string, with
        // the quote and the backslash: without NUL it is none.
        self.out += if is_negated { "[^\\x{0}" } else { "[" };
        loop {
            match self.next() {
                None => return Err("a class has no end".into()),
                Some(']') => break,
                Some('\\') => self.escape(true)?,
                Some(c @ ('[' | '&' | '~')) => self.code(c as u32),
                Some(c) => self.out.push(c),
            }
        }
        self.out.push(']');
        Ok(())
    }

    fn escape(&mut self, in_class: bool) -> Result<(), String> {
        let c = self.next().ok_or("it ends in a backslash")?;
        match c {
            'b' if in_class => self.code(8),
            '0' if !self.text.get(self.at).is_some_and(char::is_ascii_digit) => self.code(0),
            'c' if self.text.get(self.at).is_some_and(char::is_ascii_alphabetic) => {
                let letter = self.next().unwrap_or('@');
                self.code(letter as u32 % 32)
            }
            'u' => self.unicode()?,
            c if c.is_ascii_alphanumeric() => self.out.extend(['\\', c]),
            c => self.code(c as u32),
        }
        Ok(())
    }

    fn unicode(&mut self) -> Result<(), String> {
        if self.text.get(self.at) == Some(&'{') {
            self.out += "\\u";
            return Ok(());
        }
        let first = self.four().ok_or("\\u needs four hexadecimal digits")?;
        let is_high = (0xD800..0xDC00).contains(&first);
        if !is_high || !self.take(&['\\', 'u']) {
            self.code(first);
            return Ok(());
        }
        let second = self.four().filter(|code| (0xDC00..0xE000).contains(code)).ok_or("half of a surrogate pair")?;
        self.code(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00));
        Ok(())
    }

    fn four(&mut self) -> Option<u32> {
        let digits: String = self.text.get(self.at..self.at + 4)?.iter().collect();
        self.at += 4;
        digits.chars().all(|c| c.is_ascii_hexdigit()).then(|| u32::from_str_radix(&digits, 16).ok())?
    }
}
