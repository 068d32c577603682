//! Attributes: the values of a container as JSON, and back.
//!
//! Booleans, numbers and strings are the same on both sides; an integer is Int64, or UInt64 if it must be. Values that
//! a container does not have (null, lists, objects, numbers that fit neither 64 bits nor a float64) are kept as text,
//! under the key `json:` + key. A key of the user that begins with `json:` gets that prefix too, whatever its value.
//! The lists and the bytes of version 5 are read as lists and as base64.
//!
//! Numbers that JSON does not have, NaN and the infinities, are strings in the model, with a list of their places
//! beside the attributes (see [`chunkyard_array::non_finite`]).

use std::collections::BTreeSet;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chunkyard_array::Attributes;
use serde_json::{Value, json};

use crate::container::model::AttributeValue;

/// The prefix of the key of an attribute whose value is JSON.
const JSON: &str = "json:";

/// Attributes of a container as JSON, and pointers to those that are numbers spelled as strings.
pub(super) fn to_json(stored: &[(String, AttributeValue)]) -> (Attributes, Vec<String>) {
    let kept = kept(stored);
    let mut attributes = Attributes::new();
    let mut non_finite = Vec::new();
    for (key, value) in stored {
        match unwrapped(key, value).filter(|_| !kept.contains(key.as_str())) {
            Some((plain, value)) => {
                attributes.insert(plain.to_owned(), value);
            }
            None => {
                let before = non_finite.len();
                let value = json_of(value, &pointer_to(key), &mut non_finite);
                if attributes.insert(key.clone(), value).is_some() {
                    // Of a key that comes twice the last value counts.
                    let twice = non_finite.split_off(before);
                    non_finite.retain(|pointer| !is_at(pointer, key));
                    non_finite.extend(twice);
                }
            }
        }
    }
    (attributes, non_finite)
}

/// Attributes as a container keeps them; `numbers` are the keys of strings that stand for numbers.
pub(super) fn from_json(
    attributes: &Attributes,
    numbers: &[String],
) -> Vec<(String, AttributeValue)> {
    let wrapped = |key: &str, value: &Value| {
        (format!("{JSON}{key}"), AttributeValue::String(value.to_string()))
    };
    let stored = attributes.iter().map(|(key, value)| match value {
        _ if is_wrapped(key, value) => wrapped(key, value),
        Value::Bool(value) => (key.clone(), AttributeValue::Bool(*value)),
        Value::Number(number) => {
            let value = if let Some(value) = number.as_i64() {
                AttributeValue::Int64(value)
            } else if let Some(value) = number.as_u64() {
                AttributeValue::UInt64(value)
            } else {
                AttributeValue::Float64(number.as_f64().unwrap_or(f64::NAN))
            };
            (key.clone(), value)
        }
        Value::String(text) => match non_finite(text).filter(|_| numbers.contains(key)) {
            Some(number) => (key.clone(), AttributeValue::Float64(number)),
            None => (key.clone(), AttributeValue::String(text.clone())),
        },
        other => wrapped(key, other),
    });
    stored.collect()
}

/// Separates the keys of attributes that are such numbers from pointers to such numbers within others.
pub(super) fn split_pointers<'a>(
    attributes: &Attributes,
    pointers: impl Iterator<Item = &'a str>,
) -> (Vec<String>, Vec<String>) {
    let (mut keys, mut rest) = (Vec::new(), Vec::new());
    for pointer in pointers {
        let segment = pointer.strip_prefix('/').filter(|segment| !segment.contains('/'));
        let key = segment.map(|segment| segment.replace("~1", "/").replace("~0", "~"));
        match key.filter(|key| attributes.get(key).is_some_and(|value| !is_wrapped(key, value))) {
            Some(key) => keys.push(key),
            None => rest.push(pointer.to_owned()),
        }
    }
    (keys, rest)
}

/// Whether an attribute is kept as JSON text.
fn is_wrapped(key: &str, value: &Value) -> bool {
    let has_no_type = match value {
        Value::Null | Value::Array(_) | Value::Object(_) => true,
        // A whole number that would be rounded, or a number with a point or an exponent that is out of range.
        Value::Number(number) => !(number.is_i64() || number.is_u64() || number.is_f64()),
        Value::Bool(_) | Value::String(_) => false,
    };
    key.starts_with(JSON) || has_no_type
}

