//! The third movement: n chunks of the source become m chunks of the target.
//!
//! A pack is cut into tiles of whole target chunks. All source chunks that touch a tile are
//! decoded, each once and by one thread, into the memory of the target chunks, which are encoded
//! from there. Only small target chunks share memory and are gathered from it. All this memory is
//! reused: fresh pages would cost more than decoding.
//!
//! Each chunk costs memory besides its bytes, so the number of small chunks under way is bounded:
//! source chunks are then fetched and decoded in batches, target chunks encoded and pushed in
//! batches. The same happens if the chunks that a tile touches do not all fit in memory: a row of
//! the target may lie across a whole layer of the source.
//!
//! Elements that lie in memory already need no tile: the target chunks are encoded out of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use chunkyard_array::{Buffer, ChunkIndex, Grid, Output, OutputMemory, Region, View};
use chunkyard_format::{ChunkCodecs, PackWriter, Reader, batched, in_chunk};
use chunkyard_store::{Error, Result, cpu};
use rayon::prelude::*;

use super::budget::Fetching;
use super::encode::Encoder;
use super::mover::{Encoded, Mover};

/// Source chunks that are fetched for a tile at once, and target chunks that are encoded at once.
pub(super) const CHUNKS_AT_ONCE: u64 = 16 << 10;

/// Memory waiting for reuse.
static FREE: Mutex<Vec<Buffer>> = Mutex::new(Vec::new());
/// Its amount.
const FREE_BYTES_MAX: usize = 64 << 20;
/// Target chunks of at least this many bytes have memory of their own.
const OWN_BYTES_MIN: usize = 256 << 10;

impl Mover {
    pub(super) async fn regrid(
        &self,
        pieces: &[Region],
        writer: &mut dyn PackWriter,
        reader: &Reader,
        encoder: &Encoder,
        fetching: Fetching,
    ) -> Result<()> {
        let tiles = Grid::new(self.plan.packs.array_shape(), self.plan.tile(fetching))?;
        let chunk = Region::whole(reader.codecs().grid().chunk_shape()).num_elements();
        let most = Region::whole(&self.plan.touched_by_tile(fetching)).num_elements();
        let tile_elements = Region::whole(self.plan.tile(fetching)).num_elements();
        // Small pieces go together, as long as they cover and touch no more than a tile does.
        let (mut together, mut chunks, mut elements) = (Vec::new(), 0u64, 0u64);
        for piece in pieces {
            for cell in tiles.chunks_in(piece) {
                let Some(tile) = tiles.clipped_region(&cell).intersect(piece) else { continue };
                let touched = reader.codecs().grid().num_chunks_in(&self.plan.in_source(&tile)?);
                let sum = chunks.saturating_add(touched);
                let is_much = sum.saturating_mul(chunk) > most
                    || sum > CHUNKS_AT_ONCE
                    || elements.saturating_add(tile.num_elements()) > tile_elements;
                if is_much && !together.is_empty() {
                    self.regrid_tiles(&together, writer, reader, encoder, fetching).await?;
                    together.clear();
                    (chunks, elements) = (0, 0);
                }
                chunks = chunks.saturating_add(touched);
                elements = elements.saturating_add(tile.num_elements());
                together.push(tile);
            }
        }
        self.regrid_tiles(&together, writer, reader, encoder, fetching).await
    }

    /// Moves boxes of whole target chunks together.
    async fn regrid_tiles(
        &self,
        tiles: &[Region],
        writer: &mut dyn PackWriter,
        reader: &Reader,
        encoder: &Encoder,
        fetching: Fetching,
    ) -> Result<()> {
        let Some(boxes) = self.decoded(tiles, reader, encoder, fetching).await? else {
            return Ok(());
        };
        let boxes: Arc<[Decoded]> = boxes.into();
        let encoder = Arc::new(encoder.clone());
        let grid = encoder.codecs.grid().clone();
        let places: Vec<Region> = boxes.iter().map(|it| it.tile.clone()).collect();
        let chunks = places.into_iter().enumerate();
        let chunks = chunks.flat_map(|(at, tile)| grid.chunks_in(&tile).map(move |it| (at, it)));
        for batch in batched(chunks, CHUNKS_AT_ONCE as usize) {
            let (boxes, encoder) = (boxes.clone(), encoder.clone());
            let encoded = cpu(move || encode_chunks(&encoder, &boxes, batch)).await??;
            if !encoded.is_empty() {
                writer.push(encoded).await?;
            }
        }
        Ok(())
    }

