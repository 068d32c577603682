//! What is being written.

use std::sync::Arc;

use chunkyard_array::ChunkIndex;

use super::changes::{Changes, Description, PendingChunk};
use crate::container::layers::stack::Id;

/// What is being written: the changes of one open container, which no other reader sees.
///
/// ```text
///            put                begin_flush              flushed
///  caller ───────▶ changes ───────────────────▶ flushing ────────▶ committed, as one more layer
///                     ▲       take_back            │
///                     └────────────────────────────┤
///                                                  └─ unknown_layer: the reply was lost
/// ```
#[derive(Debug, Default)]
pub(crate) struct Uncommitted {
    /// The changes that no flush has taken.
    pub(crate) changes: Changes,
    /// The changes that are being flushed.
    flushing: Option<Arc<Changes>>,
    /// Their layer, if it may exist and that could not be found out.
    unknown_layer: Option<(u64, Id)>,
}

/// An array that was changed.
#[derive(Debug, Clone)]
pub(crate) enum ChangedArray {
    /// Its description.
    Described(Arc<Description>),
    /// It was deleted.
    Deleted,
}

/// Where a chunk is according to the changes.
#[derive(Debug, Clone)]
pub(crate) enum ChangedChunk {
    /// It was written.
    Written(PendingChunk),
    /// It was not, and the array is new: it holds the fill value.
    Absent,
    /// It was not: the layers count.
    Unchanged,
}

impl Uncommitted {
    /// The changes, newest first.
    fn newest_first(&self) -> impl Iterator<Item = &Changes> {
        [&self.changes].into_iter().chain(self.flushing.as_deref())
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.newest_first().all(Changes::is_empty)
    }

    /// The names of all arrays that were changed, and whether each exists; oldest changes first.
    pub(crate) fn names(&self) -> Vec<(String, bool)> {
        let oldest_first = self.flushing.as_deref().into_iter().chain([&self.changes]);
        let arrays = oldest_first.flat_map(|changes| &changes.arrays);
        arrays.map(|(name, change)| (name.clone(), change.described.is_some())).collect()
    }

    /// An array, if it was changed.
    pub(crate) fn array(&self, name: &str) -> Option<ChangedArray> {
        let change = self.newest_first().find_map(|changes| changes.arrays.get(name))?;
        let described = change.described.clone();
        Some(described.map_or(ChangedArray::Deleted, ChangedArray::Described))
    }

    /// A chunk of an array.
    pub(crate) fn chunk(&self, name: &str, index: &ChunkIndex) -> ChangedChunk {
        for change in self.newest_first().filter_map(|changes| changes.arrays.get(name)) {
            if let Some(chunk) = change.chunks.get(index) {
                return ChangedChunk::Written(chunk.clone());
            }
            if change.fresh {
                return ChangedChunk::Absent;
            }
        }
        ChangedChunk::Unchanged
    }

    /// Takes all changes for a flush; `None` if there are none. A flush whose layer may exist is begun
    /// again with the changes that it had: nothing was changed since.
    pub(crate) fn begin_flush(&mut self) -> Option<Arc<Changes>> {
        let again = self.unknown_layer.take().and_then(|_| self.flushing.take());
        let changes = again.unwrap_or_else(|| Arc::new(std::mem::take(&mut self.changes)));
        if changes.is_empty() {
            return None;
        }
        self.flushing = Some(changes.clone());
        Some(changes)
    }

    /// Ends a flush whose layer stands; returns the changes that it holds.
    pub(crate) fn flushed(&mut self) -> Arc<Changes> {
        self.unknown_layer = None;
        self.flushing.take().unwrap_or_default()
    }

    /// Ends a flush that wrote nothing: its changes wait again. No caller changed anything meanwhile,
    /// because a flush keeps all others from writing.
    pub(crate) fn take_back(&mut self) {
        self.unknown_layer = None;
        self.changes = Arc::unwrap_or_clone(self.flushing.take().unwrap_or_default());
    }

    /// Ends a flush of which it is not known whether its layer exists.
    pub(crate) fn end_unknown(&mut self, layer: (u64, Id)) {
        self.unknown_layer = Some(layer);
    }

    /// The layer that may exist.
    pub(crate) fn unknown_layer(&self) -> Option<(u64, Id)> {
        self.unknown_layer
    }

    /// Forgets all changes, and returns them.
    pub(crate) fn discard(&mut self) -> Vec<Arc<Changes>> {
        self.unknown_layer = None;
        let changes = Arc::new(std::mem::take(&mut self.changes));
        [Some(changes), self.flushing.take()].into_iter().flatten().collect()
    }
}
