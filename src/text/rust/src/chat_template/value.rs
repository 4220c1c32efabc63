//! Python's view of a value: its type, its text (`str`, `repr`), and the objects that minijinja has no word for.

use std::fmt;
use std::sync::{Arc, Mutex};

use indexmap::IndexMap;
use minijinja::value::{Enumerator, Object, ObjectRepr, Tuple, ValueKind};
use minijinja::{Error, State, Value};
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

use super::number::Number;
use super::{method, raise};

pub type Dict = IndexMap<Value, Value>;

/// What `type(value).__name__` would say, as far as templates can tell the difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Undefined,
    None,
    Bool,
    Int,
    Float,
    Str,
    List,
    Tuple,
    Dict,
    View,       // dict.items(), keys(), values()
    Generator,  // what map, select and friends return
    Method,
    Other,      // namespaces, loops, macros, functions
}

pub fn type_of(value: &Value) -> Type {
    match value.kind() {
        ValueKind::Undefined => Type::Undefined,
        ValueKind::None => Type::None,
        ValueKind::Bool => Type::Bool,
        ValueKind::Number if value.is_integer() => Type::Int,
        ValueKind::Number => Type::Float,
        ValueKind::String => Type::Str,
        ValueKind::Seq if value.is_tuple() => Type::Tuple,
        ValueKind::Seq => Type::List,
        _ if value.downcast_object_ref::<Dict>().is_some() || value.is_kwargs() => Type::Dict,
        _ if value.downcast_object_ref::<View>().is_some() => Type::View,
        _ if value.downcast_object_ref::<Generator>().is_some() => Type::Generator,
        _ if value.downcast_object_ref::<Method>().is_some() => Type::Method,
        _ => Type::Other,
    }
}

pub fn type_name(value: &Value) -> &'static str {
    match type_of(value) {
        Type::Undefined => "Undefined",
        Type::None => "NoneType",
        Type::Bool => "bool",
        Type::Int => "int",
        Type::Float => "float",
        Type::Str => "str",
        Type::List => "list",
        Type::Tuple => "tuple",
        Type::Dict => "dict",
        Type::View => "dict_items",
        Type::Generator => "generator",
        Type::Method => "builtin_function_or_method",
        Type::Other => "object",
    }
}

/// `dict.items()` and its sisters: a length and an order, but no index.
#[derive(Debug)]
pub struct View {
    pub name: &'static str,
    pub items: Vec<Value>,
}

impl Object for View {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }
    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.items.clone())
    }
    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.items.len())
    }
}

/// `range(...)`: indexed like a list, but printed as the call that made it.
#[derive(Debug)]
pub struct Range {
    pub start: i64,
    pub stop: i64,
    pub step: i64,
    pub count: usize,
}

impl Object for Range {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        key.as_usize().filter(|at| *at < self.count).map(|at| Value::from(self.start + at as i64 * self.step))
    }
    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.count)
    }
}

impl Range {
    fn text(&self) -> String {
        match self.step {
            1 => format!("range({}, {})", self.start, self.stop),
            step => format!("range({}, {}, {step})", self.start, self.stop),
        }
    }
}

/// A Python generator: always true, no length, and empty after it was walked once.
#[derive(Debug)]
pub struct Generator(Mutex<std::vec::IntoIter<Value>>);

impl Generator {
    pub fn value(items: Vec<Value>) -> Value {
        Value::from_object(Generator(Mutex::new(items.into_iter())))
    }
    pub fn next(&self) -> Option<Value> {
        self.0.lock().ok()?.next()
    }
}

impl Object for Generator {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }
    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let owner = self.clone();
        Enumerator::Iter(Box::new(std::iter::from_fn(move || owner.next())))
    }
    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        None
    }
}

/// A method taken from its object without being called, as `tool.items` is.
#[derive(Debug)]
pub struct Method {
    pub owner: Value,
    pub name: String,
}

impl Object for Method {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }
    fn call(self: &Arc<Self>, state: &mut State<'_, '_>, args: &[Value]) -> Result<Value, Error> {
        method::call(state, &self.owner, &self.name, args)
    }
}

/// The items that a `for` over the value would see.
pub fn items_of(value: &Value) -> Result<Vec<Value>, Error> {
    match type_of(value) {
        Type::None | Type::Bool | Type::Int | Type::Float | Type::Method => {
            raise(format!("'{}' object is not iterable", type_name(value)))
        }
        _ => Ok(value.try_iter()?.collect()),
    }
}

pub fn pairs_of(value: &Value) -> Vec<(Value, Value)> {
    value.as_object().and_then(|o| o.try_iter_pairs()).map(Iterator::collect).unwrap_or_default()
}

pub fn tuple(items: Vec<Value>) -> Value {
    Value::from(Tuple::from(items))
}

/// `float.__repr__`: the shortest digits that read back, in plain form from 1e-4 up to 1e16.
pub fn float_repr(x: f64) -> String {
    if x.is_nan() {
        return "nan".into();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf" } else { "-inf" }.into();
    }
    let scientific = format!("{x:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{x}");
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// `str.isprintable` for one character.
fn is_printable(c: char) -> bool {
    use GeneralCategory as G;
    c == ' '
        || !matches!(
            c.general_category(),
            G::Control
                | G::Format
                | G::Surrogate
                | G::PrivateUse
                | G::Unassigned
                | G::LineSeparator
                | G::ParagraphSeparator
                | G::SpaceSeparator
        )
}

pub fn string_repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if is_printable(c) => out.push(c),
            c if (c as u32) < 0x100 => out.push_str(&format!("\\x{:02x}", c as u32)),
            c if (c as u32) < 0x10000 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push_str(&format!("\\U{:08x}", c as u32)),
        }
    }
    out.push(quote);
    out
}

