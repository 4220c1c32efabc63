//! jinja2's tests (`x is string`) with Python's types.

use minijinja::{Environment, Error, Value};

use super::number::{self, Number};
use super::operators::{compare, equal};
use super::sequence;
use super::value::{type_name, type_of, Type};
use super::raise;

fn is_iterable(value: &Value) -> bool {
    match type_of(value) {
        Type::None | Type::Bool | Type::Int | Type::Float | Type::Method => false,
        Type::Other => value.try_iter().is_ok(),
        _ => true,
    }
}

/// `len` and indexing both work: also true for dicts and for undefined values.
fn is_sequence(value: &Value) -> bool {
    matches!(type_of(value), Type::Str | Type::List | Type::Tuple | Type::Dict | Type::Undefined)
}

fn is_callable(value: &Value) -> bool {
    match type_of(value) {
        Type::Method => true,
        Type::Other => value.as_object().is_some_and(|o| o.repr() == minijinja::value::ObjectRepr::Plain),
        // Undefined has a __call__ (which raises), so Python's callable() says yes.
        Type::Undefined => true,
        _ => false,
    }
}

/// Integer `value % divisor`, for odd, even and divisibleby.
fn remainder(value: &Value, divisor: i128) -> Result<f64, Error> {
    match Number::of(value) {
        Some(number) => Ok(number::modulo(number, Number::Int(divisor))?.as_f64()),
        None => raise(format!("unsupported operand type(s) for %: '{}' and 'int'", type_name(value))),
    }
}

/// Python's `is`: the same object, which for the constants of a template means same type and equal.
fn is_same(a: &Value, b: &Value) -> bool {
    type_of(a) == type_of(b) && equal(a, b)
}

type Wanted = fn(std::cmp::Ordering) -> bool;

fn ordered(environment: &mut Environment<'static>, names: &[&'static str], op: &'static str, wanted: Wanted) {
    for name in names {
        environment.add_test(*name, move |a: Value, b: Value| {
            Ok::<_, Error>(compare(op, &a, &b)?.is_some_and(wanted))
        });
    }
}

fn typed(environment: &mut Environment<'static>, name: &'static str, kinds: &'static [Type]) {
    environment.add_test(name, move |v: Value| kinds.contains(&type_of(&v)));
}

pub fn register(environment: &mut Environment<'static>) {
    environment.add_test("defined", |v: Value| !v.is_undefined());
    typed(environment, "undefined", &[Type::Undefined]);
    typed(environment, "none", &[Type::None]);
    typed(environment, "boolean", &[Type::Bool]);
    typed(environment, "integer", &[Type::Int]);
    typed(environment, "float", &[Type::Float]);
    typed(environment, "number", &[Type::Bool, Type::Int, Type::Float]);
    typed(environment, "string", &[Type::Str]);
    typed(environment, "mapping", &[Type::Dict]);
    environment.add_test("true", |v: Value| type_of(&v) == Type::Bool && v.is_true());
    environment.add_test("false", |v: Value| type_of(&v) == Type::Bool && !v.is_true());
    environment.add_test("iterable", |v: Value| is_iterable(&v));
    environment.add_test("sequence", |v: Value| is_sequence(&v));
    environment.add_test("callable", |v: Value| is_callable(&v));
    environment.add_test("sameas", |a: Value, b: Value| is_same(&a, &b));
    environment.add_test("escaped", |v: Value| v.is_safe());
    environment.add_test("odd", |v: Value| Ok::<_, Error>(remainder(&v, 2)? == 1.0));
    environment.add_test("even", |v: Value| Ok::<_, Error>(remainder(&v, 2)? == 0.0));
    environment.add_test("divisibleby", |v: Value, n: i64| Ok::<_, Error>(remainder(&v, n as i128)? == 0.0));
    environment.add_test("in", |a: Value, b: Value| sequence::contains(&b, &a));
    for name in ["eq", "equalto", "=="] {
        environment.add_test(name, |a: Value, b: Value| equal(&a, &b));
    }
    for name in ["ne", "!="] {
        environment.add_test(name, |a: Value, b: Value| !equal(&a, &b));
    }
    ordered(environment, &["lt", "lessthan", "<"], "<", std::cmp::Ordering::is_lt);
    ordered(environment, &["le", "<="], "<=", std::cmp::Ordering::is_le);
    ordered(environment, &["gt", "greaterthan", ">"], ">", std::cmp::Ordering::is_gt);
    ordered(environment, &["ge", ">="], ">=", std::cmp::Ordering::is_ge);
}
