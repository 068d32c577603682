//! One batch of chunks: located, fetched whole or in parts, decoded into their views.
//!
//! A chunk that fills a packed block alone is fetched packed, and unpacked straight to where it
//! belongs.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::{ChunkIndex, Part, View};
use chunkyard_store::{ChunkRef, Error, Result, cpu};
use futures::future;
use rayon::prelude::*;

use super::{Reader, fetch};

/// Up to this size, decoding takes less time than asking another thread for it.
const INLINE_BYTES_MAX: usize = 32 << 10;

/// A chunk on its way into the output.
struct PendingChunk<P> {
    index: ChunkIndex,
    view: View,
    place: P,
}

/// A chunk that is fetched whole.
struct Whole<B> {
    /// Where it is, later its bytes; `None` for the fill value.
    encoded: Option<B>,
    /// The packing of its block, if it is fetched still packed.
    packing: Option<Arc<str>>,
}

/// A chunk of which a few parts are fetched.
struct InParts {
    reference: ChunkRef,
    len: u64,
    /// Where its index lies in it.
    index: Range<u64>,
}

impl Reader {
    /// Reads a batch of chunks into their views.
    pub(super) async fn read_batch(&self, batch: Vec<(ChunkIndex, View)>) -> Result<()> {
        let (indices, views): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        let located = self.source.locate(&self.path, &indices).await?;
        let (mut whole, mut in_parts) = (Vec::new(), Vec::new());
        for ((index, view), reference) in indices.into_iter().zip(views).zip(located) {
            match self.in_parts(&index, reference.as_ref(), &view)? {
                Some(place) => in_parts.push(PendingChunk { index, view, place }),
                None => whole.push(PendingChunk { index, view, place: self.whole(reference) }),
            }
        }
        future::try_join(self.read_whole(whole), self.read_parts(in_parts)).await?;
        Ok(())
    }

    /// How to read a chunk in parts, if that is better.
    fn in_parts(
        &self,
        index: &[u64],
        reference: Option<&ChunkRef>,
        view: &View,
    ) -> Result<Option<InParts>> {
        let Some(reference @ ChunkRef::Object { .. }) = reference else { return Ok(None) };
        let Some(len) = reference.len() else { return Ok(None) };
        let range = self.codecs.whole().index_for(len, view);
        let range = range.map_err(|error| self.in_chunk(index, error))?;
        Ok(range.map(|range| InParts { reference: reference.clone(), len, index: range }))
    }

    /// How to read a chunk whole: if it fills a block alone, as packed bytes.
    fn whole(&self, reference: Option<ChunkRef>) -> Whole<ChunkRef> {
        if let Some(ChunkRef::Slice { block, within }) = &reference
            && block.is_all(within)
            && let Some(packing) = &block.codec
            && self.codecs.packed_by(packing).is_some()
        {
            return Whole { encoded: Some(block.packed()), packing: Some(packing.clone()) };
        }
        Whole { encoded: reference, packing: None }
    }

    /// Fetches whole chunks, which checks them, and decodes them.
    async fn read_whole(&self, chunks: Vec<PendingChunk<Whole<ChunkRef>>>) -> Result<()> {
        if chunks.is_empty() {
            return Ok(());
        }
        let wanted: Vec<(&ChunkIndex, &ChunkRef)> = chunks
            .iter()
            .filter_map(|chunk| Some((&chunk.index, chunk.place.encoded.as_ref()?)))
            .collect();
        let mut fetched = self.fetch(&wanted).await?.into_iter();
        let mut work: Vec<PendingChunk<Whole<Bytes>>> = chunks
            .into_iter()
            .map(|PendingChunk { index, view, place: Whole { encoded, packing } }| {
                let encoded = encoded.and_then(|_| fetched.next()?);
                PendingChunk { index, view, place: Whole { encoded, packing } }
            })
            .collect();
        if work.iter().map(|chunk| self.effort(chunk)).sum::<usize>() <= INLINE_BYTES_MAX {
            return work.iter_mut().try_for_each(|chunk| self.decode(chunk));
        }
        let reader = self.clone();
        cpu(move || match &mut work[..] {
            // One chunk alone does not need the threads of the pool.
            [only] => reader.decode(only),
            _ => work.into_par_iter().try_for_each(|mut chunk| reader.decode(&mut chunk)),
        })
        .await?
    }

    /// About how many bytes must be decoded for the wanted part of a chunk.
    fn effort(&self, chunk: &PendingChunk<Whole<Bytes>>) -> usize {
        let is_copied = chunk.place.encoded.is_none()
            || (chunk.place.packing.is_none() && self.codecs.whole().is_plain());
        match is_copied {
            true => {
                let wanted = chunk.view.footprint().bounds().num_bytes(chunk.view.item_size());
                wanted.unwrap_or(usize::MAX)
            }
            false => self.codecs.whole().chunk_bytes().unwrap_or(usize::MAX),
        }
    }

    fn decode(&self, chunk: &mut PendingChunk<Whole<Bytes>>) -> Result<()> {
        let PendingChunk { index, view, place: Whole { encoded, packing } } = chunk;
        let packed = packing.as_ref().and_then(|packing| self.codecs.packed_by(packing));
        let codecs = packed.unwrap_or(&self.codecs);
        codecs.decode_view(index, encoded.as_deref(), view).map_err(|error| match error {
            Error::Array(error) => self.in_chunk(index, error),
            other => other,
        })
    }

    /// Fetches the wanted parts of chunks, which check themselves, and decodes them.
    async fn read_parts(&self, chunks: Vec<PendingChunk<InParts>>) -> Result<()> {
        if chunks.is_empty() {
            return Ok(());
        }
        let ranges: Vec<_> = chunks
            .iter()
            .map(|chunk| (&chunk.place.reference, chunk.place.index.clone()))
            .collect();
        let indices = self.fetch_within(&ranges).await?;
        let mut parts: Vec<Vec<Part>> = Vec::with_capacity(chunks.len());
        for (chunk, index) in chunks.iter().zip(&indices) {
            let wanted = self.codecs.whole().parts_for(index, chunk.place.len, &chunk.view);
            parts.push(wanted.map_err(|error| self.in_chunk(&chunk.index, error))?);
        }
        let ranges: Vec<_> = chunks
            .iter()
            .zip(&parts)
            .flat_map(|(chunk, parts)| {
                parts
                    .iter()
                    .filter_map(|part| Some((&chunk.place.reference, part.bytes()?.clone())))
            })
            .collect();
        let mut fetched = self.fetch_within(&ranges).await?.into_iter();
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
        let reader = self.clone();
        cpu(move || {
            work.into_par_iter().try_for_each(|(index, mut view, parts)| {
                parts.iter().try_for_each(|(part, bytes)| {
                    reader
                        .codecs
                        .whole()
                        .decode_part(bytes.as_deref(), part, &mut view)
                        .map_err(|error| reader.in_chunk(&index, error))
                })
            })
        })
        .await?
    }

    async fn fetch(&self, chunks: &[(&ChunkIndex, &ChunkRef)]) -> Result<Vec<Option<Bytes>>> {
        fetch::fetch(&*self.source, &self.path, chunks).await
    }

    async fn fetch_within(&self, wanted: &[(&ChunkRef, Range<u64>)]) -> Result<Vec<Bytes>> {
        match self.source.fetcher().fetch_within(wanted).await {
            Ok(fetched) => Ok(fetched),
            Err(error) => Err(self.source.explain(error).await),
        }
    }
}
