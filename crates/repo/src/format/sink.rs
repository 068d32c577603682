//! A session as a sink: packs become chunk files, `finish` is the commit.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_array::ChunkIndex;
use chunkyard_format::{
    CreateOptions, Dataset, Node, Pack, PackSink, PackWriter, Place, Published, Receipt, Sink,
    Source, Ticket,
};
use chunkyard_store::{Error, Noun, Result, Store};
use serde::{Deserialize, Serialize};

use super::member;
use super::source::RepoSource;
use crate::coord::Coord;
use crate::manifest::{Payload, Virtual};
use crate::node::Node as RepoNode;
use crate::session::{CommitOptions, Session};
use crate::{OpenOptions, Repository};

/// Where journals of unfinished work are kept in a repository, one folder each.
const JOURNALS: &str = "j";

/// A commit in the making.
#[derive(Debug)]
pub struct RepoSink {
    session: Arc<Session>,
    nodes: BTreeMap<String, Arc<RepoNode>>,
    journal: Store,
    message: String,
    /// Files of an earlier attempt, and whether they are still there.
    files: Mutex<BTreeMap<Arc<str>, bool>>,
}

/// The content of a pack's receipt.
#[derive(Debug, Serialize, Deserialize)]
struct Body {
    /// A later collection may have taken the files.
    gc_epoch: u64,
    refs: Vec<(Coord, Payload)>,
}

impl Body {
    fn parse(receipt: &Receipt) -> Result<Self> {
        serde_json::from_slice(&receipt.body)
            .map_err(|error| Error::invalid(format!("the receipt of a pack: {error}")))
    }
}

impl RepoSink {
    /// Begins a commit to the repository at a place, which is created if there is none.
    pub async fn create(place: &Place, dataset: Dataset, options: CreateOptions) -> Result<Self> {
        let open = OpenOptions { store: options.store.clone(), ..OpenOptions::default() };
        let store = place.directory().clone();
        let repo = match Repository::open_in(store.clone(), open.clone()).await {
            Err(Error::NotFound { .. }) => {
                refuse_occupied(place).await?;
                // Leftovers of an attempt that was killed while it created the repository are no
                // obstacle.
                let mut create = crate::CreateOptions { force: true, ..Default::default() };
                if let Some(branch) = &options.branch {
                    create.default_branch.clone_from(branch);
                }
                Repository::create_in(store, open, create).await?
            }
            other => other?,
        };
        let branch = match options.branch {
            Some(branch) => branch,
            None => repo.state().await?.default_branch.clone(),
        };
        let session = repo.writable_session(&branch).await?;
        let plan = if options.plan.is_empty() { session.id() } else { &options.plan };
        let journal = repo.store().below(&format!("{JOURNALS}/{plan}"))?;
        if options.restart {
            journal.delete_dir("").await?;
        }
        let nodes = match define(&session, &dataset, options.overwrite) {
            Err(error @ Error::AlreadyExists { .. }) => {
                // The last attempt may have committed without cleaning up.
                journal.delete_dir("").await.ok();
                return Err(error);
            }
            other => other?,
        };
        let message = options.message.unwrap_or_else(|| "convert".to_owned());
        Ok(Self { session, nodes, journal, message, files: Mutex::default() })
    }

    /// Points chunks of an array at their places, and stores the bytes of the others itself.
    pub async fn refer(
        &self,
        array: &str,
        references: Vec<(ChunkIndex, Virtual)>,
        copies: Vec<(ChunkIndex, Bytes)>,
    ) -> Result<()> {
        self.session.set_virtual_all(array, references)?;
        if !copies.is_empty() {
            let encoded = copies.into_iter().map(|(index, bytes)| (Coord::encode(&index), bytes));
            self.session.put_pack(self.node(array)?, encoded.collect()).await?;
        }
        Ok(())
    }

    fn node(&self, array: &str) -> Result<&Arc<RepoNode>> {
        let missing = || Error::NotFound { what: Noun::Array, name: array.to_owned() };
        self.nodes.get(array).ok_or_else(missing)
    }

    /// Whether a file of an earlier attempt is still there.
    async fn is_there(&self, file: &Arc<str>) -> Result<bool> {
        let known = self.files.lock().unwrap_or_else(PoisonError::into_inner).get(file).copied();
        if let Some(known) = known {
            return Ok(known);
        }
        let there = match self.session.repository().store().head(&format!("c/{file}")).await {
            Ok(_) => true,
            Err(Error::NotFound { .. }) => false,
            Err(error) => return Err(error),
        };
        self.files.lock().unwrap_or_else(PoisonError::into_inner).insert(file.clone(), there);
        Ok(there)
    }
}

/// Refuses to put a new repository where something else is. Leftovers of an attempt that was killed
/// while it created one do not count: a first snapshot, and incomplete files.
async fn refuse_occupied(place: &Place) -> Result<()> {
    let found = place.directory().list_dir("").await?;
    let halves = found.dirs.iter().all(|dir| ["s", "g", ".tmp"].contains(&dir.as_str()));
    let one_snapshot = place.directory().list_dir("s").await?.objects.len() <= 1
        && place.directory().list_dir("g").await?.objects.is_empty();
    if place.is_object().await? || !found.objects.is_empty() || !halves || !one_snapshot {
        let name = place.url().to_owned();
        return Err(Error::AlreadyExists { what: Noun::Foreign("repository"), name });
    }
    Ok(())
}

