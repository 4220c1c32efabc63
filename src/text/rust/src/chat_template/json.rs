//! JSON in and out: request values to template values, and `tojson` as transformers defines it over `json.dumps`.

use minijinja::{Error, Value};

use super::method::Arguments;
use super::number::Number;
use super::operators;
use super::value::{float_repr, items_of, pairs_of, type_name, type_of, Dict, Type};
use super::{raise, Answer};

/// A request value. Key order and the difference of 1 and 1.0 are kept.
pub fn to_value(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::from(()),
        serde_json::Value::Bool(b) => Value::from(*b),
        serde_json::Value::Number(n) => {
            let whole = n.as_i64().map(Value::from).or_else(|| n.as_u64().map(Value::from));
            whole.unwrap_or_else(|| Value::from(n.as_f64().unwrap_or(f64::NAN)))
        }
        serde_json::Value::String(s) => Value::from(s.as_str()),
        serde_json::Value::Array(items) => Value::from(items.iter().map(to_value).collect::<Vec<_>>()),
        serde_json::Value::Object(pairs) => {
            Value::from_object(pairs.iter().map(|(k, v)| (Value::from(k.as_str()), to_value(v))).collect::<Dict>())
        }
    }
}

struct Style {
    ascii: bool,
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
    sort_keys: bool,
}

impl Style {
    /// The keywords of transformers' filter: ensure_ascii, indent, separators, sort_keys.
    fn new(args: &Arguments) -> Result<Style, Error> {
        let truth = |v: Option<Value>| v.is_some_and(|v| v.is_true());
        let indent = match args.get(1, "indent") {
            None => None,
            Some(v) if v.is_none() => None,
            Some(v) => match (v.as_str(), Number::of(&v)) {
                (Some(text), _) => Some(text.to_string()),
                (None, Some(Number::Int(n))) => Some(" ".repeat(n.clamp(0, MAX_INDENT) as usize)),
                _ => return raise("tojson: indent must be an integer or a string"),
            },
        };
        let (mut item, mut key) = (if indent.is_some() { "," } else { ", " }.to_string(), ": ".to_string());
        if let Some(pair) = args.get(2, "separators").filter(|v| !v.is_none()) {
            match items_of(&pair)?.as_slice() {
                [a, b] => {
                    item = super::value::expect_str(a, "separators")?.to_string();
                    key = super::value::expect_str(b, "separators")?.to_string();
                }
                _ => return raise("tojson: separators must be a pair"),
            }
        }
        Ok(Style {
            ascii: truth(args.get(0, "ensure_ascii")),
            indent,
            item_separator: item,
            key_separator: key,
            sort_keys: truth(args.get(3, "sort_keys")),
        })
    }
}

const MAX_INDENT: i128 = 1000;
const MAX_DEPTH: usize = 200;

fn write_string(text: &str, ascii: bool, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c if ascii && !c.is_ascii() => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

fn float_text(value: &Value) -> String {
    match float_repr(Number::of(value).map_or(0.0, Number::as_f64)).as_str() {
        "nan" => "NaN".into(),
        "inf" => "Infinity".into(),
        "-inf" => "-Infinity".into(),
        text => text.into(),
    }
}

/// Keys are strings; numbers, booleans and None become the string of their JSON text.
fn key_text(key: &Value) -> Result<String, Error> {
    Ok(match type_of(key) {
        Type::Str => key.as_str().unwrap_or_default().to_string(),
        Type::Int => key.to_string(),
        Type::Float => float_text(key),
        Type::Bool => if key.is_true() { "true" } else { "false" }.into(),
        Type::None => "null".into(),
        _ => return raise(format!("keys must be str, int, float, bool or None, not {}", type_name(key))),
    })
}

struct Writer<'a> {
    style: &'a Style,
    out: String,
}

impl Writer<'_> {
    fn line(&mut self, depth: usize) {
        if let Some(indent) = &self.style.indent {
            self.out.push('\n');
            self.out.push_str(&indent.repeat(depth));
        }
    }

    fn separate(&mut self, first: bool, depth: usize) {
        if !first {
            self.out.push_str(&self.style.item_separator);
        }
        self.line(depth);
    }

    fn list(&mut self, items: &[Value], depth: usize) -> Result<(), Error> {
        if items.is_empty() {
            self.out.push_str("[]");
            return Ok(());
        }
        self.out.push('[');
        for (at, item) in items.iter().enumerate() {
            self.separate(at == 0, depth + 1);
            self.value(item, depth + 1)?;
        }
        self.line(depth);
        self.out.push(']');
        Ok(())
    }

    fn dict(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        let mut pairs = pairs_of(value);
        if pairs.is_empty() {
            self.out.push_str("{}");
            return Ok(());
        }
        if self.style.sort_keys {
            super::filters::sort_by(&mut pairs, |a, b| operators::compare("<", &a.0, &b.0))?;
        }
        self.out.push('{');
        for (at, (key, item)) in pairs.iter().enumerate() {
            self.separate(at == 0, depth + 1);
            write_string(&key_text(key)?, self.style.ascii, &mut self.out);
            self.out.push_str(&self.style.key_separator);
            self.value(item, depth + 1)?;
        }
        self.line(depth);
        self.out.push('}');
        Ok(())
    }

    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return raise("maximum recursion depth exceeded while encoding a JSON object");
        }
        match type_of(value) {
            Type::None => self.out.push_str("null"),
            Type::Bool => self.out.push_str(if value.is_true() { "true" } else { "false" }),
            Type::Int => self.out.push_str(&value.to_string()),
            Type::Float => self.out.push_str(&float_text(value)),
            Type::Str => write_string(value.as_str().unwrap_or_default(), self.style.ascii, &mut self.out),
            Type::List | Type::Tuple => return self.list(&items_of(value)?, depth),
            Type::Dict => return self.dict(value, depth),
            _ => return raise(format!("Object of type {} is not JSON serializable", type_name(value))),
        }
        Ok(())
    }
}

fn tojson(value: Value, args: super::method::Args) -> Answer {
    let style = Style::new(&Arguments::new(&args))?;
    let mut writer = Writer { style: &style, out: String::new() };
    writer.value(&value, 0)?;
    Ok(Value::from(writer.out))
}

pub fn register(environment: &mut minijinja::Environment<'static>) {
    environment.add_filter("tojson", tojson);
}
