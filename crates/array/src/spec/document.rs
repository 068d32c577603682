//! A JSON object with its members in a fixed order.

use serde_json::{Map, Value};

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
    serde_json::from_slice(json)
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
