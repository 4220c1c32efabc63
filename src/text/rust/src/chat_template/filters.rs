//! jinja2's filters where minijinja's have other results: other text for values, other errors, generators for lists.

use std::cmp::Ordering;

use minijinja::{Error, State, Value};

use super::method::{view, Args, Arguments};
use super::number::Number;
use super::operators::{compare, equal, escape_html};
use super::text::{self, Align, Side};
use super::value::{
    check_depth, expect_str, items_of, pairs_of, repr, string_like, text_of, tuple, type_name, type_of, Dict, Generator, Type,
};
use super::{access, format, raise, sequence, Answer};

/// A stable sort whose comparison may fail.
pub fn sort_by<T>(
    items: &mut [T],
    order: impl Fn(&T, &T) -> Result<Option<Ordering>, Error>,
) -> Result<(), Error> {
    let mut failure = None;
    items.sort_by(|a, b| match order(a, b) {
        Ok(found) => found.unwrap_or(Ordering::Equal),
        Err(error) => {
            failure.get_or_insert(error);
            Ordering::Equal
        }
    });
    failure.map_or(Ok(()), Err)
}

/// The key that sort, unique, min and max compare by: text without case unless asked otherwise.
fn folded(value: &Value, case_sensitive: bool) -> Value {
    match value.as_str() {
        Some(text) if !case_sensitive => Value::from(text.to_lowercase()),
        _ => value.clone(),
    }
}

/// `a.b.0` walked through a value.
fn path(value: &Value, path: &Value) -> Answer {
    let Some(text) = path.as_str() else { return access::item(value.clone(), path.clone()) };
    let mut found = value.clone();
    for part in text.split('.') {
        let key = part.parse::<usize>().map(Value::from).unwrap_or_else(|_| Value::from(part));
        found = access::item(found, key)?;
    }
    Ok(found)
}

fn key_of(value: &Value, args: &Arguments, at: usize, case_sensitive: bool) -> Answer {
    match args.get(at, "attribute").filter(|a| !a.is_none()) {
        Some(name) => Ok(folded(&path(value, &name)?, case_sensitive)),
        None => Ok(folded(value, case_sensitive)),
    }
}

fn truth(args: &Arguments, at: usize, name: &str) -> bool {
    args.get(at, name).is_some_and(|v| v.is_true())
}

fn sort(value: Value, args: Args) -> Answer {
    let args = Arguments::new(&args);
    let (reverse, case) = (truth(&args, 0, "reverse"), truth(&args, 1, "case_sensitive"));
    let names: Vec<Option<Value>> = match args.get(2, "attribute").filter(|a| !a.is_none()) {
        Some(list) => match list.as_str() {
            Some(text) => text.split(',').map(|name| Some(Value::from(name))).collect(),
            None => vec![Some(list)],
        },
        None => vec![None],
    };
    let mut keyed = Vec::new();
    for item in items_of(&value)? {
        let mut keys = Vec::new();
        for name in &names {
            let key = name.as_ref().map_or_else(|| Ok(item.clone()), |name| path(&item, name))?;
            keys.push(folded(&key, case));
        }
        keyed.push((Value::from(keys), item));
    }
    // Python's reverse keeps the order of equal items.
    sort_by(&mut keyed, |a, b| {
        let order = compare("<", &a.0, &b.0)?;
        Ok(if reverse { order.map(Ordering::reverse) } else { order })
    })?;
    Ok(Value::from(keyed.into_iter().map(|pair| pair.1).collect::<Vec<_>>()))
}

