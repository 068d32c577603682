//! Sessions: one pinned version, and for writers the changes on top of it.
//!
//! A session reads its own writes. Chunk bytes go to the store at once, in packs; only references
//! stay in memory. No reader sees anything before [`Session::commit`], and a dropped session leaves
//! only files for garbage collection.

mod aside;
mod changes;
mod chunks;
mod commit;
mod conflict;
mod documents;
mod edit;
mod fork;
mod packs;
mod rebase;
mod scan;
mod table_rebase;
mod tables;
mod virtual_chunks;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chunkyard_array::non_finite;
use serde_json::{Map, Value};

use self::aside::Aside;
pub(super) use self::aside::Why;
pub(super) use self::changes::NodeEdits;
pub use self::commit::CommitOptions;
pub(super) use self::commit::Writer;
pub use self::conflict::{Rebase, Resolve};
pub use self::fork::{ChangeSet, Fork};
pub(super) use self::scan::ChunkScan;
use self::tables::TableChanges;

use chunkyard_format::{Exclusion, Writers, normalise_path};
use chunkyard_store::{Error, Result, Uid};

use super::config::Config;
use super::coord::Coord;
use super::id;
use super::manifest::Payload;
use super::node::{Attributes, Node, NodeKind};
use super::pack::{ChunkFile, Packer};
use super::state::{Snapshot, State};
use super::tree::Tree;
use super::{Array, Repository};

/// A view of one version; when writable, with changes on top. Methods take `&self`, so that many
/// tasks can write chunks of one session at the same time.
#[derive(Debug)]
pub struct Session {
    repo: Repository,
    access: Access,
    config: Config,
    session_id: String,
    gc_epoch: u64,
    work: Mutex<Work>,
    packer: Mutex<Packer>,
    /// Complete chunk files whose put has not been confirmed.
    unconfirmed: Mutex<BTreeMap<Arc<str>, ChunkFile>>,
    writers: Writers,
    /// Held while rows of tables go to the store.
    storing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Access {
    ReadOnly,
    Writable {
        branch: String,
    },
    /// Works for a writable session elsewhere; cannot commit.
    Fork {
        branch: String,
    },
}

/// What changes while a session lives.
#[derive(Debug)]
struct Work {
    base: Arc<Snapshot>,
    base_tree: Arc<Tree>,
    tree: Arc<Tree>,
    /// Shared, so that a commit reads them without a copy.
    chunks: Chunks,
    /// Rows that the session sets or deletes, by table.
    tables: HashMap<Uid, TableChanges>,
    /// Files written by this session and its forks, relative to the root.
    files: BTreeSet<String>,
    /// The ones among them that are known to be durable.
    durable: BTreeSet<String>,
    bytes_written: u64,
    /// How many forks were handed out; separates what a fork saw from what came later.
    forks: u32,
    /// Boxes of chunk indices that were read, when the session tracks reads.
    reads: Option<Reads>,
    /// The object of the last virtual reference.
    last_url: Option<Arc<str>>,
    /// Groups that have no document; see `documents`.
    implied: BTreeSet<String>,
    /// Keys that fit nothing yet; see `aside`.
    aside: Aside,
    phase: Phase,
}

/// Whether a session takes changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// A commit, rebase or fork is reading the changes: none may come in unseen.
    Busy,
    /// Committed.
    Closed,
}

/// Keeps a session [`Phase::Busy`]; opens it again when dropped.
#[derive(Debug)]
struct Busy<'a>(&'a Session);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut work = self.0.work();
        if work.phase == Phase::Busy {
            work.phase = Phase::Open;
        }
    }
}

/// Boxes of chunk indices, half-open per dimension, by array.
type Reads = HashMap<Uid, Vec<Vec<(u64, u64)>>>;

/// The references a session sets or removes, by array.
type Chunks = HashMap<Uid, Arc<ArrayChanges>>;

/// References by array.
type References = HashMap<Uid, BTreeMap<Coord, Payload>>;

/// The references a session sets or removes in one array.
#[derive(Debug, Clone, Default)]
struct ArrayChanges {
    refs: BTreeMap<Coord, Change>,
    inline_bytes: u64,
}

#[derive(Debug, Clone)]
struct Change {
    payload: Payload,
    /// Number of forks handed out before this was written.
    after_forks: u32,
}

impl Session {
    pub(super) fn readonly(
        repo: Repository,
        state: &State,
        base: Arc<Snapshot>,
        tree: Arc<Tree>,
    ) -> Self {
        Self::new(repo, Access::ReadOnly, state, String::new(), base, tree)
    }

    pub(super) fn writable(
        repo: Repository,
        state: &State,
        branch: &str,
        base: Arc<Snapshot>,
        tree: Arc<Tree>,
    ) -> Result<Self> {
        let access = Access::Writable { branch: branch.to_owned() };
        Ok(Self::new(repo, access, state, id::fresh()?, base, tree))
    }

