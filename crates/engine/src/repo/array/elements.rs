//! Writing regions of arrays of any data type, those of variable length included.

use chunkyard_array::{Assembly, ElementsBuf, Region};

use super::Array;
use crate::error::Result;

impl Array {
    /// Writes a region of an array of any data type, variable length included.
    pub async fn write_elements(&self, region: &Region, elements: ElementsBuf) -> Result<()> {
        if let (Some(_), ElementsBuf::Fixed(bytes)) = (self.codecs.item_size(), &elements) {
            return self.write_region(region, bytes.clone().into()).await;
        }
        self.reader.check(region)?;
        let _exclusive = self.session.exclude(self.cuts_chunks(region)).await;
        for batch in self.batches(region) {
            let chunks = self.reader.fetch_chunks(&batch).await?;
            let mut encoded = Vec::with_capacity(batch.len());
            for (index, bytes) in batch.into_iter().zip(chunks) {
                let chunk = self.grid.chunk_region(&index);
                let Some(part) = chunk.intersect(region) else { continue };
                let mut whole = match bytes {
                    Some(bytes) => self.decode(&index, &bytes)?,
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
