//! The methods of str, dict, list and tuple that a sandboxed template may call.

use std::ops::Deref;

use minijinja::value::ArgType;
use minijinja::{Error, State, Value};

use super::operators::equal;
use super::text::{self, Align, Side};
use super::value::{expect_str, items_of, pairs_of, tuple, type_name, Type, View};
use super::{format, raise, Answer};

const STR: &[&str] = &[
    "capitalize", "casefold", "center", "count", "endswith", "expandtabs", "find", "format", "index", "isalnum", "isalpha",
    "isascii", "isdecimal", "isdigit", "islower", "isnumeric", "isspace", "istitle", "isupper", "join", "ljust", "lower",
    "lstrip", "partition", "removeprefix", "removesuffix", "replace", "rfind", "rindex", "rjust", "rpartition", "rsplit",
    "rstrip", "split", "splitlines", "startswith", "strip", "swapcase", "title", "upper", "zfill",
];
const DICT: &[&str] = &["copy", "get", "items", "keys", "values"];
const LIST: &[&str] = &["copy", "count", "index"];
const TUPLE: &[&str] = &["count", "index"];

/// What the immutable sandbox of jinja2 withholds: methods that would change their object.
const UNSAFE_DICT: &[&str] = &["clear", "pop", "popitem", "setdefault", "update"];
const UNSAFE_LIST: &[&str] = &["append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"];

pub fn is_method(kind: Type, name: &str) -> bool {
    match kind {
        Type::Str => STR.contains(&name),
        Type::Dict => DICT.contains(&name),
        Type::List => LIST.contains(&name),
        Type::Tuple => TUPLE.contains(&name),
        _ => false,
    }
}

pub fn is_unsafe(kind: Type, name: &str) -> bool {
    match kind {
        Type::Dict => UNSAFE_DICT.contains(&name),
        Type::List => UNSAFE_LIST.contains(&name),
        _ => false,
    }
}

/// Every argument of a filter or function as it came, the named ones as one last value.
#[derive(Debug)]
pub struct Args(pub Vec<Value>);

impl Deref for Args {
    type Target = [Value];
    fn deref(&self) -> &[Value] {
        &self.0
    }
}

impl<'a> ArgType<'a> for Args {
    type Output = Args;

    fn from_value(value: Option<&'a Value>) -> Result<Args, Error> {
        Ok(Args(value.into_iter().cloned().collect()))
    }

    fn from_state_and_values(_: Option<&'a State>, values: &'a [Value], at: usize) -> Result<(Args, usize), Error> {
        let rest = values.get(at..).unwrap_or_default();
        Ok((Args(rest.to_vec()), rest.len()))
    }

    fn from_state_and_values_mut(_: Option<&State>, values: &'a [Value], at: usize) -> Result<(Args, usize), Error> {
        Self::from_state_and_values(None, values, at)
    }
}

/// Arguments of a call: positional ones first, named ones by name.
pub struct Arguments<'a> {
    positional: &'a [Value],
    named: Vec<(Value, Value)>,
}

