//! Writing regions, selections and points, wherever encoded chunks go.
//!
//! ```text
//!  elements ─▶ gather or patch ─▶ encode ─▶ Accept     a chunk is one step, a write is not
//! ```
//!
//! Each chunk is built in a buffer, unless it lies in one piece in the caller's memory, encoded on
//! a compute thread and handed on. A chunk that is written in part is read first; a missing one is
//! all fill value; one that ends up all fill value is not stored. Where positions repeat, the last
//! value stays. [`patch`] handles one chunk, [`elements`] types of variable length.

mod elements;
mod patch;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_array::{Cells, ChunkIndex, Footprint, Points, Region, Selection};
use chunkyard_store::{Error, Result, cpu};
use futures::{StreamExt, TryStreamExt, stream};
use rayon::prelude::*;

use self::patch::Values;
use super::read::{BATCHES, Reader, batched};

/// Where encoded chunks of one array go.
#[async_trait]
pub trait Accept: std::fmt::Debug + Send + Sync {
    /// Stores encoded chunks; `None` is a chunk that holds the fill value only: any stored one is
    /// removed.
    async fn accept(&self, chunks: Vec<(ChunkIndex, Option<Bytes>)>) -> Result<()>;

    /// Waits until it is safe to write; see [`Writers`].
    async fn exclude(&self, alone: bool) -> Exclusion<'_>;
}

/// Keeps writers of the same chunk apart: the lock is shared while whole chunks are written, and
/// exclusive while a chunk is read, changed and written. Otherwise two writers of one chunk would
/// undo each other.
#[derive(Debug, Default)]
pub struct Writers(tokio::sync::RwLock<()>);

/// See [`Writers::exclude`].
#[derive(Debug)]
pub enum Exclusion<'a> {
    /// Others may write whole chunks meanwhile.
    Shared(tokio::sync::RwLockReadGuard<'a, ()>),
    /// Others wait.
    Alone(tokio::sync::RwLockWriteGuard<'a, ()>),
    /// The caller keeps others from writing.
    Held,
}

impl Writers {
    /// Waits until it is safe to write; `alone` for writers that change parts of chunks.
    pub async fn exclude(&self, alone: bool) -> Exclusion<'_> {
        match alone {
            false => Exclusion::Shared(self.0.read().await),
            true => Exclusion::Alone(self.0.write().await),
        }
    }
}

/// Writes one array, whose chunks at the upper edges may be padded or clipped. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Writer {
    reader: Reader,
    target: Arc<dyn Accept>,
}

impl Writer {
    /// A writer of the array that the reader reads.
    pub fn new(reader: Reader, target: Arc<dyn Accept>) -> Self {
        Self { reader, target }
    }

    /// The reader of this array.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Writes a region: elements in row-major order, little-endian.
    pub async fn write_region(&self, region: &Region, elements: Bytes) -> Result<()> {
        self.reader.check(region)?;
        self.write_selection(&Selection::from(region), elements).await
    }

    /// Writes a selection: elements in row-major order, little-endian.
    pub async fn write_selection(&self, selection: &Selection, elements: Bytes) -> Result<()> {
        let cells = self.reader.cells(selection)?;
        self.write_cells(cells, self.cuts_chunks(selection), Values::Each(elements)).await
    }

    /// Writes points: elements in the order of the points, little-endian.
    pub async fn write_points(&self, points: &Points, elements: Bytes) -> Result<()> {
        let cells = self.reader.cells_of_points(points)?;
        self.write_cells(cells, true, Values::Each(elements)).await
    }

    /// Sets all elements of a selection to the same value.
    pub async fn fill_selection(&self, selection: &Selection, element: Bytes) -> Result<()> {
        let cells = self.reader.cells(selection)?;
        self.write_cells(cells, self.cuts_chunks(selection), Values::one(element)).await
    }

    /// Sets all points to the same value.
    pub async fn fill_points(&self, points: &Points, element: Bytes) -> Result<()> {
        let cells = self.reader.cells_of_points(points)?;
        self.write_cells(cells, true, Values::one(element)).await
    }

    async fn write_cells(&self, cells: Cells, alone: bool, values: Values) -> Result<()> {
        let shape: Arc<[u64]> = cells.shape().into();
        self.check_len(&shape, &values)?;
        let _exclusive = self.target.exclude(alone).await;
        let values = Arc::new(values);
        stream::iter(batched(cells, self.reader.batch_size()))
            .map(|batch| self.write_batch(batch, &shape, &values))
            .buffer_unordered(BATCHES)
            .try_collect::<()>()
            .await
    }

    async fn write_batch(
        &self,
        batch: Vec<(ChunkIndex, Footprint)>,
        shape: &Arc<[u64]>,
        values: &Arc<Values>,
    ) -> Result<()> {
        let work = self.with_existing(batch).await?;
        let (writer, shape, values) = (self.clone(), shape.clone(), values.clone());
        let encoded = cpu(move || {
            work.into_par_iter()
                .map(|(index, footprint, old)| {
                    let chunk = writer.patch(&index, &footprint, old.as_ref(), &shape, &values)?;
                    Ok((index, chunk))
                })
                .collect::<Result<Vec<_>>>()
        })
        .await??;
        self.target.accept(encoded).await
    }

    /// Fetches the chunks that keep some of their elements.
    async fn with_existing(
        &self,
        batch: Vec<(ChunkIndex, Footprint)>,
    ) -> Result<Vec<(ChunkIndex, Footprint, Option<Bytes>)>> {
        let grid = self.reader.codecs().grid();
        let covered: Vec<bool> = batch
            .iter()
            .map(|(index, footprint)| footprint.covers(grid.clipped_region(index).shape()))
            .collect();
        let partial: Vec<ChunkIndex> = batch
            .iter()
            .zip(&covered)
            .filter(|(_, covered)| !**covered)
            .map(|((index, _), _)| index.clone())
            .collect();
        let mut existing = self.reader.fetch_chunks(&partial).await?.into_iter();
        let old = |covered| if covered { None } else { existing.next().flatten() };
        let olds: Vec<Option<Bytes>> = covered.into_iter().map(old).collect();
        let work = batch.into_iter().zip(olds);
        Ok(work.map(|((index, footprint), old)| (index, footprint, old)).collect())
    }

    fn cuts_chunks(&self, selection: &Selection) -> bool {
        selection.cuts_chunks(self.reader.codecs().grid())
    }

    /// Refuses too many or too few values.
    fn check_len(&self, shape: &[u64], values: &Values) -> Result<()> {
        let item_size = self.reader.item_size()?;
        let expected = match values {
            Values::Each(_) => Region::whole(shape).num_bytes(item_size)?,
            Values::One { .. } => item_size,
        };
        if values.len() == expected {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{}: elements of shape {shape:?} take {expected} bytes, {} were given",
            self.reader.path(),
            values.len()
        )))
    }
}
