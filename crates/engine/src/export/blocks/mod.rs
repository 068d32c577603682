//! Where the label blocks of a scale come from, in any order a shard wants them.
//!
//! Where the chunks of an array are label blocks of the size and place of the export's, their outer compression comes off and
//! nothing else happens: no voxel is looked at. Any other array is read in boxes, and its voxels become label blocks.

mod made;
mod stored;

use std::collections::VecDeque;
use std::iter::Peekable;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::ChunkIndex;
use chunkyard_array::codec::label_block::table_of;
use chunkyard_format::{Reader, Source};
use chunkyard_labels::Mapping;
use chunkyard_store::{ChunkRef, Error, Result, cpu};
use rayon::prelude::*;

use self::made::{Made, Waiting};
use self::stored::Stored;
use super::budget::Budget;
use super::cells::Cells;
use super::geometry::{Frame, Level};
use super::shards::Shard;

/// Where a label block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockPlace {
    /// Its chunk in the grid of the exported volume, along x, y and z.
    pub at: [u64; 3],
    /// Its first voxel.
    pub voxel: [i64; 3],
    /// Its first voxel in units of blocks.
    pub chunk: [i32; 3],
}

/// A label block on its way into shards.
#[derive(Debug)]
pub struct LabelBlock {
    /// Where it is.
    pub place: BlockPlace,
    /// Its table.
    pub supervoxels: Vec<u64>,
    /// The label of each supervoxel of the table.
    pub labels: Vec<u64>,
    /// How many different supervoxels the table has.
    pub distinct_supervoxels: u64,
    /// How many different labels they have.
    pub distinct_labels: u64,
    /// The block, with supervoxels.
    pub bytes: Vec<u8>,
    /// The block as the source stores it, without what only that store understands; nothing unless it is wanted so.
    pub stored: Bytes,
}

/// Label blocks that are unpacked at a time, in bytes: less where memory is short.
const UNPACKED_BYTES: u64 = 8 << 20;
/// Chunks that are unpacked at the same time, and the bytes of their labels without compression, which are less where memory is
/// short.
const AT_ONCE: u64 = 32;
const AT_ONCE_BYTES: u64 = 64 << 20;

/// Label blocks of some fetched chunks.
pub(super) struct Unpacked {
    /// Those with any label but 0.
    pub(super) blocks: Vec<LabelBlock>,
    /// How many others there were.
    pub(super) empty: u64,
    /// What is still to be unpacked.
    pub(super) rest: Option<Fetched>,
}

/// The label blocks of a scale.
#[derive(Debug)]
pub(super) struct Blocks {
    frame: Frame,
    mapping: Option<Arc<Mapping>>,
    /// Whether blocks are wanted as they are stored, too.
    kept: bool,
    kind: Kind,
    unpacked_bytes: u64,
    at_once_bytes: u64,
}

#[derive(Debug)]
enum Kind {
    Stored(Stored),
    Made(Box<Made>),
}

/// Chunks of the export, fetched but not looked at.
#[derive(Debug, Clone)]
pub(super) enum Fetched {
    /// Chunks of the source.
    Stored(Vec<([u64; 3], Bytes)>),
    /// Label blocks that were made from voxels.
    Made(Vec<([u64; 3], Bytes)>),
}

impl Fetched {
    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Stored(chunks) => chunks.iter().map(|(_, chunk)| chunk.len()).sum(),
            Self::Made(blocks) => blocks.iter().map(|(_, block)| block.len()).sum(),
        }
    }
}

/// Chunks of the export that are still to be fetched, in their order.
pub(super) struct Cursor {
    ahead: Peekable<Box<dyn Iterator<Item = [u64; 3]> + Send>>,
    located: VecDeque<Located>,
    /// Blocks that were made before their turn.
    waiting: Waiting,
    /// Whether the second chunk is still to come when the first one does.
    still_asks_for: Box<dyn Fn([u64; 3], [u64; 3]) -> bool + Send + Sync>,
}

/// A chunk of the export, its index in the source, and where it is stored.
type Located = ([u64; 3], ChunkIndex, ChunkRef);

impl Cursor {
    /// The chunks that a shard asks for, in the order of their numbers.
    pub(super) fn in_order(cells: &Arc<Cells>, shard: &Shard) -> Self {
        let ahead = cells.in_order(shard).map(|(_, at)| at);
        let (cells, shard) = (cells.clone(), shard.clone());
        Self::new(ahead, move |now, then| {
            let number = |at| cells.morton().encode(at);
            number(then) > number(now) && cells.asks_for(&shard, then)
        })
    }

    /// The chunks that a shard asks for, in the order of z, then y, then x.
    pub(super) fn in_zyx(cells: &Arc<Cells>, shard: &Shard) -> Self {
        let ahead = cells.in_zyx(shard);
        let (cells, shard) = (cells.clone(), shard.clone());
        let key = |[x, y, z]: [u64; 3]| [z, y, x];
        Self::new(ahead, move |now, then| key(then) > key(now) && cells.asks_for(&shard, then))
    }

    fn new(
        ahead: impl Iterator<Item = [u64; 3]> + Send + 'static,
        still_asks_for: impl Fn([u64; 3], [u64; 3]) -> bool + Send + Sync + 'static,
    ) -> Self {
        let ahead: Box<dyn Iterator<Item = [u64; 3]> + Send> = Box::new(ahead);
        let (located, waiting) = (VecDeque::new(), Waiting::default());
        let still_asks_for = Box::new(still_asks_for);
        Self { ahead: ahead.peekable(), located, waiting, still_asks_for }
    }
}

