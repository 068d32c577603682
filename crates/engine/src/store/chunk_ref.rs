//! Where an encoded chunk is.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::guard::Guard;

/// Where an encoded chunk is: what a format answers when asked to locate one.
///
/// A format locates; it does not fetch. One fetcher batches, coalesces, bounds and retries for all
/// of them, and a repository can keep references into any other format without copying a byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChunkRef {
    /// A range of an object of the same store.
    Object {
        /// The object, shared by the many chunks in it.
        path: Arc<str>,
        /// Its bytes that are the chunk.
        range: Range<u64>,
    },
    /// The chunk itself, small enough to be kept where the reference is.
    Inline(Bytes),
    /// A range of an object elsewhere. Whether its URL may be followed is for the reader to decide,
    /// never for the data.
    Remote {
        /// The object's URL.
        url: Arc<str>,
        /// Its bytes that are the chunk.
        range: Range<u64>,
        /// What shows that it is still the same object.
        guard: Option<Guard>,
    },
}

impl ChunkRef {
    /// The length of the encoded chunk in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Object { range, .. } | Self::Remote { range, .. } => {
                range.end.saturating_sub(range.start)
            }
            Self::Inline(bytes) => bytes.len() as u64,
        }
    }

    /// Whether the encoded chunk has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
