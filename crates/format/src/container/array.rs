//! An array of a container, for reading and writing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_array::{ChunkIndex, ElementsBuf, Region};
use chunkyard_store::{Error, Result, cpu};
use futures::stream::{self, BoxStream, StreamExt};
use rayon::prelude::*;

use super::handle::{Container, OpenContainer, no_array};
use super::mapping;
use super::statistics::of_chunk;
use crate::container::mapping::chunks::{self, grid_of};
use crate::container::write::changes::{Description, PendingChunk};
use crate::container::write::flush::Fill;
use crate::{Accept, ArrayNode, ChunkCodecs, Exclusion, Reader, Writer};

/// Chunks of a stream that are read ahead.
const READ_AHEAD: usize = 4;

/// An array as it was when this handle opened it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ContainerArray {
    open: Arc<OpenContainer>,
    described: Arc<Description>,
    /// The same in the shared data model, for types that it knows.
    node: std::result::Result<(Arc<ArrayNode>, Reader), String>,
}

impl ContainerArray {
    pub(crate) fn new(container: &Container, described: Arc<Description>) -> Result<Self> {
        let open = container.open.clone();
        let node = open.models.of(&described)?.map(|(node, codecs)| {
            let reader = Reader::of(open.clone(), &described.meta.name, codecs);
            (node, reader)
        });
        Ok(Self { open, described, node })
    }

    /// Its description.
    pub fn described(&self) -> &Arc<Description> {
        &self.described
    }

    /// The same in the shared data model. Nested lists are not in it; their chunks can be read as bytes.
    pub fn node(&self) -> Result<&Arc<ArrayNode>> {
        self.known().map(|(node, _)| node)
    }

    /// Reads it.
    pub fn reader(&self) -> Result<&Reader> {
        self.known().map(|(_, reader)| reader)
    }

    /// Reads a region chunk by chunk, in row-major order: each with its part of the region. A few are
    /// read ahead, so memory does not grow with the region.
    pub fn stream(
        &self,
        region: &Region,
    ) -> Result<BoxStream<'static, Result<(Region, ElementsBuf)>>> {
        let reader = self.reader()?.clone();
        reader.check(region)?;
        let (grid, region) = (reader.codecs().grid().clone(), region.clone());
        let parts = grid.chunks_in(&region);
        let parts = parts.filter_map(move |index| grid.clipped_region(&index).intersect(&region));
        let read = parts.map(move |part| {
            let reader = reader.clone();
            async move {
                let elements = reader.read_elements(&part).await?;
                Ok((part, elements))
            }
        });
        Ok(stream::iter(read).buffered(READ_AHEAD).boxed())
    }

    /// Writes it. The changes wait for the next flush.
    pub fn writer(&self) -> Result<Writer> {
        self.open.refuse_changes()?;
        Ok(Writer::new(self.reader()?.clone(), self.target(false)))
    }

    /// Writes a chunk as the container stores it, unpacked: elements in row-major order, only those
    /// inside the array.
    pub async fn write_chunk(&self, index: &[u64], bytes: Bytes) -> Result<()> {
        self.open.refuse_changes()?;
        let grid = grid_of(&self.described)?;
        let meta = &self.described.meta;
        if !grid.contains(index) {
            return Err(Error::invalid(format!(
                "{:?} has no chunk {index:?}; its grid is {:?}",
                meta.name,
                grid.grid_shape()
            )));
        }
        if let Some(item_size) = meta.dtype.item_size() {
            let expected = grid.clipped_region(index).num_bytes(item_size)?;
            if bytes.len() != expected {
                return Err(Error::invalid(format!(
                    "chunk {index:?} of {:?} takes {expected} bytes, {} were given",
                    meta.name,
                    bytes.len()
                )));
            }
        }
        let target = self.target(false);
        let _shared = target.exclude(false).await;
        target.put(vec![(index.to_vec(), Some(bytes))]).await
    }

    /// Writes while the caller keeps all others from writing.
    pub(crate) async fn write_alone(&self, region: &Region, elements: ElementsBuf) -> Result<()> {
        let writer = Writer::new(self.reader()?.clone(), self.target(true));
        writer.write_elements(region, elements).await
    }

    fn target(&self, held: bool) -> Arc<Target> {
        let (open, described) = (self.open.clone(), self.described.clone());
        Arc::new(Target { open, described, held })
    }

    fn known(&self) -> Result<&(Arc<ArrayNode>, Reader)> {
        self.node.as_ref().map_err(|what| {
            Error::unsupported(format!("elements of {:?}: {what}", self.described.meta.name))
        })
    }
}

