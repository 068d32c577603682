//! Writing an array of a session.

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_array::{ChunkIndex, ElementsBuf, Points, Region, Selection};
use chunkyard_format::{Accept, Exclusion, Writer};
use chunkyard_store::Result;

use super::{Array, Chunks};
use crate::coord::Coord;

#[async_trait]
impl Accept for Chunks {
    async fn accept(&self, chunks: Vec<(ChunkIndex, Option<Bytes>)>) -> Result<()> {
        let mut emptied = Vec::new();
        for (index, bytes) in chunks {
            let coord = Coord::encode(&index);
            match bytes {
                Some(bytes) => self.session.set_chunk_of(&self.node, coord, bytes).await?,
                None => emptied.push(coord),
            }
        }
        let located = self.session.locate_coords(&self.node, &emptied).await?;
        for (coord, _) in emptied.into_iter().zip(located).filter(|(_, found)| found.is_some()) {
            self.session.erase_chunk_of(&self.node, coord)?;
        }
        Ok(())
    }

    async fn exclude(&self, alone: bool) -> Exclusion<'_> {
        self.session.exclude(alone).await
    }
}

impl Array {
    /// The writer of this array.
    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    /// Writes a region: elements in row-major order, little-endian.
    pub async fn write_region(&self, region: &Region, elements: Bytes) -> Result<()> {
        self.writer.write_region(region, elements).await
    }

    /// Writes a selection: elements in row-major order, little-endian. Where positions repeat, the
    /// last value stays.
    pub async fn write_selection(&self, selection: &Selection, elements: Bytes) -> Result<()> {
        self.writer.write_selection(selection, elements).await
    }

    /// Writes points: elements in the order of the points, little-endian. Where points repeat, the
    /// last value stays.
    pub async fn write_points(&self, points: &Points, elements: Bytes) -> Result<()> {
        self.writer.write_points(points, elements).await
    }

    /// Sets all elements of a selection to one.
    pub async fn fill_selection(&self, selection: &Selection, element: Bytes) -> Result<()> {
        self.writer.fill_selection(selection, element).await
    }

    /// Writes a region of an array of any data type, variable length included.
    pub async fn write_elements(&self, region: &Region, elements: ElementsBuf) -> Result<()> {
        self.writer.write_elements(region, elements).await
    }
}
