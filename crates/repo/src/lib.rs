//! The versioned repository: arrays that a team changes together, with transactions, branches, tags
//! and time travel, on a disk or a bucket.
//!
//! ```text
//!  state.json ──▶ snapshot ──▶ structure file ──▶ inventories ──▶ manifests ──▶ chunks
//!  the only        one per      s/…  all nodes     per array,      i/…  where     c/…  packs,
//!  mutable file    commit       of a version       oldest first    chunks are     a/…  attributes
//! ```
//!
//! - A [`Repository`] opens the state file and hands out sessions; it also moves branches and tags.
//! - A [`Session`] is pinned to one snapshot. A writable one collects changes: chunk bytes go out at
//!   once, references stay in memory until [`Session::commit`].
//! - `swap` is the one atomic step. Everything a commit needs is durable before it.
//! - [`Array`] reads and writes regions, [`Table`] rows by key.
//! - `maintain` expires, collects, optimises, repacks; `verify` checks.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! use chunkyard_array::{ArraySpec, Region};
//! use chunkyard_repo::{CommitOptions, CreateOptions, OpenOptions, Repository, Version};
//!
//! let repo = Repository::create("memory://doc-example", OpenOptions::default(), CreateOptions::default()).await?;
//! let session = repo.writable_session("main").await?;
//! let spec = ArraySpec::builder(&[4, 4], &[2, 2], "uint8").build()?;
//! let array = session.create_array("/temperature", spec).await?;
//! array.write_region(&Region::new(vec![0, 0], vec![2, 4])?, vec![7u8; 8].into()).await?;
//! session.commit(CommitOptions::message("first")).await?;
//!
//! let read = repo.readonly_session(&Version::branch("main")).await?;
//! let values = read.array("/temperature").await?.read_region(&Region::whole(&[4, 4])).await?;
//! assert_eq!(&values[..8], &[7; 8]);
//! assert_eq!(&values[8..], &[0; 8]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod array;
mod array_metadata;
mod attributes;
mod columns;
mod config;
mod coord;
mod diff;
mod draft;
mod fetch;
mod format;
mod history;
#[doc(hidden)]
pub mod hostile;
mod id;
mod keys;
mod maintain;
mod manifest;
mod node;
mod pack;
mod parquet_bounds;
mod parquet_file;
mod parquet_foreign;
mod parquet_stream;
mod refs;
mod repair;
mod run;
mod session;
mod state;
mod structure;
mod swap;
mod table;
mod thrift;
mod tree;
mod verify;
mod widen;
mod width;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::{TryStreamExt, stream};
use serde_json::{Map, Value};

pub use self::array::Array;
pub use self::array_metadata::ArrayMetadata;
pub use self::config::{Compat, Config};
pub use self::coord::{Coord, CoordError};
pub use self::diff::{ChunkChanges, Diff, NodeChange};
pub use self::format::{RepoFormat, RepoSink, RepoSource};
pub use self::history::History;
pub use self::keys::{ByteRange, Keys, Listing};
pub use self::maintain::{
    ExpireOptions, Expired, GcOptions, GcReport, OptimiseReport, RepackOptions, RepackReport,
};
pub use self::manifest::{Native, Payload, Virtual};
pub use self::node::{Attributes, Inventory, Node, NodeKind};
pub use self::parquet_foreign::{END_BYTES, ForeignEnd, ForeignParquet};
pub use self::repair::{Forgotten, Rebuilt, Recovered, Republished};
pub use self::session::{ChangeSet, CommitOptions, Fork, Rebase, Resolve, Session};
pub use self::state::{
    Collection, Mode, Reference, ReferenceKind, Snapshot, State, Status, Summary, SwapProtocol,
};
pub use self::table::{
    Found, KeyPart, KeyRange, RowChanges, RowCounts, Table, TableSpec, TableStats,
};
pub use self::tree::Tree;
pub use self::verify::{Checked, Report};
pub use chunkyard_format::{Finding, Level, Severity, Version, normalise_path};
pub use chunkyard_store::{Conflict, ConflictKind, Uid};

