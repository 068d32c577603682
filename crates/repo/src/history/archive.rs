//! Moving old snapshots and write ids out of a state, and back into memory.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_store::{Error, Result};
use futures::{StreamExt, TryStreamExt, stream};

use super::index::{self, Index, RunFile, Snapshots, Writes};
use super::{Held, History, Run};
use crate::config::Compat;
use crate::id;
use crate::parquet_file::corrupt;
use crate::state::{RECENT, STATE_FILE, Snapshot, State};
use crate::swap::{Loaded, StateFile};

/// A state holds at most this many snapshots itself …
pub(super) const SNAPSHOTS_MAX: usize = 12;
/// … and keeps this many when it is full.
const SNAPSHOTS_KEPT: usize = 4;
/// How many write ids a state holds beyond the required ones.
const WRITES_SURPLUS: usize = 8;
/// An index holds at most this many write ids itself.
const INDEX_WRITES_MAX: usize = 64;
/// This many runs of one size become one.
const FANOUT: usize = 4;
/// The smallest run, for telling sizes apart.
const RUN_MIN: u64 = 8;
/// Files fetched at the same time.
const FILES_AT_ONCE: usize = 16;

/// The feature a reader must know once snapshots are in files.
const FEATURE: &str = "snapshot-archive";

impl State {
    /// Whether all snapshots are in memory.
    pub(crate) fn is_complete(&self) -> bool {
        self.held != Held::None || self.history.as_ref().is_none_or(|h| h.snapshots == 0)
    }

    /// The snapshots that the state's own file lists.
    pub(crate) fn own_snapshots(&self) -> &[Arc<Snapshot>] {
        self.snapshots.get(self.in_files()..).unwrap_or_default()
    }

    /// How many of the first snapshots in memory are in files.
    fn in_files(&self) -> usize {
        match self.held {
            Held::All(count) => count,
            Held::None | Held::Changed => 0,
        }
    }

    /// Notes that dropped or changed snapshots may be in files.
    pub(crate) fn snapshots_changed(&mut self) {
        if self.history.is_some() {
            self.held = Held::Changed;
        }
    }
}