    fn new(
        repo: Repository,
        access: Access,
        state: &State,
        session_id: String,
        base: Arc<Snapshot>,
        tree: Arc<Tree>,
    ) -> Self {
        let packer = Packer::new(&state.config, repo.fans_out());
        let implied = documents::implied_at_first(&base, &tree);
        let work = Work {
            base,
            base_tree: tree.clone(),
            tree,
            chunks: HashMap::new(),
            tables: HashMap::new(),
            files: BTreeSet::new(),
            durable: BTreeSet::new(),
            bytes_written: 0,
            forks: 0,
            reads: None,
            last_url: None,
            implied,
            aside: Aside::default(),
            phase: Phase::Open,
        };
        Self {
            repo,
            access,
            config: state.config.clone(),
            session_id,
            gc_epoch: state.gc_epoch,
            work: Mutex::new(work),
            packer: Mutex::new(packer),
            unconfirmed: Mutex::default(),
            writers: Writers::default(),
            storing: tokio::sync::Mutex::default(),
        }
    }

    /// The repository.
    pub fn repository(&self) -> &Repository {
        &self.repo
    }

    /// Identifies this session; empty for read-only sessions.
    pub(crate) fn id(&self) -> &str {
        &self.session_id
    }

    /// The collection epoch that the session's files are safe in.
    pub(crate) fn gc_epoch(&self) -> u64 {
        self.gc_epoch
    }

    /// Whether it works for a session elsewhere.
    fn is_fork(&self) -> bool {
        matches!(self.access, Access::Fork { .. })
    }

    /// The branch a writable session commits to.
    pub fn branch(&self) -> Option<&str> {
        match &self.access {
            Access::ReadOnly => None,
            Access::Writable { branch } | Access::Fork { branch } => Some(branch),
        }
    }

    /// The snapshot the session is based on.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.work().base.clone()
    }

    /// The hierarchy as the session sees it, its own changes included.
    pub fn tree(&self) -> Arc<Tree> {
        self.work().tree.clone()
    }

    /// The node at a path.
    pub fn node(&self, path: &str) -> Result<Arc<Node>> {
        let path = normalise_path(path)?;
        self.work().tree.require(&path).cloned()
    }

    /// The user attributes of a node as they were given: numbers that are not finite are numbers, see
    /// [`non_finite`](chunkyard_array::non_finite).
    pub async fn plain_attributes(&self, path: &str) -> Result<Map<String, Value>> {
        let attributes = self.attributes(path).await?;
        let node = self.node(path)?;
        Ok(match &node.kind {
            NodeKind::Group { extra } => non_finite::unseal(&attributes, extra),
            NodeKind::Table(_) => (*attributes).clone(),
            NodeKind::Array(metadata) => {
                non_finite::unseal(&attributes, &metadata.document(&node.path)?)
            }
        })
    }

    /// The user attributes of a node as its document has them, which is JSON.
    pub async fn attributes(&self, path: &str) -> Result<Arc<Map<String, Value>>> {
        match &self.node(path)?.attributes {
            Attributes::Inline(map) => Ok(map.clone()),
            Attributes::File(reference) => match self.repo.attribute_document(reference).await {
                Ok(document) => Ok(document),
                Err(error) => Err(self.explain(error).await),
            },
        }
    }

    /// An array, for reading and writing regions.
    pub async fn array(self: &Arc<Self>, path: &str) -> Result<Array> {
        Array::open(self.clone(), &self.node(path)?)
    }

    /// Whether there is anything to commit.
    pub fn is_changed(&self) -> bool {
        let work = self.work();
        work.has_described()
            || !work.chunks.is_empty()
            || work.tables.values().any(|changes| !changes.is_empty())
            || !NodeEdits::between(&work.base_tree, &work.tree).is_empty()
    }

    /// From now on remembers what is read: a rebase then also fails when another writer changed a
    /// chunk that this session read, which makes rebased commits serialisable.
    pub fn track_reads(&self) {
        self.work().reads.get_or_insert_default();
    }

    /// Base, current hierarchy, and references, for a report.
    pub(super) fn changes(&self) -> (Arc<Tree>, Arc<Tree>, References) {
        let work = self.work();
        let refs = |changes: &ArrayChanges| {
            changes
                .refs
                .iter()
                .map(|(coord, change)| (coord.clone(), change.payload.clone()))
                .collect()
        };
        let chunks = work.chunks.iter().map(|(uid, changes)| (*uid, refs(changes))).collect();
        (work.base_tree.clone(), work.tree.clone(), chunks)
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        lock(&self.work)
    }

    /// Waits until it is safe to write; `alone` for writers that change parts of chunks.
    pub(super) async fn exclude(&self, alone: bool) -> Exclusion<'_> {
        self.writers.exclude(alone).await
    }

    /// A missing file under a session means that a collection deleted the session's files, that its
    /// snapshot has expired, or corruption.
    pub(crate) async fn explain(&self, error: Error) -> Error {
        if let Error::NotFound { name, .. } = &error
            && self.work().files.contains(name)
        {
            return Error::SessionCollected { file: name.clone() };
        }
        let snapshot = self.snapshot();
        self.repo.gone(&snapshot.snapshot_id, error).await
    }

    fn require_writable(&self) -> Result<MutexGuard<'_, Work>> {
        let work = self.work();
        let what = match (&self.access, work.phase) {
            (Access::ReadOnly, _) => "this session is read-only",
            (_, Phase::Open) => return Ok(work),
            (_, Phase::Busy) => "this session is being committed, rebased or forked",
            (_, Phase::Closed) => "this session is committed; open a new one to change more",
        };
        Err(Error::Invalid { what: what.into() })
    }

    /// Stops changes from coming in while the guard lives.
    fn hold(&self) -> Result<Busy<'_>> {
        self.require_writable()?.phase = Phase::Busy;
        Ok(Busy(self))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is one insertion, so a panic cannot have left a half-made one.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
