//! What a state no longer holds itself: old snapshots, and the write ids of old generations.
//!
//! A state is rewritten by every commit, so it must stay small however long the history is. It
//! keeps the newest snapshots and write ids; older ones move to immutable files under `s/`, and one
//! *index* names these. A commit reads the state alone. An operation that needs older snapshots
//! *completes* the state first.
//!
//! ```text
//!  state.json ──▶ index ──▶ runs of snapshots      oldest first; four of a size become one
//!  newest 4..12     │
//!  snapshots        └─────▶ runs of write ids      which write made which generation
//! ```
//!
//! The write ids are kept for good, thirty bytes for each generation: only they can tell a writer
//! that slept, however long, whether its change is in history. `docs/design/013-history.md` has the
//! failure that this prevents.

mod archive;
mod index;
mod settle;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_store::{Error, Result};
use serde::{Deserialize, Serialize};

use self::index::{Index, RunFile, Snapshots, Writes};
use super::hostile::FILE;
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
    /// All, with their number.
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

    /// Keeps an index, and only the runs that it names.
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

/// An index, below its checksum: parsed, asked what its readers ask, and rendered again.
pub fn reread_history_index(dataset_id: &str, bytes: &[u8]) -> Result<Bytes> {
    let index = Index::parse(FILE, dataset_id, bytes)?;
    let newest = &index.newest_writes;
    let last = newest.end().checked_sub(1).and_then(|last| newest.id_of(last));
    if last.map(str::to_owned) != newest.ids.last().cloned() && newest.end() < u64::MAX {
        return Err(Error::invalid("the last generation has the last write id"));
    }
    index::render(&index)
}

/// A file of `count` write ids, below its checksum: parsed and rendered again.
pub fn reread_history_writes(dataset_id: &str, count: u64, bytes: &[u8]) -> Result<Bytes> {
    let said: Writes = serde_json::from_slice(bytes).unwrap_or_default();
    index::render(&Writes::parse(FILE, dataset_id, &run_of(said.first, count), bytes)?)
}

/// A file of `count` snapshots, below its checksum: parsed and rendered again.
pub fn reread_history_snapshots(dataset_id: &str, count: u64, bytes: &[u8]) -> Result<Bytes> {
    index::render(&Snapshots::parse(FILE, dataset_id, &run_of(0, count), bytes)?)
}

fn run_of(first: u64, count: u64) -> RunFile {
    RunFile { file: FILE.to_owned(), first, count, size: 0, crc32c: 0 }
}