impl Blocks {
    /// The blocks of a level of a source, in the frame of the exported scale.
    pub(super) fn new(
        source: &Arc<dyn Source>,
        level: &Level,
        frame: &Frame,
        mapping: Option<Arc<Mapping>>,
        kept: bool,
        budget: &Budget,
    ) -> Result<Self> {
        let reader = Reader::new(source, &level.path)?;
        let kind = match Stored::fits(source, &reader, level, frame)? {
            Some(stored) => Kind::Stored(stored),
            None => Kind::Made(Box::new(Made::new(source, reader, level, frame, budget)?)),
        };
        let room = budget.room_bytes();
        Ok(Self {
            frame: frame.clone(),
            mapping,
            kept,
            kind,
            unpacked_bytes: UNPACKED_BYTES.min(room / 12),
            at_once_bytes: AT_ONCE_BYTES.min(room / 6),
        })
    }

    /// How the source compresses blocks, in the words of Arrow shards; an error if they cannot be passed on.
    pub(super) fn stored_codec(&self) -> Result<&'static str> {
        match &self.kind {
            Kind::Stored(stored) => stored.codec(),
            Kind::Made(_) => Err(Error::unsupported(
                "keeping blocks as they are stored where voxels become blocks; compress them by zstd:3",
            )),
        }
    }

    /// The next of some chunks, fetched: as many as fit a batch; `None` after the last. What is not stored is left out.
    pub(super) async fn fetch(&self, chunks: &mut Cursor) -> Result<Option<Fetched>> {
        match &self.kind {
            Kind::Stored(stored) => {
                stored.fetch(chunks).await.map(|some| some.map(Fetched::Stored))
            }
            Kind::Made(made) => made.fetch(chunks).await.map(|some| some.map(Fetched::Made)),
        }
    }

    /// Bytes in hand at most while blocks are fetched.
    pub(super) fn fetching_bytes(&self) -> u64 {
        match &self.kind {
            Kind::Stored(stored) => stored.fetching_bytes(self.frame.chunk),
            Kind::Made(made) => made.working_bytes(),
        }
    }

    /// The label blocks of the first of some fetched chunks, as many as are unpacked at a time.
    pub(super) async fn unpack(self: &Arc<Self>, fetched: Fetched) -> Result<Unpacked> {
        let blocks = self.clone();
        cpu(move || match fetched {
            Fetched::Stored(chunks) => {
                let unpack = |(at, bytes)| blocks.unpack_one(at, bytes);
                blocks.unpack_some(chunks, unpack, Fetched::Stored)
            }
            Fetched::Made(made) => {
                let finish =
                    |(at, block): (_, Bytes)| blocks.finish(at, block.into(), Bytes::new());
                blocks.unpack_some(made, finish, Fetched::Made)
            }
        })
        .await?
    }

    /// Unpacks chunks a few at a time, until they are enough: a small chunk may become a large block.
    fn unpack_some(
        &self,
        chunks: Vec<([u64; 3], Bytes)>,
        unpack: impl Fn(([u64; 3], Bytes)) -> Result<Option<LabelBlock>> + Send + Sync,
        rest: impl Fn(Vec<([u64; 3], Bytes)>) -> Fetched,
    ) -> Result<Unpacked> {
        let labels =
            self.frame.chunk.iter().fold(8, |bytes: u64, edge| bytes.saturating_mul(*edge));
        let at_once = (self.at_once_bytes / labels.max(1)).clamp(1, AT_ONCE);
        let (mut chunks, mut bytes) = (chunks.into_iter(), 0_u64);
        let mut found = Unpacked { blocks: Vec::new(), empty: 0, rest: None };
        while bytes < self.unpacked_bytes && chunks.len() > 0 {
            let some: Vec<_> = chunks.by_ref().take(at_once as usize).collect();
            let some: Vec<Option<LabelBlock>> =
                some.into_par_iter().map(&unpack).collect::<Result<_>>()?;
            for block in some {
                match block {
                    Some(block) => {
                        bytes += (block.bytes.len() + block.labels.len() * 16) as u64;
                        found.blocks.push(block);
                    }
                    None => found.empty += 1,
                }
            }
        }
        found.rest = (chunks.len() > 0).then(|| rest(chunks.collect()));
        Ok(found)
    }

    fn unpack_one(&self, at: [u64; 3], bytes: Bytes) -> Result<Option<LabelBlock>> {
        let Kind::Stored(stored) = &self.kind else { return Ok(None) };
        let block = stored.unpack(at, &bytes)?;
        let kept = if self.kept { stored.keep(at, bytes)? } else { Bytes::new() };
        self.finish(at, block, kept)
    }

    fn finish(&self, at: [u64; 3], bytes: Vec<u8>, stored: Bytes) -> Result<Option<LabelBlock>> {
        let supervoxels: Vec<u64> = table_of(&bytes)?.collect();
        let mut labels = supervoxels.clone();
        if let Some(mapping) = &self.mapping {
            mapping.relabel(&mut labels);
        }
        if labels.iter().all(|label| *label == 0) {
            return Ok(None);
        }
        Ok(Some(LabelBlock {
            place: self.frame.place(at)?,
            distinct_supervoxels: distinct(&supervoxels),
            distinct_labels: distinct(&labels),
            supervoxels,
            labels,
            bytes,
            stored,
        }))
    }
}

/// How many different numbers there are.
fn distinct(numbers: &[u64]) -> u64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.len() as u64
}