impl StateFile {
    /// The same state with all of its snapshots in memory. If files of the history are gone,
    /// because the state moved on and a collection ran, the latest state is read and completed.
    pub(crate) async fn complete(&self, mut loaded: Loaded) -> Result<Loaded> {
        while !loaded.state.is_complete() {
            if let Some(state) = self.memory.completed(&loaded.bytes) {
                loaded.state = state;
                break;
            }
            match self.with_archived(&loaded.state).await {
                Ok(state) => {
                    loaded.state = Arc::new(state);
                    self.memory.keep_completed(&loaded.bytes, &loaded.state);
                }
                Err(Error::NotFound { name, .. }) => {
                    let latest = self.read().await?;
                    if latest.state.generation == loaded.state.generation {
                        return Err(corrupt(
                            &name,
                            "existence",
                            "a file of the history that the state needs",
                            "none",
                        ));
                    }
                    loaded = latest;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(loaded)
    }

    async fn with_archived(&self, state: &State) -> Result<State> {
        let Some(history) = &state.history else { return Ok(state.clone()) };
        let index = self.index(&state.id, history).await?;
        let runs: Vec<Run> = stream::iter(index.snapshots.clone())
            .map(|run| async move { self.snapshot_run(&state.id, &run).await })
            .buffered(FILES_AT_ONCE)
            .try_collect()
            .await?;
        let mut complete = state.clone();
        complete.snapshots = runs.iter().flat_map(|run| run.iter().cloned()).collect();
        complete.held = Held::All(complete.snapshots.len());
        complete.snapshots.extend(state.snapshots.iter().cloned());
        complete.check(STATE_FILE)?;
        Ok(complete)
    }

    /// Before a state is written, moves its old snapshots and write ids into files, once there are
    /// enough. Returns the files written; they are durable only with the state.
    pub(crate) async fn archive(&self, next: &mut State) -> Result<Vec<String>> {
        let own = next.own_snapshots().len();
        let keeps_all = next.config.compat == Compat::Draft; // its readers know no other files
        let full = own > SNAPSHOTS_MAX && !keeps_all;
        let many = next.recent_write_ids.len() > RECENT + WRITES_SURPLUS;
        let due = (full || many) && !next.keeps_history;
        if !due && next.held != Held::Changed {
            return Ok(Vec::new());
        }
        let mut index = match &next.history {
            Some(history) => (*self.index(&next.id, history).await?).clone(),
            None => Index { dataset_id: next.id.clone(), ..Index::default() },
        };
        let mut written = Vec::new();
        if next.held == Held::Changed {
            index.snapshots.clear();
        }
        let leaving = if full { own - SNAPSHOTS_KEPT } else { 0 };
        self.archive_snapshots(next, &mut index, leaving, &mut written).await?;
        self.archive_writes(next, &mut index, &mut written).await?;
        let bytes = index::render(&index)?;
        let file = format!("{}.history.json", id::fresh()?);
        next.history = Some(History {
            file: file.clone(),
            size: bytes.len() as u64,
            crc32c: crc32c::crc32c(&bytes),
            snapshots: index.snapshot_count(),
        });
        self.put_history(&file, bytes, &mut written).await?;
        self.memory.keep_index(&file, index);
        Ok(written)
    }

    async fn archive_snapshots(
        &self,
        next: &mut State,
        index: &mut Index,
        leaving: usize,
        written: &mut Vec<String>,
    ) -> Result<()> {
        let from = next.in_files();
        if leaving > 0 {
            let moved = next.snapshots.get(from..from + leaving).unwrap_or_default().to_vec();
            let mut run: Vec<Arc<Snapshot>> = Vec::new();
            while let Some(joined) = joins(&index.snapshots, moved.len() + run.len()) {
                let mut older = Vec::new();
                for file in index.snapshots.drain(joined..) {
                    older.extend(self.snapshot_run(&next.id, &file).await?.iter().cloned());
                }
                older.append(&mut run);
                run = older;
            }
            run.extend(moved);
            let file = format!("{}.snapshots.json", id::fresh()?);
            let document = Snapshots { dataset_id: next.id.clone(), snapshots: run };
            let bytes = index::render(&document)?;
            let run = Arc::new(document.snapshots);
            index.snapshots.push(RunFile::of(file.clone(), 0, run.len(), &bytes));
            self.put_history(&file, bytes, written).await?;
            self.memory.keep_run(&file, &run);
            next.require_feature(FEATURE);
        }
        match next.held {
            Held::None => drop(next.snapshots.drain(..leaving)),
            Held::All(_) | Held::Changed => next.held = Held::All(from + leaving),
        }
        Ok(())
    }

    async fn archive_writes(
        &self,
        next: &mut State,
        index: &mut Index,
        written: &mut Vec<String>,
    ) -> Result<()> {
        let surplus = next.recent_write_ids.len().saturating_sub(RECENT);
        let first = (next.generation + 1).saturating_sub(next.recent_write_ids.len() as u64);
        let leaving: Vec<String> = next.recent_write_ids.drain(..surplus).collect();
        if leaving.is_empty() {
            return Ok(());
        }
        // A program that keeps no history may have written in between, and left a gap.
        if index.newest_writes.end() != first {
            self.spill_writes(index, written).await?;
            index.newest_writes = Writes { first, ..Writes::default() };
        }
        index.newest_writes.ids.extend(leaving);
        if index.newest_writes.ids.len() > INDEX_WRITES_MAX {
            self.spill_writes(index, written).await?;
        }
        Ok(())
    }

    /// Moves the write ids of an index into a file, together with earlier files of the same size.
    async fn spill_writes(&self, index: &mut Index, written: &mut Vec<String>) -> Result<()> {
        let mut run = std::mem::take(&mut index.newest_writes);
        index.newest_writes.first = run.end();
        if run.ids.is_empty() {
            return Ok(());
        }
        run.dataset_id = index.dataset_id.clone();
        while let Some(joined) = joins(&index.writes, run.ids.len()) {
            let adjoining = |pair: &[RunFile]| match pair {
                [a, b] => a.first.saturating_add(a.count) == b.first,
                _ => true,
            };
            let files = index.writes.get(joined..).unwrap_or_default();
            let last = files.last().map_or(run.first, |file| file.first.saturating_add(file.count));
            if last != run.first || !files.windows(2).all(adjoining) {
                break;
            }
            let mut older = Writes { dataset_id: run.dataset_id.clone(), ..Writes::default() };
            for (at, file) in index.writes.drain(joined..).enumerate() {
                let part = self.write_run(&index.dataset_id, &file).await?;
                if at == 0 {
                    older.first = part.first;
                }
                older.ids.extend(part.ids);
            }
            older.ids.append(&mut run.ids);
            run = older;
        }
        let file = format!("{}.writes.json", id::fresh()?);
        let bytes = index::render(&run)?;
        index.writes.push(RunFile::of(file.clone(), run.first, run.ids.len(), &bytes));
        self.put_history(&file, bytes, written).await
    }

    /// The files of a state's history, relative to the root of the data.
    pub(crate) async fn history_files(&self, state: &State) -> Result<Vec<String>> {
        let Some(history) = &state.history else { return Ok(Vec::new()) };
        let index = self.index(&state.id, history).await?;
        Ok(index.files().chain([format!("s/{}", history.file)]).collect())
    }

    /// The files of a state's history, each with its error, if any.
    pub(crate) async fn check_history(&self, state: &State) -> Result<Vec<(String, Result<()>)>> {
        let Some(history) = &state.history else { return Ok(Vec::new()) };
        let index = self.index(&state.id, history).await?;
        let mut checked = vec![(format!("s/{}", history.file), Ok(()))];
        for run in &index.snapshots {
            let found = self.snapshot_run(&state.id, run).await;
            checked.push((format!("s/{}", run.file), found.map(drop)));
        }
        for run in &index.writes {
            let found = self.write_run(&state.id, run).await;
            checked.push((format!("s/{}", run.file), found.map(drop)));
        }
        Ok(checked)
    }

    pub(super) async fn index(&self, dataset_id: &str, history: &History) -> Result<Arc<Index>> {
        if let Some(index) = self.memory.index(&history.file) {
            return Ok(index);
        }
        let path = format!("s/{}", history.file);
        let bytes = self.data_store().backend().get(&path).await?.bytes;
        index::check(&path, &bytes, history.size, history.crc32c)?;
        let index = Index::parse(&path, dataset_id, &bytes)?;
        if index.snapshot_count() != history.snapshots {
            let (expected, found) = (history.snapshots, index.snapshot_count());
            let (expected, found) = (expected.to_string(), found.to_string());
            return Err(corrupt(&path, "number of snapshots", &expected, &found));
        }
        Ok(self.memory.keep_index(&history.file, index))
    }

    async fn snapshot_run(&self, dataset_id: &str, run: &RunFile) -> Result<Run> {
        if let Some(known) = self.memory.run(&run.file) {
            return Ok(known);
        }
        let path = format!("s/{}", run.file);
        let bytes = self.data_store().backend().get(&path).await?.bytes;
        run.check(&path, &bytes)?;
        let snapshots = Arc::new(Snapshots::parse(&path, dataset_id, run, &bytes)?.snapshots);
        self.memory.keep_run(&run.file, &snapshots);
        Ok(snapshots)
    }

    pub(super) async fn write_run(&self, dataset_id: &str, run: &RunFile) -> Result<Writes> {
        let path = format!("s/{}", run.file);
        let bytes = self.data_store().backend().get(&path).await?.bytes;
        run.check(&path, &bytes)?;
        Writes::parse(&path, dataset_id, run, &bytes)
    }

    async fn put_history(&self, file: &str, bytes: Bytes, written: &mut Vec<String>) -> Result<()> {
        let path = format!("s/{file}");
        self.data_store().backend().put(&path, vec![bytes]).await?;
        written.push(path);
        Ok(())
    }
}

/// Where the runs begin that merge with a new run of `count` entries: the last three, if all are of
/// its size.
fn joins(runs: &[RunFile], count: usize) -> Option<usize> {
    let from = runs.len().checked_sub(FANOUT - 1)?;
    let size = size_class(count as u64);
    runs.get(from..)?.iter().all(|run| size_class(run.count) <= size).then_some(from)
}

/// Sizes that differ by less than the fan-out are alike.
fn size_class(count: u64) -> u32 {
    (count / RUN_MIN).max(1).ilog(FANOUT as u64)
}