use chunkyard_format::Meter;
use chunkyard_store::{
    ByteCache, Error, Fetcher, Kind, Limits, Noun, Options as StoreOptions, Remotes, Result, Store,
};

use self::history::Held;
use self::manifest::Manifests;
use self::node::AttributesRef;
use self::state::FORMAT_VERSION;
use self::structure::SnapshotLabel;
use self::swap::{Loaded, StateFile};
use self::table::TableFiles;

/// How a repository is opened.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// How the store is opened.
    pub store: StoreOptions,
    /// URL prefixes that virtual chunks, and a separate data root, may point into. Nothing outside
    /// is ever read only because a dataset says so.
    pub allowed: Vec<String>,
    /// Whether the checksum of each chunk is compared when it is read.
    pub check_chunks: bool,
    /// Bound of the caches of decoded metadata, in bytes.
    pub cache_bytes_max: u64,
    /// Rows of tables that a session holds in memory, in bytes; more go to the store before the commit.
    pub table_bytes_max: u64,
    /// Advanced by long work (verification, repacking), for a progress bar.
    pub meter: Arc<Meter>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            store: StoreOptions::default(),
            allowed: Vec::new(),
            check_chunks: true,
            cache_bytes_max: 128 << 20,
            table_bytes_max: 64 << 20,
            meter: Arc::default(),
        }
    }
}

/// How a repository is created.
#[derive(Debug, Clone, Default)]
pub struct CreateOptions {
    /// Name of the default branch; `main` when empty.
    pub default_branch: String,
    /// Persisted defaults.
    pub config: Config,
    /// User metadata of the whole dataset.
    pub properties: Map<String, Value>,
    /// Create although files of an older repository lie around.
    pub force: bool,
    /// Where the data files go, when not beside the state file. Every caller that opens the
    /// repository must allow this URL.
    pub store_root: Option<String>,
}

/// A versioned repository. Cheap to clone; clones share caches.
#[derive(Debug, Clone)]
pub struct Repository {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Where the data files are.
    store: Store,
    state_file: StateFile,
    dataset_id: Arc<str>,
    options: OpenOptions,
    manifests: Manifests,
    tables: TableFiles,
    trees: ByteCache<Arc<str>, Arc<Tree>>,
    attributes: ByteCache<Arc<str>, AttributeDocuments>,
    fetcher: Fetcher,
}

type AttributeDocuments = Arc<Vec<Arc<Map<String, Value>>>>;

impl Repository {
    /// Creates a repository with an empty root group. Refuses where there is one already.
    pub async fn create(url: &str, options: OpenOptions, create: CreateOptions) -> Result<Self> {
        let store = Store::open(url, &options.store)?;
        Self::create_in(store, options, create).await
    }

