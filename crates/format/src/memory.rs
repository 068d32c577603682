//! Memory of the caller as a source, so that the pipeline writes it in any format.
//!
//! The array is one chunk, as large as itself and not encoded, and its reference carries the bytes:
//! nothing is copied until a target chunk is gathered.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_array::{ArraySpec, ChunkIndex, Region, codec};
use chunkyard_store::{self, ChunkRef, Error, Fetcher, Result, Store, Uid};
use futures::{StreamExt, stream};

use super::dataset::{ArrayNode, Dataset, Node};
use super::source::{ChunkStream, Locate, Source};

/// The store of a fetcher that only ever gets inline bytes.
const NOWHERE: &str = "memory://elements";

/// One array whose elements are in memory.
#[derive(Debug)]
pub struct MemorySource {
    dataset: Dataset,
    elements: Bytes,
    fetcher: Fetcher,
    identity: String,
}

impl MemorySource {
    /// An array at `path`, described by `spec` except for its chunks and codecs, which the target
    /// chooses. Its elements are in row-major order, little-endian.
    pub fn new(path: &str, spec: &ArraySpec, elements: Bytes) -> Result<Self> {
        let dtype = spec.dtype()?;
        let Some(item_size) = dtype.item_size() else {
            return Err(Error::unsupported(format!("elements of {dtype} in memory")));
        };
        let expected = Region::whole(spec.shape()).num_bytes(item_size)?;
        if elements.len() != expected {
            return Err(Error::invalid(format!(
                "{path}: an array of shape {:?} of {dtype} takes {expected} bytes, {} were given",
                spec.shape(),
                elements.len()
            )));
        }
        let chunk: Vec<u64> = spec.shape().iter().map(|&extent| extent.max(1)).collect();
        let plain = codec::parse_shorthand("none", &dtype)?;
        let spec = spec.with_codecs(plain)?.with_chunk_shape(&chunk)?;
        let mut dataset = Dataset::default();
        dataset.insert(path, Node::Array(Arc::new(ArrayNode::new(&spec)?)));
        let fetcher = Fetcher::within(&Store::open(NOWHERE, &chunkyard_store::Options::default())?);
        // No two are the same: another process cannot find this memory again.
        let identity = format!("memory {}", Uid::fresh()?);
        Ok(Self { dataset, elements, fetcher, identity })
    }
}

#[async_trait]
impl Locate for MemorySource {
    fn fetcher(&self) -> &Fetcher {
        &self.fetcher
    }

    async fn locate(&self, array: &str, chunks: &[ChunkIndex]) -> Result<Vec<Option<ChunkRef>>> {
        self.dataset.array(array)?;
        Ok(chunks.iter().map(|_| Some(ChunkRef::Inline(self.elements.clone()))).collect())
    }
}

impl Source for MemorySource {
    fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn chunks<'a>(&'a self, array: &'a str, within: &'a Region) -> ChunkStream<'a> {
        let grid = self.dataset.array(array).and_then(|node| node.grid());
        let found = grid.map(|grid| {
            let reference = |index| Ok((index, ChunkRef::Inline(self.elements.clone())));
            grid.chunks_in(within).map(reference).collect()
        });
        stream::iter(found.unwrap_or_else(|error| vec![Err(error)])).boxed()
    }

    fn is_memory(&self, _array: &str) -> bool {
        true
    }
}
