//! `a.b` and `a[b]` as jinja2's sandbox resolves them: an attribute first for `.`, an item first for `[]`, and an
//! undefined value where Python would raise.

use minijinja::{Error, ErrorKind, State, Value};

use super::method::{self, Args};
use super::sequence;
use super::value::{type_name, type_of, Method, Type};
use super::Answer;

fn undefined_parent(name: &str) -> Error {
    Error::new(ErrorKind::UndefinedError, format!("cannot read '{name}' of an undefined value"))
}

/// A method of Python's own types, when the sandbox would hand it out.
fn method_of(owner: &Value, name: &str) -> Option<Value> {
    method::is_method(type_of(owner), name)
        .then(|| Value::from_object(Method { owner: owner.clone(), name: name.to_string() }))
}

fn key_of(owner: &Value, key: &Value) -> Option<Value> {
    match type_of(owner) {
        Type::Dict | Type::Other => owner.as_object()?.get_value(key),
        Type::Str | Type::List | Type::Tuple => match type_of(key) {
            Type::Int => sequence::at(owner, key.as_i64()?),
            Type::Bool => sequence::at(owner, key.is_true() as i64),
            _ => None,
        },
        _ => None,
    }
}

pub fn attribute(owner: Value, name: &str) -> Answer {
    if owner.is_undefined() {
        return Err(undefined_parent(name));
    }
    if method::is_unsafe(type_of(&owner), name) {
        return Ok(Value::UNDEFINED);
    }
    Ok(method_of(&owner, name).or_else(|| key_of(&owner, &Value::from(name))).unwrap_or(Value::UNDEFINED))
}

pub fn item(owner: Value, key: Value) -> Answer {
    if owner.is_undefined() {
        return Err(undefined_parent(&key.to_string()));
    }
    if let Some(found) = key_of(&owner, &key) {
        return Ok(found);
    }
    Ok(key.as_str().and_then(|name| method_of(&owner, name)).unwrap_or(Value::UNDEFINED))
}

/// `owner.name(args)`: a method of a Python type, something callable found under the name, or a method of an object of
/// the machine (loop.cycle and the like).
fn invoke(state: &mut State, owner: Value, name: String, args: Args) -> Answer {
    if owner.is_undefined() {
        return Err(undefined_parent(&name));
    }
    let kind = type_of(&owner);
    if method::is_method(kind, &name) {
        return method::call(state, &owner, &name, &args);
    }
    if kind == Type::Other {
        return owner.call_method(state, &name, &args);
    }
    let callee = attribute(owner.clone(), &name)?;
    if callee.is_undefined() {
        let message = format!("'{}' object has no attribute '{name}'", type_name(&owner));
        return Err(Error::new(ErrorKind::UndefinedError, message));
    }
    callee.call(state, &args)
}

/// The filter `attr`: attributes only, never items.
pub fn attr_filter(owner: Value, name: &str) -> Answer {
    match type_of(&owner) {
        Type::Other => attribute(owner, name),
        _ => Ok(method_of(&owner, name).unwrap_or(Value::UNDEFINED)),
    }
}

pub fn register(environment: &mut minijinja::Environment<'static>) {
    environment.add_filter("py.attribute", |owner: Value, name: &str| attribute(owner, name));
    environment.add_filter("py.item", item);
    environment.add_filter("py.slice", sequence::slice);
    environment.add_filter("py.method", invoke);
}