    /// Like [`Repository::create`], in a store that is open.
    pub async fn create_in(
        store: Store,
        options: OpenOptions,
        create: CreateOptions,
    ) -> Result<Self> {
        let mut options = options;
        options.allowed.extend(create.store_root.clone());
        let data = match &create.store_root {
            Some(root) => Some(Store::open(root, &options.store)?),
            None => None,
        };
        let state_file = match &data {
            Some(data) => StateFile::apart_from(store.clone(), data.clone()),
            None => StateFile::new(store.clone()),
        };
        let data = data.unwrap_or_else(|| store.clone());
        let protocol = state_file.protocol()?;
        let exists =
            || Error::AlreadyExists { what: Noun::Repository, name: store.url().to_owned() };
        match state_file.read().await {
            Ok(_) => return Err(exists()),
            Err(Error::NotFound { .. }) => {}
            // Something is there that we cannot read: surely not ours to overwrite.
            Err(error) => return Err(error),
        }
        if !create.force {
            refuse_leftovers(&store).await?;
            if create.store_root.is_some() {
                refuse_leftovers(&data).await?;
            }
        }
        let now_ms = chunkyard_store::clock::now_ms();
        let dataset_id = id::fresh()?;
        let snapshot_id = id::fresh()?;
        let branch = match create.default_branch.as_str() {
            "" => "main".to_owned(),
            name => name.to_owned(),
        };
        state::check_reference_name(&branch)?;
        let tree = Tree::with_root()?;
        let label = SnapshotLabel {
            snapshot_id: &snapshot_id,
            parent_snapshot_id: None,
            timestamp_ms: now_ms,
            message: "create the repository",
            change_file: None,
            branch: Some(&branch),
        };
        let sealed = structure::render(&tree, &dataset_id, &label, create.config.compat)?;
        let structure_file = id::fresh()?;
        let path = format!("s/{structure_file}");
        data.backend().put(&path, vec![sealed.bytes.clone()]).await?;
        let snapshot = Snapshot {
            snapshot_id: snapshot_id.clone(),
            parent_snapshot_id: None,
            timestamp_ms: now_ms,
            structure_file,
            message: label.message.to_owned(),
            change_file: None,
            change_base: None,
            change_size: None,
            change_crc32c: None,
            structure_size: Some(sealed.bytes.len() as u64),
            structure_crc32c: Some(sealed.crc32c),
            summary: Summary {
                nodes: 1,
                bytes_written: sealed.bytes.len() as u64,
                ..Summary::default()
            },
            properties: Map::new(),
            unknown: Map::new(),
        };
        let write_id = id::fresh()?;
        let reference =
            Reference { name: branch.clone(), snapshot_id, kind: ReferenceKind::Branch };
        let mut state = State {
            id: dataset_id,
            generation: 0,
            store_root: create.store_root,
            format_version: FORMAT_VERSION,
            required_features: Vec::new(),
            recent_write_ids: vec![write_id.clone()],
            write_id,
            updated_at_ms: now_ms,
            swap: Some(protocol),
            default_branch: branch.clone(),
            refs: BTreeMap::from([(branch, reference)]),
            deleted_tags: Vec::new(),
            gc_epoch: 0,
            gc: None,
            status: state::Status::default(),
            config: create.config,
            properties: create.properties,
            history: None,
            held: Held::default(),
            keeps_history: false,
            snapshots: vec![Arc::new(snapshot)],
            unknown: Map::new(),
        };
        state.require_wide();
        let loaded = state_file.create(state, &[path]).await?;
        Self::with_state(store, options, &loaded)
    }

    /// Opens a repository.
    pub async fn open(url: &str, options: OpenOptions) -> Result<Self> {
        let store = Store::open(url, &options.store)?;
        Self::open_in(store, options).await
    }

    /// Like [`Repository::open`], in a store that is open.
    pub async fn open_in(store: Store, options: OpenOptions) -> Result<Self> {
        let loaded = match StateFile::new(store.clone()).read().await {
            Err(Error::NotFound { .. }) => return Err(nothing_there(&store).await),
            other => other?,
        };
        Self::with_state(store, options, &loaded)
    }

