//! Writing regions.
//!
//! Each chunk is gathered into a buffer, unless it lies in one piece in the caller's memory, encoded
//! on a compute thread and handed to the session. A chunk that is written in part is read first; a
//! missing one is all fill value; one that ends up all fill value is not stored.

use std::cell::RefCell;

use bytes::Bytes;
use chunkyard_array::{Region, contiguous_bytes, copy_region, fill_slice};
use futures::{StreamExt, TryStreamExt, stream};
use rayon::prelude::*;

use super::Array;
use crate::error::{Error, Result};
use crate::format::{BATCHES, encode_chunk};
use crate::pipeline::cpu;
use crate::repo::coord::Coord;

/// Elements to write, shared by the batches of one call.
#[derive(Debug, Clone)]
struct Source {
    region: Region,
    elements: Bytes,
}

impl Array {
    /// Writes a region: elements in row-major order, little-endian.
    pub async fn write_region(&self, region: &Region, elements: Bytes) -> Result<()> {
        let item_size = self.item_size()?;
        self.reader.check(region)?;
        let expected = region.num_bytes(item_size)?;
        if elements.len() != expected {
            return Err(Error::Invalid {
                what: format!(
                    "{}: the region {region} takes {expected} bytes, {} were given",
                    self.node.path,
                    elements.len()
                ),
            });
        }
        let _exclusive = self.session.exclude(self.cuts_chunks(region)).await;
        let source = Source { region: region.clone(), elements };
        stream::iter(self.batches(region))
            .map(|batch| self.write_batch(batch, source.clone()))
            .buffer_unordered(BATCHES)
            .try_collect::<()>()
            .await
    }

    async fn write_batch(&self, batch: Vec<Vec<u64>>, source: Source) -> Result<()> {
        let partial: Vec<_> =
            batch.iter().filter(|index| !self.covers(&source.region, index)).cloned().collect();
        let mut existing = self.reader.fetch_chunks(&partial).await?.into_iter();
        let work: Vec<_> = batch
            .into_iter()
            .map(|index| {
                let old = if self.covers(&source.region, &index) { None } else { existing.next() };
                (index, old.flatten())
            })
            .collect();
        let array = self.clone();
        let encoded = cpu(move || {
            work.into_par_iter()
                .map(|(index, old)| {
                    let bytes = array.encode_chunk(&index, old.as_ref(), &source)?;
                    Ok((index, bytes))
                })
                .collect::<Result<Vec<_>>>()
        })
        .await??;
        self.store_chunks(encoded).await
    }

    /// Assembles and encodes one chunk; `None` when it is all fill value.
    fn encode_chunk(
        &self,
        index: &[u64],
        old: Option<&Bytes>,
        source: &Source,
    ) -> Result<Option<Bytes>> {
        thread_local! {
            static CHUNK: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        let item_size = self.item_size()?;
        let chunk = self.grid.chunk_region(index);
        let Some(part) = chunk.intersect(&source.region) else { return Ok(None) };
        let given = part.relative_to(source.region.origin())?;
        let given_shape = source.region.shape();
        if part == chunk
            && let Some(elements) =
                contiguous_bytes(&source.elements, given_shape, &given, item_size)?
        {
            return encode_chunk(&self.codecs, elements);
        }
        let size = chunk.num_bytes(item_size)?;
        CHUNK.with_borrow_mut(|buffer| {
            buffer.resize(size, 0);
            match old {
                Some(old) => self
                    .codecs
                    .decode_into(old, buffer)
                    .map_err(|error| self.reader.in_chunk(index, error))?,
                None if part != chunk => fill_slice(buffer, self.codecs.fill_element()),
                None => {}
            }
            copy_region(
                &source.elements,
                given_shape,
                &given,
                buffer,
                chunk.shape(),
                part.relative_to(chunk.origin())?.origin(),
                item_size,
            )?;
            encode_chunk(&self.codecs, buffer)
        })
    }

    pub(super) async fn store_chunks(&self, encoded: Vec<(Vec<u64>, Option<Bytes>)>) -> Result<()> {
        let mut emptied = Vec::new();
        for (index, bytes) in encoded {
            let coord = Coord::encode(&index);
            match bytes {
                Some(bytes) => self.session.set_chunk_of(&self.node, coord, bytes).await?,
                None => emptied.push(coord),
            }
        }
        // A chunk that is all fill value is removed if there is one, and otherwise not stored.
        let located = self.session.locate_coords(&self.node, &emptied).await?;
        for (coord, _) in emptied.into_iter().zip(located).filter(|(_, found)| found.is_some()) {
            self.session.erase_chunk_of(&self.node, coord)?;
        }
        Ok(())
    }

    /// Whether the region holds all of a chunk that lies inside the array.
    fn covers(&self, region: &Region, index: &[u64]) -> bool {
        region.contains(&self.grid.clipped_region(index))
    }

    /// Whether some chunk is only partly inside the region.
    pub(super) fn cuts_chunks(&self, region: &Region) -> bool {
        let (shape, chunk) = (self.grid.array_shape(), self.grid.chunk_shape());
        region.origin().iter().zip(region.end()).enumerate().any(|(axis, (&start, end))| {
            let cut = |at: u64| {
                let size = chunk.get(axis).copied().unwrap_or(1);
                !at.is_multiple_of(size) && Some(&at) != shape.get(axis)
            };
            cut(start) || cut(end)
        })
    }
}
