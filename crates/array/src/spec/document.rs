//! A JSON object with its members in a fixed order.

use serde_json::{Map, Value};

use super::{Attributes, non_finite};
use crate::{Error, Result};

/// Members in the order of the examples in the Zarr v3 specification.
const ORDER: &[&str] = &[
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
    "attributes",
    "storage_transformers",
    "dimension_names",
];

/// Whether Zarr knows a member of the document of an array.
pub(super) fn is_known(key: &str) -> bool {
    ORDER.contains(&key)
}

pub(super) fn parse(what: &str, json: &[u8]) -> Result<Map<String, Value>> {
    non_finite::parse_document(json)
        .map_err(|cause| Error::invalid(format!("{what} is not a JSON object")).because(cause))
}

/// Known members first, in their order; the others after them by name.
pub(super) fn ordered(document: Map<String, Value>) -> Map<String, Value> {
    let rank = |key: &str| ORDER.iter().position(|known| *known == key).unwrap_or(ORDER.len());
    let mut members: Vec<_> = document.into_iter().collect();
    members.sort_by(|(a, _), (b, _)| (rank(a), a).cmp(&(rank(b), b)));
    members.into_iter().collect()
}

pub(super) fn render(document: &Map<String, Value>) -> Vec<u8> {
    format!("{:#}\n", Value::Object(document.clone())).into_bytes()
}

/// The same as zarr-python writes it, see [`non_finite`].
pub(super) fn render_plain(document: &Map<String, Value>) -> Vec<u8> {
    render(&non_finite::plain_document(document.clone()))
}

/// The document for the typed view, which knows numbers of 64 bits only and no attributes: it need
/// not understand them, and they are kept verbatim beside it.
pub(super) fn typed(document: &Map<String, Value>) -> Value {
    let members = document.iter().filter(|(key, _)| *key != "attributes");
    Value::Object(members.map(|(key, value)| (key.clone(), typed_value(value))).collect())
}

/// A value with its numbers spelled as a 64-bit parser spells them.
pub(crate) fn typed_value(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.as_str() == "-0" => Value::from(-0.0),
        Value::Number(number) if !number.is_u64() && !number.is_i64() => {
            number.as_f64().map_or_else(|| value.clone(), Value::from)
        }
        Value::Array(items) => items.iter().map(typed_value).collect(),
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| (key.clone(), typed_value(value)));
            Value::Object(members.collect())
        }
        other => other.clone(),
    }
}

/// The attributes in a document.
pub(super) fn attributes(document: &Map<String, Value>) -> Result<Attributes> {
    match document.get("attributes") {
        None => Ok(Attributes::new()),
        Some(Value::Object(attributes)) => Ok(attributes.clone()),
        Some(other) => Err(Error::invalid(format!("attributes are an object, not {other}"))),
    }
}

/// Replaces a member; an empty object or list is left out, as if never written.
pub(super) fn set(document: &mut Map<String, Value>, key: &str, value: Value) {
    let empty = match &value {
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty() && key != "shape",
        _ => false,
    };
    if empty {
        document.shift_remove(key);
    } else {
        document.insert(key.to_owned(), value);
    }
}
