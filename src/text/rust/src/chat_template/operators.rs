//! The operators of Python over template values.

use std::cmp::Ordering;

use minijinja::{Error, ErrorKind, State, Value};

use super::method::Args;
use super::number::{self, Number};
use super::value::{check_depth, check_stored, items_of, pairs_of, repr, text_of, type_name, type_of, Dict, Type};
use super::{format, raise, sequence, Answer};

fn unsupported<T>(op: &str, a: &Value, b: &Value) -> Result<T, Error> {
    for operand in [a, b] {
        if operand.is_undefined() {
            return Err(Error::new(ErrorKind::UndefinedError, format!("operand of {op} is undefined")));
        }
    }
    raise(format!("unsupported operand type(s) for {op}: '{}' and '{}'", type_name(a), type_name(b)))
}

type Arithmetic = fn(Number, Number) -> Result<Number, Error>;

fn arithmetic(op: &str, a: &Value, b: &Value, apply: Arithmetic) -> Answer {
    match (Number::of(a), Number::of(b)) {
        (Some(x), Some(y)) => Ok(apply(x, y)?.into()),
        _ => unsupported(op, a, b),
    }
}

pub fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Concatenation where one side may be marked safe: then the other side is escaped, as markupsafe does.
fn join_text(state: &State, a: &Value, b: &Value) -> Answer {
    let (left, right) = (text_of(a)?, text_of(b)?);
    sequence::ensure_fuel(state, (left.len() + right.len()) as u64)?;
    Ok(match (a.is_safe(), b.is_safe()) {
        (false, false) => Value::from(left + &right),
        (true, true) => Value::from_safe_string(left + &right),
        (true, false) => Value::from_safe_string(left + &escape_html(&right)),
        (false, true) => Value::from_safe_string(escape_html(&left) + &right),
    })
}

/// `~` without autoescape knows no safe strings, unlike `+`.
fn concat(state: &State, a: Value, b: Value) -> Answer {
    let (left, right) = (text_of(&a)?, text_of(&b)?);
    sequence::ensure_fuel(state, (left.len() + right.len()) as u64)?;
    Ok(Value::from(left + &right))
}

fn add(state: &State, a: Value, b: Value) -> Answer {
    match (type_of(&a), type_of(&b)) {
        (Type::Str, Type::Str) => join_text(state, &a, &b),
        (Type::List, Type::List) | (Type::Tuple, Type::Tuple) => sequence::concatenate(state, &a, &b),
        _ => arithmetic("+", &a, &b, number::add),
    }
}

fn mul(state: &State, a: Value, b: Value) -> Answer {
    let (subject, count) = if Number::of(&a).is_some() { (&b, &a) } else { (&a, &b) };
    match (type_of(subject), Number::of(count)) {
        (Type::Str | Type::List | Type::Tuple, Some(Number::Int(n))) => sequence::repeat(state, subject, n),
        _ => arithmetic("*", &a, &b, number::mul),
    }
}

fn modulo(state: &State, a: Value, b: Value) -> Answer {
    match a.as_str() {
        Some(pattern) => Ok(Value::from(format::percent(state, pattern, &b)?)),
        None => arithmetic("%", &a, &b, number::modulo),
    }
}

pub fn equal(a: &Value, b: &Value) -> bool {
    if let (Some(x), Some(y)) = (Number::of(a), Number::of(b)) {
        return x.compare(y) == Some(Ordering::Equal);
    }
    let (left, right) = (type_of(a), type_of(b));
    if left != right {
        return false;
    }
    match left {
        Type::List | Type::Tuple => match (items_of(a), items_of(b)) {
            (Ok(x), Ok(y)) => x.len() == y.len() && x.iter().zip(&y).all(|(p, q)| equal(p, q)),
            _ => false,
        },
        Type::Dict => {
            let (x, y) = (pairs_of(a), pairs_of(b).into_iter().collect::<Dict>());
            x.len() == y.len() && x.iter().all(|(key, item)| y.get(key).is_some_and(|other| equal(item, other)))
        }
        _ => a == b,
    }
}