    fn with_state(state_store: Store, options: OpenOptions, loaded: &Loaded) -> Result<Self> {
        let root = loaded.state.store_root.as_ref();
        let remotes = Remotes::new(options.allowed.clone(), options.store.clone());
        let store = match root {
            None => state_store.clone(),
            Some(root) if remotes.allows(root) => Store::open(root, &options.store)?,
            Some(root) => {
                return Err(Error::Invalid {
                    what: format!(
                        "the data of this repository is at {root}; allow that URL to open it"
                    ),
                });
            }
        };
        let dataset_id: Arc<str> = loaded.state.id.as_str().into();
        let limits = options.store.limits;
        let bytes = options.cache_bytes_max;
        let manifests = Manifests::new(store.clone(), dataset_id.clone(), limits, bytes);
        let tables = TableFiles::new(store.clone(), dataset_id.clone(), limits, bytes);
        let state_file = match root {
            None => StateFile::new(state_store),
            Some(_) => StateFile::apart_from(state_store, store.clone()),
        };
        let fetcher = Fetcher::new(store.clone(), Arc::new(remotes), limits, options.check_chunks);
        let inner = Inner {
            store,
            fetcher,
            state_file,
            dataset_id,
            manifests,
            tables,
            trees: ByteCache::new(bytes / 2, |_, tree: &Arc<Tree>| tree.len() * 512),
            attributes: ByteCache::new(bytes / 4, |_, documents: &AttributeDocuments| {
                documents.iter().map(|map| 64 + map.len() * 128).sum()
            }),
            options,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The latest state with all of its snapshots, read now.
    pub async fn state(&self) -> Result<Arc<State>> {
        Ok(self.load().await?.state)
    }

    async fn load(&self) -> Result<Loaded> {
        let loaded = self.load_recent().await?;
        self.inner.state_file.complete(loaded).await
    }

    /// The latest state as its file says it: with the newest snapshots alone.
    async fn load_recent(&self) -> Result<Loaded> {
        let loaded = self.inner.state_file.read().await?;
        if *loaded.state.id != *self.inner.dataset_id {
            return Err(Error::Conflict {
                message: format!("{} now holds another repository", self.inner.store.url()),
                conflicts: Vec::new(),
            });
        }
        Ok(loaded)
    }

    /// Fetches what manifests locate.
    pub(crate) fn fetcher(&self) -> &Fetcher {
        &self.inner.fetcher
    }

    pub(crate) fn tables(&self) -> &TableFiles {
        &self.inner.tables
    }

    fn manifests(&self) -> &Manifests {
        &self.inner.manifests
    }

    /// Where the repository is: the place that [`Repository::open`] takes. Its data files may be elsewhere,
    /// in [`Repository::store`].
    pub fn url(&self) -> &str {
        self.inner.state_file.store().url()
    }

    /// The store of the data files.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// Identifier of the dataset.
    pub fn dataset_id(&self) -> &str {
        &self.inner.dataset_id
    }

    fn limits(&self) -> &Limits {
        &self.inner.options.store.limits
    }

    /// A session that sees one version and never changes.
    pub async fn readonly_session(&self, version: &Version) -> Result<Arc<Session>> {
        let mut loaded = self.load_recent().await?;
        if !loaded.state.finds(version) {
            loaded = self.inner.state_file.complete(loaded).await?;
        }
        let state = loaded.state;
        let snapshot = state.resolve(version)?.clone();
        let tree = self.tree(&snapshot).await?;
        Ok(Arc::new(Session::readonly(self.clone(), &state, snapshot, tree)))
    }

    /// A session that collects changes for a branch.
    pub async fn writable_session(&self, branch: &str) -> Result<Arc<Session>> {
        let mut loaded = self.inner.state_file.read_for_writing().await?;
        if !loaded.state.finds(&Version::branch(branch)) {
            loaded = self.inner.state_file.complete(loaded).await?;
        }
        let state = loaded.state;
        if state.status.mode == Mode::ReadOnly {
            return Err(read_only(&state));
        }
        let snapshot = state.tip(branch)?.clone();
        let tree = self.tree(&snapshot).await?;
        Ok(Arc::new(Session::writable(self.clone(), &state, branch, snapshot, tree)?))
    }

    /// The nodes of a snapshot. If its file is gone, says whether the snapshot has expired.
    async fn tree(&self, snapshot: &Snapshot) -> Result<Arc<Tree>> {
        let file: Arc<str> = snapshot.structure_file.as_str().into();
        if let Some(tree) = self.inner.trees.get(&file) {
            return Ok(tree);
        }
        let path = format!("s/{file}");
        let bytes = match self.inner.store.backend().get(&path).await {
            Ok(object) => object.bytes,
            Err(error) => return Err(self.gone(&snapshot.snapshot_id, error).await),
        };
        check_file(&path, &bytes, snapshot.structure_size, snapshot.structure_crc32c)?;
        let (tree, _) = structure::parse(&path, &self.inner.dataset_id, &bytes)?;
        let tree = Arc::new(tree);
        self.inner.trees.insert(file, tree.clone());
        Ok(tree)
    }

    /// Tells an expired snapshot from a lost file: `NotFound` of a file that the latest state no
    /// longer needs is expiry, anything else stays what it was.
    async fn gone(&self, snapshot_id: &str, error: Error) -> Error {
        let Error::NotFound { name, .. } = error else { return error };
        match self.state().await {
            Ok(state) if state.snapshot(snapshot_id).is_none() => {
                Error::SnapshotExpired { id: snapshot_id.to_owned() }
            }
            Ok(_) => Error::Corrupt {
                file: name,
                what: "existence".into(),
                expected: format!("a file that snapshot {snapshot_id} names"),
                found: "none".into(),
            },
            Err(error) => error,
        }
    }

    async fn attribute_document(
        &self,
        reference: &AttributesRef,
    ) -> Result<Arc<Map<String, Value>>> {
        let documents = match self.inner.attributes.get(&reference.file) {
            Some(documents) => documents,
            None => {
                let path = format!("a/{}", reference.file);
                let bytes = self.inner.store.backend().get(&path).await?.bytes;
                let documents = attributes::parse(reference, &self.inner.dataset_id, &bytes)?;
                let documents = Arc::new(documents);
                self.inner.attributes.insert(reference.file.clone(), documents.clone());
                documents
            }
        };
        let document = usize::try_from(reference.row).ok().and_then(|row| documents.get(row));
        document.cloned().ok_or_else(|| Error::Corrupt {
            file: format!("a/{}", reference.file),
            what: "row count".into(),
            expected: format!("more than {}", reference.row),
            found: documents.len().to_string(),
        })
    }

    /// Whether files are spread over folders: a file system is slow with many in one.
    fn fans_out(&self) -> bool {
        self.inner.store.backend().kind() == Kind::Local
    }
}

fn read_only(state: &State) -> Error {
    let reason = state.status.reason.as_deref().unwrap_or("no reason given");
    Error::Invalid { what: format!("the repository is read-only: {reason}") }
}

/// Compares a whole file with the size and checksum that were recorded for it.
fn check_file(path: &str, bytes: &Bytes, size: Option<u64>, crc: Option<u32>) -> Result<()> {
    let found = bytes.len() as u64;
    if let Some(size) = size.filter(|size| *size != found) {
        let expected = size.to_string();
        return Err(parquet_file::corrupt(path, "file size", &expected, &found.to_string()));
    }
    match crc {
        Some(crc) => parquet_file::check_crc(path, "the file", crc, bytes),
        None => Ok(()),
    }
}

/// Why there is no state file: to a request for an object, a missing bucket looks like a missing
/// object. Listing tells them apart, where one can list.
async fn nothing_there(store: &Store) -> Error {
    if let Ok(mut listed) = store.backend().list("s").await
        && let Err(error @ Error::NotFound { .. }) = listed.try_next().await
    {
        return error;
    }
    let name = format!("{} (no state.json there)", store.url());
    Error::NotFound { what: Noun::Repository, name }
}

async fn refuse_leftovers(store: &Store) -> Result<()> {
    let mut listings = Vec::new();
    for directory in ["s", "a", "i", "c", "g"] {
        listings.push(store.backend().list(directory).await?);
    }
    match stream::select_all(listings).try_next().await? {
        None => Ok(()),
        Some(meta) => Err(Error::AlreadyExists {
            what: Noun::Leftover,
            name: format!(
                "{} in {}; remove what is there, or create with force",
                meta.path,
                store.url()
            ),
        }),
    }
}
