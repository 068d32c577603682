//! Chunks that are slices of packed blocks: each block is fetched, checked and unpacked once for all
//! slices of it.
//!
//! A block that holds several chunks is kept for the next call; one that is a single chunk is not,
//! because a caller that wants that chunk twice does better to keep it decoded.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use rayon::prelude::*;

use super::packing::{BlockCodec, block_codec};
use super::{Block, ByteCache, ChunkRef, Pooled};
use crate::cpu;
use crate::error::{Error, Result};

/// Unpacked bytes under way at once in one call, unless a single block has more.
const WAVE_BYTES: u64 = 64 << 20;

/// Blocks up to this size are kept even if they hold one chunk only.
const SMALL_BYTES_MAX: u64 = 64 << 10;

/// Up to here unpacking takes less time than asking another thread for it.
const INLINE_BYTES_MAX: u64 = 128 << 10;

/// Unpacked blocks that were used lately. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Blocks {
    bytes_max: u64,
    /// Most fetchers never see a block.
    kept: Arc<OnceLock<ByteCache<(u64, u64), Kept>>>,
}

/// An unpacked block and the memory that it takes.
#[derive(Debug, Clone)]
struct Kept {
    bytes: Bytes,
    room: usize,
}

impl Blocks {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, kept: Arc::default() }
    }

    /// A chunk of a block, if the block is here.
    #[inline]
    pub(super) fn slice(&self, block: &Block, within: &Range<u64>) -> Option<Bytes> {
        let kept = self.kept.get()?.get(&key(block))?;
        // A damaged file may have two blocks at one place.
        if kept.bytes.len() as u64 != block.len {
            return None;
        }
        cut(&kept.bytes, within)
    }

    fn keep(&self, block: &Block, kept: Kept) {
        let room = |_: &_, kept: &Kept| kept.room;
        self.kept.get_or_init(|| ByteCache::new(self.bytes_max, room)).insert(key(block), kept);
    }

    /// Whether a block of this size would be kept at all.
    fn has_room(&self, block: &Block) -> bool {
        block.len <= self.bytes_max
    }
}

fn key(block: &Block) -> (u64, u64) {
    (block.owner, block.range.start)
}

fn cut(bytes: &Bytes, within: &Range<u64>) -> Option<Bytes> {
    let (start, end) = (usize::try_from(within.start).ok()?, usize::try_from(within.end).ok()?);
    (start <= end && end <= bytes.len()).then(|| bytes.slice(start..end))
}

/// A block to fetch, and which chunks of it are wanted.
#[derive(Debug)]
pub(super) struct BlockRequest {
    pub(super) block: Arc<Block>,
    /// Where its packed bytes are.
    pub(super) packed: ChunkRef,
    codec: Option<Arc<dyn BlockCodec>>,
    /// Each with its place in the answer.
    chunks: Vec<(usize, Range<u64>)>,
}

/// The blocks of one call.
#[derive(Debug, Default)]
pub(super) struct Slices {
    wanted: Vec<BlockRequest>,
    known: HashMap<(u64, u64, u64), usize>,
}

impl Slices {
    /// Asks for a chunk of a block. An unknown packing is an error before anything is fetched.
    pub(super) fn add(&mut self, at: usize, block: &Arc<Block>, within: &Range<u64>) -> Result<()> {
        let key = (block.owner, block.range.start, block.len);
        if let Some(known) = self.known.get(&key).and_then(|known| self.wanted.get_mut(*known)) {
            known.chunks.push((at, within.clone()));
            return Ok(());
        }
        let codec = block.codec.as_ref().map(|name| block_codec(name)).transpose()?;
        self.known.insert(key, self.wanted.len());
        let chunks = vec![(at, within.clone())];
        self.wanted.push(BlockRequest {
            packed: block.packed(),
            block: block.clone(),
            codec,
            chunks,
        });
        Ok(())
    }

    /// The blocks in as many parts as it takes to have a bounded amount in memory at once.
    pub(super) fn waves(self) -> impl Iterator<Item = Vec<BlockRequest>> + Send {
        let mut rest = self.wanted.into_iter().peekable();
        std::iter::from_fn(move || {
            let mut bytes = 0u64;
            let mut wave = Vec::new();
            while let Some(next) = rest.next_if(|next| {
                bytes = bytes.saturating_add(next.block.len);
                wave.is_empty() || bytes <= WAVE_BYTES
            }) {
                wave.push(next);
            }
            (!wave.is_empty()).then_some(wave)
        })
    }
}

