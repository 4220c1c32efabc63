//! `'...' % values` and `'...'.format(...)`: the parts of Python's two formatting languages that templates use.

use minijinja::{Error, State, Value};

use super::access;
use super::method::Arguments;
use super::number::Number;
use super::sequence::ensure_fuel;
use super::text::{pad, Align};
use super::value::{float_repr, items_of, repr, text_of, type_name, type_of, Type};
use super::raise;

/// Flags, width, precision and type of one conversion.
#[derive(Default)]
struct Spec {
    fill: Option<char>,
    align: Option<char>,
    plus: Option<char>,
    alternate: bool,
    zero: bool,
    comma: bool,
    width: usize,
    precision: Option<usize>,
    kind: Option<char>,
}

const MAX_WIDTH: usize = 100_000;

fn number_at(chars: &mut std::iter::Peekable<std::str::Chars>) -> Result<Option<usize>, Error> {
    let mut found = None;
    while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
        let next = found.unwrap_or(0usize) * 10 + digit as usize;
        if next > MAX_WIDTH {
            return raise("width or precision of a format is too large");
        }
        found = Some(next);
        chars.next();
    }
    Ok(found)
}

fn integer(value: &Value, kind: char) -> Result<i128, Error> {
    match Number::of(value) {
        Some(Number::Int(i)) => Ok(i),
        Some(Number::Float(f)) if kind == 'd' && f.is_finite() => Ok(f.trunc() as i128),
        _ => raise(format!("%{kind} format: a number is required, not {}", type_name(value))),
    }
}

fn group_thousands(digits: &str) -> String {
    let mut out = String::new();
    for (at, c) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// `%g`: the shorter of plain and scientific, trailing zeros removed.
fn general(x: f64, precision: usize) -> String {
    let precision = precision.max(1);
    let scientific = format!("{x:.*e}", precision - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i64 = exponent.parse().unwrap_or(0);
    let trim = |s: &str| if s.contains('.') { s.trim_end_matches('0').trim_end_matches('.').to_string() } else { s.into() };
    if exponent < -4 || exponent >= precision as i64 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trim(mantissa), exponent.abs());
    }
    trim(&format!("{x:.*}", (precision as i64 - 1 - exponent).max(0) as usize))
}

