//! Codecs as typed on a command line: `zstd:3`, `blosc:lz4:5:shuffle`, `zstd:3+crc32c`.

use serde_json::{Value, json};
use zarrs::array::CodecMetadataOptions;
use zarrs::array::codec::default_array_to_bytes_codec;
use zarrs::plugin::ExtensionName;

use super::label_block::zarr as label_block;
use super::{picture, segmentation};
use crate::{DType, Error, Result};

/// Reads a chain of codecs, joined by `+`, for arrays of type `dtype`.
///
/// | text | codec |
/// |---|---|
/// | `none` | no compression |
/// | `zstd[:level]` | Zstandard, level 3 |
/// | `gzip[:level]`, `zlib[:level]`, `bz2[:level]` | as named, level 5 (1 for `zlib`) |
/// | `blosc[:codec[:level[:shuffle]]]` | Blosc, `lz4`, level 5, byte shuffle for wide types |
/// | `crc32c` | a checksum of all before it |
/// | `label_block` | first of all: chunks of labels as [label blocks](super::label_block) |
/// | `compressed_segmentation` | first of all: chunks of labels as [Neuroglancer](super::segmentation) has them |
/// | `png`, `jpeg[:quality]` | first of all: chunks of images as [pictures](super::picture), quality 75 |
///
/// Any other codec that turns elements into bytes is added in front automatically: `bytes` in
/// little-endian order, `vlen-utf8` or `vlen-bytes`, as the type demands.
///
/// ```
/// # use chunkyard_array::{DType, codec};
/// let (float32, _) = DType::from_numpy("<f4")?;
/// let codecs = codec::parse_shorthand("zstd:3+crc32c", &float32)?;
/// assert_eq!(codecs[1]["configuration"]["level"], 3);
/// assert_eq!(codecs[2]["name"], "crc32c");
/// # Ok::<(), chunkyard_array::Error>(())
/// ```
pub fn parse_shorthand(text: &str, dtype: &DType) -> Result<Vec<Value>> {
    let mut parts = text.split('+').peekable();
    let first = match parts.peek().map(|part| part.trim()) {
        Some("label_block") => Some(label_block::shorthand(dtype)?),
        Some(segmentation::NAME) => Some(segmentation::shorthand(dtype)?),
        Some(text) => picture::shorthand(text)?,
        None => None,
    };
    if first.is_some() {
        parts.next();
    }
    let mut codecs = vec![first.map_or_else(|| elements_to_bytes(dtype), Ok)?];
    if text.trim() == "none" {
        return Ok(codecs);
    }
    for part in parts {
        codecs
            .push(parse_one(part.trim(), dtype).map_err(|problem| {
                Error::invalid(format!("codec '{}': {problem}", part.trim()))
            })?);
    }
    Ok(codecs)
}

/// The default codec that turns elements of a type into bytes.
pub(crate) fn elements_to_bytes(dtype: &DType) -> Result<Value> {
    let codec = default_array_to_bytes_codec(dtype.zarrs());
    let name = codec
        .name_v3()
        .ok_or_else(|| Error::unsupported(format!("a codec for data type {dtype}")))?;
    let configuration = match codec.configuration_v3(&CodecMetadataOptions::default()) {
        Some(configuration) => serde_json::to_value(configuration)
            .map_err(|cause| Error::invalid(format!("codec {name}")).because(cause))?,
        None => Value::Null,
    };
    // A single byte has no byte order, and some readers refuse one.
    let empty = configuration.as_object().is_none_or(serde_json::Map::is_empty);
    if empty || (name == "bytes" && dtype.item_size() == Some(1)) {
        return Ok(json!({"name": name}));
    }
    Ok(json!({"name": name, "configuration": configuration}))
}

fn parse_one(text: &str, dtype: &DType) -> Result<Value, String> {
    let mut arguments = text.split(':');
    let name = arguments.next().unwrap_or_default();
    let codec = match name {
        "zstd" => {
            let level = level(arguments.next(), 3, -131_072..=22)?;
            json!({"name": "zstd", "configuration": {"level": level, "checksum": false}})
        }
        "gzip" => {
            let level = level(arguments.next(), 5, 0..=9)?;
            json!({"name": "gzip", "configuration": {"level": level}})
        }
        "zlib" => {
            let level = level(arguments.next(), 1, 0..=9)?;
            json!({"name": "numcodecs.zlib", "configuration": {"level": level}})
        }
        "bz2" => {
            let level = level(arguments.next(), 5, 1..=9)?;
            json!({"name": "numcodecs.bz2", "configuration": {"level": level}})
        }
        "blosc" => blosc(&mut arguments, dtype)?,
        "crc32c" => json!({"name": "crc32c"}),
        "label_block" | segmentation::NAME | "png" | "jpeg" => {
            return Err("must be the first".into());
        }
        "" => return Err("empty; write 'none' for no compression".into()),
        _ => {
            return Err(
                "unknown; known are none, zstd, gzip, zlib, bz2, blosc, crc32c, label_block, \
                 compressed_segmentation, png, jpeg"
                    .into(),
            );
        }
    };
    match arguments.next() {
        Some(extra) => Err(format!("'{extra}' is one argument too many")),
        None => Ok(codec),
    }
}

