//! Encodings and packings as chains of codecs, and back.

use chunkyard_array::ArraySpec;
use chunkyard_array::codec::picture::{JPEG, PNG};
use chunkyard_array::codec::segmentation::NAME as SEGMENTATION;
use chunkyard_store::{Error, Result};
use serde_json::{Value, json};

use super::axes::Axes;
use super::choose::ShardWish;
use super::info::{Encoding, Scale, VoxelType};
use super::morton::Morton;
use super::sharding::{Packing, Sharding};
use crate::ArrayNode;

/// The level at which chunks in shards are compressed.
const LEVEL: u32 = 6;

/// Voxels of a block along each axis where the caller does not say.
const BLOCK: [u64; 3] = [8; 3];

/// The codecs of the chunks of a scale.
pub(super) fn chain(scale: &Scale, axes: &Axes, data_type: VoxelType) -> Vec<Value> {
    let mut codecs: Vec<Value> = axes.transpose().into_iter().collect();
    codecs.push(match &scale.encoding {
        Encoding::Raw if data_type.bytes() == 1 => json!({"name": "bytes"}),
        Encoding::Raw => json!({"name": "bytes", "configuration": {"endian": "little"}}),
        Encoding::CompressedSegmentation { block: [x, y, z] } => {
            json!({"name": SEGMENTATION, "configuration": {"block_size": [z, y, x]}})
        }
        Encoding::Png => json!({"name": PNG}),
        Encoding::Jpeg { quality: None } => json!({"name": JPEG}),
        Encoding::Jpeg { quality: Some(quality) } => {
            json!({"name": JPEG, "configuration": {"quality": quality}})
        }
        // What we cannot decode can be listed and linked all the same.
        other => json!({"name": format!("neuroglancer.{}", other.name())}),
    });
    let gzip = scale.sharding.is_some_and(|sharding| sharding.data_encoding == Packing::Gzip);
    if gzip {
        codecs.push(gzip_codec());
    }
    codecs
}

pub(super) fn gzip_codec() -> Value {
    json!({"name": "gzip", "configuration": {"level": LEVEL}})
}

pub(super) fn name(codec: &Value) -> &str {
    codec["name"].as_str().or_else(|| codec.as_str()).unwrap_or_default()
}

/// The encoding that the codecs of an array are, or are nearest to. An image has no labels.
pub(super) fn encoding(spec: &ArraySpec, axes: &Axes, may_be_labels: bool) -> Result<Encoding> {
    let codecs: Vec<Value> =
        spec.codecs_json().into_iter().filter(|codec| name(codec) != "transpose").collect();
    if let Some(codec) = codecs.first().filter(|codec| name(codec) == SEGMENTATION) {
        let extents = codec["configuration"]["block_size"].as_array();
        let extents = extents.and_then(|extents| {
            let numbers: Option<Vec<u64>> = extents.iter().map(Value::as_u64).collect();
            <[u64; 3]>::try_from(numbers?).ok()
        });
        let Some([z, y, x]) = extents else {
            return Err(Error::invalid(format!("{codec} has no block size of three extents")));
        };
        return Ok(Encoding::CompressedSegmentation { block: [x, y, z] });
    }
    match codecs.first().map(name) {
        Some(PNG) => return Ok(Encoding::Png),
        Some(JPEG) => {
            let quality =
                codecs.first().and_then(|codec| codec["configuration"]["quality"].as_u64());
            return Ok(Encoding::Jpeg { quality });
        }
        _ => {}
    }
    let labels = may_be_labels && matches!(spec.dtype()?.name(), "uint32" | "uint64");
    // Elements that are not compressed at all are wished so.
    let plain = codecs.len() == 1 && codecs.first().is_some_and(|codec| name(codec) == "bytes");
    Ok(match labels && axes.has_space() && !plain {
        true => Encoding::CompressedSegmentation { block: BLOCK },
        false => Encoding::Raw,
    })
}

/// How the chunks of an array are spread over shards; `None` if each is a file.
pub(super) fn sharding(node: &ArrayNode, scale: &Scale, axes: &Axes) -> Result<Option<Sharding>> {
    let Some(wished) = &node.sharding else { return Ok(None) };
    let shape = axes.xyz(&wished.shard_shape, 1);
    let wish = ShardWish { shape: shape.map(Some), elements: None };
    let grid = scale.grid();
    let chosen = Sharding::like_tensorstore(grid, scale.chunk_size(), &wish, &scale.encoding)?;
    let chosen = match chosen {
        Some(chosen) => chosen,
        None => Sharding::split(Morton::new(grid)?.num_bits(), 0, &scale.encoding),
    };
    let packed = node.spec.codecs_json().iter().any(|codec| {
        !matches!(
            name(codec),
            "bytes" | "transpose" | SEGMENTATION | PNG | JPEG | "crc32c" | "chunkyard.label_block"
        )
    });
    let data_encoding = if packed { chosen.data_encoding } else { Packing::Raw };
    Ok(Some(Sharding { data_encoding, ..chosen }))
}
