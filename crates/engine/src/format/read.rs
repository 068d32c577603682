//! Reading regions of any source.
//!
//! Chunks are located and fetched in batches, and each is decoded on a compute thread straight into
//! its own part of the output. Of a chunk that can be read in parts, a shard, only the parts that
//! hold something of the region are fetched: first the index, then what it says.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::{
    Assembly, Buffer, ChunkIndex, ElementsBuf, Output, OutputMemory, Part, Region, View,
};
use futures::{StreamExt, TryStreamExt, future, stream};
use rayon::prelude::*;

use super::chunk_codecs::ChunkCodecs;
use super::source::{Locate, Source};
use crate::alone::alone;
use crate::error::{Error, Result};
use crate::pipeline::cpu;
use crate::store::ChunkRef;

/// Decoded bytes that one batch of chunks is about.
const BATCH_BYTES: usize = 8 << 20;
/// Chunks of one batch, however small.
const BATCH_CHUNKS: usize = 1024;
/// Batches under way at once: one waits, one computes, one is ready.
pub(crate) const BATCHES: usize = 3;

/// Reads one array of a source. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Reader {
    source: Arc<dyn Locate>,
    path: Arc<str>,
    codecs: ChunkCodecs,
}

/// A chunk on its way into the output.
struct Wanted<P> {
    index: ChunkIndex,
    view: View,
    place: P,
}

/// A chunk of which a few parts are fetched.
struct InParts {
    reference: ChunkRef,
    len: u64,
    /// Where its index lies in it.
    index: Range<u64>,
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

    /// Reads a region into memory of the caller, which is handed back.
    pub async fn read_region_into<M: OutputMemory>(&self, region: &Region, memory: M) -> Result<M> {
        self.check(region)?;
        let mut output = Output::new(memory, region.shape(), self.item_size()?)?;
        let views = output.views(self.codecs.grid(), region)?;
        if self.codecs.grid().num_chunks_in(region) == 1 {
            alone(self.read_batch(views.collect())).await?;
            return Ok(output.into_memory()?);
        }
        let batches = stream::iter(batched(views, self.batch_size()));
        batches
            .map(|batch| self.read_batch(batch))
            .buffer_unordered(BATCHES)
            .try_collect::<()>()
            .await?;
        Ok(output.into_memory()?)
    }

