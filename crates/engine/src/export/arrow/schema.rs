//! The columns of a shard.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use chunkyard_store::{Error, Result};
use serde::{Deserialize, Serialize};

/// How the blocks in a shard are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Codec {
    /// Zstandard frames of a level, with their content size and a checksum.
    Zstd(i32),
    /// As the source stores them.
    Keep,
}

/// The level that DVID writes.
const LEVEL: i32 = 3;
/// The levels that a caller may choose.
const LEVELS: std::ops::RangeInclusive<i32> = 1..=19;

impl Default for Codec {
    fn default() -> Self {
        Self::Zstd(LEVEL)
    }
}

impl FromStr for Codec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let level = match text {
            "keep" => return Ok(Self::Keep),
            "zstd" => return Ok(Self::default()),
            _ => text.strip_prefix("zstd:").and_then(|level| level.parse().ok()),
        };
        match level {
            Some(level) if LEVELS.contains(&level) => Ok(Self::Zstd(level)),
            _ => Err(Error::invalid(format!(
                "blocks of Arrow shards are compressed by zstd:1 to zstd:19, or kept as they are by keep, not {text:?}"
            ))),
        }
    }
}

impl TryFrom<String> for Codec {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Codec> for String {
    fn from(codec: Codec) -> Self {
        codec.to_string()
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zstd(level) => write!(f, "zstd:{level}"),
            Self::Keep => f.write_str("keep"),
        }
    }
}

/// The schema of a shard whose blocks are compressed by `compression`, and have their label list or not.
pub fn schema(compression: &str, stripped: bool) -> SchemaRef {
    // What DVID's column says is positions in blocks; a reader of the columns alone must be able to tell.
    let position = |name| with(Field::new(name, DataType::Int32, false), &[("unit", "chunks")]);
    let labels = |name| Field::new_list(name, Field::new("item", DataType::UInt64, true), false);
    let mut about = vec![("compression", "true"), ("codec", compression)];
    if stripped {
        about.push(("labels", "stripped"));
    }
    Arc::new(Schema::new(vec![
        position("chunk_x"),
        position("chunk_y"),
        position("chunk_z"),
        labels("labels"),
        labels("supervoxels"),
        with(Field::new("dvid_compressed_block", DataType::Binary, false), &about),
        Field::new("uncompressed_size", DataType::UInt32, false),
    ]))
}

fn with(field: Field, about: &[(&str, &str)]) -> Field {
    let pairs = about.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    field.with_metadata(HashMap::from_iter(pairs))
}
