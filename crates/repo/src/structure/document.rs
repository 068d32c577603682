//! A Zarr array document in columns, and back.
//!
//! The draft's struct holds the usual document. To lose nothing, writing rebuilds the document from
//! the columns alone and keeps each top-level key that came out different in `extra_metadata`;
//! reading lays those keys over the rebuilt document.

use serde_json::{Map, Value, json};

/// The columns of `array_metadata`, for one array.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ArrayColumns {
    pub(super) shape: Vec<u64>,
    pub(super) data_type: String,
    pub(super) fill_value: Option<Vec<u8>>,
    pub(super) dimension_names: Option<Vec<Option<String>>>,
    pub(super) chunk_grid: (String, Vec<u64>),
    pub(super) chunk_key_encoding: (String, String),
    pub(super) codecs: Vec<(String, Option<Vec<u8>>)>,
}

/// Splits a document (without attributes) into columns and the keys they cannot hold.
pub(super) fn split(document: &Map<String, Value>) -> (ArrayColumns, Map<String, Value>) {
    let name_of = |value: &Value| match value {
        Value::String(name) => name.clone(),
        other => other.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
    };
    let key = |name: &str| document.get(name).unwrap_or(&Value::Null);
    let encoding = key("chunk_key_encoding");
    let columns = ArrayColumns {
        shape: uints(key("shape")),
        data_type: match key("data_type") {
            Value::String(name) => name.clone(),
            other => other.to_string(),
        },
        fill_value: document.get("fill_value").map(|value| value.to_string().into_bytes()),
        dimension_names: key("dimension_names")
            .as_array()
            .map(|names| names.iter().map(|name| name.as_str().map(str::to_owned)).collect()),
        chunk_grid: (
            name_of(key("chunk_grid")),
            uints(key("chunk_grid").pointer("/configuration/chunk_shape").unwrap_or(&Value::Null)),
        ),
        chunk_key_encoding: (
            name_of(encoding),
            encoding
                .pointer("/configuration/separator")
                .and_then(Value::as_str)
                .unwrap_or(if name_of(encoding) == "v2" { "." } else { "/" })
                .to_owned(),
        ),
        codecs: key("codecs")
            .as_array()
            .into_iter()
            .flatten()
            .map(|codec| {
                let configuration = codec.get("configuration").map(|c| c.to_string().into_bytes());
                (name_of(codec), configuration)
            })
            .collect(),
    };
    let rebuilt = join(&columns, &Map::new());
    let extra = document
        .iter()
        .filter(|(name, value)| rebuilt.get(*name) != Some(*value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    (columns, extra)
}

/// Rebuilds the document, keys in a fixed order.
pub(super) fn join(columns: &ArrayColumns, extra: &Map<String, Value>) -> Map<String, Value> {
    let json_or_text = |text: &str| match serde_json::from_str::<Value>(text) {
        Ok(value @ Value::Object(_)) => value,
        _ => Value::String(text.to_owned()),
    };
    let mut document = Map::new();
    let mut put = |name: &str, value: Value| {
        document.insert(name.to_owned(), value);
    };
    put("zarr_format", json!(3));
    put("node_type", json!("array"));
    put("shape", json!(columns.shape));
    put("data_type", json_or_text(&columns.data_type));
    put(
        "chunk_grid",
        json!({"name": columns.chunk_grid.0, "configuration": {"chunk_shape": columns.chunk_grid.1}}),
    );
    put(
        "chunk_key_encoding",
        json!({
            "name": columns.chunk_key_encoding.0,
            "configuration": {"separator": columns.chunk_key_encoding.1},
        }),
    );
    if let Some(fill_value) = &columns.fill_value {
        put("fill_value", serde_json::from_slice(fill_value).unwrap_or(Value::Null));
    }
    put(
        "codecs",
        columns
            .codecs
            .iter()
            .map(|(name, configuration)| match configuration {
                None => json!({"name": name}),
                Some(bytes) => {
                    let value = serde_json::from_slice::<Value>(bytes).unwrap_or(Value::Null);
                    json!({"name": name, "configuration": value})
                }
            })
            .collect(),
    );
    if let Some(names) = &columns.dimension_names {
        put("dimension_names", json!(names));
    }
    document.extend(extra.iter().map(|(name, value)| (name.clone(), value.clone())));
    document
}

fn uints(value: &Value) -> Vec<u64> {
    value.as_array().into_iter().flatten().filter_map(Value::as_u64).collect()
}