fn dictsort(value: Value, args: Args) -> Answer {
    let args = Arguments::new(&args);
    let case = truth(&args, 0, "case_sensitive");
    let by_value = args.get(1, "by").is_some_and(|by| by.as_str() == Some("value"));
    let reverse = truth(&args, 2, "reverse");
    if type_of(&value) != Type::Dict {
        return raise(format!("'{}' object has no attribute 'items'", type_name(&value)));
    }
    let mut pairs = pairs_of(&value);
    sort_by(&mut pairs, |a, b| {
        let pick = |pair: &(Value, Value)| folded(if by_value { &pair.1 } else { &pair.0 }, case);
        let order = compare("<", &pick(a), &pick(b))?;
        Ok(if reverse { order.map(Ordering::reverse) } else { order })
    })?;
    Ok(Value::from(pairs.into_iter().map(|(k, v)| tuple(vec![k, v])).collect::<Vec<_>>()))
}

fn unique(value: Value, args: Args) -> Answer {
    let args = Arguments::new(&args);
    let case = truth(&args, 0, "case_sensitive");
    let mut seen: Vec<Value> = Vec::new();
    let mut kept = Vec::new();
    for item in items_of(&value)? {
        let key = key_of(&item, &args, 1, case)?;
        if !seen.iter().any(|other| equal(other, &key)) {
            seen.push(key);
            kept.push(item);
        }
    }
    Ok(Generator::value(kept))
}

fn extreme(value: Value, args: Args, wanted: Ordering) -> Answer {
    let args = Arguments::new(&args);
    let case = truth(&args, 0, "case_sensitive");
    let mut best: Option<(Value, Value)> = None;
    for item in items_of(&value)? {
        let key = key_of(&item, &args, 1, case)?;
        let better = match &best {
            Some((other, _)) => compare("<", &key, other)? == Some(wanted),
            None => true,
        };
        if better {
            best = Some((key, item));
        }
    }
    Ok(best.map_or(Value::UNDEFINED, |pair| pair.1))
}

fn sum(state: &State, value: Value, args: Args) -> Answer {
    let args = Arguments::new(&args);
    let mut total = args.get(1, "start").unwrap_or_else(|| Value::from(0));
    for item in items_of(&value)? {
        let item = match args.get(0, "attribute").filter(|a| !a.is_none()) {
            Some(name) => path(&item, &name)?,
            None => item,
        };
        total = match (Number::of(&total), Number::of(&item)) {
            (Some(a), Some(b)) => super::number::add(a, b)?.into(),
            _ if type_of(&total) == Type::List && type_of(&item) == Type::List => {
                sequence::concatenate(state, &total, &item)?
            }
            _ => return raise(format!("sum: cannot add '{}' to '{}'", type_name(&item), type_name(&total))),
        };
    }
    Ok(total)
}

fn join(state: &State, value: Value, args: Args) -> Answer {
    let args = Arguments::new(&args);
    let separator = args.get(0, "d").map_or_else(|| Ok(String::new()), |d| text_of(&d))?;
    let mut parts = Vec::new();
    for item in items_of(&value)? {
        parts.push(match args.get(1, "attribute").filter(|a| !a.is_none()) {
            Some(name) => text_of(&path(&item, &name)?)?,
            None => text_of(&item)?,
        });
    }
    let bytes = parts.iter().map(|part| part.len() + separator.len()).sum::<usize>();
    sequence::ensure_fuel(state, bytes as u64)?;
    Ok(Value::from(parts.join(&separator)))
}

fn default(value: Value, args: Args) -> Answer {
    let args = Arguments::new(&args);
    let missing = value.is_undefined() || (truth(&args, 1, "boolean") && !value.is_true());
    Ok(if missing { args.get(0, "default_value").unwrap_or_else(|| Value::from("")) } else { value })
}

fn first(value: Value) -> Answer {
    match type_of(&value) {
        Type::Generator => Ok(value.downcast_object_ref::<Generator>().and_then(|g| g.next()).unwrap_or(Value::UNDEFINED)),
        _ => Ok(items_of(&value)?.into_iter().next().unwrap_or(Value::UNDEFINED)),
    }
}

