//! Reading regions, selections and points of any source.
//!
//! Chunks are located and fetched in batches, and each is decoded on a compute thread straight into
//! its own part of the output. Of a chunk that can be read in parts (a shard), only the parts that
//! overlap the region are fetched: first the index, then the parts.

mod batch;
mod fetch;

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::{
    Assembly, Buffer, Cells, ChunkIndex, ElementsBuf, Output, OutputMemory, Points, Region,
    Selection, zeroed,
};
use futures::{StreamExt, TryStreamExt, stream};

pub use self::fetch::{fetch_chunks, in_chunk};
use chunkyard_store::{Error, Result, alone};

use super::chunk_codecs::ChunkCodecs;
use super::source::{Locate, Source};

/// Decoded bytes in one batch of chunks.
const BATCH_BYTES: usize = 8 << 20;
/// Chunks in one batch, however small.
const BATCH_CHUNKS: usize = 1024;
/// Batches under way at once: one waits, one computes, one is ready.
pub const BATCHES: usize = 3;

/// Reads one array of a source. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Reader {
    source: Arc<dyn Locate>,
    path: Arc<str>,
    codecs: ChunkCodecs,
}

impl Reader {
    /// A reader of an array of a source.
    pub fn new(source: &Arc<dyn Source>, path: &str) -> Result<Self> {
        let codecs = ChunkCodecs::new(source.dataset().array(path)?)?;
        Ok(Self::of(source.clone(), path, codecs))
    }

    /// A reader of an array that the caller describes.
    pub fn of(source: Arc<dyn Locate>, path: &str, codecs: ChunkCodecs) -> Self {
        Self { source, path: path.into(), codecs }
    }

    /// Path of the array.
    pub fn path(&self) -> &Arc<str> {
        &self.path
    }

    /// The codecs of the array's chunks.
    pub fn codecs(&self) -> &ChunkCodecs {
        &self.codecs
    }

    /// Bytes of one element; an error for types of variable length.
    pub fn item_size(&self) -> Result<usize> {
        self.codecs.whole().item_size().ok_or_else(|| Error::Unsupported {
            what: format!(
                "{}: elements of {} have no fixed size; read and write them as elements",
                self.path,
                self.codecs.whole().dtype().name()
            ),
        })
    }

    /// Reads a region: elements in row-major order, little-endian.
    pub async fn read_region(&self, region: &Region) -> Result<Buffer> {
        let memory = Buffer::zeroed(region.num_bytes(self.item_size()?)?)?;
        self.read_region_into(region, memory).await
    }

    /// Reads a region into memory of the caller, and returns that memory.
    pub async fn read_region_into<M: OutputMemory>(&self, region: &Region, memory: M) -> Result<M> {
        self.check(region)?;
        self.read_cells_into(self.cells(&Selection::from(region))?, memory).await
    }

    /// Reads a selection into memory of the caller, and returns that memory: elements in row-major
    /// order, little-endian.
    pub async fn read_selection_into<M: OutputMemory>(
        &self,
        selection: &Selection,
        memory: M,
    ) -> Result<M> {
        self.read_cells_into(self.cells(selection)?, memory).await
    }

    /// Reads points into memory of the caller, and returns that memory: elements in the order of
    /// the points, little-endian.
    pub async fn read_points_into<M: OutputMemory>(&self, points: &Points, memory: M) -> Result<M> {
        self.read_cells_into(self.cells_of_points(points)?, memory).await
    }

    /// Reads a region of an array of any data type, variable length included.
    pub async fn read_elements(&self, region: &Region) -> Result<ElementsBuf> {
        self.check(region)?;
        self.read_cells(self.cells(&Selection::from(region))?).await
    }

    /// Reads a selection of an array of any data type, variable length included.
    pub async fn read_selected_elements(&self, selection: &Selection) -> Result<ElementsBuf> {
        self.read_cells(self.cells(selection)?).await
    }

    /// Reads points of an array of any data type, variable length included.
    pub async fn read_point_elements(&self, points: &Points) -> Result<ElementsBuf> {
        self.read_cells(self.cells_of_points(points)?).await
    }

