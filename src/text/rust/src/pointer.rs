//! JSON pointers (RFC 6901) as schemas use them: "#/$defs/a~1b", percent-encoded or not, and anchors.

use serde_json::Value;

pub fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn unescape(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

/// The value at "#/a/0/b"; "#" is the root.
pub fn resolve<'a>(root: &'a Value, pointer: &str) -> Option<&'a Value> {
    let path = pointer.strip_prefix('#')?;
    if path.is_empty() {
        return Some(root);
    }
    path.strip_prefix('/')?.split('/').try_fold(root, |value, segment| match value {
        Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
        Value::Object(object) => object.get(&unescape(segment)),
        _ => None,
    })
}

/// The pointer that a "$ref" of this document means; None for another document's, or for a place that is not there.
pub fn local(root: &Value, reference: &str) -> Option<String> {
    let fragment = match reference.split_once('#') {
        Some((document, fragment)) if document.is_empty() || is_id_of(root, document) => fragment,
        None if is_id_of(root, reference) => "",
        _ => return None,
    };
    let decoded = percent_decoded(fragment)?;
    if decoded.is_empty() || decoded.starts_with('/') {
        let pointer = format!("#{}", if decoded == "/" { "" } else { &decoded });
        return resolve(root, &pointer).is_some().then_some(pointer);
    }
    anchored(root, &decoded, "#")
}

fn is_id_of(root: &Value, document: &str) -> bool {
    let id = root.get("$id").or_else(|| root.get("id")).and_then(Value::as_str);
    id.is_some_and(|id| !document.is_empty() && id.trim_end_matches('#') == document)
}

fn anchored(value: &Value, name: &str, at: &str) -> Option<String> {
    match value {
        Value::Object(object) => {
            if object.get("$anchor").and_then(Value::as_str) == Some(name) {
                return Some(at.to_string());
            }
            object.iter().find_map(|(key, inner)| anchored(inner, name, &format!("{at}/{}", escape(key))))
        }
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(i, inner)| anchored(inner, name, &format!("{at}/{i}")))
        }
        _ => None,
    }
}
