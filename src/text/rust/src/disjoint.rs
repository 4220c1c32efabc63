//! Whether two JSON Schemas have no instance in common, where that can be told from types, constants and required
//! properties. `false` means: not proven.

use serde_json::{Map, Value};

use crate::pointer::{local, resolve};

const MAX_STEPS: usize = 200_000;
const MAX_DEPTH: usize = 32;
const TYPES: [&str; 6] = ["null", "boolean", "number", "string", "array", "object"];

pub struct Disjoint<'a> {
    root: &'a Value,
    steps: usize,
}

impl<'a> Disjoint<'a> {
    pub fn new(root: &'a Value) -> Disjoint<'a> {
        Disjoint { root, steps: 0 }
    }

    /// Every two of the options.
    pub fn all(&mut self, options: &'a [Value]) -> bool {
        (0..options.len()).all(|i| (0..i).all(|j| self.two(&options[i], &options[j], 0)))
    }

    fn two(&mut self, a: &'a Value, b: &'a Value, depth: usize) -> bool {
        self.steps += 1;
        if self.steps > MAX_STEPS || depth > MAX_DEPTH {
            return false;
        }
        if a == &Value::Bool(false) || b == &Value::Bool(false) {
            return true;
        }
        let (Value::Object(left), Value::Object(right)) = (a, b) else { return false };
        self.by_parts(left, b, depth)
            || self.by_parts(right, a, depth)
            || self.by_values(left, right)
            || self.by_types(left, right)
            || self.by_properties(left, right, depth)
    }

    fn target(&self, schema: &'a Map<String, Value>) -> Option<&'a Value> {
        let reference = schema.get("$ref")?.as_str()?;
        resolve(self.root, &local(self.root, reference)?)
    }

    /// One part of `a` that excludes `b` is enough; of alternatives, all must.
    fn by_parts(&mut self, a: &'a Map<String, Value>, b: &'a Value, depth: usize) -> bool {
        if self.target(a).is_some_and(|target| self.two(target, b, depth + 1)) {
            return true;
        }
        let list = |name: &str| a.get(name).and_then(Value::as_array);
        if list("allOf").is_some_and(|parts| parts.iter().any(|part| self.two(part, b, depth + 1))) {
            return true;
        }
        ["anyOf", "oneOf"].into_iter().any(|name| {
            list(name).is_some_and(|options| options.iter().all(|option| self.two(option, b, depth + 1)))
        })
    }

    fn by_values(&self, a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
        match (constants(a), constants(b)) {
            (Some(a), Some(b)) => a.iter().all(|one| b.iter().all(|other| !same_value(one, other))),
            _ => false,
        }
    }

    fn by_types(&self, a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
        let (a, b) = (types(a), types(b));
        a.iter().all(|one| !b.contains(one))
    }

    fn by_properties(&mut self, a: &'a Map<String, Value>, b: &'a Map<String, Value>, depth: usize) -> bool {
        let common = types(b);
        if types(a).iter().any(|one| *one != "object" && common.contains(one)) {
            return false;
        }
        required(a).chain(required(b)).any(|name| match (property(a, name), property(b, name)) {
            (Some(left), Some(right)) => self.two(left, right, depth + 1),
            (None, Some(_)) => is_closed(a),
            (Some(_), None) => is_closed(b),
            (None, None) => false,
        })
    }
}

fn property<'a>(schema: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(name)
}

fn required<'a>(schema: &'a Map<String, Value>) -> impl Iterator<Item = &'a str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn is_closed(schema: &Map<String, Value>) -> bool {
    schema.get("additionalProperties") == Some(&Value::Bool(false)) && !schema.contains_key("patternProperties")
}

fn constants(schema: &Map<String, Value>) -> Option<Vec<&Value>> {
    match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => Some(vec![value]),
        (None, Some(Value::Array(values))) => Some(values.iter().collect()),
        _ => None,
    }
}

fn same_value(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a == b, // 1 is 1.0
        _ => a == b,
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn types(schema: &Map<String, Value>) -> Vec<&str> {
    if schema.get("nullable") == Some(&Value::Bool(true)) {
        return TYPES.to_vec();
    }
    let name = |name| if name == "integer" { "number" } else { name };
    match (constants(schema), schema.get("type")) {
        (Some(values), _) => values.into_iter().map(type_of).collect(),
        (None, Some(Value::String(one))) => vec![name(one.as_str())],
        (None, Some(Value::Array(all))) => all.iter().filter_map(Value::as_str).map(name).collect(),
        _ => TYPES.to_vec(),
    }
}
