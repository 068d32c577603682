//! Writing elements of any data type, variable length included.

use chunkyard_array::{
    Assembly, Cells, ChunkIndex, ElementsBuf, Footprint, Points, Region, Selection,
};
use chunkyard_store::{Error, Result};

use super::Writer;
use crate::batched;

impl Writer {
    /// Writes a region of an array of any data type.
    pub async fn write_elements(&self, region: &Region, elements: ElementsBuf) -> Result<()> {
        self.reader.check(region)?;
        self.write_selected_elements(&Selection::from(region), elements).await
    }

    /// Writes a selection of an array of any data type.
    pub async fn write_selected_elements(
        &self,
        selection: &Selection,
        elements: ElementsBuf,
    ) -> Result<()> {
        match self.fixed(elements) {
            Ok(bytes) => self.write_selection(selection, bytes.into()).await,
            Err(elements) => {
                let cells = self.reader.cells(selection)?;
                self.write_variable(cells, self.cuts_chunks(selection), &elements).await
            }
        }
    }

    /// Writes points of an array of any data type.
    pub async fn write_point_elements(&self, points: &Points, elements: ElementsBuf) -> Result<()> {
        match self.fixed(elements) {
            Ok(bytes) => self.write_points(points, bytes.into()).await,
            Err(elements) => {
                let cells = self.reader.cells_of_points(points)?;
                self.write_variable(cells, true, &elements).await
            }
        }
    }

    /// The bytes, where both the array and the elements are of fixed size.
    fn fixed(&self, elements: ElementsBuf) -> std::result::Result<Vec<u8>, ElementsBuf> {
        match elements {
            ElementsBuf::Fixed(bytes) if self.reader.item_size().is_ok() => Ok(bytes),
            other => Err(other),
        }
    }

    async fn write_variable(
        &self,
        cells: Cells,
        alone: bool,
        elements: &ElementsBuf,
    ) -> Result<()> {
        let shape = cells.shape().to_vec();
        let _exclusive = self.target.exclude(alone).await;
        for batch in batched(cells, self.reader.batch_size()) {
            let work = self.with_existing(batch).await?;
            let mut encoded = Vec::with_capacity(work.len());
            for (index, footprint, old) in work {
                let chunk =
                    self.patch_variable(&index, &footprint, old.as_deref(), &shape, elements);
                encoded.push((index, Some(chunk?.into())));
            }
            self.target.accept(encoded).await?;
        }
        Ok(())
    }

    fn patch_variable(
        &self,
        index: &ChunkIndex,
        footprint: &Footprint,
        old: Option<&[u8]>,
        shape: &[u64],
        elements: &ElementsBuf,
    ) -> Result<Vec<u8>> {
        let (codecs, _) = self.reader.codecs().of(index)?;
        let footprint = footprint.clone().clipped(codecs.chunk_shape())?;
        let mut chunk = match old {
            Some(bytes) => {
                codecs.decode(bytes).map_err(|error| self.reader.in_chunk(index, error))?
            }
            None => Assembly::new(codecs.chunk_shape(), codecs.fill_element())?.finish(),
        };
        chunk.scatter_part(&footprint, elements.as_ref(), shape)?;
        codecs.encode(chunk.as_ref()).map_err(Error::from)
    }
}
