//! What a state no longer holds itself: old snapshots, and the write ids of old generations.
//!
//! A state is rewritten by every commit, so it must stay small however long the history is. It keeps
//! the newest snapshots and write ids; older ones move to immutable files under `s/`, and one *index*
//! names these. A commit reads the state alone. Whatever asks for older snapshots *completes* the
//! state first.
//!
//! ```text
//!  state.json ──▶ index ──▶ runs of snapshots      oldest first; four of a size become one
//!  newest 4..12     │
//!  snapshots        └─────▶ runs of write ids      which write made which generation
//! ```
//!
//! The write ids are kept for good, thirty bytes for each generation: they alone can tell a writer
//! that slept, however long, whether its change is in history. `docs/design/013-history.md` has the
//! failure that this prevents.

mod archive;
mod index;
mod settle;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::index::Index;
use super::state::Snapshot;
use super::swap::{Memory, lock};

/// Where the rest of a state is: the state's `history`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct History {
    /// The index, under `s/`.
    pub file: String,
    /// Size of the index.
    pub size: u64,
    /// CRC-32C of the index.
    pub crc32c: u32,
    /// How many snapshots are in files.
    pub snapshots: u64,
}

/// Which of the snapshots in files are also in memory, as the first ones of a state's list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Held {
    /// None: the state is as its file says it.
    #[default]
    None,
    /// All, so many.
    All(usize),
    /// All, and some have changed: the files are to be written anew.
    Changed,
}

/// Files of the history that were read or written last; they never change.
#[derive(Debug, Default)]
pub(super) struct Kept {
    index: Option<(String, Arc<Index>)>,
    runs: HashMap<String, Run>,
}

/// The snapshots of one file.
type Run = Arc<Vec<Arc<Snapshot>>>;

impl Memory {
    fn index(&self, file: &str) -> Option<Arc<Index>> {
        let kept = lock(&self.history);
        kept.index.as_ref().filter(|(known, _)| known == file).map(|(_, index)| index.clone())
    }

    /// Keeps an index, and of the runs only those it names.
    fn keep_index(&self, file: &str, index: Index) -> Arc<Index> {
        let index = Arc::new(index);
        let mut kept = lock(&self.history);
        kept.runs.retain(|run, _| index.snapshots.iter().any(|named| named.file == *run));
        kept.index = Some((file.to_owned(), index.clone()));
        index
    }

    fn run(&self, file: &str) -> Option<Run> {
        lock(&self.history).runs.get(file).cloned()
    }

    fn keep_run(&self, file: &str, run: &Run) {
        lock(&self.history).runs.insert(file.to_owned(), run.clone());
    }
}
