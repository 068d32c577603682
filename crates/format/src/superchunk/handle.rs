//! An open dataset.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_array::{Attributes, ChunkIndex};
use chunkyard_store::{ChunkRef, Error, Fetcher, Kind, Noun, Remotes, Result, Store, Version};

use super::meta::{Shards, Sizes, Storage};
use super::model::{Column, Style};
use super::read::directory::{self, Directory};
use super::read::files::Files;
use super::roots::Roots;
use super::write::append::Writing;
use super::write::encode::Rows;
use crate::{ArrayNode, ChunkCodecs, Dataset, Locate, Node, OpenOptions, Place, Reader, Writers};

/// How a dataset is opened.
#[derive(Debug, Clone, Default)]
pub struct BlzOptions {
    /// How to reach it, and at which other places its files may be.
    pub open: OpenOptions,
    /// Allow changes of existing rows; otherwise rows can only be added and cut off.
    pub mutable: bool,
    /// Read without comparing digests.
    pub unchecked: bool,
}

/// A compressed array or table that grows and shrinks at its end. Cheap to clone.
///
/// Readers take no lock. This handle sees appended rows at once; all others see them after [`Blz::flush`],
/// which replaces one small file.
#[derive(Debug, Clone)]
pub struct Blz {
    pub(super) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) store: Store,
    pub(super) style: Style,
    pub(super) table: bool,
    pub(super) mutable: bool,
    pub(super) fetcher: Fetcher,
    /// Keeps tasks that change the same chunk apart.
    pub(super) writers: Writers,
    /// A task that writes holds this lock; the rows that are not committed are in it.
    pub(super) writing: tokio::sync::Mutex<Writing>,
    state: Mutex<State>,
}

/// The state of the dataset that readers of this handle use.
#[derive(Debug, Clone)]
pub(super) struct State {
    /// The last commit that this handle has seen.
    pub(super) sizes: Sizes,
    /// Encoded bytes of each column; where only their sum is known, it is in the first.
    pub(super) cbytes: Vec<i64>,
    /// The version of the `meta/sizes` file.
    pub(super) version: Version,
    pub(super) storage: Option<Storage>,
    pub(super) attributes: Attributes,
    pub(super) columns: Arc<Vec<Column>>,
    pub(super) files: Files,
    /// The number of rows, including those that are not committed.
    pub(super) len: u64,
    /// The rows of each column that are not in a file yet.
    pub(super) waiting: Arc<Vec<Waiting>>,
    pub(super) cautions: Vec<String>,
}

/// Rows of a column that are in no file.
#[derive(Debug, Clone, Default)]
pub(super) struct Waiting {
    /// Number of the first chunk below.
    pub(super) first: u64,
    /// Encoded chunks.
    pub(super) chunks: Vec<Bytes>,
    /// New versions of chunks that are in a file, encoded.
    pub(super) changed: BTreeMap<u64, Bytes>,
    /// Rows behind these chunks that are not encoded.
    pub(super) rows: Option<Arc<Mutex<Rows>>>,
}

impl State {
    /// The number of committed rows.
    pub(super) fn committed(&self) -> u64 {
        self.sizes.shape.first().copied().unwrap_or(0)
    }
}

impl Blz {
    /// Opens the dataset at a place.
    pub async fn open(place: &Place, options: BlzOptions) -> Result<Self> {
        let store = place.directory().clone();
        let Some(found) = directory::read(&store).await? else {
            return Err(Error::NotFound { what: Noun::BlzDataset, name: place.url().to_owned() });
        };
        Self::of_directory(store, found, &options)
    }

