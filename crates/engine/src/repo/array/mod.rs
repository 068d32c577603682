//! An array of a session: reading and writing regions.
//!
//! [`read`] and [`write`] are for types of fixed size and go straight between the caller's memory
//! and encoded chunks; [`elements`] is for all types.

mod elements;
mod read;
mod write;

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::{ArraySpec, Codecs, Elements, ElementsBuf, Grid, Region};

use super::coord::Coord;
use super::node::Node;
use super::session::Session;
use crate::error::{Error, Result};

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
