//! Regions of arrays of any data type, those of variable length included.

use chunkyard_array::{Assembly, ElementsBuf, Region};

use super::Array;
use crate::error::Result;

impl Array {
    /// Reads a region of an array of any data type, variable length included.
    pub async fn read_elements(&self, region: &Region) -> Result<ElementsBuf> {
        if self.codecs.item_size().is_some() {
            return Ok(ElementsBuf::Fixed(self.read_region(region).await?.to_vec()));
        }
        self.check(region)?;
        let mut assembly = Assembly::new(region.shape(), self.codecs.fill_element())?;
        for batch in self.batches(region) {
            let mut chunks = self.fetch_chunks(&batch).await?;
            for index in batch {
                let Some(bytes) = chunks.remove(&index) else { continue };
                let decoded =
                    self.codecs.decode(&bytes).map_err(|error| self.in_chunk(&index, error))?;
                let chunk = self.grid.chunk_region(&index);
                let Some(part) = chunk.intersect(region) else { continue };
                assembly.place(
                    decoded.as_ref(),
                    chunk.shape(),
                    &part.relative_to(chunk.origin())?,
                    part.relative_to(region.origin())?.origin(),
                )?;
            }
        }
        Ok(assembly.finish())
    }

    /// Writes a region of an array of any data type, variable length included.
    pub async fn write_elements(&self, region: &Region, elements: ElementsBuf) -> Result<()> {
        if let (Some(_), ElementsBuf::Fixed(bytes)) = (self.codecs.item_size(), &elements) {
            return self.write_region(region, bytes.clone().into()).await;
        }
        self.check(region)?;
        let _exclusive = self.session.exclude(self.cuts_chunks(region)).await;
        for batch in self.batches(region) {
            let mut chunks = self.fetch_chunks(&batch).await?;
            let mut encoded = Vec::with_capacity(batch.len());
            for index in batch {
                let chunk = self.grid.chunk_region(&index);
                let Some(part) = chunk.intersect(region) else { continue };
                let mut whole = match chunks.remove(&index) {
                    Some(bytes) => {
                        self.codecs.decode(&bytes).map_err(|error| self.in_chunk(&index, error))?
                    }
                    None => Assembly::new(chunk.shape(), self.codecs.fill_element())?.finish(),
                };
                let values = elements
                    .as_ref()
                    .gather(region.shape(), &part.relative_to(region.origin())?)?;
                let place = part.relative_to(chunk.origin())?;
                whole.scatter(chunk.shape(), &place, values.as_ref())?;
                encoded.push((index, Some(self.codecs.encode(whole.as_ref())?.into())));
            }
            self.store_chunks(encoded).await?;
        }
        Ok(())
    }
}
