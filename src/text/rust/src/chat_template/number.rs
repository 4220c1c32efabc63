//! Python's numbers: bool counts as int, `//` and `%` round towards minus infinity, `/` is always a float.

use std::cmp::Ordering;

use minijinja::{Error, Value};

use super::raise;
use super::value::{type_of, Type};

#[derive(Clone, Copy, Debug)]
pub enum Number {
    Int(i128),
    Float(f64),
}

use Number::{Float, Int};

impl Number {
    pub fn of(value: &Value) -> Option<Number> {
        match type_of(value) {
            Type::Bool => Some(Int(value.is_true() as i128)),
            Type::Int => i128::try_from(value.clone()).ok().map(Int),
            Type::Float => f64::try_from(value.clone()).ok().map(Float),
            _ => None,
        }
    }

    pub fn as_f64(self) -> f64 {
        match self {
            Int(i) => i as f64,
            Float(f) => f,
        }
    }

    pub fn compare(self, other: Number) -> Option<Ordering> {
        match (self, other) {
            (Int(a), Int(b)) => Some(a.cmp(&b)),
            (a, b) => a.as_f64().partial_cmp(&b.as_f64()),
        }
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Value {
        match number {
            Int(i) => i64::try_from(i).map(Value::from).unwrap_or_else(|_| Value::from(i)),
            Float(f) => Value::from(f),
        }
    }
}

fn overflow<T>() -> Result<T, Error> {
    raise("integer out of range")
}

fn zero<T>() -> Result<T, Error> {
    raise("division by zero")
}

fn integers(a: Number, b: Number, op: fn(i128, i128) -> Option<i128>) -> Option<Result<Number, Error>> {
    match (a, b) {
        (Int(a), Int(b)) => Some(op(a, b).map_or_else(overflow, |i| Ok(Int(i)))),
        _ => None,
    }
}

pub fn add(a: Number, b: Number) -> Result<Number, Error> {
    integers(a, b, i128::checked_add).unwrap_or_else(|| Ok(Float(a.as_f64() + b.as_f64())))
}

pub fn sub(a: Number, b: Number) -> Result<Number, Error> {
    integers(a, b, i128::checked_sub).unwrap_or_else(|| Ok(Float(a.as_f64() - b.as_f64())))
}

pub fn mul(a: Number, b: Number) -> Result<Number, Error> {
    integers(a, b, i128::checked_mul).unwrap_or_else(|| Ok(Float(a.as_f64() * b.as_f64())))
}

pub fn div(a: Number, b: Number) -> Result<Number, Error> {
    if b.as_f64() == 0.0 {
        return zero();
    }
    Ok(Float(a.as_f64() / b.as_f64()))
}

pub fn floor_div(a: Number, b: Number) -> Result<Number, Error> {
    match (a, b) {
        (Int(_), Int(0)) => zero(),
        (Int(a), Int(b)) => {
            let floor = (a.checked_rem(b).unwrap_or(0) != 0 && (a < 0) != (b < 0)) as i128;
            a.checked_div(b).map_or_else(overflow, |q| Ok(Int(q - floor)))
        }
        _ if b.as_f64() == 0.0 => zero(),
        _ => Ok(Float((a.as_f64() / b.as_f64()).floor())),
    }
}

pub fn modulo(a: Number, b: Number) -> Result<Number, Error> {
    match (a, b) {
        (Int(_), Int(0)) => zero(),
        (Int(a), Int(b)) => {
            let rest = a.checked_rem(b).unwrap_or(0);
            Ok(Int(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }))
        }
        _ if b.as_f64() == 0.0 => zero(),
        _ => {
            let (a, b) = (a.as_f64(), b.as_f64());
            let rest = a % b;
            Ok(Float(if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }))
        }
    }
}

pub fn pow(a: Number, b: Number) -> Result<Number, Error> {
    match (a, b) {
        (Int(base), Int(exponent)) if exponent >= 0 => {
            let exponent = u32::try_from(exponent).or_else(|_| overflow())?;
            base.checked_pow(exponent).map_or_else(overflow, |i| Ok(Int(i)))
        }
        _ if a.as_f64() == 0.0 && b.as_f64() < 0.0 => raise("0.0 cannot be raised to a negative power"),
        _ => Ok(Float(a.as_f64().powf(b.as_f64()))),
    }
}

pub fn neg(a: Number) -> Result<Number, Error> {
    match a {
        Int(i) => i.checked_neg().map_or_else(overflow, |i| Ok(Int(i))),
        Float(f) => Ok(Float(-f)),
    }
}