    pub(super) fn of_directory(
        store: Store,
        found: Directory,
        options: &BlzOptions,
    ) -> Result<Self> {
        let allowed = options.open.allowed.clone();
        let remotes = Arc::new(Remotes::new(allowed, options.open.store.clone()));
        let limits = *store.limits();
        let fetcher = Fetcher::new(store.clone(), remotes.clone(), limits, !options.unchecked);
        let (style, table) = (found.style, found.table);
        let state = State::new(&store, &remotes, found)?;
        let inner = Inner {
            store,
            style,
            table,
            mutable: options.mutable,
            fetcher,
            writers: Writers::default(),
            writing: tokio::sync::Mutex::default(),
            state: Mutex::new(state),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// How it is laid out.
    pub fn style(&self) -> Style {
        self.inner.style
    }

    /// Whether it is a table, whose columns have names.
    pub fn is_table(&self) -> bool {
        self.inner.table
    }

    /// The number of rows, including those that are not committed.
    pub fn len(&self) -> u64 {
        self.inner.state().len
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The content of `meta/sizes`: what every reader sees.
    pub fn sizes(&self) -> Sizes {
        self.inner.state().sizes.clone()
    }

    /// Where the files are that are not in the dataset's own place.
    pub fn shards(&self) -> Shards {
        self.inner.state().files.roots.shards().clone()
    }

    /// Its columns; one, called `/`, if it is not a table.
    pub fn columns(&self) -> Arc<Vec<Column>> {
        self.inner.state().columns.clone()
    }

    /// The column with this name.
    pub fn column(&self, name: &str) -> Result<Column> {
        let state = self.inner.state();
        state
            .position(name)
            .and_then(|at| state.columns.get(at).cloned().ok_or_else(|| no_column(name)))
    }

    /// Warnings for the reader.
    pub fn cautions(&self) -> Vec<String> {
        self.inner.state().cautions.clone()
    }

    /// Its attributes.
    pub fn attributes(&self) -> Attributes {
        self.inner.state().attributes.clone()
    }

    /// Its content in the one data model: an array, or a group with an array for each column.
    pub fn dataset(&self) -> Result<Dataset> {
        let state = self.inner.state().clone();
        let mut dataset = Dataset::default();
        if self.inner.table {
            let group = chunkyard_array::GroupSpec::new(state.attributes.clone());
            dataset.insert("/", Node::Group(group));
        }
        for column in state.columns.iter() {
            let mut node = column.node(state.len)?;
            if !self.inner.table {
                node.spec = node.spec.with_attributes(state.attributes.clone())?;
            }
            dataset.insert(column.path.to_string(), Node::Array(Arc::new(node)));
        }
        Ok(dataset)
    }

    /// Reads a column as it is now: regions, selections and points, by blocks of chunks.
    pub fn reader(&self, column: &str) -> Result<Reader> {
        let node = self.node(column)?;
        Ok(Reader::of(self.inner.clone(), column, ChunkCodecs::new(&node)?))
    }

    /// A column in the one data model, as it is now.
    pub fn node(&self, column: &str) -> Result<ArrayNode> {
        let len = self.len();
        self.column(column)?.node(len)
    }

    /// Looks at the store again. Rows of this handle that are not committed stay.
    pub async fn refresh(&self) -> Result<()> {
        let mut writing = self.inner.writing.lock().await;
        if writing.is_idle() {
            // The next append finds the end again.
            writing.reset();
            self.inner.reread().await?;
        }
        Ok(())
    }
}

impl Inner {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the state to the store's.
    pub(super) async fn reread(&self) -> Result<()> {
        let Some(found) = directory::read(&self.store).await? else {
            let name = self.store.url().to_owned();
            return Err(Error::NotFound { what: Noun::BlzDataset, name });
        };
        let remotes = self.state().files.roots.remotes.clone();
        let fresh = State::new(&self.store, &remotes, found)?;
        *self.state() = fresh;
        Ok(())
    }

    /// Refuses to write where nothing can be written.
    pub(super) fn refuse_read_only(&self) -> Result<()> {
        match self.store.kind() {
            Kind::ReadOnly => {
                Err(Error::unsupported(format!("writing to {}, a web server", self.store.url())))
            }
            Kind::Object { conditional_put: false } => Err(Error::unsupported(format!(
                "changing {} here: this store cannot replace an object only if it is unchanged, so two \
                 writers could undo each other; write elsewhere and copy",
                self.store.url()
            ))),
            // Each column has its own `sizes`, and they cannot all be replaced in one step.
            Kind::Object { .. } if self.table && self.style == Style::Bcolz => {
                Err(Error::unsupported(format!(
                    "changing {}, a table in the style of bcolz, in an object store",
                    self.store.url()
                )))
            }
            _ => Ok(()),
        }
    }
}

impl State {
    fn new(store: &Store, remotes: &Arc<Remotes>, found: Directory) -> Result<Self> {
        let roots = Roots::new(store.clone(), remotes.clone(), found.shards.clone());
        let len = found.len();
        let mut waiting = vec![Waiting::default(); found.columns.len()];
        for entry in found.journal.iter().flat_map(|journal| &journal.entries) {
            let of = found.columns.iter().position(|column| *column.path == *entry.column);
            if let Some(waiting) = of.and_then(|at| waiting.get_mut(at)) {
                waiting.changed.insert(entry.chunk, entry.encoded());
            }
        }
        Ok(Self {
            len,
            cbytes: found.cbytes,
            version: found.version,
            storage: found.storage,
            attributes: found.attributes,
            files: Files::new(roots),
            columns: Arc::new(found.columns),
            waiting: Arc::new(waiting),
            cautions: found.cautions,
            sizes: found.sizes,
        })
    }

    /// The position of the column with this name.
    pub(super) fn position(&self, name: &str) -> Result<usize> {
        let wanted = name.trim_start_matches('/');
        let found =
            self.columns.iter().position(|column| column.path.trim_start_matches('/') == wanted);
        found.ok_or_else(|| no_column(name))
    }
}

fn no_column(name: &str) -> Error {
    Error::NotFound { what: Noun::Column, name: name.to_owned() }
}

#[async_trait]
impl Locate for Inner {
    fn fetcher(&self) -> &Fetcher {
        &self.fetcher
    }

    async fn locate(&self, array: &str, chunks: &[ChunkIndex]) -> Result<Vec<Option<ChunkRef>>> {
        let state = self.state().clone();
        let at = state.position(array)?;
        let mut found = Vec::with_capacity(chunks.len());
        for index in chunks {
            let chunk = index.first().copied().unwrap_or(0);
            match self.locate_chunk(&state, at, chunk, false).await {
                Ok(place) => found.push(Some(place)),
                Err(error) => return Err(self.explain_change(error).await),
            }
        }
        Ok(found)
    }

    async fn explain(&self, error: Error) -> Error {
        self.explain_change(error).await
    }
}
