//! Reading regions.
//!
//! Chunks are located and fetched in batches, and each is decoded on a compute thread straight into
//! its own part of the output. Of a chunk that can be read in parts, a shard, only the parts that
//! hold something of the region are fetched: first the index, then what it says.

use std::ops::Range;

use bytes::Bytes;
use chunkyard_array::{Buffer, Output, OutputMemory, Part, Region, View};
use futures::{StreamExt, TryStreamExt, future, stream};
use rayon::prelude::*;

use super::{Array, BATCHES, batched};
use crate::error::Result;
use crate::pipeline::cpu;
use crate::repo::coord::Coord;
use crate::repo::manifest::{Native, Payload};

/// A chunk on its way into the output.
struct Wanted<P> {
    index: Vec<u64>,
    view: View,
    place: P,
}

/// A chunk of which a few parts are fetched.
struct InParts {
    native: Native,
    /// Where its index lies in it.
    index: Range<u64>,
}

impl Array {
    /// Reads a region: elements in row-major order, little-endian.
    pub async fn read_region(&self, region: &Region) -> Result<Buffer> {
        let memory = Buffer::zeroed(region.num_bytes(self.item_size()?)?)?;
        self.read_region_into(region, memory).await
    }

    /// Reads a region into memory of the caller, which is handed back.
    pub async fn read_region_into<M: OutputMemory>(&self, region: &Region, memory: M) -> Result<M> {
        self.check(region)?;
        let mut output = Output::new(memory, region.shape(), self.item_size()?)?;
        let views = output.views(&self.grid, region)?;
        let batches = stream::iter(batched(views, self.batch_size()));
        batches
            .map(|batch| self.read_batch(batch))
            .buffer_unordered(BATCHES)
            .try_collect::<()>()
            .await?;
        Ok(output.into_memory()?)
    }

    async fn read_batch(&self, batch: Vec<(Vec<u64>, View)>) -> Result<()> {
        let coords: Vec<_> = batch.iter().map(|(index, _)| Coord::encode(index)).collect();
        let located = self.session.locate_coords(&self.node, &coords).await?;
        let (mut whole, mut in_parts) = (Vec::new(), Vec::new());
        for ((index, view), payload) in batch.into_iter().zip(located) {
            match self.in_parts(&index, payload.as_ref(), &view)? {
                Some(place) => in_parts.push(Wanted { index, view, place }),
                None => whole.push(Wanted { index, view, place: payload }),
            }
        }
        future::try_join(self.read_whole(whole), self.read_parts(in_parts)).await?;
        Ok(())
    }

    /// How to read a chunk in parts, if that is the better way.
    fn in_parts(
        &self,
        index: &[u64],
        payload: Option<&Payload>,
        view: &View,
    ) -> Result<Option<InParts>> {
        let Some(Payload::Native(native)) = payload else { return Ok(None) };
        let range = self.codecs.index_for(native.length, view);
        match range.map_err(|error| self.in_chunk(index, error))? {
            Some(range) if self.session.is_stored(native) => {
                Ok(Some(InParts { native: native.clone(), index: range }))
            }
            _ => Ok(None),
        }
    }

    /// Fetches whole chunks, which checks them, and decodes them.
    async fn read_whole(&self, chunks: Vec<Wanted<Option<Payload>>>) -> Result<()> {
        let wanted: Vec<(String, Payload)> = chunks
            .iter()
            .filter_map(|chunk| Some((self.name(&chunk.index), chunk.place.clone()?)))
            .collect();
        let mut fetched = self.session.fetch(&wanted).await?.into_iter();
        let work: Vec<Wanted<Option<Bytes>>> = chunks
            .into_iter()
            .map(|Wanted { index, view, place }| {
                let place = place.and_then(|_| fetched.next());
                Wanted { index, view, place }
            })
            .collect();
        let array = self.clone();
        cpu(move || {
            work.into_par_iter().try_for_each(|mut chunk| match chunk.place {
                None => Ok(chunk.view.fill(array.codecs.fill_element())?),
                Some(bytes) => array
                    .codecs
                    .decode_view(&bytes, &mut chunk.view)
                    .map_err(|error| array.in_chunk(&chunk.index, error)),
            })
        })
        .await?
    }

    /// Fetches the wanted parts of chunks, which check themselves, and decodes them.
    async fn read_parts(&self, chunks: Vec<Wanted<InParts>>) -> Result<()> {
        if chunks.is_empty() {
            return Ok(());
        }
        let ranges: Vec<_> =
            chunks.iter().map(|chunk| (&chunk.place.native, chunk.place.index.clone())).collect();
        let indices = self.session.fetch_within(&ranges).await?;
        let mut parts: Vec<Vec<Part>> = Vec::with_capacity(chunks.len());
        for (chunk, index) in chunks.iter().zip(&indices) {
            let wanted = self.codecs.parts_for(index, chunk.place.native.length, &chunk.view);
            parts.push(wanted.map_err(|error| self.in_chunk(&chunk.index, error))?);
        }
        let ranges: Vec<_> = chunks
            .iter()
            .zip(&parts)
            .flat_map(|(chunk, parts)| {
                parts.iter().filter_map(|part| Some((&chunk.place.native, part.bytes()?.clone())))
            })
            .collect();
        let mut fetched = self.session.fetch_within(&ranges).await?.into_iter();
        let work: Vec<_> = chunks
            .into_iter()
            .zip(parts)
            .map(|(chunk, parts)| {
                let parts = parts.into_iter().map(|part| {
                    let bytes = part.bytes().and_then(|_| fetched.next());
                    (part, bytes)
                });
                (chunk.index, chunk.view, parts.collect::<Vec<_>>())
            })
            .collect();
        let array = self.clone();
        cpu(move || {
            work.into_par_iter().try_for_each(|(index, mut view, parts)| {
                parts.iter().try_for_each(|(part, bytes)| {
                    array
                        .codecs
                        .decode_part(bytes.as_deref(), part, &mut view)
                        .map_err(|error| array.in_chunk(&index, error))
                })
            })
        })
        .await?
    }
}
