//! From what a request asks for (a kind and a text) to what the crate `llguidance` compiles, under limits of size.

use llguidance::api::{GrammarWithLexer, TopLevelGrammar};
use llguidance::derivre::RegexBuilder;
use serde_json::{json, Value};

use crate::gbnf;
use crate::schema::{one_line, prepare};

const MAX_SCHEMA: usize = 1024 * 1024;
const MAX_REGEX: usize = 32 * 1024;
const MAX_TEXT: usize = 1024 * 1024;
const MAX_CHOICES: usize = 8192;

pub struct Spec {
    pub kind: String,
    pub text: String,
    pub strict: bool,
}

/// The grammar, and what of a schema it does not enforce.
pub fn read(spec: &Spec) -> Result<(TopLevelGrammar, Vec<String>), String> {
    match spec.kind.as_str() {
        "json_object" => schema_grammar(json!({"type": "object"})).map(|grammar| (grammar, Vec::new())),
        "json_schema" => {
            let schema = parsed(&spec.text, MAX_SCHEMA)?;
            let prepared = prepare(&schema, spec.strict)?;
            Ok((schema_grammar(prepared.schema)?, prepared.notes))
        }
        "regex" => Ok((regex_grammar(&spec.text)?, Vec::new())),
        "choice" => Ok((regex_grammar(&choice_regex(&spec.text)?)?, Vec::new())),
        "lark" => {
            limit(&spec.text, MAX_TEXT)?;
            let (text, notes) = with_prepared_schemas(&spec.text, spec.strict)?;
            Ok((lark_grammar(text), notes))
        }
        "gbnf" => {
            limit(&spec.text, MAX_TEXT)?;
            Ok((lark_grammar(gbnf::to_lark(&spec.text)?), Vec::new()))
        }
        other => Err(format!("unknown kind of grammar {other:?}")),
    }
}

/// What a strict reading says against a schema.
pub fn check(text: &str) -> Result<(), String> {
    prepare(&parsed(text, MAX_SCHEMA)?, true).map(|_| ())
}

fn limit(text: &str, most: usize) -> Result<(), String> {
    if text.len() > most {
        return Err(format!("{} bytes are too long: at most {most}", text.len()));
    }
    Ok(())
}

fn parsed(text: &str, most: usize) -> Result<Value, String> {
    limit(text, most)?;
    serde_json::from_str(text).map_err(|e| format!("not valid JSON: {e}"))
}

fn lark_grammar(text: String) -> TopLevelGrammar {
    TopLevelGrammar::from_grammar(GrammarWithLexer::from_lark(text))
}

/// Compact: at most one space behind ":" and ",", and no line break, so that no model can loop in white space.
fn compact(mut schema: Value) -> Value {
    if schema == Value::Bool(true) {
        schema = json!({});
    }
    if let Value::Object(object) = &mut schema {
        let options = json!({"whitespace_flexible": false, "item_separator": ",\\x20?", "key_separator": ":\\x20?"});
        object.insert("x-guidance".into(), options);
    }
    schema
}

fn schema_grammar(schema: Value) -> Result<TopLevelGrammar, String> {
    if schema == Value::Bool(false) {
        return Err("#: nothing satisfies false".into());
    }
    Ok(TopLevelGrammar::from_json_schema(compact(schema)))
}

fn regex_grammar(regex: &str) -> Result<TopLevelGrammar, String> {
    limit(regex, MAX_REGEX)?;
    RegexBuilder::new().mk_regex(regex).map_err(|e| one_line(&e.to_string()))?;
    if regex.is_empty() {
        return Ok(lark_grammar("start: \"\"".into()));
    }
    Ok(TopLevelGrammar::from_regex(regex))
}

/// `text`: a JSON array of the texts to choose from.
fn choice_regex(text: &str) -> Result<String, String> {
    let choices: Vec<String> =
        serde_json::from_str(text).map_err(|e| format!("choices are a JSON array of strings: {e}"))?;
    if choices.is_empty() || choices.len() > MAX_CHOICES {
        return Err(format!("{} choices: 1 to {MAX_CHOICES} can be given", choices.len()));
    }
    let escaped = choices.iter().map(|choice| choice.chars().map(escaped).collect::<String>());
    let regex = escaped.collect::<Vec<_>>().join("|");
    Ok(if choices.len() == 1 { regex } else { format!("(?:{regex})") })
}

fn escaped(c: char) -> String {
    if c.is_ascii_alphanumeric() || !c.is_ascii() {
        return c.to_string();
    }
    format!("\\x{{{:X}}}", c as u32)
}

/// A schema inside of Lark text ("%json {...}") gets what one of its own gets.
fn with_prepared_schemas(text: &str, strict: bool) -> Result<(String, Vec<String>), String> {
    if text.contains("allow_invalid_utf8") {
        return Err("allow_invalid_utf8 cannot be asked for".into());
    }
    let (mut made, mut notes, mut rest) = (String::new(), Vec::new(), text);
    while let Some(at) = keyword_at(rest, "%json") {
        let begin = at + "%json".len();
        made += &rest[..begin];
        rest = &rest[begin..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let schema = match values.next() {
            Some(Ok(schema)) => schema,
            Some(Err(e)) => return Err(format!("the schema behind %json is not valid JSON: {e}")),
            None => return Err("a schema is missing behind %json".into()),
        };
        rest = &rest[values.byte_offset()..];
        let prepared = prepare(&schema, strict)?;
        notes.extend(prepared.notes);
        made += &format!(" {}", compact(prepared.schema));
    }
    Ok((made + rest, notes))
}

/// Where `keyword` stands outside of strings, regular expressions and comments.
fn keyword_at(text: &str, keyword: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let is_comment = bytes[at] == b'#' || bytes[at..].starts_with(b"//");
        match bytes[at] {
            _ if bytes[at..].starts_with(keyword.as_bytes()) => return Some(at),
            _ if is_comment => at += bytes[at..].iter().take_while(|b| **b != b'\n').count(),
            quote @ (b'"' | b'/') => {
                at += 1;
                while at < bytes.len() && bytes[at] != quote && bytes[at] != b'\n' {
                    at += 1 + (bytes[at] == b'\\') as usize;
                }
                at += 1;
            }
            _ => at += 1,
        }
    }
    None
}
