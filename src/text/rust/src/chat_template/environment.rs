//! The environment that transformers builds: lexer options, globals, limits, and the variables of one render.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Rest;
use minijinja::{Environment, Error, UndefinedBehavior, Value};

use super::method::Arguments;
use super::value::{items_of, pairs_of, text_of, type_of, Dict, Type};
use super::{access, filters, json, operators, raise, tests, time, Answer};
use crate::border::Failure;

/// One unit pays for an instruction or 64 bytes. A chat of a thousand messages with tools needs well under a million;
/// this stops an endless template after a few seconds and its output at about 3 GB of work, a hundredth of it in memory.
const FUEL: u64 = 50_000_000;

/// jinja2's sandbox has the same bound.
const MAX_RANGE: i64 = 100_000;

pub fn syntax() -> SyntaxConfig {
    let mut builder = SyntaxConfig::builder();
    builder.trim_blocks(true).lstrip_blocks(true);
    builder.build().unwrap_or_default()
}

fn raise_exception(message: Value) -> Answer {
    raise(text_of(&message)?)
}

fn range(args: Rest<Value>) -> Answer {
    let numbers: Option<Vec<i64>> = args.iter().map(Value::as_i64).collect();
    let (start, stop, step) = match numbers.as_deref() {
        Some([stop]) => (0, *stop, 1),
        Some([start, stop]) => (*start, *stop, 1),
        Some([start, stop, step]) => (*start, *stop, *step),
        _ => return raise("range expects one to three integers"),
    };
    if step == 0 {
        return raise("range() arg 3 must not be zero");
    }
    let distance = if step > 0 { stop as i128 - start as i128 } else { start as i128 - stop as i128 };
    let count = (distance.max(0) as u128).div_ceil(step.unsigned_abs() as u128);
    if count > MAX_RANGE as u128 {
        return raise(format!("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({MAX_RANGE})."));
    }
    Ok(Value::from((0..count as i64).map(|i| Value::from(start + i * step)).collect::<Vec<_>>()))
}

/// `dict(pairs or mapping, **named)`.
fn dict(args: Rest<Value>) -> Answer {
    let mut made = Dict::new();
    for source in args.iter() {
        match type_of(source) {
            Type::Dict => made.extend(pairs_of(source)),
            _ => {
                for pair in items_of(source)? {
                    match items_of(&pair)?.as_slice() {
                        [key, value] => made.insert(key.clone(), value.clone()),
                        _ => return raise("dictionary update sequence element has the wrong length"),
                    };
                }
            }
        }
    }
    Ok(Value::from_object(made))
}

/// The body of `{% generation %}`: rendered in a scope of its own and printed.
fn generation(state: &mut minijinja::State, args: Rest<Value>) -> Answer {
    match Arguments::new(&args).get(usize::MAX, "caller") {
        Some(caller) => caller.call(state, &[]),
        None => raise("generation block without a body"),
    }
}

pub fn build() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_fuel(Some(FUEL));
    environment.set_formatter(|out, _state, value| match value.as_str() {
        Some(text) => out.write_str(text).map_err(Error::from),
        None => out.write_str(&text_of(value)?).map_err(Error::from),
    });
    operators::register(&mut environment);
    access::register(&mut environment);
    filters::register(&mut environment);
    tests::register(&mut environment);
    json::register(&mut environment);
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("range", range);
    environment.add_function("dict", dict);
    environment.add_function("__generation", generation);
    environment.remove_global("debug");
    environment
}

/// The variables of one render, from a JSON object, plus the clock.
pub fn context(variables: &[u8], now: i64) -> Result<Value, Failure> {
    let parsed: serde_json::Value =
        serde_json::from_slice(variables).map_err(|e| Failure::invalid(format!("template variables: {e}")))?;
    let mut values: Dict = match json::to_value(&parsed) {
        object if type_of(&object) == Type::Dict => pairs_of(&object).into_iter().collect(),
        _ => return Err(Failure::invalid("template variables are not a JSON object")),
    };
    let clock = Value::from_function(move |format: &str| time::strftime(now, format));
    values.insert(Value::from("strftime_now"), clock);
    Ok(Value::from_object(values))
}
