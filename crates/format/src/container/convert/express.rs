//! How a container expresses a dataset that is to be written.
//!
//! A container does not encode chunks, it packs blocks. So the codecs of each array become the codecs
//! of plain elements. The requested packing is kept beside them, and removed again when the container
//! is written.

use std::sync::Arc;

use chunkyard_array::ArraySpec;
use chunkyard_store::{BlockCodec, Error, Result, block_codec, zstd_block_codec};
use serde_json::{Value, json};

use crate::container::mapping;
use crate::{ArrayNode, Dataset, Edges, Node};

/// The member of an array's metadata that keeps the packing.
const PACKING: &str = "chunkyard_packing";

/// The dataset as the container will hold it, or why it cannot hold it.
pub(crate) fn express(mut dataset: Dataset) -> Result<Dataset> {
    for (path, node) in &mut dataset.nodes {
        let Node::Array(array) = node else { continue };
        let packing = packing_wished(&array.spec);
        let plain = ArrayNode { sharding: None, ..(**array).clone() };
        // To the container's form and back: this is what the container will hold.
        let entry = mapping::entry_of(mapping::name_of(path), &plain).map_err(advised)?;
        let expressed = mapping::array_of(&entry)?;
        let spec = expressed.spec.with_member(PACKING, packing)?;
        *array = Arc::new(ArrayNode { spec, sharding: None, edges: Edges::Clipped });
    }
    // Refuses names that clash.
    mapping::entries_of(&without_packing(&dataset)?)?;
    Ok(dataset)
}

/// Adds what the user can do about it in a conversion.
fn advised(error: Error) -> Error {
    match error {
        Error::Unsupported { what } => Error::Unsupported {
            what: format!(
                "{what}; convert it with --dtype or dtype=, or choose other arrays with --array or \
                 arrays="
            ),
        },
        other => other,
    }
}

/// The same dataset without the packing.
pub(crate) fn without_packing(dataset: &Dataset) -> Result<Dataset> {
    let mut dataset = dataset.clone();
    for node in dataset.nodes.values_mut() {
        if let Node::Array(array) = node {
            let spec = array.spec.without_members(&[PACKING])?;
            *array = Arc::new(ArrayNode { spec, ..(**array).clone() });
        }
    }
    Ok(dataset)
}

/// The packing that comes nearest to the codecs of an array.
fn packing_wished(spec: &ArraySpec) -> Value {
    let codecs = spec.codecs_json();
    let named = |codec: &Value| codec["name"].as_str().unwrap_or_default().to_owned();
    for codec in codecs.iter().rev() {
        match named(codec).as_str() {
            "zstd" => {
                let level = codec["configuration"]["level"].as_i64().unwrap_or(3);
                return json!({"name": "zstd", "level": level, "must_understand": false});
            }
            "numcodecs.lz4" => return json!({"name": "lz4", "must_understand": false}),
            "blosc" => {
                let lz4 = codec["configuration"]["cname"] == "lz4";
                let name = if lz4 { "lz4" } else { "zstd" };
                return json!({"name": name, "must_understand": false});
            }
            "gzip" | "zlib" | "bz2" => return json!({"name": "zstd", "must_understand": false}),
            _ => {}
        }
    }
    json!({"name": "none", "must_understand": false})
}

/// The packing that is kept with an array.
pub(crate) fn packing_of(spec: &ArraySpec) -> Result<Arc<dyn BlockCodec>> {
    let packing = spec.member(PACKING).unwrap_or(&Value::Null);
    let name = packing["name"].as_str().unwrap_or("zstd");
    match packing["level"].as_i64().and_then(|level| i32::try_from(level).ok()) {
        Some(level) if name == "zstd" => zstd_block_codec(level),
        _ => block_codec(name),
    }
}
