//! Which arrays every reader of Zarr v3 can read: codecs, keys and chunk sizes that are in reach of Neuroglancer,
//! TensorStore and zarr-python alike, and what becomes of all others.

use std::sync::Arc;

use chunkyard_array::{Codecs, DType, codec, guess_chunks};
use chunkyard_format::{ArrayNode, Edges};
use chunkyard_store::{Error, Result};
use serde_json::{Value, json};

/// Codecs that turn bytes into bytes, or elements into elements, in every reader.
const KNOWN: [&str; 5] = ["blosc", "crc32c", "gzip", "transpose", "zstd"];

/// Codecs that turn elements into bytes, in every reader that knows their types at all.
const OF_ELEMENTS: [&str; 3] = ["bytes", "vlen-utf8", "vlen-bytes"];

const SHARDS: &str = "sharding_indexed";

/// The codecs of chunks that are made anew: quick to make, and known to all.
const CODECS: &str = "zstd:1";

/// The array as it is shown: as it is stored where that is possible.
pub(super) fn in_reach(node: &ArrayNode, bytes_max: usize) -> Result<ArrayNode> {
    let mut spec = node.spec.clone();
    spec.check_understood()?;
    let dtype = spec.dtype()?;
    let grid = spec.grid()?;
    let keys = &spec.metadata().chunk_key_encoding;
    if !matches!(keys.name(), "default" | "v2") {
        spec = spec.with_chunk_key_encoding(
            json!({"name": "default", "configuration": {"separator": "/"}}),
        )?;
    }
    let known = are_known(&spec.codecs_json());
    let item = dtype.item_size();
    let chunk_bytes = item.and_then(|item| bytes_of(grid.chunk_shape(), item));
    let too_large = item.is_some() && chunk_bytes.is_none_or(|bytes| bytes > bytes_max);
    // What is copied is not decoded here, however large it is.
    let copied = known && node.edges == Edges::Padded;
    if !known {
        spec = spec.with_codecs(anew(&dtype)?)?;
    }
    if too_large && !copied {
        let chunk = guess_chunks(grid.chunk_shape(), item.unwrap_or(1));
        spec = spec.with_chunk_shape(&chunk)?.with_codecs(anew(&dtype)?)?;
    }
    // Fails now, with a reason, and not chunk by chunk.
    Codecs::new(&spec)?;
    Ok(ArrayNode { spec, sharding: None, edges: Edges::Padded })
}

fn anew(dtype: &DType) -> Result<Vec<Value>> {
    let codecs = codec::parse_shorthand(CODECS, dtype)?;
    // Elements of variable length have codecs of other programs where theirs are not known to all.
    match codecs.first().map(name) {
        Some(first) if OF_ELEMENTS.contains(&first) => Ok(codecs),
        _ => Err(Error::unsupported(format!("{dtype} in Zarr that other programs read"))),
    }
}

fn are_known(codecs: &[Value]) -> bool {
    codecs.iter().all(|codec| match name(codec) {
        SHARDS => ["codecs", "index_codecs"].iter().all(|inner| {
            let inner = codec.get("configuration").and_then(|members| members.get(*inner));
            inner.and_then(Value::as_array).is_some_and(|inner| are_known(inner))
        }),
        name => KNOWN.contains(&name) || OF_ELEMENTS.contains(&name),
    })
}

fn name(codec: &Value) -> &str {
    codec.as_str().or_else(|| codec.get("name")?.as_str()).unwrap_or_default()
}

fn bytes_of(shape: &[u64], item: usize) -> Option<usize> {
    let bytes = shape.iter().try_fold(item as u64, |bytes, &extent| bytes.checked_mul(extent))?;
    usize::try_from(bytes).ok()
}

/// What is in reach of an array, shared.
pub(super) fn shown(node: &Arc<ArrayNode>, bytes_max: usize) -> Result<Arc<ArrayNode>> {
    in_reach(node, bytes_max).map(Arc::new)
}

#[cfg(test)]
mod tests {
    use chunkyard_array::ArraySpec;
    use chunkyard_store::ErrorKind;

    use super::*;

    fn node(dtype: &str, codecs: Value) -> ArrayNode {
        let builder = ArraySpec::builder(&[64, 64, 64], &[32, 32, 32], dtype);
        let spec = builder.build().unwrap();
        let spec = spec.with_codecs(codecs.as_array().unwrap().clone()).unwrap();
        ArrayNode { spec, sharding: None, edges: Edges::Padded }
    }

    #[test]
    fn chunks_that_all_can_read_stay_as_they_are() {
        let little = json!({"name": "bytes", "configuration": {"endian": "little"}});
        let shard = json!({"name": "sharding_indexed", "configuration": {
            "chunk_shape": [16, 16, 16], "codecs": [little, "crc32c"], "index_codecs": [little, {"name": "crc32c"}],
            "index_location": "end"}});
        for codecs in [
            json!([little]),
            json!([little, {"name": "gzip", "configuration": {"level": 1}}]),
            json!([shard]),
        ] {
            let node = node("uint16", codecs);
            let found = in_reach(&node, 1 << 20).unwrap();
            assert!(found.spec.same_encoding(&node.spec));
        }
    }

    #[test]
    fn codecs_that_few_know_are_replaced() {
        let little = json!({"name": "bytes", "configuration": {"endian": "little"}});
        let zlib = json!({"name": "numcodecs.zlib", "configuration": {"level": 1}});
        for (dtype, codecs) in [
            ("uint16", json!([little, zlib])),
            ("uint64", json!([{"name": "chunkyard.label_block"}])),
        ] {
            let found = in_reach(&node(dtype, codecs), 1 << 20).unwrap();
            let names: Vec<_> =
                found.spec.codecs_json().iter().map(|it| name(it).to_owned()).collect();
            assert_eq!(names, ["bytes", "zstd"]);
        }
    }

    #[test]
    fn large_chunks_are_cut_where_they_are_made_anew() {
        let node = node("uint64", json!([{"name": "chunkyard.label_block"}]));
        let found = in_reach(&node, 100_000).unwrap();
        assert!(bytes_of(found.spec.chunk_shape().unwrap(), 8).unwrap() <= 1 << 20);
        assert_eq!(found.spec.codecs_json().last().map(name), Some("zstd"));
    }

    #[test]
    fn members_that_must_be_understood_are_refused() {
        let mut document: Value =
            serde_json::from_slice(&node("uint8", json!(["bytes"])).spec.render()).unwrap();
        document["must_be_known"] = json!({"a": 1});
        let spec = ArraySpec::parse(document.to_string().as_bytes()).unwrap();
        let strange = ArrayNode { spec, sharding: None, edges: Edges::Padded };
        assert_eq!(in_reach(&strange, 1 << 20).unwrap_err().kind(), ErrorKind::Unsupported);
    }
}
