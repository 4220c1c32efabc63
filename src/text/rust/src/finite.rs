//! Whether a prepared schema has an instance that ends: one that always needs itself again has none.

use std::collections::HashSet;

use serde_json::{Map, Value};

const MAX_DEPTH: usize = 200;

/// The least fixed point over the definitions: a round that finds no new finite one is the last.
pub fn is_finite(root: &Value, definitions: &Map<String, Value>) -> bool {
    let mut finite = HashSet::new();
    loop {
        let before = finite.len();
        for (name, schema) in definitions {
            let reference = format!("#/$defs/{name}");
            if !finite.contains(&reference) && ends(schema, &finite, 0) {
                finite.insert(reference);
            }
        }
        if finite.len() == before {
            return ends(root, &finite, 0);
        }
    }
}

fn ends(schema: &Value, finite: &HashSet<String>, depth: usize) -> bool {
    let Value::Object(schema) = schema else { return true };
    if depth > MAX_DEPTH {
        return true;
    }
    let inner = |value: &Value| ends(value, finite, depth + 1);
    let list = |name: &str| schema.get(name).and_then(Value::as_array);
    if schema.get("$ref").and_then(Value::as_str).is_some_and(|reference| !finite.contains(reference)) {
        return false;
    }
    list("anyOf").is_none_or(|options| options.is_empty() || options.iter().any(inner))
        && list("allOf").is_none_or(|parts| parts.iter().all(inner))
        && (may_be_another(schema, "object") || required_end(schema, inner))
        && (may_be_another(schema, "array") || items_end(schema, inner))
}

/// A constraint on objects says nothing of a number.
fn may_be_another(schema: &Map<String, Value>, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(one)) => one != kind,
        Some(Value::Array(all)) => all.iter().any(|one| one != kind),
        _ => true,
    }
}

fn required_end(schema: &Map<String, Value>, inner: impl Fn(&Value) -> bool) -> bool {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let properties = schema.get("properties");
    required.filter_map(Value::as_str).filter_map(|name| properties?.get(name)).all(inner)
}

fn items_end(schema: &Map<String, Value>, inner: impl Fn(&Value) -> bool) -> bool {
    let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0) as usize;
    let first = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let rest_ends = || schema.get("items").is_none_or(|items| items.is_array() || inner(items));
    first.iter().take(least).all(&inner) && (least <= first.len() || rest_ends())
}