fn scientific(x: f64, precision: usize) -> String {
    let text = format!("{x:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i64 = exponent.parse().unwrap_or(0);
    format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// The digits of a number without its sign.
fn digits(value: &Value, kind: char, spec: &Spec) -> Result<(bool, String), Error> {
    let prefix = |p: &'static str| if spec.alternate { p } else { "" };
    if matches!(kind, 'd' | 'x' | 'X' | 'o' | 'b') {
        let number = integer(value, kind)?;
        let size = number.unsigned_abs();
        let text = match kind {
            'x' => format!("{}{size:x}", prefix("0x")),
            'X' => format!("{}{size:X}", prefix("0X")),
            'o' => format!("{}{size:o}", prefix("0o")),
            'b' => format!("{}{size:b}", prefix("0b")),
            _ if spec.comma => group_thousands(&size.to_string()),
            _ => size.to_string(),
        };
        return Ok((number < 0, text));
    }
    let Some(number) = Number::of(value) else {
        return raise(format!("must be real number, not {}", type_name(value)));
    };
    let x = number.as_f64();
    let precision = spec.precision.unwrap_or(6);
    let size = x.abs();
    let text = match kind {
        'e' | 'E' => scientific(size, precision),
        'g' | 'G' => general(size, precision),
        '%' => format!("{:.precision$}%", size * 100.0),
        _ => format!("{size:.precision$}"),
    };
    let text = match (spec.comma, text.split_once('.')) {
        (true, Some((whole, rest))) => format!("{}.{rest}", group_thousands(whole)),
        (true, None) => group_thousands(&text),
        _ => text,
    };
    Ok((x.is_sign_negative(), if kind.is_uppercase() { text.to_uppercase() } else { text }))
}

fn formatted_number(value: &Value, kind: char, spec: &Spec) -> Result<String, Error> {
    let (negative, body) = digits(value, kind, spec)?;
    let sign = match (negative, spec.plus) {
        (true, _) => "-",
        (false, Some('+')) => "+",
        (false, Some(' ')) => " ",
        _ => "",
    };
    let align = spec.align.unwrap_or(if spec.zero { '=' } else { '>' });
    let fill = spec.fill.unwrap_or(if spec.zero { '0' } else { ' ' });
    if align == '=' {
        return Ok(sign.to_string() + &pad(&body, spec.width.saturating_sub(sign.len()), fill, Align::Right));
    }
    Ok(pad(&(sign.to_string() + &body), spec.width, fill, alignment(align)))
}

fn alignment(sign: char) -> Align {
    match sign {
        '<' => Align::Left,
        '^' => Align::Center,
        _ => Align::Right,
    }
}

fn cut(text: String, precision: Option<usize>) -> String {
    match precision {
        Some(n) => text.chars().take(n).collect(),
        None => text,
    }
}

fn percent_spec(chars: &mut std::iter::Peekable<std::str::Chars>) -> Result<Spec, Error> {
    let mut spec = Spec::default();
    while let Some(flag) = chars.peek().copied().filter(|c| "-+ #0".contains(*c)) {
        match flag {
            '-' => spec.align = Some('<'),
            '#' => spec.alternate = true,
            '0' => spec.zero = true,
            sign => spec.plus = Some(sign),
        }
        chars.next();
    }
    spec.width = number_at(chars)?.unwrap_or(0);
    if chars.peek() == Some(&'.') {
        chars.next();
        spec.precision = Some(number_at(chars)?.unwrap_or(0));
    }
    spec.kind = chars.next();
    Ok(spec)
}

fn percent_one(spec: &mut Spec, value: &Value) -> Result<String, Error> {
    let left = |text: String| pad(&text, spec.width, ' ', if spec.align.is_some() { Align::Left } else { Align::Right });
    match spec.kind {
        Some('s') => Ok(left(cut(text_of(value)?, spec.precision))),
        Some('r' | 'a') => Ok(left(cut(repr(value)?, spec.precision))),
        Some('c') => Ok(left(text_of(value)?)),
        Some('d' | 'i' | 'u') => formatted_number(value, 'd', spec),
        Some(kind @ ('x' | 'X' | 'o' | 'e' | 'E' | 'f' | 'F' | 'g' | 'G')) => formatted_number(value, kind, spec),
        _ => raise("unsupported format character"),
    }
}

/// `pattern % values`: a tuple gives several values, a mapping gives them by name.
pub fn percent(state: &State, pattern: &str, values: &Value) -> Result<String, Error> {
    let mut queue = if values.is_tuple() { items_of(values)? } else { vec![values.clone()] }.into_iter();
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars().peekable();
    let mut used_names = type_of(values) == Type::Dict;
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut named = None;
        if chars.peek() == Some(&'(') {
            chars.next();
            let name: String = chars.by_ref().take_while(|c| *c != ')').collect();
            named = Some(access::item(values.clone(), Value::from(name))?);
            used_names = true;
        }
        let mut spec = percent_spec(&mut chars)?;
        if spec.kind == Some('%') {
            out.push('%');
            continue;
        }
        let value = match named.or_else(|| queue.next()) {
            Some(value) => value,
            None => return raise("not enough arguments for format string"),
        };
        ensure_fuel(state, spec.width as u64 + spec.precision.unwrap_or(0) as u64)?;
        out.push_str(&percent_one(&mut spec, &value)?);
    }
    if queue.next().is_some() && !used_names {
        return raise("not all arguments converted during string formatting");
    }
    Ok(out)
}

fn brace_spec(text: &str) -> Result<Spec, Error> {
    let mut spec = Spec::default();
    let letters: Vec<char> = text.chars().take(2).collect();
    let mut rest = text.chars();
    match letters.as_slice() {
        [fill, align] if "<>^=".contains(*align) => {
            (spec.fill, spec.align) = (Some(*fill), Some(*align));
            rest.nth(1);
        }
        [align, ..] if "<>^=".contains(*align) => {
            spec.align = Some(*align);
            rest.next();
        }
        _ => {}
    }
    let mut chars = rest.as_str().chars().peekable();
    if let Some(sign) = chars.next_if(|c| "+- ".contains(*c)) {
        spec.plus = Some(sign);
    }
    spec.alternate = chars.next_if_eq(&'#').is_some();
    spec.zero = chars.next_if_eq(&'0').is_some();
    spec.width = number_at(&mut chars)?.unwrap_or(0);
    spec.comma = chars.next_if_eq(&',').is_some();
    if chars.next_if_eq(&'.').is_some() {
        spec.precision = Some(number_at(&mut chars)?.unwrap_or(0));
    }
    spec.kind = chars.next();
    if chars.next().is_some() {
        return raise(format!("invalid format specifier '{text}'"));
    }
    Ok(spec)
}

/// `format(value, spec)`.
fn formatted(value: &Value, text: &str) -> Result<String, Error> {
    if text.is_empty() {
        return text_of(value);
    }
    let spec = brace_spec(text)?;
    match (type_of(value), spec.kind) {
        (Type::Int | Type::Bool, None) => formatted_number(value, 'd', &spec),
        (Type::Int | Type::Bool | Type::Float, Some('n')) => formatted_number(value, 'g', &spec),
        (Type::Int | Type::Bool | Type::Float, Some(kind)) if "bdoxXeEfFgG%".contains(kind) => {
            formatted_number(value, kind, &spec)
        }
        (Type::Float, None) if spec.precision.is_some() => formatted_number(value, 'g', &spec),
        (Type::Float, None) => {
            let body = float_repr(Number::of(value).map_or(0.0, Number::as_f64));
            Ok(pad(&body, spec.width, spec.fill.unwrap_or(' '), alignment(spec.align.unwrap_or('>'))))
        }
        (Type::Str, None | Some('s')) => {
            let body = cut(text_of(value)?, spec.precision);
            Ok(pad(&body, spec.width, spec.fill.unwrap_or(' '), alignment(spec.align.unwrap_or('<'))))
        }
        _ => raise(format!("unsupported format string passed to {}.__format__", type_name(value))),
    }
}

/// `name.attribute[key]` of a replacement field.
fn field(name: &str, args: &Arguments, automatic: &mut usize) -> Result<Value, Error> {
    let end = name.find(['.', '[']).unwrap_or(name.len());
    let (first, mut path) = name.split_at(end);
    let mut value = if first.is_empty() {
        *automatic += 1;
        args.need(*automatic - 1, "")?
    } else if let Ok(index) = first.parse::<usize>() {
        args.need(index, "")?
    } else {
        args.need(usize::MAX, first)?
    };
    while !path.is_empty() {
        if let Some(rest) = path.strip_prefix('.') {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            value = access::attribute(value, &rest[..end])?;
            path = &rest[end..];
        } else {
            let Some((key, rest)) = path[1..].split_once(']') else { return raise("expected '}' before end of string") };
            let key = key.parse::<i64>().map(Value::from).unwrap_or_else(|_| Value::from(key));
            value = access::item(value, key)?;
            path = rest;
        }
    }
    Ok(value)
}

/// `pattern.format(*args)`.
pub fn braces(state: &State, pattern: &str, args: &[Value]) -> Result<String, Error> {
    let args = Arguments::new(args);
    let mut automatic = 0;
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at]);
        let tail = &rest[at..];
        if tail.starts_with("{{") || tail.starts_with("}}") {
            out.push_str(&tail[..1]);
            rest = &tail[2..];
            continue;
        }
        let Some(end) = tail.find('}').filter(|_| tail.starts_with('{')) else {
            return raise("single brace encountered in format string");
        };
        let inside = &tail[1..end];
        let (name, spec) = inside.split_once(':').unwrap_or((inside, ""));
        let (name, conversion) = name.split_once('!').unwrap_or((name, ""));
        let value = field(name, &args, &mut automatic)?;
        ensure_fuel(state, MAX_WIDTH as u64)?;
        out.push_str(&match conversion {
            "" => formatted(&value, spec)?,
            "r" | "a" => formatted(&Value::from(repr(&value)?), spec)?,
            _ => formatted(&Value::from(text_of(&value)?), spec)?,
        });
        rest = &tail[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}
