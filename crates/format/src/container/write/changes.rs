//! Changes that are not flushed.
//!
//! A chunk that is written again replaces the waiting one, so a layer holds each chunk once, however
//! often it was written. Large chunks wait packed, small ones plain: they are packed together when it
//! is known which of them stay. Beyond a bound, the chunks move to a temporary file.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::ChunkIndex;
use chunkyard_store::{Block, BlockCodec, ChunkRef, Error, Pooled, Result, block_codec};

use super::draft::WHOLE_BYTES_MIN;
use crate::container::statistics::ChunkStats;

/// The description of an array, without its chunks.
pub use crate::container::mapping::Entry as Description;

/// All changes since the last flush.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes {
    pub(crate) arrays: BTreeMap<String, ArrayChange>,
    /// Bytes that wait in memory.
    pub(crate) bytes: u64,
}

/// The changes of one array.
#[derive(Debug, Clone)]
pub(crate) struct ArrayChange {
    /// Its description now; `None` if it was deleted.
    pub(crate) described: Option<Arc<Description>>,
    /// Whether the content of older layers under the name no longer counts.
    pub(crate) fresh: bool,
    /// Whether chunks were removed, so that statistics cannot be carried on.
    pub(crate) shrunk: bool,
    pub(crate) chunks: BTreeMap<ChunkIndex, PendingChunk>,
}

/// A chunk that waits to be flushed.
#[derive(Debug, Clone)]
pub(crate) enum PendingChunk {
    /// It holds the fill value only.
    Fill,
    /// Its plain bytes.
    Plain { bytes: Bytes, stats: ChunkStats },
    /// Its bytes, packed as a block of its own.
    Packed { bytes: Bytes, len: u64, codec: Arc<str>, stats: ChunkStats },
    /// Moved to a file.
    Spilled {
        path: Arc<str>,
        range: Range<u64>,
        len: u64,
        /// Name of the codec; `None` for plain bytes.
        codec: Option<Arc<str>>,
        stats: ChunkStats,
    },
}

impl PendingChunk {
    /// Prepares a chunk to wait: packs it, if it will be a block of its own.
    pub(crate) fn new(bytes: Bytes, stats: ChunkStats, codec: &dyn BlockCodec) -> Result<Self> {
        if (bytes.len() as u64) < WHOLE_BYTES_MIN {
            // Copied: a slice would keep the whole memory behind it.
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
            // Copied to its own size, which is known only afterwards.
            Ok::<_, Error>(Pooled::copy_of(buffer)?.freeze())
        })?;
        let len = bytes.len() as u64;
        Ok(Self::Packed { bytes: packed, len, codec: codec.name().into(), stats })
    }

    /// Where it is, as the fetcher takes it; `None` if it holds the fill value only.
    pub(crate) fn reference(self) -> Result<Option<ChunkRef>> {
        Ok(match self {
            Self::Fill => None,
            Self::Plain { bytes, .. } => Some(ChunkRef::Inline(bytes)),
            Self::Packed { bytes, len, codec, .. } => {
                let mut plain = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
                block_codec(&codec)?.unpack(&bytes, &mut plain)?;
                Some(ChunkRef::Inline(plain.into()))
            }
            Self::Spilled { path, range, len, codec, .. } => {
                let block =
                    Block { path, range, guard: None, crc32c: None, codec, len, owner: u64::MAX };
                Some(ChunkRef::Slice { within: 0..block.len, block: Arc::new(block) })
            }
        })
    }

    /// Bytes that it takes in memory.
    pub(crate) fn held(&self) -> u64 {
        match self {
            Self::Fill | Self::Spilled { .. } => 0,
            Self::Plain { bytes, .. } | Self::Packed { bytes, .. } => bytes.len() as u64,
        }
    }

    /// Its statistics.
    pub(crate) fn stats(&self) -> ChunkStats {
        match self {
            Self::Fill => ChunkStats::default(),
            Self::Plain { stats, .. }
            | Self::Packed { stats, .. }
            | Self::Spilled { stats, .. } => stats.clone(),
        }
    }
}

impl Changes {
    /// Whether there is nothing to flush.
    pub(crate) fn is_empty(&self) -> bool {
        self.arrays.is_empty()
    }

    /// The change of an array, begun from its old description if need be.
    pub(crate) fn change(&mut self, name: &str, was: &Arc<Description>) -> &mut ArrayChange {
        self.arrays.entry(name.to_owned()).or_insert_with(|| ArrayChange {
            described: Some(was.clone()),
            fresh: false,
            shrunk: false,
            chunks: BTreeMap::new(),
        })
    }

    /// Adds chunks of an array to those that wait.
    pub(crate) fn put(
        &mut self,
        name: &str,
        was: &Arc<Description>,
        chunks: Vec<(ChunkIndex, PendingChunk)>,
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

    /// Counts the bytes in memory anew, after chunks were dropped.
    pub(crate) fn recount(&mut self) {
        let chunks = self.arrays.values().flat_map(|change| change.chunks.values());
        self.bytes = chunks.map(PendingChunk::held).sum();
    }
}
