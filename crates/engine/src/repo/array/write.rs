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

use super::{Array, BATCHES};
use crate::error::{Error, Result};
use crate::pipeline::cpu;
use crate::repo::coord::Coord;
use crate::store::Pooled;

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
        self.check(region)?;
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
        let mut existing = self.fetch_chunks(&partial).await?;
        let work: Vec<_> = batch
            .into_iter()
            .map(|index| {
                let old = existing.remove(&index);
                (index, old)
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
            return self.encode(elements);
        }
        let size = chunk.num_bytes(item_size)?;
        CHUNK.with_borrow_mut(|buffer| {
            buffer.resize(size, 0);
            match old {
                Some(old) => self
                    .codecs
                    .decode_into(old, buffer)
                    .map_err(|error| self.in_chunk(index, error))?,
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
            self.encode(buffer)
        })
    }

    /// Encodes a chunk; `None` when it is all fill value.
    fn encode(&self, decoded: &[u8]) -> Result<Option<Bytes>> {
        thread_local! {
            static ENCODED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        if self.codecs.is_fill(decoded) {
            return Ok(None);
        }
        // How long it gets is known only afterwards: the copy, a fraction of the encoding, is what
        // keeps a well compressed chunk from holding memory for a bad one.
        ENCODED.with_borrow_mut(|buffer| {
            buffer.clear();
            self.codecs.encode_into(decoded, buffer)?;
            let copy = Pooled::copy_of(buffer).map_err(|error| {
                Error::store("encode", &*self.node.path, std::io::Error::other(error))
            })?;
            Ok(Some(copy.freeze()))
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