impl<'a> Arguments<'a> {
    pub fn new(args: &'a [Value]) -> Arguments<'a> {
        match args.split_last() {
            Some((last, head)) if last.is_kwargs() => Arguments { positional: head, named: pairs_of(last) },
            _ => Arguments { positional: args, named: Vec::new() },
        }
    }

    /// The argument at `index` or called `name`; None when absent.
    pub fn get(&self, index: usize, name: &str) -> Option<Value> {
        let named = || self.named.iter().find(|(key, _)| key.as_str() == Some(name)).map(|(_, v)| v.clone());
        self.positional.get(index).cloned().or_else(named)
    }

    pub fn need(&self, index: usize, name: &str) -> Answer {
        self.get(index, name).map_or_else(|| raise(format!("missing argument '{name}'")), Ok)
    }

    pub fn text(&self, index: usize, name: &str) -> Result<String, Error> {
        Ok(expect_str(&self.need(index, name)?, name)?.to_string())
    }

    /// An optional string where None counts as absent.
    pub fn optional_text(&self, index: usize, name: &str) -> Result<Option<String>, Error> {
        match self.get(index, name) {
            Some(value) if !value.is_none() => Ok(Some(expect_str(&value, name)?.to_string())),
            _ => Ok(None),
        }
    }

    pub fn integer(&self, index: usize, name: &str) -> Result<Option<i64>, Error> {
        match self.get(index, name) {
            None => Ok(None),
            Some(value) if value.is_none() => Ok(None),
            Some(value) => match value.as_i64() {
                Some(number) => Ok(Some(number)),
                None => raise(format!("{name}: '{}' object cannot be interpreted as an integer", type_name(&value))),
            },
        }
    }

    /// A count where a negative number means no limit.
    pub fn limit(&self, index: usize, name: &str) -> Result<Option<usize>, Error> {
        Ok(self.integer(index, name)?.and_then(|n| usize::try_from(n).ok()))
    }
}

fn list(texts: Vec<String>) -> Answer {
    Ok(Value::from(texts.into_iter().map(Value::from).collect::<Vec<_>>()))
}

fn split(subject: &str, args: &Arguments, from_right: bool) -> Answer {
    let limit = args.limit(1, "maxsplit")?;
    let Some(separator) = args.optional_text(0, "sep")? else {
        return list(if from_right { text::rsplit_spaces(subject, limit) } else { text::split_spaces(subject, limit) });
    };
    if separator.is_empty() {
        return raise("empty separator");
    }
    let parts = limit.map_or(usize::MAX, |n| n.saturating_add(1));
    let own = |s: &str| s.to_string();
    if from_right {
        let mut found: Vec<String> = subject.rsplitn(parts, &separator).map(own).collect();
        found.reverse();
        return list(found);
    }
    list(subject.splitn(parts, &separator).map(own).collect())
}

fn partition(subject: &str, separator: &str, from_right: bool) -> Answer {
    if separator.is_empty() {
        return raise("empty separator");
    }
    let found = if from_right { subject.rsplit_once(separator) } else { subject.split_once(separator) };
    let parts = match found {
        Some((head, tail)) => [head, separator, tail],
        None if from_right => ["", "", subject],
        None => [subject, "", ""],
    };
    Ok(tuple(parts.into_iter().map(Value::from).collect()))
}

/// The part of `subject` between two optional code point positions, and where it starts.
fn window(subject: &str, start: Option<i64>, stop: Option<i64>) -> Option<(usize, String)> {
    let chars: Vec<char> = subject.chars().collect();
    let size = chars.len() as i64;
    let clamp = |at: i64| (if at < 0 { at + size } else { at }).max(0);
    let (from, to) = (clamp(start.unwrap_or(0)), clamp(stop.unwrap_or(size)).min(size));
    (from <= to).then(|| (from as usize, chars[from as usize..to as usize].iter().collect()))
}

fn has_affix(subject: &str, args: &Arguments, at_end: bool) -> Answer {
    let affix = args.need(0, "prefix")?;
    let Some((_, part)) = window(subject, args.integer(1, "start")?, args.integer(2, "end")?) else {
        return Ok(Value::from(false));
    };
    let options = if affix.is_tuple() { items_of(&affix)? } else { vec![affix] };
    for option in &options {
        let option = expect_str(option, "first argument must be str or a tuple of str")?;
        if if at_end { part.ends_with(option) } else { part.starts_with(option) } {
            return Ok(Value::from(true));
        }
    }
    Ok(Value::from(false))
}

fn position(subject: &str, args: &Arguments, from_right: bool, must_exist: bool) -> Answer {
    let needle = args.text(0, "sub")?;
    let found = window(subject, args.integer(1, "start")?, args.integer(2, "end")?)
        .and_then(|(offset, part)| Some(offset + text::find(&part, &needle, from_right)?));
    match found {
        Some(at) => Ok(Value::from(at)),
        None if must_exist => raise("substring not found"),
        None => Ok(Value::from(-1)),
    }
}

fn count(subject: &str, args: &Arguments) -> Answer {
    let needle = args.text(0, "sub")?;
    let Some((_, part)) = window(subject, args.integer(1, "start")?, args.integer(2, "end")?) else {
        return Ok(Value::from(0));
    };
    Ok(Value::from(if needle.is_empty() { part.chars().count() + 1 } else { part.matches(&needle).count() }))
}

fn pad(state: &State, subject: &str, args: &Arguments, align: Align) -> Answer {
    let width = usize::try_from(args.integer(0, "width")?.unwrap_or(0)).unwrap_or(0);
    super::sequence::ensure_fuel(state, width as u64)?;
    let fill = args.optional_text(1, "fillchar")?.and_then(|s| s.chars().next()).unwrap_or(' ');
    Ok(Value::from(text::pad(subject, width, fill, align)))
}

fn join(state: &State, subject: &str, items: &Value) -> Answer {
    let mut parts = Vec::new();
    for item in items_of(items)? {
        parts.push(expect_str(&item, "sequence item")?.to_string());
    }
    let bytes = parts.iter().map(|part| part.len() + subject.len()).sum::<usize>();
    super::sequence::ensure_fuel(state, bytes as u64)?;
    Ok(Value::from(parts.join(subject)))
}

fn is_cased(subject: &str, wanted: fn(char) -> bool, other: fn(char) -> bool) -> bool {
    subject.chars().any(wanted) && !subject.chars().any(other)
}

fn question(subject: &str, name: &str) -> bool {
    let all = |test: fn(char) -> bool| !subject.is_empty() && subject.chars().all(test);
    match name {
        "isalnum" => all(char::is_alphanumeric),
        "isalpha" => all(char::is_alphabetic),
        "isascii" => subject.is_ascii(),
        "isdecimal" | "isdigit" | "isnumeric" => all(char::is_numeric),
        "islower" => is_cased(subject, char::is_lowercase, char::is_uppercase),
        "isupper" => is_cased(subject, char::is_uppercase, char::is_lowercase),
        "isspace" => all(text::is_space),
        _ => is_cased(subject, char::is_uppercase, |_| false) && text::title(subject) == subject,
    }
}

fn zero_fill(state: &State, subject: &str, args: &Arguments) -> Answer {
    let width = usize::try_from(args.integer(0, "width")?.unwrap_or(0)).unwrap_or(0);
    super::sequence::ensure_fuel(state, width as u64)?;
    let (sign, digits) = match subject.chars().next() {
        Some(c @ ('+' | '-')) => (c.to_string(), &subject[1..]),
        _ => (String::new(), subject),
    };
    Ok(Value::from(sign.clone() + &text::pad(digits, width.saturating_sub(sign.len()), '0', Align::Right)))
}

fn expand_tabs(subject: &str, args: &Arguments) -> Answer {
    let size = args.limit(0, "tabsize")?.unwrap_or(8);
    let mut out = String::new();
    let mut column = 0;
    for c in subject.chars() {
        match c {
            '\t' if size > 0 => {
                let fill = size - column % size;
                out.extend(std::iter::repeat_n(' ', fill));
                column += fill;
            }
            '\t' => {}
            _ => {
                out.push(c);
                column = if c == '\n' || c == '\r' { 0 } else { column + 1 };
            }
        }
    }
    Ok(Value::from(out))
}

fn strip(subject: &str, args: &Arguments, side: Side) -> Answer {
    Ok(Value::from(text::strip(subject, args.optional_text(0, "chars")?.as_deref(), side)))
}

fn of_str(state: &mut State, subject: &str, name: &str, args: &[Value]) -> Answer {
    let with = Arguments::new(args);
    match name {
        "strip" => strip(subject, &with, Side::Both),
        "lstrip" => strip(subject, &with, Side::Left),
        "rstrip" => strip(subject, &with, Side::Right),
        "split" => split(subject, &with, false),
        "rsplit" => split(subject, &with, true),
        "partition" => partition(subject, &with.text(0, "sep")?, false),
        "rpartition" => partition(subject, &with.text(0, "sep")?, true),
        "splitlines" => list(text::split_lines(subject, with.get(0, "keepends").is_some_and(|v| v.is_true()))),
        "startswith" => has_affix(subject, &with, false),
        "endswith" => has_affix(subject, &with, true),
        "find" => position(subject, &with, false, false),
        "rfind" => position(subject, &with, true, false),
        "index" => position(subject, &with, false, true),
        "rindex" => position(subject, &with, true, true),
        "count" => count(subject, &with),
        "join" => join(state, subject, &with.need(0, "iterable")?),
        "format" => Ok(Value::from(format::braces(state, subject, args)?)),
        "replace" => {
            let (old, new) = (with.text(0, "old")?, with.text(1, "new")?);
            super::sequence::ensure_fuel(state, text::replaced_size(subject, &old, &new))?;
            Ok(Value::from(text::replace(subject, &old, &new, with.limit(2, "count")?)))
        }
        "upper" => Ok(Value::from(subject.to_uppercase())),
        "lower" | "casefold" => Ok(Value::from(subject.to_lowercase())),
        "capitalize" => Ok(Value::from(text::capitalize(subject))),
        "title" => Ok(Value::from(text::title(subject))),
        "swapcase" => Ok(Value::from(text::swap_case(subject))),
        "removeprefix" => {
            let prefix = with.text(0, "prefix")?;
            Ok(Value::from(subject.strip_prefix(prefix.as_str()).unwrap_or(subject)))
        }
        "removesuffix" => {
            let suffix = with.text(0, "suffix")?;
            Ok(Value::from(subject.strip_suffix(suffix.as_str()).unwrap_or(subject)))
        }
        "center" => pad(state, subject, &with, Align::Center),
        "ljust" => pad(state, subject, &with, Align::Left),
        "rjust" => pad(state, subject, &with, Align::Right),
        "zfill" => zero_fill(state, subject, &with),
        "expandtabs" => expand_tabs(subject, &with),
        _ => Ok(Value::from(question(subject, name))),
    }
}

/// A view of a dict: "dict_items", "dict_keys" or "dict_values".
pub fn view(owner: &Value, name: &'static str) -> Value {
    let pick = |(key, item): (Value, Value)| match name {
        "dict_items" => tuple(vec![key, item]),
        "dict_keys" => key,
        _ => item,
    };
    Value::from_object(View { name, items: pairs_of(owner).into_iter().map(pick).collect() })
}

fn of_dict(owner: &Value, name: &str, args: &Arguments) -> Answer {
    match name {
        "items" => Ok(view(owner, "dict_items")),
        "keys" => Ok(view(owner, "dict_keys")),
        "values" => Ok(view(owner, "dict_values")),
        "get" => {
            let found = owner.as_object().and_then(|o| o.get_value(&args.need(0, "key").ok()?));
            args.need(0, "key")?;
            Ok(found.or_else(|| args.get(1, "default")).unwrap_or_else(|| Value::from(())))
        }
        _ => Ok(owner.clone()),
    }
}

fn of_sequence(owner: &Value, name: &str, args: &Arguments) -> Answer {
    if name == "copy" {
        return Ok(owner.clone());
    }
    let wanted = args.need(0, "value")?;
    let items = items_of(owner)?;
    if name == "count" {
        return Ok(Value::from(items.iter().filter(|item| equal(item, &wanted)).count()));
    }
    match items.iter().position(|item| equal(item, &wanted)) {
        Some(at) => Ok(Value::from(at)),
        None => raise("value is not in the sequence"),
    }
}

pub fn call(state: &mut State, owner: &Value, name: &str, args: &[Value]) -> Answer {
    match owner.as_str() {
        Some(subject) => of_str(state, subject, name, args),
        None if super::value::type_of(owner) == Type::Dict => of_dict(owner, name, &Arguments::new(args)),
        None => of_sequence(owner, name, &Arguments::new(args)),
    }
}