fn last(value: Value) -> Answer {
    match type_of(&value) {
        Type::Generator => raise("'generator' object is not reversible"),
        _ => Ok(items_of(&value)?.into_iter().next_back().unwrap_or(Value::UNDEFINED)),
    }
}

fn reverse(value: Value) -> Answer {
    if let Some(text) = value.as_str() {
        return Ok(string_like(&value, text.chars().rev().collect()));
    }
    let mut items = items_of(&value)?;
    items.reverse();
    Ok(Generator::value(items))
}

fn items(value: Value) -> Answer {
    match type_of(&value) {
        Type::Undefined => Ok(Generator::value(Vec::new())),
        Type::Dict => Ok(Generator::value(items_of(&view(&value, "dict_items"))?)),
        _ => raise("Can only get item pairs from a mapping."),
    }
}

/// `int(value, default, base)`: text, floats and booleans; anything else gives the default.
fn int(value: Value, args: Args) -> Answer {
    let args = Arguments::new(&args);
    let fallback = args.get(0, "default").unwrap_or_else(|| Value::from(0));
    let base = args.integer(1, "base")?.unwrap_or(10);
    if let Some(text) = value.as_str() {
        let trimmed = text::strip(text, None, Side::Both).replace('_', "");
        let prefixes: &[(i64, &str)] = &[(2, "0b"), (8, "0o"), (16, "0x")];
        let prefix = prefixes.iter().find(|p| p.0 == base).map_or("", |p| p.1);
        let digits = trimmed.strip_prefix(prefix).unwrap_or(&trimmed);
        let whole = u32::try_from(base).ok().filter(|b| (2..=36).contains(b)).and_then(|b| i128::from_str_radix(digits, b).ok());
        return Ok(match (whole, trimmed.parse::<f64>()) {
            (Some(number), _) => Number::Int(number).into(),
            (None, Ok(number)) if number.is_finite() => Number::Int(number.trunc() as i128).into(),
            _ => fallback,
        });
    }
    Ok(match Number::of(&value) {
        Some(Number::Float(f)) if f.is_finite() => Number::Int(f.trunc() as i128).into(),
        Some(Number::Int(i)) => Number::Int(i).into(),
        _ => fallback,
    })
}

fn float(value: Value, args: Args) -> Answer {
    let fallback = Arguments::new(&args).get(0, "default").unwrap_or_else(|| Value::from(0.0));
    if let Some(text) = value.as_str() {
        return Ok(text::strip(text, None, Side::Both).parse::<f64>().map(Value::from).unwrap_or(fallback));
    }
    Ok(Number::of(&value).map_or(fallback, |n| Value::from(n.as_f64())))
}

fn abs(value: Value) -> Answer {
    match Number::of(&value) {
        Some(Number::Int(i)) => Ok(Number::Int(i.saturating_abs()).into()),
        Some(Number::Float(f)) => Ok(Value::from(f.abs())),
        None => raise(format!("bad operand type for abs(): '{}'", type_name(&value))),
    }
}

/// Half to even at a power of ten, as Python's round does for an int and a negative precision.
fn round_int(number: i128, precision: i32) -> i128 {
    let Some(unit) = u32::try_from(-precision).ok().and_then(|p| 10i128.checked_pow(p)) else {
        return if precision >= 0 { number } else { 0 };
    };
    let (down, rest) = (number.div_euclid(unit), number.rem_euclid(unit));
    let up = rest * 2 > unit || (rest * 2 == unit && down % 2 != 0);
    (down + up as i128) * unit
}