fn blosc<'a>(
    arguments: &mut impl Iterator<Item = &'a str>,
    dtype: &DType,
) -> Result<Value, String> {
    const COMPRESSORS: [&str; 6] = ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"];
    const SHUFFLES: [&str; 3] = ["noshuffle", "shuffle", "bitshuffle"];
    let compressor = arguments.next().unwrap_or("lz4");
    if !COMPRESSORS.contains(&compressor) {
        return Err(format!("'{compressor}' is none of {}", COMPRESSORS.join(", ")));
    }
    let level = level(arguments.next(), 5, 0..=9)?;
    let item_size = dtype.item_size().unwrap_or(1);
    let by_size = if item_size > 1 { "shuffle" } else { "noshuffle" };
    let shuffle = arguments.next().unwrap_or(by_size);
    if !SHUFFLES.contains(&shuffle) {
        return Err(format!("'{shuffle}' is none of {}", SHUFFLES.join(", ")));
    }
    let mut configuration =
        json!({"cname": compressor, "clevel": level, "shuffle": shuffle, "blocksize": 0});
    if shuffle != "noshuffle" {
        configuration["typesize"] = json!(item_size);
    }
    Ok(json!({"name": "blosc", "configuration": configuration}))
}

fn level(
    argument: Option<&str>,
    default: i32,
    range: std::ops::RangeInclusive<i32>,
) -> Result<i32, String> {
    let Some(text) = argument else { return Ok(default) };
    match text.parse() {
        Ok(level) if range.contains(&level) => Ok(level),
        _ => Err(format!("level '{text}' is not in {}..{}", range.start(), range.end())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::parse_shorthand;
    use crate::{ArraySpec, Codecs, DType};

    fn dtype(name: &str) -> DType {
        DType::parse(&json!(name)).unwrap()
    }

    #[test]
    fn typed_codecs_can_be_used() {
        for text in [
            "none",
            "zstd",
            "zstd:-5",
            "zstd:3+crc32c",
            "gzip",
            "gzip:9",
            "zlib",
            "bz2:1",
            "blosc",
            "blosc:zstd",
            "blosc:lz4:5:bitshuffle",
            "crc32c",
            " zstd:1 + crc32c ",
        ] {
            for name in ["uint8", "float32", "string", "bytes"] {
                let codecs = parse_shorthand(text, &dtype(name)).unwrap();
                let spec =
                    ArraySpec::builder(&[4], &[2], name).codecs(codecs.clone()).build().unwrap();
                assert!(Codecs::new(&spec).is_ok(), "{text} for {name}: {codecs:?}");
            }
        }
    }

    #[test]
    fn the_first_codec_follows_the_type() {
        let first = |name| parse_shorthand("none", &dtype(name)).unwrap().remove(0);
        let little = json!({"name": "bytes", "configuration": {"endian": "little"}});
        assert_eq!(first("float32"), little);
        assert_eq!(first("uint8"), json!({"name": "bytes"}));
        assert_eq!(first("string"), json!({"name": "vlen-utf8"}));
        assert_eq!(first("bytes"), json!({"name": "vlen-bytes"}));
    }

    #[test]
    fn chunks_of_labels_are_label_blocks_if_wished() {
        for text in ["label_block", "label_block+zstd:3", " label_block + zstd:1 + crc32c "] {
            for name in ["uint64", "uint32"] {
                let codecs = parse_shorthand(text, &dtype(name)).unwrap();
                assert_eq!(codecs[0], json!({"name": "chunkyard.label_block"}));
                let shape = [16, 16, 16];
                let spec = ArraySpec::builder(&shape, &shape, name).codecs(codecs).build().unwrap();
                assert!(Codecs::new(&spec).is_ok(), "{text} for {name}");
            }
        }
    }

    #[test]
    fn mistakes_are_explained() {
        for (text, expected) in [
            ("", "write 'none'"),
            ("zstd+", "write 'none'"),
            ("brotli", "unknown"),
            ("zstd:23", "level '23' is not in -131072..22"),
            ("gzip:x", "level 'x'"),
            ("zstd:3:4", "one argument too many"),
            ("blosc:lzma", "none of blosclz"),
            ("blosc:lz4:5:swirl", "none of noshuffle"),
            ("zstd+label_block", "must be the first"),
            ("label_block", "uint64 or uint32"),
            ("zstd+png", "must be the first"),
            ("png:9", "one argument too many"),
            ("jpeg:0", "1 to 100, not 0"),
            ("jpeg:high", "1 to 100, not high"),
            ("jpeg:90:2", "1 to 100, not 90:2"),
        ] {
            let error = parse_shorthand(text, &dtype("float32")).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