/// How deep containers may nest. Everything that walks or frees a value recurses, so a template that nests values in a
/// loop would overflow the stack. JSON input is bounded on its own.
const MAX_NESTING: usize = 150;

fn is_container(value: &Value) -> bool {
    !matches!(
        type_of(value),
        Type::Undefined | Type::None | Type::Bool | Type::Int | Type::Float | Type::Str | Type::Generator | Type::Method
    )
}

/// What a walk through a value found.
#[derive(Default)]
struct Survey {
    seen: u64,
    too_deep: bool,
    namespace: bool,
}

impl Survey {
    fn walk(&mut self, value: &Value, left: usize) {
        self.seen += 1;
        if self.too_deep || !is_container(value) {
            return;
        }
        if left == 0 {
            self.too_deep = true;
            return;
        }
        if value.kind() == ValueKind::Map {
            self.namespace |= type_of(value) == Type::Other;
            pairs_of(value).iter().for_each(|(_, item)| self.walk(item, left - 1));
        } else if value.downcast_object_ref::<Range>().is_none() {
            value.try_iter().into_iter().flatten().for_each(|item| self.walk(&item, left - 1));
        }
    }

    fn of(state: &State, value: &Value) -> Result<Survey, Error> {
        let mut survey = Survey::default();
        survey.walk(value, MAX_NESTING);
        state.consume_fuel(survey.seen)?;
        match survey.too_deep {
            true => raise(format!("values nest deeper than {MAX_NESTING}")),
            false => Ok(survey),
        }
    }
}

pub fn check_depth(state: &State, value: Value) -> Result<Value, Error> {
    Survey::of(state, &value)?;
    Ok(value)
}

/// A value for an attribute of a namespace. A namespace in it could hold itself: memory that nobody frees.
pub fn check_stored(state: &State, value: Value) -> Result<Value, Error> {
    match Survey::of(state, &value)?.namespace {
        true => raise("a namespace cannot be stored in a namespace"),
        false => Ok(value),
    }
}

/// How deep `repr` follows containers; JSON input is far shallower, only a template could build more.
const MAX_DEPTH: usize = 200;

fn list_repr(items: &[Value], depth: usize) -> Result<String, Error> {
    let texts: Result<Vec<String>, Error> = items.iter().map(|v| repr_at(v, depth + 1)).collect();
    Ok(texts?.join(", "))
}

fn dict_repr(value: &Value, depth: usize) -> Result<String, Error> {
    let mut texts = Vec::new();
    for (key, item) in pairs_of(value) {
        texts.push(format!("{}: {}", repr_at(&key, depth + 1)?, repr_at(&item, depth + 1)?));
    }
    Ok(format!("{{{}}}", texts.join(", ")))
}

fn repr_at(value: &Value, depth: usize) -> Result<String, Error> {
    if depth > MAX_DEPTH {
        return raise("maximum recursion depth exceeded while getting the repr of an object");
    }
    Ok(match type_of(value) {
        Type::Undefined => "Undefined".into(),
        Type::None => "None".into(),
        Type::Bool => if value.is_true() { "True" } else { "False" }.into(),
        Type::Int => value.to_string(),
        Type::Float => float_repr(Number::of(value).map_or(0.0, Number::as_f64)),
        Type::Str => string_repr(value.as_str().unwrap_or_default()),
        Type::List => match value.downcast_object_ref::<Range>() {
            Some(range) => range.text(),
            None => format!("[{}]", list_repr(&items_of(value)?, depth)?),
        },
        Type::Tuple => {
            let items = items_of(value)?;
            let comma = if items.len() == 1 { "," } else { "" };
            format!("({}{comma})", list_repr(&items, depth)?)
        }
        Type::Dict => dict_repr(value, depth)?,
        Type::View => match value.downcast_object_ref::<View>() {
            Some(view) => format!("{}([{}])", view.name, list_repr(&view.items, depth)?),
            None => String::new(),
        },
        Type::Generator => "<generator object>".into(),
        Type::Method => format!("<built-in method {}>", MethodName(value)),
        Type::Other if value.kind() == ValueKind::Map => format!("<Namespace {}>", dict_repr(value, depth)?),
        Type::Other => value.to_string(),
    })
}

struct MethodName<'a>(&'a Value);

impl fmt::Display for MethodName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.downcast_object_ref::<Method>().map_or("", |m| &m.name))
    }
}

pub fn repr(value: &Value) -> Result<String, Error> {
    repr_at(value, 0)
}

/// `str(value)`, which is also what printing and `~` use.
pub fn text_of(value: &Value) -> Result<String, Error> {
    match type_of(value) {
        Type::Undefined => Ok(String::new()),
        Type::Str => Ok(value.as_str().unwrap_or_default().to_string()),
        _ => repr(value),
    }
}

/// A string with the mark of `escape` and `safe` carried over from its source.
pub fn string_like(source: &Value, text: String) -> Value {
    if source.is_safe() {
        Value::from_safe_string(text)
    } else {
        Value::from(text)
    }
}

pub fn expect_str<'a>(value: &'a Value, what: &str) -> Result<&'a str, Error> {
    match value.as_str() {
        Some(text) => Ok(text),
        None => raise(format!("{what}: expected str, got {}", type_name(value))),
    }
}