    /// Reads a region of an array of any data type, variable length included.
    pub async fn read_elements(&self, region: &Region) -> Result<ElementsBuf> {
        if self.codecs.whole().item_size().is_some() {
            return Ok(ElementsBuf::Fixed(self.read_region(region).await?.to_vec()));
        }
        self.check(region)?;
        let fill = self.codecs.whole().fill_element();
        let mut assembly = Assembly::new(region.shape(), fill)?;
        let batches = batched(self.codecs.grid().chunks_in(region), self.batch_size());
        for batch in batches {
            let fetched = self.fetch_chunks(&batch).await?;
            for (index, bytes) in batch.into_iter().zip(fetched) {
                let Some(bytes) = bytes else { continue };
                let (codecs, _) = self.codecs.of(&index)?;
                let decoded =
                    codecs.decode(&bytes).map_err(|error| self.in_chunk(&index, error))?;
                let chunk = self.codecs.stored_region(&index);
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

    /// The encoded bytes of chunks, in the order asked; `None` for those that hold the fill value
    /// only.
    pub async fn fetch_chunks(&self, indices: &[ChunkIndex]) -> Result<Vec<Option<Bytes>>> {
        fetch_chunks(&*self.source, &self.path, indices).await
    }

    async fn fetch(&self, chunks: &[(&ChunkIndex, &ChunkRef)]) -> Result<Vec<Option<Bytes>>> {
        fetch(&*self.source, &self.path, chunks).await
    }

    async fn fetch_within(&self, wanted: &[(&ChunkRef, Range<u64>)]) -> Result<Vec<Bytes>> {
        match self.source.fetcher().fetch_within(wanted).await {
            Ok(fetched) => Ok(fetched),
            Err(error) => Err(self.source.explain(error).await),
        }
    }

    async fn read_batch(&self, batch: Vec<(ChunkIndex, View)>) -> Result<()> {
        let (indices, views): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        let located = self.source.locate(&self.path, &indices).await?;
        let (mut whole, mut in_parts) = (Vec::new(), Vec::new());
        for ((index, view), reference) in indices.into_iter().zip(views).zip(located) {
            match self.in_parts(&index, reference.as_ref(), &view)? {
                Some(place) => in_parts.push(Wanted { index, view, place }),
                None => whole.push(Wanted { index, view, place: reference }),
            }
        }
        future::try_join(self.read_whole(whole), self.read_parts(in_parts)).await?;
        Ok(())
    }

    /// How to read a chunk in parts, if that is the better way.
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

    /// Fetches whole chunks, which checks them, and decodes them.
    async fn read_whole(&self, chunks: Vec<Wanted<Option<ChunkRef>>>) -> Result<()> {
        let wanted: Vec<(&ChunkIndex, &ChunkRef)> =
            chunks.iter().filter_map(|chunk| Some((&chunk.index, chunk.place.as_ref()?))).collect();
        let mut fetched = self.fetch(&wanted).await?.into_iter();
        let work: Vec<Wanted<Option<Bytes>>> = chunks
            .into_iter()
            .map(|Wanted { index, view, place }| {
                let place = place.and_then(|_| fetched.next()?);
                Wanted { index, view, place }
            })
            .collect();
        let reader = self.clone();
        cpu(move || {
            work.into_par_iter().try_for_each(|Wanted { index, mut view, place }| {
                reader.codecs.decode_view(&index, place.as_deref(), &mut view).map_err(|error| {
                    match error {
                        Error::Array(error) => reader.in_chunk(&index, error),
                        other => other,
                    }
                })
            })
        })
        .await?
    }

    /// Fetches the wanted parts of chunks, which check themselves, and decodes them.
    async fn read_parts(&self, chunks: Vec<Wanted<InParts>>) -> Result<()> {
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

    /// How many chunks are read or written in one go.
    pub(crate) fn batch_size(&self) -> usize {
        let chunk_bytes = self.codecs.whole().chunk_bytes().unwrap_or(1 << 16).max(1);
        (BATCH_BYTES / chunk_bytes).clamp(1, BATCH_CHUNKS)
    }

    /// Says which chunk the array model complained about.
    pub(crate) fn in_chunk(&self, index: &[u64], error: chunkyard_array::Error) -> Error {
        in_chunk(&self.path, index, error)
    }
}

/// Says which chunk of which array the array model complained about.
pub(crate) fn in_chunk(path: &str, index: &[u64], error: chunkyard_array::Error) -> Error {
    match error {
        chunkyard_array::Error::Corrupt { what, expected, found, .. } => {
            Error::Corrupt { file: name(path, index), what, expected, found }
        }
        other => other.into(),
    }
}

/// Locates and fetches the encoded bytes of chunks, in the order asked; `None` for those that hold
/// the fill value only.
pub(crate) async fn fetch_chunks<L: Locate + ?Sized>(
    source: &L,
    path: &str,
    indices: &[ChunkIndex],
) -> Result<Vec<Option<Bytes>>> {
    let located = source.locate(path, indices).await?;
    let found: Vec<(&ChunkIndex, &ChunkRef)> = indices
        .iter()
        .zip(&located)
        .filter_map(|(index, place)| Some((index, place.as_ref()?)))
        .collect();
    let mut fetched = fetch(source, path, &found).await?.into_iter();
    Ok(located.iter().map(|place| place.as_ref().and_then(|_| fetched.next()?)).collect())
}

async fn fetch<L: Locate + ?Sized>(
    source: &L,
    path: &str,
    chunks: &[(&ChunkIndex, &ChunkRef)],
) -> Result<Vec<Option<Bytes>>> {
    let references: Vec<&ChunkRef> = chunks.iter().map(|(_, reference)| *reference).collect();
    let name = |at: usize| match chunks.get(at) {
        Some((index, _)) => name(path, index),
        None => path.to_owned(),
    };
    match source.fetcher().fetch_named(&references, name).await {
        Ok(fetched) => Ok(fetched),
        Err(error) => Err(source.explain(error).await),
    }
}

/// How messages call a chunk.
fn name(path: &str, index: &[u64]) -> String {
    format!("chunk {index:?} of {path}")
}

/// Groups items, lazily.
pub(crate) fn batched<T>(
    mut items: impl Iterator<Item = T> + Send,
    size: usize,
) -> impl Iterator<Item = Vec<T>> + Send {
    std::iter::from_fn(move || {
        let batch: Vec<T> = items.by_ref().take(size).collect();
        (!batch.is_empty()).then_some(batch)
    })
}