/// The order of two values, or the TypeError that Python raises for a mixed pair.
pub fn compare(op: &str, a: &Value, b: &Value) -> Result<Option<Ordering>, Error> {
    if let (Some(x), Some(y)) = (Number::of(a), Number::of(b)) {
        return Ok(x.compare(y));
    }
    match (type_of(a), type_of(b)) {
        (Type::Str, Type::Str) => Ok(a.as_str().map(str::chars).zip(b.as_str().map(str::chars)).map(|(x, y)| x.cmp(y))),
        (Type::List, Type::List) | (Type::Tuple, Type::Tuple) => {
            let (x, y) = (items_of(a)?, items_of(b)?);
            for (p, q) in x.iter().zip(&y) {
                if !equal(p, q) {
                    return compare(op, p, q);
                }
            }
            Ok(Some(x.len().cmp(&y.len())))
        }
        _ => unsupported(op, a, b),
    }
}

fn compared(name: &str, a: &Value, b: &Value) -> Result<bool, Error> {
    Ok(match name {
        "eq" => equal(a, b),
        "ne" => !equal(a, b),
        "lt" => compare("<", a, b)? == Some(Ordering::Less),
        "gt" => compare(">", a, b)? == Some(Ordering::Greater),
        "le" => compare("<=", a, b)?.is_some_and(Ordering::is_le),
        "ge" => compare(">=", a, b)?.is_some_and(Ordering::is_ge),
        "in" => sequence::contains(b, a)?,
        "not in" => !sequence::contains(b, a)?,
        other => return raise(format!("unknown comparison {other}")),
    })
}

/// `first op1 second op2 third ...`, stopping at the first comparison that fails.
fn chain(first: Value, rest: Args) -> Answer {
    let mut left = &first;
    for pair in rest.chunks(2) {
        if let [op, right] = pair {
            if !compared(op.as_str().unwrap_or_default(), left, right)? {
                return Ok(Value::from(false));
            }
            left = right;
        }
    }
    Ok(Value::from(true))
}

/// What a `for` walks.
fn iterable(value: Value) -> Answer {
    match type_of(&value) {
        Type::None | Type::Bool | Type::Int | Type::Float | Type::Method => {
            raise(format!("'{}' object is not iterable", type_name(&value)))
        }
        // loop.last and loop.length need to know the end, which jinja2 finds by reading ahead.
        Type::Generator => Ok(Value::from(items_of(&value)?)),
        _ => Ok(value),
    }
}

fn neg(value: Value) -> Answer {
    match Number::of(&value) {
        Some(number) => Ok(number::neg(number)?.into()),
        None => raise(format!("bad operand type for unary -: {}", repr(&value)?)),
    }
}

pub fn register(environment: &mut minijinja::Environment<'static>) {
    environment.add_filter("py.add", add);
    environment.add_filter("py.sub", |a: Value, b: Value| arithmetic("-", &a, &b, number::sub));
    environment.add_filter("py.mul", mul);
    environment.add_filter("py.div", |a: Value, b: Value| arithmetic("/", &a, &b, number::div));
    environment.add_filter("py.floordiv", |a: Value, b: Value| arithmetic("//", &a, &b, number::floor_div));
    environment.add_filter("py.mod", modulo);
    environment.add_filter("py.pow", |a: Value, b: Value| arithmetic("**", &a, &b, number::pow));
    environment.add_filter("py.concat", concat);
    environment.add_filter("py.eq", |a: Value, b: Value| equal(&a, &b));
    environment.add_filter("py.ne", |a: Value, b: Value| !equal(&a, &b));
    environment.add_filter("py.lt", |a: Value, b: Value| compared("lt", &a, &b));
    environment.add_filter("py.le", |a: Value, b: Value| compared("le", &a, &b));
    environment.add_filter("py.gt", |a: Value, b: Value| compared("gt", &a, &b));
    environment.add_filter("py.ge", |a: Value, b: Value| compared("ge", &a, &b));
    environment.add_filter("py.in", |a: Value, b: Value| compared("in", &a, &b));
    environment.add_filter("py.chain", chain);
    environment.add_filter("py.iter", iterable);
    environment.add_filter("py.neg", neg);
    environment.add_filter("py.shallow", check_depth);
    environment.add_filter("py.stored", check_stored);
}
