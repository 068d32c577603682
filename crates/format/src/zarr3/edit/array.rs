//! An array of plain Zarr, read and written in place.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_array::{ArraySpec, ChunkIndex, Codecs};
use chunkyard_store::{ChunkRef, Error, Fetcher, Result, Store};

use super::exclusion;
use crate::publish::{publish, withdraw};
use crate::zarr3::source::{ObjectNames, Zarr3Source};
use crate::{
    Accept, ArrayNode, ChunkCodecs, Dataset, Exclusion, Locate, Node, Reader, Source, Writer,
    Writers,
};

/// An array as it was when this handle opened it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Zarr3Array {
    spec: Arc<ArraySpec>,
    node: Arc<ArrayNode>,
    reader: Reader,
    writer: Writer,
}

/// The objects of one array: chunks, or shards.
#[derive(Debug)]
struct Objects {
    store: Store,
    names: ObjectNames,
    source: Arc<Zarr3Source>,
    writers: Arc<Writers>,
}

impl Zarr3Array {
    pub(super) fn open(store: &Store, path: &str, spec: &ArraySpec) -> Result<Self> {
        let node = Arc::new(ArrayNode::new(spec)?);
        let mut dataset = Dataset::default();
        dataset.insert(path, Node::Array(node.clone()));
        let source = Arc::new(Zarr3Source::of(store.clone(), dataset, String::new())?);
        let reader = Reader::new(&(source.clone() as Arc<dyn Source>), path)?;
        let objects = Arc::new(Objects {
            store: store.clone(),
            names: ObjectNames::new(path, &node)?,
            source,
            writers: exclusion::of_array(store, path),
        });
        let whole = ChunkCodecs::padded(Codecs::new(spec)?, spec.grid()?);
        let writer = Writer::new(Reader::of(objects.clone(), path, whole), objects);
        Ok(Self { spec: Arc::new(spec.clone()), node, reader, writer })
    }

    /// Its metadata, as it is stored: attributes included, with shards as a codec.
    pub fn spec(&self) -> &Arc<ArraySpec> {
        &self.spec
    }

    /// The same in the form that all formats share: the metadata of its chunks, and how they are
    /// packed.
    pub fn node(&self) -> &Arc<ArrayNode> {
        &self.node
    }

    /// Reads it; of a shard only the wanted parts.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Writes it.
    pub fn writer(&self) -> &Writer {
        &self.writer
    }
}

#[async_trait]
impl Locate for Objects {
    async fn locate(&self, _array: &str, chunks: &[ChunkIndex]) -> Result<Vec<Option<ChunkRef>>> {
        let whole = |index: &ChunkIndex| ChunkRef::Whole { path: self.names.path(index).into() };
        Ok(chunks.iter().map(|index| Some(whole(index))).collect())
    }

    fn fetcher(&self) -> &Fetcher {
        self.source.fetcher()
    }
}

#[async_trait]
impl Accept for Objects {
    async fn accept(&self, chunks: Vec<(ChunkIndex, Option<Bytes>)>) -> Result<()> {
        let (mut full, mut emptied) = (Vec::new(), Vec::new());
        for (index, bytes) in chunks {
            let path = self.names.path(&index);
            match bytes {
                Some(bytes) => full.push((path, bytes)),
                None => emptied.push(path),
            }
        }
        let paths: Vec<String> = full.iter().map(|(path, _)| path.clone()).collect();
        let done = async {
            publish(&self.store, full).await?;
            withdraw(&self.store, &emptied).await
        };
        let done: Result<(), Error> = done.await;
        // Also after a failure: some shards may have been replaced.
        paths.iter().chain(&emptied).for_each(|path| self.source.forget_shard(path));
        done
    }

    async fn exclude(&self, alone: bool) -> Exclusion<'_> {
        self.writers.exclude(alone).await
    }
}
