//! The third movement: n chunks of the source become m chunks of the target.
//!
//! A pack is cut into tiles of whole target chunks. All source chunks that touch a tile are decoded,
//! each once and by one thread, into the memory of the target chunks, and those are encoded from
//! there. Only where target chunks are small do many of them share memory, and are gathered from it.
//! All this memory is used again: fresh pages would cost more than decoding.
//!
//! Elements that lie in memory already need no tile: the target chunks are encoded out of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use chunkyard_array::{Buffer, ChunkIndex, Grid, Output, OutputMemory, Region, View};
use rayon::prelude::*;

use super::cpu;
use super::encode::Encoder;
use super::mover::{Encoded, Mover};
use crate::error::{Error, Result};
use crate::format::{ChunkCodecs, Pack, PackWriter, Reader, in_chunk};

/// Memory that waits to be used again.
static FREE: Mutex<Vec<Buffer>> = Mutex::new(Vec::new());
/// How much of it.
const FREE_BYTES_MAX: usize = 64 << 20;
/// Target chunks of so many bytes have memory of their own.
const OWN_BYTES_MIN: usize = 256 << 10;

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
        let targets = &encoder.codecs;
        let chunk = Region::whole(targets.grid().chunk_shape()).num_bytes(item_size)?;
        let mut boxes = Vec::new();
        if chunk < OWN_BYTES_MIN {
            boxes.push((tile, within));
        } else {
            for chunk in targets.grid().chunks_in(&tile) {
                let Some(part) = targets.stored_region(&chunk).intersect(&tile) else { continue };
                let within = self.plan.in_source(&part)?;
                boxes.push((part, within));
            }
        }
        let (path, source) = (self.plan.source.clone(), reader.codecs().clone());
        let chunks = indices.into_iter().zip(fetched).collect();
        let work = Work { path, source, encoder, boxes, chunks };
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
    /// What has memory of its own: boxes of whole target chunks, in the target and in the source.
    boxes: Vec<(Region, Region)>,
    /// The source chunks.
    chunks: Vec<(ChunkIndex, Option<Bytes>)>,
}

impl Work {
    fn run(self) -> Result<Vec<Encoded>> {
        let (source, path, encoder) = (&self.source, &self.path, &self.encoder);
        let item_size = encoder.source_fill.len();
        let mut outputs = Vec::with_capacity(self.boxes.len());
        let mut views: HashMap<ChunkIndex, Vec<View>> = HashMap::with_capacity(self.chunks.len());
        for (tile, within) in self.boxes {
            let memory = TileMemory::new(within.num_bytes(item_size)?)?;
            let mut output = Output::new(memory, within.shape(), item_size)?;
            for (index, view) in output.views(source.grid(), &within)? {
                views.entry(index).or_default().push(view);
            }
            outputs.push((tile, output));
        }
        let wanted = |(index, bytes)| {
            let views = views.remove(&index).unwrap_or_default();
            (index, bytes, views)
        };
        let work: Vec<(ChunkIndex, Option<Bytes>, Vec<View>)> =
            self.chunks.into_iter().map(wanted).collect();
        work.into_par_iter().try_for_each(|(index, bytes, mut views)| {
            let decoded = source.decode_views(&index, bytes.as_deref(), &mut views);
            decoded.map_err(|error| match error {
                Error::Array(error) => in_chunk(path, &index, error),
                other => other,
            })
        })?;
        let encoded: Vec<Vec<Encoded>> = outputs
            .into_par_iter()
            .map(|(tile, output)| {
                let mut memory = output.into_memory()?;
                encode_tile(encoder, &tile, memory.as_mut_slice(), &tile)
            })
            .collect::<Result<_>>()?;
        Ok(encoded.into_iter().flatten().collect())
    }
}

/// Memory of a box, which goes back when it is dropped.
struct TileMemory {
    buffer: Option<Buffer>,
    len: usize,
}

impl TileMemory {
    fn new(len: usize) -> Result<Self> {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let most = len.saturating_mul(4).max(1 << 20);
        let fits = |buffer: &Buffer| (len..=most).contains(&buffer.len());
        let buffer = match free.iter().position(fits) {
            Some(at) => free.swap_remove(at),
            None => {
                drop(free);
                Buffer::zeroed(len)?
            }
        };
        Ok(Self { buffer: Some(buffer), len })
    }
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
        free.extend(self.buffer.take());
        let mut kept: usize = free.iter().map(|buffer| buffer.len()).sum();
        while kept > FREE_BYTES_MAX && !free.is_empty() {
            // The oldest goes: sizes that are no longer asked for leave by and by.
            kept -= free.remove(0).len();
        }
    }
}
