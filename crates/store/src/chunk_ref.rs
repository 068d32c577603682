//! Where an encoded chunk is.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::block::Block;
use super::checksum::Check;
use super::guard::Guard;

/// Where an encoded chunk is: what a format answers when asked to locate one.
///
/// A format locates; it does not fetch. One [`Fetcher`](super::Fetcher) batches, coalesces, bounds
/// and retries for all of them, and a repository can keep references into any other format without
/// copying a byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChunkRef {
    /// An object of the same store, all of it. If there is no such object, the chunk holds the fill
    /// value only: formats with one file per chunk have no other mark for it.
    Whole {
        /// The object.
        path: Arc<str>,
    },
    /// A range of an object of the same store.
    Object {
        /// The object, shared by the many chunks in it.
        path: Arc<str>,
        /// Where in the object the chunk lies.
        range: Range<u64>,
        /// Checks that the object has not changed since the range was found.
        guard: Option<Guard>,
        /// What to check the bytes against, if anything.
        check: Option<Check>,
    },
    /// The chunk itself, small enough to be kept where the reference is.
    Inline(Bytes),
    /// A range of an object elsewhere. The reader decides whether its URL may be followed, never
    /// the data.
    Remote {
        /// The object's URL.
        url: Arc<str>,
        /// Where in the object the chunk lies.
        range: Range<u64>,
        /// Checks that it is still the same object.
        guard: Option<Guard>,
        /// What to check the bytes against, if anything.
        check: Option<Check>,
    },
    /// A part of a block that has to be unpacked first.
    Slice {
        /// The block, shared by the chunks in it.
        block: Arc<Block>,
        /// Where in the unpacked block the chunk lies.
        within: Range<u64>,
    },
}

impl ChunkRef {
    /// The length of the encoded chunk in bytes, where that is known without asking the store.
    pub fn len(&self) -> Option<u64> {
        match self {
            Self::Whole { .. } => None,
            Self::Object { range, .. }
            | Self::Remote { range, .. }
            | Self::Slice { within: range, .. } => Some(range.end.saturating_sub(range.start)),
            Self::Inline(bytes) => Some(bytes.len() as u64),
        }
    }

    /// The bytes that it takes in its store, including what its check needs before and behind it; for
    /// a chunk of a packed block, its share.
    pub fn stored_len(&self) -> Option<u64> {
        let Self::Slice { block, within } = self else {
            let around = |check: Check| check.bytes_before() + check.bytes_behind();
            let around = self.check().map_or(0, around) as u64;
            return Some(self.len()?.saturating_add(around));
        };
        let packed = block.range.end.saturating_sub(block.range.start);
        let part = within.end.saturating_sub(within.start);
        let share = u128::from(packed) * u128::from(part) / u128::from(block.len.max(1));
        Some(u64::try_from(share).unwrap_or(u64::MAX))
    }

    /// What to check its own bytes against; a chunk in a block is only checked with its block.
    pub fn check(&self) -> Option<Check> {
        match self {
            Self::Object { check, .. } | Self::Remote { check, .. } => *check,
            Self::Whole { .. } | Self::Inline(_) | Self::Slice { .. } => None,
        }
    }

    /// Whether the encoded chunk is known to have no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }
}