/// The keys that stay unchanged: of values that are not JSON, and of JSON whose plain key one of those has.
fn kept(stored: &[(String, AttributeValue)]) -> BTreeSet<&str> {
    // The plain key is shorter, so it is decided first.
    let mut by_length: Vec<_> = stored.iter().collect();
    by_length.sort_by_key(|(key, _)| key.len());
    let mut kept = BTreeSet::new();
    for (key, value) in by_length {
        if unwrapped(key, value).is_none_or(|(plain, _)| kept.contains(plain)) {
            kept.insert(key.as_str());
        }
    }
    kept
}

/// The attribute that a container keeps as JSON text; `None` for text that only looks like it.
fn unwrapped<'a>(key: &'a str, value: &AttributeValue) -> Option<(&'a str, Value)> {
    let (plain, AttributeValue::String(text)) = (key.strip_prefix(JSON)?, value) else {
        return None;
    };
    let value: Value = serde_json::from_str(text).ok()?;
    is_wrapped(plain, &value).then_some((plain, value))
}

/// A single value as JSON; numbers that JSON does not have are words.
pub fn attribute_json(value: &AttributeValue) -> Value {
    json_of(value, "", &mut Vec::new())
}

fn json_of(value: &AttributeValue, pointer: &str, non_finite: &mut Vec<String>) -> Value {
    use AttributeValue as Stored;
    macro_rules! floats {
        ($values:expr) => {
            (0..)
                .zip($values)
                .map(|(at, value)| {
                    float(f64::from(*value), || format!("{pointer}/{at}"), non_finite)
                })
                .collect()
        };
    }
    match value {
        Stored::Bool(value) => json!(value),
        Stored::Int8(value) => json!(value),
        Stored::Int16(value) => json!(value),
        Stored::Int32(value) => json!(value),
        Stored::Int64(value) => json!(value),
        Stored::UInt8(value) => json!(value),
        Stored::UInt16(value) => json!(value),
        Stored::UInt32(value) => json!(value),
        Stored::UInt64(value) => json!(value),
        Stored::Float32(value) => float(f64::from(*value), || pointer.to_owned(), non_finite),
        Stored::Float64(value) => float(*value, || pointer.to_owned(), non_finite),
        Stored::String(value) => json!(value),
        Stored::Binary(value) => json!(BASE64_STANDARD.encode(value)),
        Stored::BoolList(values) => json!(values),
        Stored::Int8List(values) => json!(values),
        Stored::Int16List(values) => json!(values),
        Stored::Int32List(values) => json!(values),
        Stored::Int64List(values) => json!(values),
        Stored::UInt8List(values) => json!(values),
        Stored::UInt16List(values) => json!(values),
        Stored::UInt32List(values) => json!(values),
        Stored::UInt64List(values) => json!(values),
        Stored::Float32List(values) => floats!(values),
        Stored::Float64List(values) => floats!(values),
        Stored::StringList(values) => json!(values),
        Stored::BinaryList(values) => {
            values.iter().map(|value| BASE64_STANDARD.encode(value)).collect()
        }
    }
}

/// A number, or the string that stands for it.
fn float(value: f64, pointer: impl Fn() -> String, non_finite: &mut Vec<String>) -> Value {
    if value.is_finite() {
        return json!(value);
    }
    non_finite.push(pointer());
    match value {
        f64::INFINITY => json!("Infinity"),
        f64::NEG_INFINITY => json!("-Infinity"),
        _ => json!("NaN"),
    }
}

fn non_finite(text: &str) -> Option<f64> {
    match text {
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        _ => None,
    }
}

/// RFC 6901: the JSON pointer to a member.
fn pointer_to(key: &str) -> String {
    format!("/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// Whether a pointer leads to an attribute or into it.
fn is_at(pointer: &str, key: &str) -> bool {
    let rest = pointer.strip_prefix(&pointer_to(key));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