/// `round(value, precision, method)`: half to even as Python's round; the other methods always give a float.
fn round(value: Value, args: Args) -> Answer {
    let args = Arguments::new(&args);
    let Some(number) = Number::of(&value) else {
        return raise(format!("type {} doesn't define __round__ method", type_name(&value)));
    };
    let precision = args.integer(0, "precision")?.unwrap_or(0).clamp(-300, 300) as i32;
    let x = number.as_f64();
    let scale = 10f64.powi(precision);
    let method = args.optional_text(1, "method")?;
    Ok(match (method.as_deref().unwrap_or("common"), number) {
        ("common", Number::Int(i)) => Number::Int(round_int(i, precision)).into(),
        ("common", _) if precision >= 0 => Value::from(format!("{x:.*}", precision as usize).parse().unwrap_or(x)),
        ("common", _) => Value::from((x * scale).round_ties_even() / scale),
        ("ceil", _) => Value::from((x * scale).ceil() / scale),
        ("floor", _) => Value::from((x * scale).floor() / scale),
        (other, _) => return raise(format!("method must be common, ceil or floor, not {other}")),
    })
}

fn trim(value: Value, args: Args) -> Answer {
    let letters = Arguments::new(&args).optional_text(0, "chars")?;
    Ok(string_like(&value, text::strip(&text_of(&value)?, letters.as_deref(), Side::Both)))
}

fn replace(state: &State, value: Value, args: Args) -> Answer {
    let args = Arguments::new(&args);
    let (old, new) = (text_of(&args.need(0, "old")?)?, text_of(&args.need(1, "new")?)?);
    let text = text_of(&value)?;
    sequence::ensure_fuel(state, text::replaced_size(&text, &old, &new))?;
    Ok(string_like(&value, text::replace(&text, &old, &new, args.limit(2, "count")?)))
}

/// jinja2's own `title`: words start after white space, hyphens and opening brackets.
fn title(value: Value) -> Answer {
    let text = text_of(&value)?;
    let mut out = String::with_capacity(text.len());
    let mut start = true;
    for c in text.chars() {
        if text::is_space(c) || "-({[<".contains(c) {
            out.push(c);
            start = true;
        } else if start {
            out.extend(c.to_uppercase());
            start = false;
        } else {
            out.extend(c.to_lowercase());
        }
    }
    Ok(string_like(&value, out))
}

/// `indent(width=4, first=False, blank=False)`.
fn indent(state: &State, value: Value, args: Args) -> Answer {
    let args = Arguments::new(&args);
    let unit = match args.get(0, "width") {
        Some(width) if width.as_str().is_some() => text_of(&width)?,
        _ => " ".repeat(args.integer(0, "width")?.unwrap_or(4).clamp(0, 10_000) as usize),
    };
    let (first, blank) = (truth(&args, 1, "first"), truth(&args, 2, "blank"));
    let text = text_of(&value)? + "\n";
    let lines = text::split_lines(&text, false);
    sequence::ensure_fuel(state, (text.len() + lines.len() * unit.len()) as u64)?;
    let mut out = String::new();
    for (at, line) in lines.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        if if at == 0 { first } else { blank || !line.is_empty() } {
            out.push_str(&unit);
        }
        out.push_str(line);
    }
    Ok(string_like(&value, out))
}

fn batch(state: &State, value: Value, args: Args) -> Answer {
    let args = Arguments::new(&args);
    let size = args.limit(0, "linecount")?.filter(|n| (1..=100_000).contains(n));
    let Some(size) = size else { return raise("batch: linecount must be between 1 and 100000") };
    let mut rows: Vec<Vec<Value>> = items_of(&value)?.chunks(size).map(<[Value]>::to_vec).collect();
    if let (Some(fill), Some(row)) = (args.get(1, "fill_with").filter(|f| !f.is_none()), rows.last_mut()) {
        row.resize(size, fill);
    }
    let rows = rows.into_iter().map(|row| check_depth(state, Value::from(row)));
    Ok(Generator::value(rows.collect::<Result<_, _>>()?))
}