/// Unpacks blocks, whose packed bytes are given in the same order, and puts the chunks in their
/// places.
pub(super) async fn deliver(
    wave: Vec<BlockRequest>,
    packed: Vec<Option<Bytes>>,
    blocks: &Blocks,
    check: bool,
    answer: &mut [Option<Bytes>],
) -> Result<()> {
    let total: u64 = wave.iter().map(|wanted| wanted.block.len).fold(0, u64::saturating_add);
    let work: Vec<(BlockRequest, Bytes)> =
        wave.into_iter().zip(packed.into_iter().map(Option::unwrap_or_default)).collect();
    let one = {
        let blocks = blocks.clone();
        move |(wanted, packed): (BlockRequest, Bytes)| wanted.unpack(&packed, check, &blocks)
    };
    let unpacked: Vec<Vec<(usize, Bytes)>> = match work.len() {
        _ if total <= INLINE_BYTES_MAX => work.into_iter().map(one).collect::<Result<_>>()?,
        // One thread is enough, so the pool is not asked.
        0 | 1 => cpu(move || work.into_iter().map(one).collect::<Result<_>>()).await??,
        _ => cpu(move || work.into_par_iter().map(one).collect::<Result<_>>()).await??,
    };
    for (at, chunk) in unpacked.into_iter().flatten() {
        if let Some(place) = answer.get_mut(at) {
            *place = Some(chunk);
        }
    }
    Ok(())
}

impl BlockRequest {
    /// Checks and unpacks the block, and takes the chunks out of it.
    fn unpack(self, packed: &Bytes, check: bool, blocks: &Blocks) -> Result<Vec<(usize, Bytes)>> {
        let block = &*self.block;
        if let Some(expected) = block.crc32c.filter(|_| check) {
            let found = crc32c::crc32c(packed);
            if found != expected {
                let (expected, found) = (format!("{expected:08x}"), format!("{found:08x}"));
                return Err(block.corrupt("checksum", expected, found));
            }
        }
        let shared = self.chunks.iter().any(|(_, within)| !block.is_all(within));
        // A small block is kept even if it is one chunk: reading it again costs more than keeping
        // it.
        let keep = (shared || block.len <= SMALL_BYTES_MAX) && blocks.has_room(block);
        let unpacked = match &self.codec {
            Some(codec) => Self::unpacked(block, codec, packed)?,
            // A slice would keep the whole read alive, so it is copied.
            None if keep => Kept::new(Pooled::copy_of(packed).map_err(|e| no_memory(block, e))?),
            None => Kept { bytes: packed.clone(), room: packed.len() },
        };
        if unpacked.bytes.len() as u64 != block.len {
            let found = format!("{} bytes", unpacked.bytes.len());
            return Err(block.corrupt("its length", format!("{} bytes", block.len), found));
        }
        let used = self.chunks.iter().map(|(_, within)| within.end.saturating_sub(within.start));
        // A few chunks of many blocks must not keep all these blocks in memory.
        let copies = used.fold(0, u64::saturating_add) < block.len / 2;
        let chunks = self.chunks.iter().map(|(at, within)| {
            let chunk = cut(&unpacked.bytes, within).ok_or_else(|| {
                let found = format!("bytes {}..{}", within.start, within.end);
                block.corrupt("a chunk of it", format!("within {} bytes", block.len), found)
            })?;
            Ok((*at, if copies { Bytes::copy_from_slice(&chunk) } else { chunk }))
        });
        let chunks = chunks.collect::<Result<_>>()?;
        if keep {
            blocks.keep(block, unpacked);
        }
        Ok(chunks)
    }

    fn unpacked(block: &Block, codec: &Arc<dyn BlockCodec>, packed: &[u8]) -> Result<Kept> {
        let named = |error: Error| match error {
            Error::Array(chunkyard_array::Error::Corrupt { expected, found, .. })
            | Error::Corrupt { expected, found, .. } => {
                block.corrupt(&format!("unpacking by {}", codec.name()), expected, found)
            }
            other => other,
        };
        let len = usize::try_from(block.len).map_err(|e| no_memory(block, e))?;
        codec.check_len(packed, len).map_err(named)?;
        let mut memory = Pooled::new(len).map_err(|e| no_memory(block, e))?;
        codec.unpack(packed, &mut memory).map_err(named)?;
        Ok(Kept::new(memory))
    }
}

impl Kept {
    fn new(memory: Pooled) -> Self {
        let room = memory.room();
        Self { bytes: memory.freeze(), room }
    }
}

fn no_memory(block: &Block, error: impl Into<crate::error::Source>) -> Error {
    Error::store("unpack a block of", block.path.to_string(), error)
}