impl Container {
    /// The array of a description, which may include changes that others do not see yet.
    pub(crate) fn array_of(&self, described: Arc<Description>) -> Result<ContainerArray> {
        ContainerArray::new(self, described)
    }
}

/// The models of the arrays that were asked for last: making one costs more than reading a small chunk.
#[derive(Debug, Default)]
pub(crate) struct Models(Mutex<HashMap<String, (Arc<Description>, Model)>>);

/// An array in the shared data model, or why it is not in it.
type Model = std::result::Result<(Arc<ArrayNode>, ChunkCodecs), String>;

/// Arrays whose models are kept.
const MODELS_MAX: usize = 1024;

impl Models {
    fn of(&self, described: &Arc<Description>) -> Result<Model> {
        let name = &described.meta.name;
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, model)) = known().get(name)
            && Arc::ptr_eq(of, described)
        {
            return Ok(model.clone());
        }
        let model = match mapping::array_of(described) {
            Ok(node) => Ok((Arc::new(node.clone()), ChunkCodecs::new(&node)?)),
            Err(Error::Unsupported { what }) => Err(what),
            Err(error) => return Err(error),
        };
        let mut known = known();
        if known.len() >= MODELS_MAX {
            known.clear();
        }
        known.insert(name.clone(), (described.clone(), model.clone()));
        Ok(model)
    }
}

/// The target of an array's chunks: the changes that wait.
#[derive(Debug)]
struct Target {
    open: Arc<OpenContainer>,
    described: Arc<Description>,
    /// Whether the caller keeps others from writing.
    held: bool,
}

impl Target {
    /// Refuses chunks for an array that has been replaced since.
    async fn refuse_outdated(&self) -> Result<()> {
        self.open.refuse_changes()?;
        let (was, name) = (&self.described.meta, &self.described.meta.name);
        let now = self.open.describe(name).await?.ok_or_else(|| no_array(name))?;
        let same = now.meta.dtype == was.dtype
            && now.meta.shape == was.shape
            && now.meta.chunk_shape == was.chunk_shape;
        match same {
            true => Ok(()),
            false => Err(Error::Conflict {
                message: format!("{name:?} was changed since it was opened here; open it again"),
                conflicts: Vec::new(),
            }),
        }
    }

    /// Adds chunks, in the form that the container stores, to the changes that wait.
    async fn put(&self, chunks: Vec<(ChunkIndex, Option<Bytes>)>) -> Result<()> {
        self.refuse_outdated().await?;
        let (described, codec) = (self.described.clone(), self.open.options.codec.clone());
        let pending = cpu(move || {
            chunks
                .into_par_iter()
                .map(|(index, bytes)| {
                    let Some(bytes) = bytes else { return Ok((index, PendingChunk::Fill)) };
                    let meta = &described.meta;
                    let stats = of_chunk(&meta.dtype, meta.fill_value.as_ref(), &bytes)?;
                    Ok((index, PendingChunk::new(bytes, stats, &*codec)?))
                })
                .collect::<Result<Vec<_>>>()
        })
        .await??;
        let name = &self.described.meta.name;
        let full = {
            let mut state = self.open.state();
            let changes = &mut state.uncommitted.changes;
            changes.put(name, &self.described, pending);
            changes.bytes > self.open.options.pending_bytes_max
        };
        match full {
            true => self.open.spill().await,
            false => Ok(()),
        }
    }
}

#[async_trait]
impl Accept for Target {
    async fn accept(&self, chunks: Vec<(ChunkIndex, Option<Bytes>)>) -> Result<()> {
        // Without a fill value, zeros are elements like others: they are stored, and they count.
        let is_filled = self.described.meta.fill_value.is_some();
        let zeros = match is_filled || chunks.iter().all(|(_, bytes)| bytes.is_some()) {
            true => None,
            false => Some(Fill::new(&self.described)?),
        };
        let stored = chunks.into_iter().map(|(index, bytes)| {
            let index = chunks::trimmed(&self.described, &index);
            let adapted = match (bytes, &zeros) {
                (Some(bytes), _) => Some(chunks::for_container(&self.described, &index, bytes)?),
                (None, zeros) => zeros.as_ref().map(|zeros| zeros.chunk(&index)).transpose()?,
            };
            Ok((index, adapted))
        });
        self.put(stored.collect::<Result<Vec<_>>>()?).await
    }

    async fn exclude(&self, alone: bool) -> Exclusion<'_> {
        match self.held {
            true => Exclusion::Held,
            false => self.open.writers.exclude(alone).await,
        }
    }
}