    /// The elements of some boxes; `None` where none of their chunks is stored.
    async fn decoded(
        &self,
        tiles: &[Region],
        reader: &Reader,
        encoder: &Encoder,
        fetching: Fetching,
    ) -> Result<Option<Vec<Decoded>>> {
        let grid = reader.codecs().grid();
        let within: Vec<Region> =
            tiles.iter().map(|tile| self.plan.in_source(tile)).collect::<Result<_>>()?;
        let counts = within.iter().map(|within| grid.num_chunks_in(within));
        let is_many = counts.fold(0, u64::saturating_add) > CHUNKS_AT_ONCE;
        let is_much = fetching == Fetching::Batches;
        if (is_many || is_much) && !self.plan.is_memory_whole() {
            return self.decoded_in_batches(tiles, reader, encoder).await.map(Some);
        }
        let mut indices: Vec<ChunkIndex> =
            within.iter().flat_map(|within| grid.chunks_in(within)).collect();
        if tiles.len() > 1 {
            indices.sort_unstable();
            indices.dedup();
        }
        let fetched = self.fetch(&indices).await?;
        if fetched.iter().all(Option::is_none) {
            // Only fill values here, and the target has the same one.
            return Ok(None);
        }
        if let (true, [Some(elements)]) = (self.plan.is_memory_whole(), &fetched[..]) {
            let place = Region::whole(self.plan.to.spec.shape());
            let all = tiles.iter().map(|tile| Decoded {
                tile: tile.clone(),
                place: place.clone(),
                elements: Elements::Given(elements.clone()),
            });
            return Ok(Some(all.collect()));
        }
        let boxes = self.boxes(tiles, encoder)?;
        let (path, source) = (self.plan.source.clone(), reader.codecs().clone());
        let item_size = encoder.source_fill.len();
        let found = indices.into_iter().zip(fetched);
        let chunks = found.filter_map(|(index, bytes)| Some((index, bytes?))).collect();
        let work = Work { path, source, item_size, boxes, chunks };
        cpu(move || work.run()).await?.map(Some)
    }

    /// The same for too many chunks to hold at once.
    async fn decoded_in_batches(
        &self,
        tiles: &[Region],
        reader: &Reader,
        encoder: &Encoder,
    ) -> Result<Vec<Decoded>> {
        let item_size = encoder.source_fill.len();
        let mut decoded = Vec::new();
        for (tile, within) in self.boxes(tiles, encoder)? {
            let memory = TileMemory::new(within.num_bytes(item_size)?)?;
            let memory = reader.read_region_into(&within, memory).await?;
            let (place, elements) = (tile.clone(), Elements::Tile(memory));
            decoded.push(Decoded { tile, place, elements });
        }
        Ok(decoded)
    }

    /// The boxes with memory of their own: whole target chunks, in the target and in the source.
    fn boxes(&self, tiles: &[Region], encoder: &Encoder) -> Result<Vec<(Region, Region)>> {
        let targets = &encoder.codecs;
        let item_size = encoder.source_fill.len();
        let chunk = Region::whole(targets.grid().chunk_shape()).num_bytes(item_size)?;
        let mut boxes = Vec::new();
        for tile in tiles {
            if chunk < OWN_BYTES_MIN {
                boxes.push((tile.clone(), self.plan.in_source(tile)?));
                continue;
            }
            for chunk in targets.grid().chunks_in(tile) {
                let Some(part) = targets.stored_region(&chunk).intersect(tile) else { continue };
                let within = self.plan.in_source(&part)?;
                boxes.push((part, within));
            }
        }
        Ok(boxes)
    }
}

/// Elements of the source, ready to be encoded.
struct Decoded {
    /// The target chunks that are made of them, all of the box.
    tile: Region,
    /// The box of the target that the elements fill.
    place: Region,
    elements: Elements,
}

enum Elements {
    Tile(TileMemory),
    Given(Bytes),
}

impl Elements {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Tile(memory) => memory.as_slice(),
            Self::Given(bytes) => bytes,
        }
    }
}

/// Encodes target chunks, each out of one of the boxes.
fn encode_chunks(
    encoder: &Encoder,
    boxes: &[Decoded],
    chunks: Vec<(usize, ChunkIndex)>,
) -> Result<Vec<Encoded>> {
    chunks
        .into_par_iter()
        .filter_map(|(at, chunk)| {
            let Decoded { place, elements, .. } = boxes.get(at)?;
            let encoded = encoder.encode(&chunk, elements.as_slice(), place).transpose()?;
            Some(encoded.map(|encoded| (chunk, encoded)))
        })
        .collect()
}

/// The decoding of tiles.
struct Work {
    path: Arc<str>,
    source: ChunkCodecs,
    item_size: usize,
    /// The boxes with memory of their own: whole target chunks, in the target and in the source.
    boxes: Vec<(Region, Region)>,
    /// The source chunks that are stored.
    chunks: HashMap<ChunkIndex, Bytes>,
}

impl Work {
    fn run(self) -> Result<Vec<Decoded>> {
        let (source, path, chunks) = (&self.source, &self.path, &self.chunks);
        let mut outputs = Vec::with_capacity(self.boxes.len());
        let mut views: HashMap<ChunkIndex, Vec<View>> = HashMap::with_capacity(chunks.len());
        for (tile, within) in self.boxes {
            let memory = TileMemory::new(within.num_bytes(self.item_size)?)?;
            let mut output = Output::new(memory, within.shape(), self.item_size)?;
            for (index, view) in output.views(source.grid(), &within)? {
                views.entry(index).or_default().push(view);
            }
            outputs.push((tile, output));
        }
        views.into_par_iter().try_for_each(|(index, mut views)| {
            let bytes = chunks.get(&index).map(|bytes| &bytes[..]);
            let decoded = source.decode_views(&index, bytes, &mut views);
            decoded.map_err(|error| match error {
                Error::Array(error) => in_chunk(path, &index, error),
                other => other,
            })
        })?;
        let done = outputs.into_iter().map(|(tile, output)| {
            let elements = Elements::Tile(output.into_memory()?);
            Ok(Decoded { place: tile.clone(), tile, elements })
        });
        done.collect()
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

impl TileMemory {
    fn as_slice(&self) -> &[u8] {
        self.buffer.as_ref().and_then(|buffer| buffer.get(..self.len)).unwrap_or_default()
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
            // The oldest goes, so unused sizes leave over time.
            kept -= free.remove(0).len();
        }
    }
}
