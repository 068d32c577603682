//! What readers use: one commit, and the rows of this handle on top of it.
//!
//! ```text
//!  Current ── Mutex ─▶ View ─┬─ Arc<Committed>   one commit: never changes, shared by all who read it
//!     ▲                      ├─ waiting          rows that Writing has and no file has
//!     │ replaces parts       └─ len              rows of both
//!  Writing                                       the only one that does
//! ```
//!
//! A reader clones the view and is not disturbed by what comes later.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use chunkyard_array::Attributes;
use chunkyard_store::{Error, Noun, Remotes, Result, Version};

use super::access::Access;
use super::meta::{Sizes, Storage};
use super::model::Column;
use super::read::directory::Directory;
use super::read::files::Files;
use super::roots::Roots;
use super::write::encode::Rows;

/// A dataset as of one commit.
#[derive(Debug, Clone)]
pub(super) struct Committed {
    pub(super) access: Arc<Access>,
    pub(super) sizes: Sizes,
    /// Encoded bytes of each column; where only their sum is known, it is in the first.
    pub(super) cbytes: Vec<i64>,
    /// The version of the `meta/sizes` file.
    pub(super) version: Version,
    pub(super) storage: Option<Storage>,
    pub(super) attributes: Attributes,
    pub(super) columns: Arc<Vec<Column>>,
    pub(super) files: Files,
    /// Chunks of each column that count and may not be in their files yet.
    pub(super) journal: Arc<Vec<BTreeMap<u64, Bytes>>>,
    /// Warnings for the reader.
    pub(super) cautions: Vec<String>,
}

impl Committed {
    pub(super) fn new(access: &Arc<Access>, remotes: &Arc<Remotes>, found: Directory) -> Self {
        let roots = Roots::new(access.store.clone(), remotes.clone(), found.shards);
        let mut journal = vec![BTreeMap::new(); found.columns.len()];
        for entry in found.journal.iter().flat_map(|journal| &journal.entries) {
            let of = found.columns.iter().position(|column| *column.path == *entry.column);
            if let Some(chunks) = of.and_then(|at| journal.get_mut(at)) {
                chunks.insert(entry.chunk, entry.encoded());
            }
        }
        Self {
            access: access.clone(),
            sizes: found.sizes,
            cbytes: found.cbytes,
            version: found.version,
            storage: found.storage,
            attributes: found.attributes,
            columns: Arc::new(found.columns),
            files: Files::new(roots),
            journal: Arc::new(journal),
            cautions: found.cautions,
        }
    }

    /// The number of rows.
    pub(super) fn len(&self) -> u64 {
        self.sizes.shape.first().copied().unwrap_or(0)
    }

    /// The position of the column with this name.
    pub(super) fn position(&self, name: &str) -> Result<usize> {
        let wanted = name.trim_start_matches('/');
        let found =
            self.columns.iter().position(|column| column.path.trim_start_matches('/') == wanted);
        found.ok_or_else(|| Error::NotFound { what: Noun::Column, name: name.to_owned() })
    }
}

/// A commit, and rows on top of it that are not committed.
#[derive(Debug, Clone)]
pub(super) struct View {
    pub(super) committed: Arc<Committed>,
    /// The number of rows, including those that are not committed.
    pub(super) len: u64,
    /// The rows of each column that are not in a file yet.
    pub(super) waiting: Arc<Vec<Waiting>>,
}

impl View {
    /// A commit with nothing on top.
    pub(super) fn of(committed: Arc<Committed>) -> Self {
        let waiting = vec![Waiting::default(); committed.columns.len()];
        Self { len: committed.len(), waiting: Arc::new(waiting), committed }
    }
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

/// What a handle shows to its readers.
#[derive(Debug)]
pub(super) struct Current(Mutex<View>);

impl Current {
    pub(super) fn new(committed: Committed) -> Self {
        Self(Mutex::new(View::of(Arc::new(committed))))
    }

    fn locked(&self) -> MutexGuard<'_, View> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What readers see now.
    pub(super) fn view(&self) -> View {
        self.locked().clone()
    }

    /// The last commit that this handle has made or seen.
    pub(super) fn committed(&self) -> Arc<Committed> {
        self.locked().committed.clone()
    }

    /// Takes another commit; the waiting rows stay on top.
    pub(super) fn commit(&self, committed: Committed) {
        self.locked().committed = Arc::new(committed);
    }

    /// Takes another commit, with nothing on top.
    pub(super) fn replace(&self, committed: Committed) {
        *self.locked() = View::of(Arc::new(committed));
    }

    /// Drops what is not committed.
    pub(super) fn discard(&self) {
        let mut view = self.locked();
        *view = View::of(view.committed.clone());
    }

    /// Counts rows that wait, or are in files that do not count yet.
    pub(super) fn add_rows(&self, rows: u64) {
        self.locked().len += rows;
    }

    /// Shows the rows of a column that wait.
    pub(super) fn show(&self, at: usize, waiting: Waiting) {
        let mut view = self.locked();
        if let Some(shown) = Arc::make_mut(&mut view.waiting).get_mut(at) {
            *shown = waiting;
        }
    }
}
