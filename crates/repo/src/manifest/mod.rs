//! Chunk manifests: where the chunks of arrays are.
//!
//! A manifest is a Parquet file of rows sorted by (`array_id`, `coord`). A commit writes one, with
//! exactly the references it sets or removes; reading an array walks its inventory entries from
//! newest to oldest. `write` lays rows out, `read` decodes them, `stream` walks whole files.
//! Fetching, searching and merging are the same for all sorted runs: [`super::run`].

mod lookup;
pub(super) mod merge;
mod read;
mod rows;
mod stream;
mod write;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub(super) use lookup::Scan;
pub(super) use read::{Block, decode_file};
pub(super) use rows::{Manifests, References, locate_page};
pub(super) use stream::{Rows, chunk_files, stream_blocks};
pub(super) use write::{RunBuilder, Written};

use super::coord::Coord;

/// What a row says about its chunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Payload {
    /// The encoded bytes, in the manifest itself.
    Inline {
        /// The bytes.
        bytes: Bytes,
    },
    /// A range of a file under `c/`.
    Native(Native),
    /// A range of an object elsewhere.
    Virtual(Box<Virtual>),
    /// The chunk was removed: readers see the fill value.
    Removed,
}

/// A range of a chunk file or pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Native {
    /// Name under `c/`.
    pub file: Arc<str>,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
    /// CRC-32C of the bytes; absent only in files of the bare draft.
    pub crc32c: Option<u32>,
}

/// A range of an object outside the repository, and how to notice that it changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Virtual {
    /// Absolute URL, or `vcc://<container>/<relative>`.
    pub url: Arc<str>,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
    /// Etag of the object when it was parsed.
    pub etag: Option<String>,
    /// Modification time of the object when it was parsed.
    pub last_modified_ms: Option<i64>,
    /// CRC-32C of the bytes, where recorded.
    pub crc32c: Option<u32>,
}

impl Payload {
    /// Bytes of the encoded chunk.
    pub fn length(&self) -> u64 {
        match self {
            Self::Inline { bytes } => bytes.len() as u64,
            Self::Native(native) => native.length,
            Self::Virtual(remote) => remote.length,
            Self::Removed => 0,
        }
    }

    /// Whether it marks a removal.
    pub fn is_removed(&self) -> bool {
        matches!(self, Self::Removed)
    }
}

/// One row of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// Handle of the array.
    pub array_id: u32,
    /// Encoded chunk index.
    pub coord: Coord,
    /// Where the chunk is.
    pub payload: Payload,
}
