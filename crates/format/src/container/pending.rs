//! Changes that are not flushed.
//!
//! A chunk that is written again replaces the one that waited, so a layer holds each chunk once,
//! however often it was written. Large chunks wait packed, small ones as they are: they are packed
//! together when it is known which of them stay. Beyond a bound, what waits is moved to a file aside.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::ChunkIndex;
use chunkyard_store::{BlockCodec, Error, Pooled, Result};

use super::draft::WHOLE_BYTES_MIN;
use super::statistics::ChunkStats;

/// What an array is, apart from its chunks.
pub use super::mapping::Entry as Description;

/// All that was changed since the last flush.
#[derive(Debug, Clone, Default)]
pub(super) struct Pending {
    pub(super) arrays: BTreeMap<String, Change>,
    /// Bytes that wait in memory.
    pub(super) bytes: u64,
}

/// What was changed of one array.
#[derive(Debug, Clone)]
pub(super) struct Change {
    /// What it is now; `None` if it was deleted.
    pub(super) described: Option<Arc<Description>>,
    /// Whether what older layers hold under the name counts no more.
    pub(super) fresh: bool,
    /// Whether chunks were taken away, so that statistics cannot be carried on.
    pub(super) shrunk: bool,
    pub(super) chunks: BTreeMap<ChunkIndex, Waiting>,
}

/// A chunk that waits to be flushed.
#[derive(Debug, Clone)]
pub(super) enum Waiting {
    /// It holds the fill value only.
    Fill,
    /// Its bytes as they are.
    Plain { bytes: Bytes, stats: ChunkStats },
    /// Its bytes as a block of its own.
    Packed { bytes: Bytes, len: u64, codec: Arc<str>, stats: ChunkStats },
    /// Moved aside.
    Aside {
        path: Arc<str>,
        range: Range<u64>,
        len: u64,
        /// Name of the codec; `None` for plain bytes.
        codec: Option<Arc<str>>,
        stats: ChunkStats,
    },
}

impl Waiting {
    /// Prepares a chunk to wait: packs it, if it will be a block of its own.
    pub(super) fn new(bytes: Bytes, stats: ChunkStats, codec: &dyn BlockCodec) -> Result<Self> {
        if (bytes.len() as u64) < WHOLE_BYTES_MIN {
            // A slice would keep all of the memory that it is a slice of.
            return Ok(Self::Plain { bytes: Bytes::copy_from_slice(&bytes), stats });
        }
        if codec.name() == "none" {
            return Ok(Self::Plain { bytes, stats });
        }
        thread_local! {
            static PACKED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        let packed = PACKED.with_borrow_mut(|buffer| {
            codec.pack_into(&bytes, buffer)?;
            // Of its own size: how long it gets is known only afterwards.
            Ok::<_, Error>(Pooled::copy_of(buffer)?.freeze())
        })?;
        let len = bytes.len() as u64;
        Ok(Self::Packed { bytes: packed, len, codec: codec.name().into(), stats })
    }

    /// Bytes that it takes in memory.
    pub(super) fn held(&self) -> u64 {
        match self {
            Self::Fill | Self::Aside { .. } => 0,
            Self::Plain { bytes, .. } | Self::Packed { bytes, .. } => bytes.len() as u64,
        }
    }

    /// Its statistics.
    pub(super) fn stats(&self) -> ChunkStats {
        match self {
            Self::Fill => ChunkStats::default(),
            Self::Plain { stats, .. } | Self::Packed { stats, .. } | Self::Aside { stats, .. } => {
                stats.clone()
            }
        }
    }
}

impl Pending {
    /// Whether there is nothing to flush.
    pub(super) fn is_empty(&self) -> bool {
        self.arrays.is_empty()
    }

    /// The change of an array, begun if need be from what it was.
    pub(super) fn change(&mut self, name: &str, was: &Arc<Description>) -> &mut Change {
        self.arrays.entry(name.to_owned()).or_insert_with(|| Change {
            described: Some(was.clone()),
            fresh: false,
            shrunk: false,
            chunks: BTreeMap::new(),
        })
    }

    /// Lets chunks of an array wait.
    pub(super) fn put(
        &mut self,
        name: &str,
        was: &Arc<Description>,
        chunks: Vec<(ChunkIndex, Waiting)>,
    ) {
        let change = self.change(name, was);
        let mut bytes = 0_i128;
        for (index, chunk) in chunks {
            bytes += i128::from(chunk.held());
            if let Some(old) = change.chunks.insert(index, chunk) {
                bytes -= i128::from(old.held());
            }
        }
        self.bytes = u64::try_from(i128::from(self.bytes) + bytes).unwrap_or(0);
    }

    /// Counts anew what waits in memory, after chunks were dropped.
    pub(super) fn recount(&mut self) {
        let chunks = self.arrays.values().flat_map(|change| change.chunks.values());
        self.bytes = chunks.map(Waiting::held).sum();
    }
}
