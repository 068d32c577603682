//! An open dataset.
//!
//! ```text
//!  Blz ─▶ Shared ─┬─ Current ─▶ View ─▶ Committed    what readers use
//!                 └─ Mutex<Writing>                  what the task that writes owns
//! ```

use std::sync::Arc;

use async_trait::async_trait;
use chunkyard_array::{Attributes, ChunkIndex};
use chunkyard_store::{ChunkRef, Error, Fetcher, Noun, Remotes, Result, Store};
use tokio::sync::Mutex;

use super::access::Access;
use super::committed::{Committed, Current};
use super::meta::{Shards, Sizes};
use super::model::{Column, Style};
use super::protocol::Protocol;
use super::read::directory::{self, Directory};
use super::write::Writing;
use super::write::claim::Unsettled;
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
    pub(super) shared: Arc<Shared>,
}

/// What all clones of a handle share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) access: Arc<Access>,
    pub(super) current: Arc<Current>,
    /// Keeps tasks that change the same chunk apart.
    pub(super) writers: Writers,
    /// A task that writes holds this lock.
    pub(super) writing: Mutex<Writing>,
}

impl Blz {
    /// Opens the dataset at a place.
    pub async fn open(place: &Place, options: BlzOptions) -> Result<Self> {
        let store = place.directory().clone();
        let Some(found) = directory::read(&store).await? else {
            return Err(Error::NotFound { what: Noun::BlzDataset, name: place.url().to_owned() });
        };
        Ok(Self::of_directory(store, found, &options))
    }

    pub(super) fn of_directory(store: Store, found: Directory, options: &BlzOptions) -> Self {
        let allowed = options.open.allowed.clone();
        let remotes = Arc::new(Remotes::new(allowed, options.open.store.clone()));
        let limits = *store.limits();
        let fetcher = Fetcher::new(store.clone(), remotes.clone(), limits, !options.unchecked);
        let (style, table, mutable) = (found.style, found.table, options.mutable);
        let access = Arc::new(Access {
            protocol: Protocol::of(&store),
            store,
            style,
            table,
            mutable,
            fetcher,
            unsettled: Unsettled::default(),
        });
        let current = Arc::new(Current::new(Committed::new(&access, &remotes, found)));
        let writing = Mutex::new(Writing::new(access.clone(), current.clone()));
        let shared = Shared { access, current, writers: Writers::default(), writing };
        Self { shared: Arc::new(shared) }
    }

    /// How it is laid out.
    pub fn style(&self) -> Style {
        self.shared.access.style
    }

    /// Whether it is a table, whose columns have names.
    pub fn is_table(&self) -> bool {
        self.shared.access.table
    }

    /// The number of rows, including those that are not committed.
    pub fn len(&self) -> u64 {
        self.shared.current.view().len
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The content of `meta/sizes`: what every reader sees.
    pub fn sizes(&self) -> Sizes {
        self.shared.current.committed().sizes.clone()
    }

    /// Where the files are that are not in the dataset's own place.
    pub fn shards(&self) -> Shards {
        self.shared.current.committed().files.roots.shards().clone()
    }

    /// Its columns; one, called `/`, if it is not a table.
    pub fn columns(&self) -> Arc<Vec<Column>> {
        self.shared.current.committed().columns.clone()
    }

    /// The column with this name.
    pub fn column(&self, name: &str) -> Result<Column> {
        let committed = self.shared.current.committed();
        let at = committed.position(name)?;
        let missing = || Error::NotFound { what: Noun::Column, name: name.to_owned() };
        committed.columns.get(at).cloned().ok_or_else(missing)
    }

    /// Warnings for the reader.
    pub fn cautions(&self) -> Vec<String> {
        self.shared.current.committed().cautions.clone()
    }

    /// Its attributes.
    pub fn attributes(&self) -> Attributes {
        self.shared.current.committed().attributes.clone()
    }

    /// Its content in the one data model: an array, or a group with an array for each column.
    pub fn dataset(&self) -> Result<Dataset> {
        let view = self.shared.current.view();
        let committed = &view.committed;
        let mut dataset = Dataset::default();
        if self.shared.access.table {
            let group = chunkyard_array::GroupSpec::new(committed.attributes.clone());
            dataset.insert("/", Node::Group(group));
        }
        for column in committed.columns.iter() {
            let mut node = column.node(view.len)?;
            if !self.shared.access.table {
                node.spec = node.spec.with_attributes(committed.attributes.clone())?;
            }
            dataset.insert(column.path.to_string(), Node::Array(Arc::new(node)));
        }
        Ok(dataset)
    }

    /// Reads a column as it is now: regions, selections and points, by blocks of chunks.
    pub fn reader(&self, column: &str) -> Result<Reader> {
        let node = self.node(column)?;
        Ok(Reader::of(self.shared.clone(), column, ChunkCodecs::new(&node)?))
    }

    /// A column in the one data model, as it is now.
    pub fn node(&self, column: &str) -> Result<ArrayNode> {
        let len = self.len();
        self.column(column)?.node(len)
    }

    /// Looks at the store again. Rows of this handle that are not committed stay.
    pub async fn refresh(&self) -> Result<()> {
        let mut writing = self.shared.writing.lock().await;
        if writing.is_idle() {
            // The next append finds the end again.
            writing.reset();
            writing.reread().await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Locate for Shared {
    fn fetcher(&self) -> &Fetcher {
        &self.access.fetcher
    }

    async fn locate(&self, array: &str, chunks: &[ChunkIndex]) -> Result<Vec<Option<ChunkRef>>> {
        let view = self.current.view();
        let at = view.committed.position(array)?;
        let mut found = Vec::with_capacity(chunks.len());
        for index in chunks {
            let chunk = index.first().copied().unwrap_or(0);
            match self.locate_chunk(&view, at, chunk, false).await {
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
