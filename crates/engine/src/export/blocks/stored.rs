//! Chunks that are label blocks already.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::ChunkIndex;
use chunkyard_array::codec::{Codecs, DVID_VALUE, label_block};
use chunkyard_format::{Edges, Reader, Source, in_chunk};
use chunkyard_store::{ChunkRef, Error, Result};
use serde_json::Value;

use super::{Cursor, Located};
use crate::export::geometry::{Frame, Level};

/// Stored bytes fetched at once.
const BATCH_BYTES: u64 = 2 << 20;
/// Chunks that are located at once, unless the source says fewer.
const LOCATED: usize = 4096;
/// Chunks fetched at once, however small.
const BATCH_CHUNKS: usize = 256;
/// The first byte of a value of DVID that is a gzip stream behind it.
const GZIP_VALUE: u8 = 0x40;
/// What a chunk is taken for whose size is not known before it is fetched.
const UNKNOWN_BYTES: u64 = 16 << 10;

/// An array whose chunks are the blocks of the export.
#[derive(Debug)]
pub(super) struct Stored {
    source: Arc<dyn Source>,
    path: Arc<str>,
    codecs: Codecs,
    /// The chunk of the array at the beginning of the exported grid, along x, y, z.
    first: [i64; 3],
    /// Chunks of the array.
    grid: [u64; 3],
    compression: Compression,
}

/// What is around a block.
#[derive(Debug, Clone, Copy)]
enum Compression {
    /// A value of DVID, which says what is in it.
    DvidValue,
    /// A compression with a name.
    Named(&'static str),
    /// Anything else.
    Other,
}

impl Stored {
    /// The array, if its chunks are the blocks of the export.
    pub(super) fn fits(
        source: &Arc<dyn Source>,
        reader: &Reader,
        level: &Level,
        frame: &Frame,
    ) -> Result<Option<Self>> {
        let codecs = reader.codecs().whole().clone();
        let grid = reader.codecs().grid();
        let &[z, y, x] = grid.chunk_shape() else { return Ok(None) };
        let node = source.dataset().array(&level.path)?;
        // What is not stored is skipped here, so it must be label 0.
        let zeros = codecs.fill_element().iter().all(|byte| *byte == 0);
        let same = codecs.has_label_blocks()
            && zeros
            && level.axes == [2, 1, 0]
            && node.edges == Edges::Padded
            && [x, y, z] == frame.chunk
            && level.factor == [1; 3];
        let mut first = [0; 3];
        for (axis, first) in first.iter_mut().enumerate() {
            let chunk = frame.chunk[axis] as i64;
            let shift = frame.offset[axis] - level.origin[axis];
            if !same || shift % chunk != 0 {
                return Ok(None);
            }
            *first = shift / chunk;
        }
        let shape = grid.grid_shape();
        let &[z, y, x] = &shape[..] else { return Ok(None) };
        Ok(Some(Self {
            source: source.clone(),
            path: reader.path().clone(),
            codecs,
            first,
            grid: [x, y, z],
            compression: Compression::of(&node.spec.codecs_json()),
        }))
    }

    /// Bytes in hand at most while chunks are fetched: those that are, and those that came with their places.
    pub(super) fn fetching_bytes(&self, chunk: [u64; 3]) -> u64 {
        let labels = chunk.iter().fold(8, |bytes: u64, edge| bytes.saturating_mul(*edge));
        let made = match self.source.located_max() {
            few @ 0..LOCATED => labels.saturating_mul(few as u64),
            _ => 0,
        };
        BATCH_BYTES.saturating_add(made)
    }

    /// How blocks are compressed.
    pub(super) fn codec(&self) -> Result<&'static str> {
        match self.compression {
            Compression::DvidValue => Ok("gzip"),
            Compression::Named(name) => Ok(name),
            Compression::Other => Err(Error::unsupported(format!(
                "{}: keeping blocks whose compression has no name in an Arrow shard; compress them by zstd:3",
                self.path
            ))),
        }
    }

