//! The third movement: n chunks of the source become m chunks of the target.
//!
//! A pack is cut into tiles of whole target chunks. All source chunks that touch a tile are decoded
//! into it, each by one thread into its own part, and then the target chunks are encoded out of it.
//! The memory of tiles is used again: fresh pages would cost more than decoding.
//!
//! Elements that lie in memory already need no tile: the target chunks are encoded out of them.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use chunkyard_array::{Buffer, ChunkIndex, Grid, Output, OutputMemory, Region, View};
use rayon::prelude::*;

use super::cpu;
use super::encode::Encoder;
use super::mover::{Encoded, Mover};
use crate::error::{Error, Result};
use crate::format::{ChunkCodecs, Pack, PackWriter, Reader, in_chunk};

/// Tiles that wait to be used again.
static FREE: Mutex<Vec<Buffer>> = Mutex::new(Vec::new());
/// How many of them; more are never in use at once on machines of this size.
const FREE_MAX: usize = 4;

impl Mover {
    pub(super) async fn regrid(
        &self,
        pack: &Pack,
        writer: &mut dyn PackWriter,
        reader: &Reader,
        encoder: &Encoder,
    ) -> Result<()> {
        let tiles = Grid::new(self.plan.packs.array_shape(), &self.plan.tile)?;
        for cell in tiles.chunks_in(&pack.region) {
            let Some(tile) = tiles.clipped_region(&cell).intersect(&pack.region) else { continue };
            let encoded = self.regrid_tile(&tile, reader, encoder).await?;
            if !encoded.is_empty() {
                writer.push(encoded).await?;
            }
        }
        Ok(())
    }

    async fn regrid_tile(
        &self,
        tile: &Region,
        reader: &Reader,
        encoder: &Encoder,
    ) -> Result<Vec<Encoded>> {
        let within = self.plan.in_source(tile)?;
        let grid = reader.codecs().grid();
        let indices: Vec<ChunkIndex> = grid.chunks_in(&within).collect();
        let fetched = self.fetch(&indices).await?;
        if fetched.iter().all(Option::is_none) {
            // Only the fill value here, which is the target's as well.
            return Ok(Vec::new());
        }
        let (encoder, tile) = (encoder.clone(), tile.clone());
        if let (true, [Some(elements)]) = (self.plan.is_memory_whole(), &fetched[..]) {
            let (elements, place) = (elements.clone(), Region::whole(self.plan.to.spec.shape()));
            return cpu(move || encode_tile(&encoder, &tile, &elements, &place)).await?;
        }
        let item_size = encoder.source_fill.len();
        let (path, source) = (self.plan.source.clone(), reader.codecs().clone());
        let memory = tile_memory(within.num_bytes(item_size)?)?;
        let work = Work { path, source, encoder, memory, tile, within, fetched };
        cpu(move || work.run()).await?
    }
}

/// Encodes the target chunks of a tile out of elements that fill the box `place` of the target.
fn encode_tile(
    encoder: &Encoder,
    tile: &Region,
    elements: &[u8],
    place: &Region,
) -> Result<Vec<Encoded>> {
    let chunks: Vec<ChunkIndex> = encoder.codecs.grid().chunks_in(tile).collect();
    chunks
        .into_par_iter()
        .filter_map(|chunk| {
            let encoded = encoder.encode(&chunk, elements, place).transpose()?;
            Some(encoded.map(|encoded| (chunk, encoded)))
        })
        .collect()
}

/// The computing part of a tile.
struct Work {
    path: Arc<str>,
    source: ChunkCodecs,
    encoder: Encoder,
    memory: TileMemory,
    /// The tile in the target array, and in the source array.
    tile: Region,
    within: Region,
    fetched: Vec<Option<Bytes>>,
}

impl Work {
    fn run(self) -> Result<Vec<Encoded>> {
        let item_size = self.encoder.source_fill.len();
        let mut output = Output::new(self.memory, self.within.shape(), item_size)?;
        let views: Vec<(ChunkIndex, View)> =
            output.views(self.source.grid(), &self.within)?.collect();
        let (source, path) = (&self.source, &self.path);
        views.into_par_iter().zip(self.fetched).try_for_each(|((index, mut view), bytes)| {
            let decoded = source.decode_view(&index, bytes.as_deref(), &mut view);
            decoded.map_err(|error| match error {
                Error::Array(error) => in_chunk(path, &index, error),
                other => other,
            })
        })?;
        let mut memory = output.into_memory()?;
        encode_tile(&self.encoder, &self.tile, memory.as_mut_slice(), &self.tile)
    }
}

/// Memory of a tile, which goes back when it is dropped.
struct TileMemory {
    buffer: Option<Buffer>,
    len: usize,
}

fn tile_memory(len: usize) -> Result<TileMemory> {
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    let fits = |buffer: &Buffer| (len..=len.saturating_mul(4).max(1 << 20)).contains(&buffer.len());
    let buffer = match free.iter().position(fits) {
        Some(at) => free.swap_remove(at),
        None => {
            drop(free);
            Buffer::zeroed(len)?
        }
    };
    Ok(TileMemory { buffer: Some(buffer), len })
}

impl OutputMemory for TileMemory {
    fn as_mut_slice(&mut self) -> &mut [u8] {
        match &mut self.buffer {
            Some(buffer) => &mut buffer[..self.len],
            None => &mut [],
        }
    }
}

impl Drop for TileMemory {
    fn drop(&mut self) {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() >= FREE_MAX {
            // The oldest goes: sizes that are no longer asked for leave by and by.
            free.remove(0);
        }
        free.extend(self.buffer.take());
    }
}
