//! A JSON Schema made ready for the grammar compiler: every reference becomes one into "$defs" of the root, what cannot
//! be enforced is refused by path and keyword (strict) or left out and noted, and a `oneOf` whose options exclude each
//! other becomes the `anyOf` that means the same.

use std::collections::HashMap;

use llguidance::derivre::RegexBuilder;
use llguidance::regex_to_lark;
use serde_json::{json, Map, Value};

use crate::disjoint::Disjoint;
use crate::ecma;
use crate::finite::is_finite;
use crate::pointer::{escape, resolve};

/// More schemas than this in one document are refused: the compiler recurses over them.
const MAX_SCHEMAS: usize = 20_000;
const MAX_PATTERN: usize = 16 * 1024;
/// The largest bound of a length or a count.
const MAX_BOUND: u64 = 1_000_000;

/// Assertions of some draft that the compiler has no grammar for. Neutral: the value that asks for nothing.
const UNSUPPORTED: [(&str, Option<bool>); 19] = [
    ("not", None),
    ("if", None),
    ("dependentRequired", None),
    ("dependentSchemas", None),
    ("dependencies", None),
    ("uniqueItems", Some(false)),
    ("contains", None),
    ("minContains", None),
    ("maxContains", None),
    ("propertyNames", None),
    ("unevaluatedProperties", Some(true)),
    ("unevaluatedItems", Some(true)),
    ("$dynamicRef", None),
    ("$recursiveRef", None),
    ("contentSchema", None),
    ("extends", None),
    ("disallow", None),
    ("divisibleBy", None),
    ("x-guidance", None),
];

const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"];

pub struct Prepared {
    pub schema: Value,
    pub notes: Vec<String>,
}

pub fn prepare(root: &Value, strict: bool) -> Result<Prepared, String> {
    let mut preparer =
        Preparer { root, strict, names: HashMap::new(), waiting: Vec::new(), notes: Vec::new(), schemas: 0 };
    let mut schema = preparer.schema(root, "#")?;
    let mut definitions = Map::new();
    while let Some((pointer, name)) = preparer.waiting.pop() {
        let target = resolve(root, &pointer).ok_or_else(|| format!("{pointer}: there is no such schema"))?;
        let made = preparer.schema(target, &pointer)?;
        definitions.insert(name, made);
    }
    if !is_finite(&schema, &definitions) {
        return Err("#: nothing finite satisfies it: it needs itself, or a part of it does".into());
    }
    if let Value::Object(object) = &mut schema {
        if !definitions.is_empty() {
            object.insert("$defs".into(), Value::Object(definitions));
        }
    }
    Ok(Prepared { schema, notes: preparer.notes })
}

struct Preparer<'a> {
    root: &'a Value,
    strict: bool,
    names: HashMap<String, String>,       // pointer -> name in the new "$defs"
    waiting: Vec<(String, String)>,       // referenced, not yet prepared
    notes: Vec<String>,
    schemas: usize,
}

