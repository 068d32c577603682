//! An array of a session: reading and writing regions.
//!
//! Reads decode straight into the result: chunks are located and fetched in batches, and each is
//! decoded on a compute thread into its own part of the output. Writes gather each chunk into a
//! buffer, encode it there, and hand the bytes to the session. A chunk that is written in part is
//! read first; a missing one is all fill value; one that ends up all fill value is not stored.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::{
    ArraySpec, Assembly, Buffer, Codecs, Elements, ElementsBuf, Grid, Output, OutputMemory, Region,
    View, contiguous_bytes, copy_region, fill_slice,
};
use futures::{StreamExt, TryStreamExt, stream};
use rayon::prelude::*;

use super::coord::Coord;
use super::manifest::Payload;
use super::node::Node;
use super::session::Session;
use crate::error::{Error, Result};
use crate::pipeline::cpu;
use crate::store::Pooled;

/// Decoded bytes that one batch of chunks is about.
const BATCH_BYTES: usize = 8 << 20;
/// Chunks of one batch, however small.
const BATCH_CHUNKS: usize = 1024;
/// Batches under way at once: one waits, one computes, one is ready.
const BATCHES: usize = 3;

/// An array as a session sees it.
#[derive(Debug, Clone)]
pub struct Array {
    session: Arc<Session>,
    node: Arc<Node>,
    spec: Arc<ArraySpec>,
    codecs: Codecs,
    grid: Grid,
}

impl Array {
    pub(super) fn open(session: Arc<Session>, node: &Arc<Node>) -> Result<Self> {
        let spec = node.array()?.clone();
        Ok(Self {
            session,
            codecs: Codecs::new(&spec)?,
            grid: spec.grid()?,
            spec,
            node: node.clone(),
        })
    }

    /// Its specification, without attributes.
    pub fn spec(&self) -> &Arc<ArraySpec> {
        &self.spec
    }

    /// Its node.
    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Its chunk grid.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Bytes of one element; an error for types of variable length.
    pub fn item_size(&self) -> Result<usize> {
        self.codecs.item_size().ok_or_else(|| Error::Unsupported {
            what: format!(
                "{}: elements of {} have no fixed size; read and write them as elements",
                self.node.path,
                self.spec.data_type_name()
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
        let wanted: Vec<(String, Payload)> = batch
            .iter()
            .zip(&located)
            .filter_map(|((index, _), payload)| Some((self.name(index), payload.clone()?)))
            .collect();
        let mut fetched = self.session.fetch(&wanted).await?.into_iter();
        let work: Vec<(Vec<u64>, View, Option<Bytes>)> = batch
            .into_iter()
            .zip(located)
            .map(|((index, view), payload)| {
                let bytes = payload.and_then(|_| fetched.next());
                (index, view, bytes)
            })
            .collect();
        let array = self.clone();
        cpu(move || {
            work.into_par_iter().try_for_each(|(index, mut view, bytes)| match bytes {
                None => Ok(view.fill(array.codecs.fill_element())?),
                Some(bytes) => array
                    .codecs
                    .decode_view(&bytes, &mut view)
                    .map_err(|error| array.in_chunk(&index, error)),
            })
        })
        .await?
    }

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

    /// The decoded elements of one chunk, its padding included; `None` when it is all fill value.
    pub async fn read_chunk(&self, index: &[u64]) -> Result<Option<ElementsBuf>> {
        let wanted = std::slice::from_ref(&index.to_vec()).to_vec();
        match self.fetch_chunks(&wanted).await?.remove(index) {
            Some(bytes) => {
                Ok(Some(self.codecs.decode(&bytes).map_err(|error| self.in_chunk(index, error))?))
            }
            None => Ok(None),
        }
    }

    /// Stores a whole chunk, its padding included.
    pub async fn write_chunk(&self, index: &[u64], elements: Elements<'_>) -> Result<()> {
        let encoded = self.codecs.encode(elements)?;
        self.session.set_chunk_of(&self.node, Coord::encode(index), encoded.into()).await
    }

    async fn fetch_chunks(
        &self,
        indices: &[Vec<u64>],
    ) -> Result<std::collections::HashMap<Vec<u64>, Bytes>> {
        let coords: Vec<_> = indices.iter().map(|index| Coord::encode(index)).collect();
        let located = self.session.locate_coords(&self.node, &coords).await?;
        let (found, wanted): (Vec<_>, Vec<_>) = indices
            .iter()
            .zip(located)
            .filter_map(|(index, payload)| Some((index.clone(), (self.name(index), payload?))))
            .unzip();
        let bytes = self.session.fetch(&wanted).await?;
        Ok(found.into_iter().zip(bytes).collect())
    }

    async fn store_chunks(&self, encoded: Vec<(Vec<u64>, Option<Bytes>)>) -> Result<()> {
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

    fn check(&self, region: &Region) -> Result<()> {
        if Region::whole(self.spec.shape()).contains(region) {
            return Ok(());
        }
        Err(Error::Invalid {
            what: format!(
                "{}: the region {region} is outside the array's shape {:?}",
                self.node.path,
                self.spec.shape()
            ),
        })
    }

    /// Whether the region holds all of a chunk that lies inside the array.
    fn covers(&self, region: &Region, index: &[u64]) -> bool {
        region.contains(&self.grid.clipped_region(index))
    }

    /// Whether some chunk is only partly inside the region.
    fn cuts_chunks(&self, region: &Region) -> bool {
        let (shape, chunk) = (self.grid.array_shape(), self.grid.chunk_shape());
        region.origin().iter().zip(region.end()).enumerate().any(|(axis, (&start, end))| {
            let cut = |at: u64| {
                let size = chunk.get(axis).copied().unwrap_or(1);
                !at.is_multiple_of(size) && Some(&at) != shape.get(axis)
            };
            cut(start) || cut(end)
        })
    }

    fn batches(&self, region: &Region) -> impl Iterator<Item = Vec<Vec<u64>>> + Send + use<> {
        batched(self.grid.chunks_in(region), self.batch_size())
    }

    fn batch_size(&self) -> usize {
        let chunk_bytes = self.codecs.chunk_bytes().unwrap_or(1 << 16).max(1);
        (BATCH_BYTES / chunk_bytes).clamp(1, BATCH_CHUNKS)
    }

    fn name(&self, index: &[u64]) -> String {
        format!("chunk {index:?} of {}", self.node.path)
    }

    /// Says which chunk the array model complained about.
    fn in_chunk(&self, index: &[u64], error: chunkyard_array::Error) -> Error {
        match error {
            chunkyard_array::Error::Corrupt { what, expected, found, .. } => {
                Error::Corrupt { file: self.name(index), what, expected, found }
            }
            other => other.into(),
        }
    }
}

/// Groups items, lazily.
fn batched<T>(
    mut items: impl Iterator<Item = T> + Send,
    size: usize,
) -> impl Iterator<Item = Vec<T>> + Send {
    std::iter::from_fn(move || {
        let batch: Vec<T> = items.by_ref().take(size).collect();
        (!batch.is_empty()).then_some(batch)
    })
}

/// Elements to write, shared by the batches of one call.
#[derive(Debug, Clone)]
struct Source {
    region: Region,
    elements: Bytes,
}
