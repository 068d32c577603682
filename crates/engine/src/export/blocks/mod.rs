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

use self::made::Made;
use self::stored::Stored;
use super::geometry::{Frame, Level};

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

/// The label blocks of a scale.
#[derive(Debug)]
pub(super) struct Blocks {
    frame: Frame,
    mapping: Option<Arc<Mapping>>,
    /// Whether blocks are wanted as they are stored, too.
    kept: bool,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Stored(Stored),
    Made(Made),
}

/// Chunks of the export, fetched but not looked at.
#[derive(Debug, Clone)]
pub(super) enum Fetched {
    /// Chunks of the source.
    Stored(Vec<([u64; 3], Bytes)>),
    /// Label blocks that were made from voxels.
    Made(Vec<([u64; 3], Vec<u8>)>),
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
}

/// A chunk of the export, its index in the source, and where it is stored.
type Located = ([u64; 3], ChunkIndex, ChunkRef);

impl Cursor {
    /// All of some chunks.
    pub(super) fn new(chunks: impl Iterator<Item = [u64; 3]> + Send + 'static) -> Self {
        let ahead: Box<dyn Iterator<Item = [u64; 3]> + Send> = Box::new(chunks);
        Self { ahead: ahead.peekable(), located: VecDeque::new() }
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
    ) -> Result<Self> {
        let reader = Reader::new(source, &level.path)?;
        let kind = match Stored::fits(source, &reader, level, frame)? {
            Some(stored) => Kind::Stored(stored),
            None => Kind::Made(Made::new(reader, level, frame)?),
        };
        Ok(Self { frame: frame.clone(), mapping, kept, kind })
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

    /// The label blocks of fetched chunks, without those that are all label 0; and how many these are.
    pub(super) async fn unpack(
        self: &Arc<Self>,
        fetched: Fetched,
    ) -> Result<(Vec<LabelBlock>, u64)> {
        let blocks = self.clone();
        let made: Vec<Option<LabelBlock>> = cpu(move || match fetched {
            Fetched::Stored(chunks) => {
                let unpack = |(at, bytes)| blocks.unpack_one(at, bytes);
                chunks.into_par_iter().map(unpack).collect::<Result<_>>()
            }
            Fetched::Made(made) => {
                let finish = |(at, block)| blocks.finish(at, block, Bytes::new());
                made.into_par_iter().map(finish).collect::<Result<_>>()
            }
        })
        .await??;
        let all = made.len();
        let blocks: Vec<LabelBlock> = made.into_iter().flatten().collect();
        let empty = all - blocks.len();
        Ok((blocks, empty as u64))
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