impl Preparer<'_> {
    /// What cannot be enforced: an error under strict, else a note.
    fn relax(&mut self, path: &str, keyword: &str, why: &str) -> Result<(), String> {
        let message = format!("{path}/{keyword}: {why}");
        if self.strict {
            return Err(message);
        }
        self.notes.push(message);
        Ok(())
    }

    fn schema(&mut self, value: &Value, path: &str) -> Result<Value, String> {
        self.schemas += 1;
        if self.schemas > MAX_SCHEMAS {
            return Err(format!("{path}: more than {MAX_SCHEMAS} schemas in one"));
        }
        let source = match value {
            Value::Bool(_) => return Ok(value.clone()),
            Value::Object(source) => source,
            _ => return Err(format!("{path}: a schema is an object or a boolean")),
        };
        let mut made = Map::new();
        for (keyword, value) in source {
            self.keyword(source, keyword, value, path, &mut made)?;
        }
        self.counted_properties(source, path, &mut made)?;
        if source.get("nullable") == Some(&Value::Bool(true)) {
            return Ok(json!({"anyOf": [Value::Object(made), {"type": "null"}]}));
        }
        Ok(Value::Object(made))
    }

    fn keyword(
        &mut self,
        source: &Map<String, Value>,
        keyword: &str,
        value: &Value,
        path: &str,
        made: &mut Map<String, Value>,
    ) -> Result<(), String> {
        let at = format!("{path}/{}", escape(keyword));
        let kept = match keyword {
            "$ref" => Value::String(self.reference(value, &at)?),
            "properties" | "patternProperties" => self.named(keyword, value, &at)?,
            "items" | "prefixItems" | "anyOf" | "allOf" if value.is_array() => self.list(value, &at)?,
            "prefixItems" | "anyOf" | "allOf" | "oneOf" if !value.is_array() => {
                return Err(format!("{at}: must be an array"))
            }
            "items" | "additionalItems" | "additionalProperties" => self.schema(value, &at)?,
            "oneOf" => return self.one_of(value, path, &at, made),
            "pattern" => match self.pattern(value, path)? {
                Some(pattern) => pattern,
                None => return Ok(()),
            },
            "format" => match self.format(source, value, path)? {
                Some(format) => format,
                None => return Ok(()),
            },
            "type" | "const" | "required" | "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum"
            | "multipleOf" | "minProperties" | "maxProperties" => value.clone(),
            "enum" => self.values(value, &at)?,
            "minItems" | "maxItems" | "minLength" | "maxLength" => bound(value, &at)?,
            _ => return self.unsupported(source, keyword, value, path),
        };
        made.insert(keyword.into(), kept);
        Ok(())
    }

    fn reference(&mut self, value: &Value, at: &str) -> Result<String, String> {
        let text = value.as_str().ok_or_else(|| format!("{at}: must be a string"))?;
        let pointer = crate::pointer::local(self.root, text)
            .ok_or_else(|| format!("{at}: {text} is not a reference into this schema"))?;
        let next = self.names.len();
        let name = self.names.entry(pointer.clone()).or_insert_with(|| {
            self.waiting.push((pointer, format!("s{next}")));
            format!("s{next}")
        });
        Ok(format!("#/$defs/{name}"))
    }

    fn named(&mut self, keyword: &str, value: &Value, at: &str) -> Result<Value, String> {
        let source = value.as_object().ok_or_else(|| format!("{at}: must be an object"))?;
        let mut made = Map::new();
        for (name, value) in source {
            let inner = format!("{at}/{}", escape(name));
            if keyword == "patternProperties" {
                match checked_pattern(name) {
                    Ok(pattern) => made.insert(pattern, self.schema(value, &inner)?),
                    Err(why) => self.relax(at, &escape(name), &why).map(|()| None)?,
                };
                continue;
            }
            made.insert(name.clone(), self.schema(value, &inner)?);
        }
        Ok(Value::Object(made))
    }

    fn list(&mut self, value: &Value, at: &str) -> Result<Value, String> {
        let source = value.as_array().expect("the caller looked");
        let made = source.iter().enumerate().map(|(i, item)| self.schema(item, &format!("{at}/{i}")));
        Ok(Value::Array(made.collect::<Result<_, _>>()?))
    }

    fn one_of(&mut self, value: &Value, path: &str, at: &str, made: &mut Map<String, Value>) -> Result<(), String> {
        let options = self.list(value, at)?;
        if !Disjoint::new(self.root).all(value.as_array().expect("list() looked")) {
            let why = "the options may overlap, so that exactly one cannot be enforced; anyOf can";
            self.relax(path, "oneOf", why)?;
        }
        match made.remove("anyOf") {
            None => made.insert("anyOf".into(), options),
            Some(other) => made.insert("allOf".into(), json!([{"anyOf": other}, {"anyOf": options}])),
        };
        Ok(())
    }

    fn pattern(&mut self, value: &Value, path: &str) -> Result<Option<Value>, String> {
        let pattern = value.as_str().ok_or_else(|| format!("{path}/pattern: must be a string"))?;
        match checked_pattern(pattern) {
            Ok(pattern) => Ok(Some(Value::String(pattern))),
            Err(why) => self.relax(path, "pattern", &why).map(|()| None),
        }
    }

    fn format(&mut self, source: &Map<String, Value>, value: &Value, path: &str) -> Result<Option<Value>, String> {
        let format = value.as_str().ok_or_else(|| format!("{path}/format: must be a string"))?;
        let is_of_texts = match source.get("type") {
            None => true,
            Some(Value::Array(types)) => types.iter().any(|t| t == "string"),
            Some(one) => one == "string",
        };
        if !is_of_texts || FORMATS.contains(&format) {
            return Ok(is_of_texts.then(|| value.clone()));
        }
        self.relax(path, "format", &format!("the format {format:?} is not known")).map(|()| None)
    }

    fn values(&mut self, value: &Value, at: &str) -> Result<Value, String> {
        let values = value.as_array().ok_or_else(|| format!("{at}: must be an array"))?;
        self.schemas += values.len();
        Ok(value.clone())
    }

    fn unsupported(
        &mut self,
        source: &Map<String, Value>,
        keyword: &str,
        value: &Value,
        path: &str,
    ) -> Result<(), String> {
        let Some((_, neutral)) = UNSUPPORTED.iter().find(|(name, _)| *name == keyword) else {
            return Ok(()); // an annotation, or a word of no draft
        };
        let asks_for_nothing = neutral.is_some_and(|neutral| value == &Value::Bool(neutral))
            || (keyword == "if" && !source.contains_key("then") && !source.contains_key("else"));
        if asks_for_nothing {
            return Ok(());
        }
        self.relax(path, keyword, "this keyword cannot be enforced")
    }

    /// The compiler counts properties only where every named one is required, or at most one may come.
    fn counted_properties(
        &mut self,
        source: &Map<String, Value>,
        path: &str,
        made: &mut Map<String, Value>,
    ) -> Result<(), String> {
        for keyword in ["minProperties", "maxProperties"] {
            let Some(value) = source.get(keyword) else { continue };
            bound(value, &format!("{path}/{keyword}"))?;
            let required = source.get("required").and_then(Value::as_array);
            let is_required = |name: &String| required.is_some_and(|all| all.iter().any(|one| one == name));
            let properties = source.get("properties").and_then(Value::as_object);
            if properties.is_none_or(|all| all.keys().all(is_required)) {
                continue;
            }
            self.relax(path, keyword, "properties can be counted only where all named ones are required")?;
            made.remove(keyword);
        }
        Ok(())
    }
}

fn bound(value: &Value, at: &str) -> Result<Value, String> {
    // 3.0 is an integer in JSON Schema.
    let number = value.as_f64().filter(|n| n.fract() == 0.0 && *n >= 0.0);
    let number = number.ok_or_else(|| format!("{at}: must be an integer of at least 0"))?;
    if number > MAX_BOUND as f64 {
        return Err(format!("{at}: is {number}: at most {MAX_BOUND} can be enforced"));
    }
    Ok(json!(number as u64))
}

/// The pattern as the compiler takes it.
fn checked_pattern(pattern: &str) -> Result<String, String> {
    if pattern.len() > MAX_PATTERN {
        return Err(format!("the pattern is longer than {MAX_PATTERN} bytes"));
    }
    let message = |error: String| format!("the pattern {pattern:?} cannot be enforced: {}", one_line(&error));
    let translated = ecma::to_rust(pattern).map_err(message)?;
    let mut builder = RegexBuilder::new();
    builder.mk_regex_for_serach(&regex_to_lark(&translated, "dw")).map_err(|e| message(e.to_string()))?;
    Ok(translated)
}

/// The messages of the regex parser draw over several lines.
pub fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}
