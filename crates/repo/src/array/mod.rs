//! An array of a session: reading and writing regions, selections and points.
//!
//! Reading uses the [`Reader`] of every source, writing the [`Writer`] of everything that can
//! change; the session only says where chunks are, and takes new ones.

mod write;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_array::{
    ArraySpec, Buffer, ChunkIndex, Codecs, Elements, ElementsBuf, Grid, OutputMemory, Region,
};
use chunkyard_format::{ChunkCodecs, Locate, Reader, Writer};
use chunkyard_store::{ChunkRef, Error, Fetcher, Result};

use super::coord::Coord;
use super::node::Node;
use super::session::Session;

/// An array as a session sees it.
#[derive(Debug, Clone)]
pub struct Array {
    session: Arc<Session>,
    node: Arc<Node>,
    spec: Arc<ArraySpec>,
    writer: Writer,
}

/// Says where the chunks of one array are, even if its path has moved, and takes new ones.
#[derive(Debug)]
struct Chunks {
    session: Arc<Session>,
    node: Arc<Node>,
}

#[async_trait]
impl Locate for Chunks {
    async fn locate(&self, _array: &str, chunks: &[ChunkIndex]) -> Result<Vec<Option<ChunkRef>>> {
        let coords: Vec<_> = chunks.iter().map(|index| Coord::encode(index)).collect();
        self.session.locate_references(&self.node, &coords).await
    }

    fn fetcher(&self) -> &Fetcher {
        self.session.repository().fetcher()
    }

    async fn explain(&self, error: Error) -> Error {
        self.session.explain(error).await
    }
}

impl Array {
    pub(super) fn open(session: Arc<Session>, node: &Arc<Node>) -> Result<Self> {
        let spec = node.array()?.clone();
        let (codecs, grid) = (Codecs::new(&spec)?, spec.grid()?);
        let chunks = Arc::new(Chunks { session: session.clone(), node: node.clone() });
        let bound = ChunkCodecs::padded(codecs, grid);
        let reader = Reader::of(chunks.clone(), &node.path, bound);
        Ok(Self { session, node: node.clone(), spec, writer: Writer::new(reader, chunks) })
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
        self.reader().codecs().grid()
    }

    /// The reader of this array.
    pub fn reader(&self) -> &Reader {
        self.writer.reader()
    }

    /// Bytes of one element; an error for types of variable length.
    pub fn item_size(&self) -> Result<usize> {
        self.reader().item_size()
    }

    /// Reads a region: elements in row-major order, little-endian.
    pub async fn read_region(&self, region: &Region) -> Result<Buffer> {
        self.reader().read_region(region).await
    }

    /// Reads a region into the caller's memory, which is handed back.
    pub async fn read_region_into<M: OutputMemory>(&self, region: &Region, memory: M) -> Result<M> {
        self.reader().read_region_into(region, memory).await
    }

    /// Reads a region of an array of any data type, variable length included.
    pub async fn read_elements(&self, region: &Region) -> Result<ElementsBuf> {
        self.reader().read_elements(region).await
    }

    /// The decoded elements of one chunk, its padding included; `None` when it is all fill value.
    pub async fn read_chunk(&self, index: &[u64]) -> Result<Option<ElementsBuf>> {
        match self.fetch_chunk(index).await? {
            Some(bytes) => Ok(Some(self.decode(index, &bytes)?)),
            None => Ok(None),
        }
    }

    /// Stores a whole chunk, its padding included.
    pub async fn write_chunk(&self, index: &[u64], elements: Elements<'_>) -> Result<()> {
        let encoded = self.reader().codecs().whole().encode(elements)?;
        self.session.set_chunk_of(&self.node, Coord::encode(index), encoded.into()).await
    }

    async fn fetch_chunk(&self, index: &[u64]) -> Result<Option<Bytes>> {
        let fetched = self.reader().fetch_chunks(&[index.to_vec()]).await?;
        Ok(fetched.into_iter().next().flatten())
    }

    fn decode(&self, index: &[u64], bytes: &[u8]) -> Result<ElementsBuf> {
        let decoded = self.reader().codecs().whole().decode(bytes);
        decoded.map_err(|error| self.reader().in_chunk(index, error))
    }
}