    async fn read_cells_into<M: OutputMemory>(&self, cells: Cells, memory: M) -> Result<M> {
        let mut output = Output::new(memory, cells.shape(), self.item_size()?)?;
        let mut views = output.views_of(cells)?;
        match (views.next(), views.next()) {
            (Some(only), None) => {
                drop(views);
                alone(self.read_batch(vec![only])).await?;
            }
            (first, second) => {
                let views = first.into_iter().chain(second).chain(views);
                stream::iter(batched(views, self.batch_size()))
                    .map(|batch| self.read_batch(batch))
                    .buffer_unordered(BATCHES)
                    .try_collect::<()>()
                    .await?;
            }
        }
        Ok(output.into_memory()?)
    }

    async fn read_cells(&self, cells: Cells) -> Result<ElementsBuf> {
        let shape = cells.shape().to_vec();
        if let Some(item_size) = self.codecs.whole().item_size() {
            let memory = zeroed(Region::whole(&shape).num_bytes(item_size)?)?;
            return self.read_cells_into(cells, memory).await.map(ElementsBuf::Fixed);
        }
        let mut assembly = Assembly::new(&shape, self.codecs.whole().fill_element())?;
        for batch in batched(cells, self.batch_size()) {
            let (indices, footprints): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
            let fetched = self.fetch_chunks(&indices).await?;
            for ((index, footprint), bytes) in indices.iter().zip(footprints).zip(fetched) {
                let Some(bytes) = bytes else { continue };
                let (codecs, _) = self.codecs.of(index)?;
                let decoded = codecs.decode(&bytes).map_err(|error| self.in_chunk(index, error))?;
                let place = Region::whole(codecs.chunk_shape());
                assembly.place_part(decoded.as_ref(), &place, &footprint)?;
            }
        }
        Ok(assembly.finish())
    }

    /// The encoded bytes of chunks, in the order asked; `None` for those that hold the fill value
    /// only.
    pub async fn fetch_chunks(&self, indices: &[ChunkIndex]) -> Result<Vec<Option<Bytes>>> {
        fetch_chunks(&*self.source, &self.path, indices).await
    }

    /// Refuses a region that is not within the array.
    pub fn check(&self, region: &Region) -> Result<()> {
        let shape = self.codecs.grid().array_shape();
        if Region::whole(shape).contains(region) {
            return Ok(());
        }
        Err(Error::Invalid {
            what: format!(
                "{}: the region {region} is outside the array's shape {shape:?}",
                self.path
            ),
        })
    }

    /// A selection, chunk by chunk; an error where it is not within the array.
    pub(super) fn cells(&self, selection: &Selection) -> Result<Cells> {
        selection.cells(self.codecs.grid()).map_err(|error| self.in_array(error))
    }

    /// Points, chunk by chunk; an error where they are not within the array.
    pub(super) fn cells_of_points(&self, points: &Points) -> Result<Cells> {
        points.cells(self.codecs.grid()).map_err(|error| self.in_array(error))
    }

    /// Names the array in an error about a request.
    fn in_array(&self, error: chunkyard_array::Error) -> Error {
        match error {
            chunkyard_array::Error::Invalid { .. } => {
                Error::invalid(format!("{}: {error}", self.path))
            }
            other => other.into(),
        }
    }

    /// How many chunks are read or written in one go.
    pub(crate) fn batch_size(&self) -> usize {
        let chunk_bytes = self.codecs.whole().chunk_bytes().unwrap_or(1 << 16).max(1);
        (BATCH_BYTES / chunk_bytes).clamp(1, BATCH_CHUNKS)
    }

    /// Names the chunk in an error of the array model.
    pub fn in_chunk(&self, index: &[u64], error: chunkyard_array::Error) -> Error {
        in_chunk(&self.path, index, error)
    }
}

/// Groups items, lazily.
pub fn batched<T>(
    mut items: impl Iterator<Item = T> + Send,
    size: usize,
) -> impl Iterator<Item = Vec<T>> + Send {
    std::iter::from_fn(move || {
        let batch: Vec<T> = items.by_ref().take(size).collect();
        (!batch.is_empty()).then_some(batch)
    })
}
