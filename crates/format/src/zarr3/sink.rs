//! Writing plain Zarr.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_array::{ChunkIndex, GroupSpec};
use chunkyard_store::{Error, Noun, Result, Store};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Map, Value, json};

use super::shard_writer::ShardWriter;
use super::source::{ObjectNames, Zarr3Source, object_names_of};
use super::{METADATA, hierarchy, prefix_of};
use crate::staging::{Marks, Staging, refuse_long_names};
use crate::worker_packs::{self, Writers, receipt};
use crate::{
    CreateOptions, Dataset, Node, Pack, PackSink, PackWriter, Place, Published, Receipt, Sink,
    Source, Ticket,
};

/// Objects of one pack that are put at once in an object store, where each is a round trip. In a
/// directory it is one: threads that create files there wait for one another, spinning.
const PUTS: usize = 4;

/// The files of a Zarr hierarchy.
const MARKS: Marks = Marks {
    format: "Zarr",
    known: &[METADATA, hierarchy::V2_GROUP, hierarchy::V2_ARRAY],
    complete: &[METADATA],
    file: None,
};

/// A Zarr hierarchy being written.
#[derive(Debug)]
pub struct Zarr3Sink {
    staging: Staging,
    dataset: Dataset,
    object_names: NamesByArray,
}

/// Where the objects of each array go.
#[derive(Debug)]
pub(super) struct NamesByArray(BTreeMap<String, Arc<ObjectNames>>);

impl NamesByArray {
    pub(super) fn new(dataset: &Dataset) -> Result<Self> {
        object_names_of(dataset).map(Self)
    }
}

impl Writers for NamesByArray {
    fn writer(&self, pack: &Pack, store: Store) -> Result<Box<dyn PackWriter>> {
        let missing = || Error::NotFound { what: Noun::Array, name: pack.array.to_string() };
        let names = self.0.get(&*pack.array).ok_or_else(missing)?.clone();
        Ok(match names.sharded {
            Some(_) => Box::new(ShardWriter::new(store, names)),
            None => Box::new(ChunkFiles { store, names, paths: Vec::new(), bytes: 0 }),
        })
    }
}

impl Zarr3Sink {
    /// Begins to write a hierarchy at a place.
    pub async fn create(place: &Place, dataset: Dataset, options: CreateOptions) -> Result<Self> {
        let object_names = NamesByArray::new(&dataset)?;
        refuse_long_names(place, dataset.nodes.keys().map(String::as_str))?;
        let staging = Staging::begin(place, &options, MARKS).await?;
        Ok(Self { staging, dataset, object_names })
    }

    /// The documents of all nodes, the root's last.
    fn documents(&self) -> Result<Vec<(String, Bytes)>> {
        let mut documents: Vec<(String, Bytes)> = Vec::with_capacity(self.dataset.nodes.len());
        let mut below = Map::new();
        // A path sorts before the paths below it, so in reverse order the root comes last.
        for (path, node) in self.dataset.nodes.iter().rev() {
            let (bytes, strict) = match node {
                Node::Array(array) => {
                    let spec = array.packed_spec()?;
                    (spec.render_plain(), spec.render())
                }
                Node::Group(group) if path == "/" => {
                    (consolidated(group, &below).render_plain(), Vec::new())
                }
                Node::Group(group) => (group.render_plain(), group.render()),
            };
            let value: Value = serde_json::from_slice(&strict).unwrap_or(Value::Null);
            below.insert(path.trim_matches('/').to_owned(), value);
            documents.push((format!("{}{METADATA}", prefix_of(path)), bytes.into()));
        }
        Ok(documents)
    }
}

/// The root group with the metadata of all nodes in it, as zarr-python writes it: readers then open
/// a hierarchy with one request.
fn consolidated(group: &GroupSpec, below: &Map<String, Value>) -> GroupSpec {
    if below.is_empty() {
        return group.clone();
    }
    let mut sorted: Vec<_> = below.iter().collect();
    sorted.sort_by_key(|(path, _)| *path);
    let metadata: Map<String, Value> =
        sorted.into_iter().map(|(path, value)| (path.clone(), value.clone())).collect();
    let member = json!({"kind": "inline", "must_understand": false, "metadata": metadata});
    group.with_member(hierarchy::CONSOLIDATED, member)
}

#[async_trait]
impl PackSink for Zarr3Sink {
    async fn open_pack(&self, pack: &Pack) -> Result<Box<dyn PackWriter>> {
        self.object_names.writer(pack, self.staging.data.clone())
    }

    async fn sync(&self, receipts: &[Receipt]) -> Result<()> {
        self.staging.sync(receipts).await
    }
}

#[async_trait]
impl Sink for Zarr3Sink {
    async fn adopt(&self, _pack: &Pack, _receipt: &Receipt) -> Result<bool> {
        // The objects are in their places; only we write there.
        Ok(true)
    }

    async fn ticket(&self) -> Result<Ticket> {
        worker_packs::ticket(&self.staging.journal).await
    }

    async fn accept(&self, _pack: &Pack, receipt: Receipt) -> Result<Receipt> {
        self.staging.accept(&receipt).await
    }

    fn journal(&self) -> &Store {
        &self.staging.journal
    }

    async fn written(&self) -> Result<Arc<dyn Source>> {
        let (data, dataset) = (self.staging.data.clone(), self.dataset.clone());
        Ok(Arc::new(Zarr3Source::of(data, dataset, String::new())?))
    }

    async fn finish(self: Box<Self>) -> Result<Published> {
        let mut paths = Vec::new();
        let documents = self.documents()?;
        for (path, bytes) in documents {
            self.staging.data.put(&path, vec![bytes]).await?;
            paths.push(path);
        }
        self.staging.data.sync(&paths).await?;
        self.staging.publish().await?;
        Ok(Published::default())
    }
}

/// A pack of chunks that are one object each.
struct ChunkFiles {
    store: Store,
    names: Arc<ObjectNames>,
    paths: Vec<String>,
    bytes: u64,
}

#[async_trait]
impl PackWriter for ChunkFiles {
    async fn push(&mut self, chunks: Vec<(ChunkIndex, Bytes)>) -> Result<()> {
        let objects: Vec<(String, Bytes)> =
            chunks.into_iter().map(|(index, bytes)| (self.names.path(&index), bytes)).collect();
        self.paths.extend(objects.iter().map(|(path, _)| path.clone()));
        self.bytes += objects.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
        let store = &self.store;
        stream::iter(objects)
            .map(|(path, bytes)| async move { store.put(&path, vec![bytes]).await })
            .buffer_unordered(store.puts_at_once(PUTS))
            .try_collect()
            .await
    }

    async fn close(self: Box<Self>) -> Result<Receipt> {
        Ok(receipt(self.paths.len() as u64, self.bytes, &self.paths))
    }
}
