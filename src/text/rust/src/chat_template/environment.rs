//! The environment that transformers builds: lexer options, globals, limits, and the variables of one render.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{from_args, ValueOrKwargs};
use minijinja::{AutoEscape, Environment, Error, State, UndefinedBehavior, Value};

use super::method::{Args, Arguments};
use super::operators::escape_html;
use super::value::{check_depth, items_of, pairs_of, text_of, type_of, Dict, Range, Type};
use super::{access, filters, json, operators, raise, tests, time, Answer};
use crate::border::Failure;

/// One fuel pays for one instruction or 64 bytes of text. A chat of a thousand messages with tools needs well under a
/// million; this ends an endless template within seconds and bounds all the text it can make to 2 GB.
const FUEL: u64 = 32_000_000;

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

fn range(args: Args) -> Answer {
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
    Ok(Value::from_object(Range { start, stop, step, count: count as usize }))
}

/// `dict(pairs or mapping, **named)`.
fn dict(state: &State, args: Args) -> Answer {
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
    check_depth(state, Value::from_object(made))
}

/// `namespace(pairs or mapping, **named)`: the one object that a template may change.
fn namespace(state: &State, args: Args) -> Answer {
    let values = dict(state, args)?;
    for (name, _) in pairs_of(&values) {
        if name.as_str().is_some_and(|n| n.starts_with('_')) {
            return raise("Chat templates cannot store underscore-prefixed attributes on a namespace");
        }
    }
    let (values,) = from_args::<(ValueOrKwargs,)>(std::slice::from_ref(&values))?;
    minijinja::functions::namespace(Some(values))
}

/// The body of `{% generation %}`: rendered in a scope of its own and printed.
fn generation(state: &mut State, args: Args) -> Answer {
    match Arguments::new(&args).get(usize::MAX, "caller") {
        Some(caller) => caller.call(state, &[]),
        None => raise("generation block without a body"),
    }
}

pub fn build() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_fuel(Some(FUEL));
    environment.set_formatter(|out, state, value| {
        let plain = matches!(state.auto_escape(), AutoEscape::None) || value.is_safe();
        match (plain, value.as_str()) {
            (true, Some(text)) => out.write_str(text).map_err(Error::from),
            (true, None) => out.write_str(&text_of(value)?).map_err(Error::from),
            (false, _) => out.write_str(&escape_html(&text_of(value)?)).map_err(Error::from),
        }
    });
    operators::register(&mut environment);
    access::register(&mut environment);
    filters::register(&mut environment);
    tests::register(&mut environment);
    json::register(&mut environment);
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("range", range);
    environment.add_function("dict", dict);
    environment.add_function("namespace", namespace);
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