fn groupby(state: &State, value: Value, args: Args) -> Answer {
    let args = Arguments::new(&args);
    let name = args.need(0, "attribute")?;
    let case = truth(&args, 2, "case_sensitive");
    let mut keyed = Vec::new();
    for item in items_of(&value)? {
        let found = path(&item, &name)?;
        let found = if found.is_undefined() { args.get(1, "default").unwrap_or(found) } else { found };
        keyed.push((folded(&found, case), found, item));
    }
    sort_by(&mut keyed, |a, b| compare("<", &a.0, &b.0))?;
    let mut groups: Vec<(Value, Value, Vec<Value>)> = Vec::new();
    for (key, shown, item) in keyed {
        match groups.last_mut() {
            Some(group) if equal(&group.0, &key) => group.2.push(item),
            _ => groups.push((key, shown, vec![item])),
        }
    }
    let rows = groups.into_iter().map(|g| tuple(vec![g.1, Value::from(g.2)])).collect::<Vec<_>>();
    check_depth(state, Value::from(rows))
}

/// jinja2's lazy filters look at the items only of a value that is true, so None passes for an empty list.
fn items_if_true(value: &Value) -> Result<Vec<Value>, Error> {
    if value.is_true() {
        items_of(value)
    } else {
        Ok(Vec::new())
    }
}

fn map(state: &mut State, value: Value, args: Args) -> Answer {
    let with = Arguments::new(&args);
    let mut out = Vec::new();
    let named = args.first().is_none_or(|a| a.is_kwargs());
    for item in items_if_true(&value)? {
        out.push(if named {
            let found = path(&item, &with.need(usize::MAX, "attribute")?)?;
            if found.is_undefined() { with.get(usize::MAX, "default").unwrap_or(found) } else { found }
        } else {
            let name = expect_str(&args[0], "map: filter name")?.to_string();
            let mut call = vec![item];
            call.extend_from_slice(&args[1..]);
            state.apply_filter(&name, &call)?
        });
    }
    Ok(Generator::value(out))
}

/// select, reject, selectattr, rejectattr: items whose value (or attribute) passes a test, or is true without one.
fn select(state: &mut State, value: Value, args: Args, by_attribute: bool, wanted: bool) -> Answer {
    let tests = if by_attribute { args.get(1..).unwrap_or_default() } else { &args[..] };
    let mut kept = Vec::new();
    for item in items_if_true(&value)? {
        let subject = match (by_attribute, args.first()) {
            (true, Some(name)) => path(&item, name)?,
            (true, None) => return raise("missing attribute name"),
            _ => item.clone(),
        };
        let passed = match tests.split_first() {
            Some((name, rest)) => {
                let name = expect_str(name, "test name")?.to_string();
                let mut call = vec![subject];
                call.extend_from_slice(rest);
                state.perform_test(&name, &call)?
            }
            None => subject.is_true(),
        };
        if passed == wanted {
            kept.push(item);
        }
    }
    Ok(Generator::value(kept))
}

fn list(value: Value) -> Answer {
    Ok(Value::from(items_of(&value)?))
}

fn escape(value: Value) -> Answer {
    match value.is_safe() {
        true => Ok(value),
        false => Ok(Value::from_safe_string(escape_html(&text_of(&value)?))),
    }
}

fn center(state: &State, value: Value, args: Args) -> Answer {
    let width = Arguments::new(&args).limit(0, "width")?.unwrap_or(80);
    sequence::ensure_fuel(state, width as u64)?;
    Ok(string_like(&value, text::pad(&text_of(&value)?, width, ' ', Align::Center)))
}

/// `pattern|format(values...)` is `pattern % values`.
fn percent(state: &State, value: Value, args: Args) -> Answer {
    let pattern = text_of(&value)?;
    let values = match args.split_last() {
        Some((last, [])) if last.is_kwargs() => Value::from_object(pairs_of(last).into_iter().collect::<Dict>()),
        _ => tuple(args.0),
    };
    Ok(string_like(&value, format::percent(state, &pattern, &values)?))
}

