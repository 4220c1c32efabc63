//! Indexing, slicing, membership and repetition as Python's sequences do it. Text counts in code points.

use minijinja::{Error, State, Value};

use super::operators::equal;
use super::value::{expect_str, items_of, string_like, tuple, type_name, type_of, Type};
use super::{raise, Answer};

pub fn concatenate(state: &State, a: &Value, b: &Value) -> Answer {
    let slots = a.len().unwrap_or(0) + b.len().unwrap_or(0);
    ensure_fuel(state, (slots as u64).saturating_mul(SLOT_BYTES))?;
    let as_tuple = a.is_tuple();
    let mut items = items_of(a)?;
    items.extend(items_of(b)?);
    Ok(if as_tuple { tuple(items) } else { Value::from(items) })
}

/// Bytes that one fuel pays for. The machine charges results after they exist, so big ones are asked for before.
const BYTES_PER_FUEL: u64 = 64;
/// No prompt is as long as this; one value of a template may not be either.
const MAX_BYTES: u64 = 256 << 20;
/// What an item of a list takes.
const SLOT_BYTES: u64 = 24;

/// Fails when a value of `bytes` is beyond what a template may make.
pub fn ensure_fuel(state: &State, bytes: u64) -> Result<(), Error> {
    let left = state.fuel_levels().map_or(u64::MAX, |levels| levels.1);
    if bytes > MAX_BYTES || bytes / BYTES_PER_FUEL >= left {
        return raise(format!("a value of {bytes} bytes is more than a template may make"));
    }
    Ok(())
}

pub fn repeat(state: &State, subject: &Value, count: i128) -> Answer {
    let times = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
    if let Some(text) = subject.as_str() {
        ensure_fuel(state, (text.len() as u64).saturating_mul(times as u64))?;
        return Ok(string_like(subject, text.repeat(times)));
    }
    let items = items_of(subject)?;
    ensure_fuel(state, (items.len() as u64).saturating_mul(times as u64).saturating_mul(SLOT_BYTES))?;
    let repeated: Vec<Value> = std::iter::repeat_n(items, times).flatten().collect();
    Ok(if subject.is_tuple() { tuple(repeated) } else { Value::from(repeated) })
}

pub fn contains(container: &Value, item: &Value) -> Result<bool, Error> {
    match type_of(container) {
        Type::Undefined => Ok(false),
        Type::Str => Ok(expect_str(container, "in")?.contains(expect_str(item, "'in <string>' requires string")?)),
        Type::Dict => match type_of(item) {
            Type::List | Type::Dict => raise(format!("unhashable type: '{}'", type_name(item))),
            _ => Ok(container.as_object().is_some_and(|o| o.get_value(item).is_some())),
        },
        _ => Ok(items_of(container)?.iter().any(|x| equal(x, item))),
    }
}

/// One end of a slice: None, or an integer (bool counts).
fn bound(value: &Value) -> Result<Option<i64>, Error> {
    match type_of(value) {
        Type::None => Ok(None),
        Type::Bool => Ok(Some(value.is_true() as i64)),
        Type::Int => Ok(Some(value.as_i64().unwrap_or(i64::MAX))),
        _ => raise("slice indices must be integers or None or have an __index__ method"),
    }
}

/// `slice.indices(size)` walked: the positions that the slice visits.
fn positions(size: usize, start: Option<i64>, stop: Option<i64>, step: i64) -> Vec<usize> {
    let size = size as i64;
    let clamp = |at: i64, low: i64, high: i64| (if at < 0 { at.saturating_add(size) } else { at }).clamp(low, high);
    let mut found = Vec::new();
    if step > 0 {
        let end = stop.map_or(size, |at| clamp(at, 0, size));
        let mut at = start.map_or(0, |at| clamp(at, 0, size));
        while at < end {
            found.push(at as usize);
            at = at.saturating_add(step);
        }
    } else {
        let end = stop.map_or(-1, |at| clamp(at, -1, size - 1));
        let mut at = start.map_or(size - 1, |at| clamp(at, -1, size - 1));
        while at > end {
            found.push(at as usize);
            at = at.saturating_add(step);
        }
    }
    found
}

fn pick<T: Clone>(items: &[T], at: &[usize]) -> Vec<T> {
    at.iter().filter_map(|&i| items.get(i).cloned()).collect()
}

pub fn slice(subject: Value, start: Value, stop: Value, step: Value) -> Answer {
    let kind = type_of(&subject);
    if !matches!(kind, Type::Str | Type::List | Type::Tuple) {
        return raise(format!("'{}' object cannot be sliced", type_name(&subject)));
    }
    let (start, stop, step) = (bound(&start)?, bound(&stop)?, bound(&step)?.unwrap_or(1));
    if step == 0 {
        return raise("slice step cannot be zero");
    }
    if let Some(text) = subject.as_str() {
        let chars: Vec<char> = text.chars().collect();
        let picked = pick(&chars, &positions(chars.len(), start, stop, step));
        return Ok(string_like(&subject, picked.into_iter().collect()));
    }
    let items = items_of(&subject)?;
    let picked = pick(&items, &positions(items.len(), start, stop, step));
    Ok(if kind == Type::Tuple { tuple(picked) } else { Value::from(picked) })
}

/// `sequence[index]`, negative from the end; None when there is no such item.
pub fn at(subject: &Value, index: i64) -> Option<Value> {
    if let Some(text) = subject.as_str() {
        let position = if index < 0 { text.chars().count() as i64 + index } else { index };
        let letter = text.chars().nth(usize::try_from(position).ok()?)?;
        return Some(string_like(subject, letter.to_string()));
    }
    let object = subject.as_object()?;
    let position = if index < 0 { object.enumerator_len()? as i64 + index } else { index };
    object.get_value(&Value::from(usize::try_from(position).ok()?))
}

/// `len(value)`.
pub fn length(value: &Value) -> Result<usize, Error> {
    match type_of(value) {
        Type::Undefined => Ok(0),
        Type::Str | Type::List | Type::Tuple | Type::Dict | Type::View => Ok(value.len().unwrap_or(0)),
        Type::Other if value.len().is_some() => Ok(value.len().unwrap_or(0)),
        _ => raise(format!("object of type '{}' has no len()", type_name(value))),
    }
}