    /// The chunk of the source that a chunk of the export is.
    fn index(&self, at: [u64; 3]) -> Option<ChunkIndex> {
        let mut index = Vec::with_capacity(3);
        for axis in [2, 1, 0] {
            let here = i64::try_from(at[axis]).ok()?.checked_add(self.first[axis])?;
            let here = u64::try_from(here).ok()?;
            index.push(Some(here).filter(|here| *here < self.grid[axis])?);
        }
        Some(index)
    }

    /// Fetches the next chunks.
    pub(super) async fn fetch(
        &self,
        chunks: &mut Cursor,
    ) -> Result<Option<Vec<([u64; 3], Bytes)>>> {
        let mut batch: Vec<Located> = Vec::new();
        let mut bytes = 0;
        loop {
            while chunks.located.is_empty() && self.locate(chunks).await? {}
            let Some(next) = chunks.located.pop_front() else { break };
            bytes += next.2.stored_len().unwrap_or(UNKNOWN_BYTES);
            batch.push(next);
            if bytes >= BATCH_BYTES || batch.len() >= BATCH_CHUNKS {
                break;
            }
        }
        if batch.is_empty() {
            return Ok(None);
        }
        let references: Vec<&ChunkRef> = batch.iter().map(|(_, _, reference)| reference).collect();
        let name = |at: usize| match batch.get(at) {
            Some((_, index, _)) => format!("chunk {index:?} of {}", self.path),
            None => self.path.to_string(),
        };
        let fetched = match self.source.fetcher().fetch_named(&references, name).await {
            Ok(fetched) => fetched,
            Err(error) => return Err(self.source.explain(error).await),
        };
        let found = batch.iter().zip(fetched).filter_map(|((at, ..), bytes)| Some((*at, bytes?)));
        Ok(Some(found.collect()))
    }

    /// Locates more of the chunks ahead; whether there were any.
    async fn locate(&self, chunks: &mut Cursor) -> Result<bool> {
        let ahead: Vec<[u64; 3]> = {
            let most = self.source.located_max().min(LOCATED);
            chunks.ahead.by_ref().take(most).collect()
        };
        let inside = ahead.iter().filter_map(|at| Some((*at, self.index(*at)?)));
        let (places, indices): (Vec<[u64; 3]>, Vec<ChunkIndex>) = inside.unzip();
        let found = self.source.locate(&self.path, &indices).await?;
        let all = places.into_iter().zip(indices).zip(found);
        chunks.located.extend(all.filter_map(|((at, index), found)| Some((at, index, found?))));
        Ok(!ahead.is_empty())
    }

    /// The label block that a chunk is, checked.
    pub(super) fn unpack(&self, at: [u64; 3], chunk: &[u8]) -> Result<Vec<u8>> {
        self.codecs.label_block(chunk).map_err(|error| self.in_chunk(at, error))
    }

    /// The chunk without what only its store understands.
    pub(super) fn keep(&self, at: [u64; 3], chunk: Bytes) -> Result<Bytes> {
        match self.compression {
            Compression::DvidValue if chunk.first() == Some(&GZIP_VALUE) => Ok(chunk.slice(1..)),
            Compression::DvidValue => Err(Error::unsupported(format!(
                "keeping chunk {:?} of {} as it is stored: it is not compressed by gzip as others are; compress blocks by zstd:3",
                self.index(at).unwrap_or_default(),
                self.path
            ))),
            _ => Ok(chunk),
        }
    }

    fn in_chunk(&self, at: [u64; 3], error: chunkyard_array::Error) -> Error {
        in_chunk(&self.path, &self.index(at).unwrap_or_default(), error)
    }
}

impl Compression {
    /// What follows the label block in a chain of codecs.
    fn of(codecs: &[Value]) -> Self {
        let name = |codec: &Value| codec.get("name").and_then(Value::as_str).map(str::to_owned);
        let names: Vec<String> = codecs.iter().filter_map(name).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        match names[..] {
            [label_block::NAME] => Self::Named("none"),
            [label_block::NAME, DVID_VALUE] => Self::DvidValue,
            [label_block::NAME, "gzip"] => Self::Named("gzip"),
            [label_block::NAME, "zstd"] => Self::Named("zstd"),
            _ => Self::Other,
        }
    }
}