/// `truncate(length=255, killwords=False, end='...', leeway=5)`.
fn truncate(value: Value, args: Args) -> Answer {
    let args = Arguments::new(&args);
    let text = text_of(&value)?;
    let length = args.limit(0, "length")?.unwrap_or(255);
    let end = args.optional_text(2, "end")?.unwrap_or_else(|| "...".into());
    let leeway = args.limit(3, "leeway")?.unwrap_or(5);
    if length < end.chars().count() {
        return raise(format!("expected length >= {}, got {length}", end.chars().count()));
    }
    if text.chars().count() <= length + leeway {
        return Ok(string_like(&value, text));
    }
    let cut: String = text.chars().take(length - end.chars().count()).collect();
    let kept = if truth(&args, 1, "killwords") { &cut } else { cut.rsplit_once(' ').map_or(cut.as_str(), |p| p.0) };
    Ok(string_like(&value, kept.to_string() + &end))
}

fn word_count(value: Value) -> Answer {
    let text = text_of(&value)?;
    Ok(Value::from(text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty()).count()))
}

fn register_text(environment: &mut minijinja::Environment<'static>) {
    environment.add_filter("string", |v: Value| Ok::<_, Error>(string_like(&v, text_of(&v)?)));
    environment.add_filter("upper", |v: Value| Ok::<_, Error>(string_like(&v, text_of(&v)?.to_uppercase())));
    environment.add_filter("lower", |v: Value| Ok::<_, Error>(string_like(&v, text_of(&v)?.to_lowercase())));
    environment.add_filter("capitalize", |v: Value| Ok::<_, Error>(string_like(&v, text::capitalize(&text_of(&v)?))));
    environment.add_filter("title", title);
    environment.add_filter("trim", trim);
    environment.add_filter("replace", replace);
    environment.add_filter("indent", indent);
    environment.add_filter("center", center);
    environment.add_filter("format", percent);
    environment.add_filter("wordcount", word_count);
    environment.add_filter("truncate", truncate);
    environment.add_filter("escape", escape);
    environment.add_filter("e", escape);
    environment.add_filter("forceescape", |v: Value| {
        Ok::<_, Error>(Value::from_safe_string(escape_html(&text_of(&v)?)))
    });
    environment.add_filter("safe", |v: Value| Ok::<_, Error>(Value::from_safe_string(text_of(&v)?)));
    environment.add_filter("pprint", |v: Value| repr(&v));
}

pub fn register(environment: &mut minijinja::Environment<'static>) {
    register_text(environment);
    for name in ["length", "count"] {
        environment.add_filter(name, |v: Value| sequence::length(&v));
    }
    for name in ["default", "d"] {
        environment.add_filter(name, default);
    }
    environment.add_filter("first", first);
    environment.add_filter("last", last);
    environment.add_filter("reverse", reverse);
    environment.add_filter("list", list);
    environment.add_filter("items", items);
    environment.add_filter("join", join);
    environment.add_filter("sort", sort);
    environment.add_filter("dictsort", dictsort);
    environment.add_filter("unique", unique);
    environment.add_filter("min", |v: Value, args: Args| extreme(v, args, Ordering::Less));
    environment.add_filter("max", |v: Value, args: Args| extreme(v, args, Ordering::Greater));
    environment.add_filter("sum", sum);
    environment.add_filter("int", int);
    environment.add_filter("float", float);
    environment.add_filter("abs", abs);
    environment.add_filter("round", round);
    environment.add_filter("batch", batch);
    environment.add_filter("groupby", groupby);
    environment.add_filter("map", map);
    environment.add_filter("attr", access::attr_filter);
    environment.add_filter("select", |s: &mut State, v: Value, a: Args| select(s, v, a, false, true));
    environment.add_filter("reject", |s: &mut State, v: Value, a: Args| select(s, v, a, false, false));
    environment.add_filter("selectattr", |s: &mut State, v: Value, a: Args| select(s, v, a, true, true));
    environment.add_filter("rejectattr", |s: &mut State, v: Value, a: Args| select(s, v, a, true, false));
}