/// Puts the nodes of a dataset into a session; gives the arrays.
fn define(
    session: &Session,
    dataset: &Dataset,
    overwrite: bool,
) -> Result<BTreeMap<String, Arc<RepoNode>>> {
    let mut nodes = BTreeMap::new();
    for (path, node) in &dataset.nodes {
        match node {
            Node::Group(group) => {
                match session.node(path) {
                    Ok(known) if !known.is_group() && overwrite => session.delete(path)?,
                    Ok(known) if !known.is_group() => return Err(exists(&known)),
                    _ => {}
                }
                session.define_group(path, group)?;
            }
            Node::Array(array) => {
                if let Ok(known) = session.node(path) {
                    if !overwrite {
                        return Err(exists(&known));
                    }
                    session.delete(path)?;
                }
                let node = session.define_array(path, array.spec.clone())?;
                nodes.insert(path.clone(), node);
            }
        }
    }
    Ok(nodes)
}

fn exists(node: &RepoNode) -> Error {
    Error::AlreadyExists { what: node.noun(), name: node.path.clone() }
}

#[async_trait]
impl PackSink for RepoSink {
    async fn open_pack(&self, pack: &Pack) -> Result<Box<dyn PackWriter>> {
        Ok(gather(&self.session, self.node(&pack.array)?))
    }

    async fn sync(&self, receipts: &[Receipt]) -> Result<()> {
        sync(&self.session, receipts).await
    }
}

#[async_trait]
impl Sink for RepoSink {
    async fn adopt(&self, pack: &Pack, receipt: &Receipt) -> Result<bool> {
        let body = Body::parse(receipt)?;
        if body.gc_epoch != self.session.gc_epoch() {
            return Ok(false);
        }
        for (_, payload) in &body.refs {
            if let Payload::Native(native) = payload
                && !self.is_there(&native.file).await?
            {
                return Ok(false);
            }
        }
        self.session.adopt_references(self.node(&pack.array)?, body.refs)?;
        Ok(true)
    }

    async fn ticket(&self) -> Result<Ticket> {
        member::ticket(self.session.fork().await?)
    }

    async fn accept(&self, pack: &Pack, receipt: Receipt) -> Result<Receipt> {
        let body = Body::parse(&receipt)?;
        if body.gc_epoch != self.session.gc_epoch() {
            return Err(Error::invalid("the receipt of a pack: it is of another session"));
        }
        self.session.adopt_references(self.node(&pack.array)?, body.refs)?;
        Ok(receipt)
    }

    fn journal(&self) -> &Store {
        &self.journal
    }

    async fn written(&self) -> Result<Arc<dyn Source>> {
        Ok(Arc::new(RepoSource::new(self.session.clone()).await?))
    }

    async fn finish(self: Box<Self>) -> Result<Published> {
        let snapshot = self.session.commit(CommitOptions::message(self.message)).await?;
        // The commit stands; a journal left behind is only rubbish.
        self.journal.delete_dir("").await.ok();
        Ok(Published { snapshot: Some(snapshot.snapshot_id.clone()) })
    }
}

/// Makes the files that receipts refer to durable.
pub(super) async fn sync(session: &Session, receipts: &[Receipt]) -> Result<()> {
    let mut paths: Vec<String> = Vec::new();
    for receipt in receipts {
        for (_, payload) in Body::parse(receipt)?.refs {
            if let Payload::Native(native) = payload {
                let path = format!("c/{}", native.file);
                if paths.last() != Some(&path) {
                    paths.push(path);
                }
            }
        }
    }
    session.repository().store().sync(&paths).await
}

/// A writer of a pack of an array.
pub(super) fn gather(session: &Arc<Session>, node: &Arc<RepoNode>) -> Box<dyn PackWriter> {
    Box::new(Gathered { session: session.clone(), node: node.clone(), chunks: Vec::new() })
}

/// A pack whose chunks wait for the file they go into.
struct Gathered {
    session: Arc<Session>,
    node: Arc<RepoNode>,
    chunks: Vec<(Coord, Bytes)>,
}

#[async_trait]
impl PackWriter for Gathered {
    async fn push(&mut self, chunks: Vec<(ChunkIndex, Bytes)>) -> Result<()> {
        self.chunks.extend(chunks.into_iter().map(|(index, bytes)| (Coord::encode(&index), bytes)));
        Ok(())
    }

    async fn close(self: Box<Self>) -> Result<Receipt> {
        let chunks = self.chunks.len() as u64;
        let bytes = self.chunks.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        let refs = self.session.put_pack(&self.node, self.chunks).await?;
        let body = Body { gc_epoch: self.session.gc_epoch(), refs };
        let body = serde_json::to_vec(&body)
            .map_err(|error| Error::invalid(format!("the receipt of a pack: {error}")))?;
        Ok(Receipt { chunks, bytes, body: body.into() })
    }
}
