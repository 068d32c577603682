//! A session as a source.

use std::sync::Arc;

use async_trait::async_trait;
use chunkyard_array::{ChunkIndex, GroupSpec, Region};
use chunkyard_format::{
    ArrayNode, ChunkStream, Dataset, Edges, Locate, Loss, Node, Occupied, Source, Version,
    normalise_path,
};
use chunkyard_store::{ChunkRef, Error, Fetcher, Result};
use futures::{StreamExt, TryStreamExt, future, stream};
use serde_json::{Map, Value};

use crate::coord::Coord;
use crate::node::{Node as RepoNode, NodeKind};
use crate::session::Session;

/// One version of a repository, open for reading.
#[derive(Debug)]
pub struct RepoSource {
    session: Arc<Session>,
    dataset: Dataset,
}

impl RepoSource {
    /// What a session sees now.
    pub async fn new(session: Arc<Session>) -> Result<Self> {
        let mut dataset = Dataset::default();
        for node in session.tree().nodes() {
            if node.is_table() {
                // Only a repository has tables; a conversion leaves them out if its caller says so.
                let what = "a table, and conversions carry arrays and groups".to_owned();
                dataset.losses.push(Loss { name: node.path.clone(), what });
                continue;
            }
            dataset.insert(node.path.clone(), described(&session, node).await?);
        }
        Ok(Self { session, dataset })
    }

    /// The session.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }
}

impl Session {
    /// The node at a path in the one data model, if there is one. A table is none of it.
    pub async fn described(&self, path: &str) -> Result<Option<Node>> {
        match self.tree().get(&normalise_path(path)?) {
            Some(node) => described(self, node).await.map(Some),
            None => Ok(None),
        }
    }
}

/// A node of a session in the one data model.
async fn described(session: &Session, node: &RepoNode) -> Result<Node> {
    let attributes = session.attributes(&node.path).await?;
    Ok(match &node.kind {
        NodeKind::Group { extra } => Node::Group(group(&attributes, extra)?),
        NodeKind::Array(_) => {
            let spec = node.array()?.with_attributes((*attributes).clone())?;
            // A chunk is checked as a whole, so a shard in a repository is one chunk.
            let (sharding, edges) = (None, Edges::Padded);
            Node::Array(Arc::new(ArrayNode { spec, sharding, edges }))
        }
        NodeKind::Table(_) => {
            let what = format!("{} as an array or group: it is a table", node.path);
            return Err(Error::Unsupported { what });
        }
    })
}

/// A group's metadata, with the members that a repository keeps beside the attributes.
fn group(attributes: &Map<String, Value>, extra: &Map<String, Value>) -> Result<GroupSpec> {
    let spec = GroupSpec::new(attributes.clone());
    Ok(extra.iter().fold(spec, |spec, (key, value)| spec.with_member(key, value.clone())))
}

#[async_trait]
impl Locate for RepoSource {
    fn fetcher(&self) -> &Fetcher {
        self.session.repository().fetcher()
    }

    async fn locate(&self, array: &str, chunks: &[ChunkIndex]) -> Result<Vec<Option<ChunkRef>>> {
        let node = self.session.node(array)?;
        let coords: Vec<Coord> = chunks.iter().map(|index| Coord::encode(index)).collect();
        self.session.locate_references(&node, &coords).await
    }

    async fn explain(&self, error: Error) -> Error {
        self.session.explain(error).await
    }
}

impl Source for RepoSource {
    fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    fn identity(&self) -> String {
        let repo = self.session.repository();
        format!("{} {}", repo.dataset_id(), self.session.snapshot().snapshot_id)
    }

    fn version(&self) -> Option<Version> {
        Some(Version::Snapshot(self.session.snapshot().snapshot_id.clone()))
    }

    fn chunks<'a>(&'a self, array: &'a str, within: &'a Region) -> ChunkStream<'a> {
        let found = async move {
            let grid = self.session.node(array)?.array()?.grid()?;
            let inside = move |(index, reference): (ChunkIndex, ChunkRef)| {
                let holds = grid.clipped_region(&index).intersect(within).is_some();
                future::ready(Ok(holds.then_some((index, reference))))
            };
            Ok::<_, Error>(self.session.chunk_refs(array).try_filter_map(inside))
        };
        stream::once(found).try_flatten().boxed()
    }

    fn occupied(&self, array: &str) -> Result<Occupied<'_>> {
        let node = self.session.node(array)?;
        let grid = node.array()?.grid()?;
        // The structure knows how many chunks were committed.
        if node.refs_count.saturating_mul(2) >= grid.num_chunks() {
            return Ok(Occupied::All);
        }
        Ok(Occupied::Cells { cells: self.session.chunk_indices(&node, &grid), grid })
    }
}
