//! Garbage collection that no clock can make unsafe.
//!
//! A collection *announces* the files it will delete through the same swap as commits, conditioned
//! on a state whose files it has all marked, and raises the epoch. A commit before the announcement
//! makes the announcement fail; a commit after it sees the higher epoch and checks its own files
//! against the list before it swaps. So no committed snapshot ever names a deleted file.
//!
//! A failed announcement is made again on the newer state, and for that only the snapshots new in
//! it have to be marked: `docs/design/011-collection.md`.

use std::collections::BTreeMap;

use chunkyard_store::{Error, Result, clock};
use futures::{TryStreamExt, stream};
use serde::Serialize;

use super::collection_list::{self, LISTS, directories, is_collectable};
use super::mark::Marks;
use crate::state::{Collection, CollectionList, State};
use crate::swap::{self, Loaded, Swap};
use crate::{Mode, Repository, id, read_only};

/// Lists kept for committers that began before the last collections.
const LISTS_KEPT: usize = 2;
/// Deletions per request to the store.
const DELETE_BATCH: usize = 1000;
/// An announcement is worth a try if at most this many snapshots arrived while the last ones were
/// marked.
const CLOSE: usize = 1;
/// Rounds of marking new snapshots before an announcement is tried anyway.
const ROUNDS_MAX: u32 = 16;
/// From this round on the pauses do not grow: a round ends early because another collection took
/// files, and the next round finds a later state.
const BACK_OFF_MAX: u32 = 4;

/// How to collect.
#[derive(Debug, Clone)]
pub struct GcOptions {
    /// Files younger than this, by the store's clock, stay: a courtesy to running sessions, which
    /// would otherwise have to start again.
    pub min_age_ms: i64,
    /// Only say what would be deleted.
    pub dry_run: bool,
}

impl Default for GcOptions {
    fn default() -> Self {
        Self { min_age_ms: 24 * 3600 * 1000, dry_run: false }
    }
}

/// What was deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct GcReport {
    /// Number of files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that are needed or too young.
    pub kept: u64,
    /// Whether nothing was really deleted.
    pub dry_run: bool,
}

impl Repository {
    /// Deletes files that no snapshot needs, and cleans up the claims of past generations.
    pub async fn garbage_collect(&self, options: &GcOptions) -> Result<GcReport> {
        let report = self.collect(options).await?;
        if !options.dry_run {
            self.inner.state_file.clean_up_claims().await?;
        }
        Ok(report)
    }

    async fn collect(&self, options: &GcOptions) -> Result<GcReport> {
        self.resume_collection().await?;
        let mut progress = Progress::default();
        // Marking and listing everything takes long: other writers have their turns meanwhile.
        let current = self.catch_up(&mut progress, 0).await?;
        match self.find(&current.state, &progress.marks, options).await {
            Ok(found) => progress.found = Some(found),
            Err(error) => self.overtaken(&current, error).await?,
        }
        let mut early = Some(current);
        let mut line = self.inner.state_file.line_up();
        loop {
            let turn = line.turn().await;
            let current = match early.take().filter(|_| !turn.waited) {
                Some(current) => current,
                None => self.catch_up(&mut progress, 1).await?,
            };
            let announced = self.announce(&current, &mut progress, options).await;
            // The deletion below swaps too, and would wait for this turn to end.
            drop(turn);
            match announced {
                Ok(Some(report)) => {
                    let announced = report.files > 0 && !report.dry_run;
                    if announced {
                        self.resume_collection().await?;
                    }
                    return Ok(report);
                }
                Ok(None) => {}
                Err(error) => self.overtaken(&current, error).await?,
            }
        }
    }

    /// The latest state, with everything marked that it needs. That takes long before the first
    /// attempt; after a lost attempt, only new snapshots are left to mark. Other writers commit
    /// meanwhile, and the swap would lose again. But marking a snapshot is faster than making one,
    /// so each round finds less to mark than the one before.
    async fn catch_up(&self, progress: &mut Progress, attempt: u32) -> Result<Loaded> {
        for round in 0.. {
            let current = self.load().await?;
            if current.state.status.mode == Mode::ReadOnly {
                return Err(read_only(&current.state));
            }
            let mut new = Marks::default();
            let marked = self.mark(&current.state, &progress.marks, &mut new).await;
            progress.add(new);
            match marked {
                Ok(new) if attempt == 0 || new <= CLOSE || round >= ROUNDS_MAX => {
                    return Ok(current);
                }
                Ok(_) => {}
                Err(error) => {
                    self.overtaken(&current, error).await?;
                    swap::back_off(round.min(BACK_OFF_MAX)).await;
                }
            }
        }
        Err(Error::Conflict { message: "too many lost races".into(), conflicts: Vec::new() })
    }

    /// Announces the files that can go, once everything that the state needs is marked. `None` if
    /// another change of the state came first.
    async fn announce(
        &self,
        current: &Loaded,
        progress: &mut Progress,
        options: &GcOptions,
    ) -> Result<Option<GcReport>> {
        let state = &current.state;
        // Another collection was announced. It deletes most of what we found, and perhaps our list.
        let found = progress.found.take_if(|found| found.epoch != state.gc_epoch);
        self.drop_list(found.and_then(|found| found.list)).await?;
        let found = match &mut progress.found {
            Some(found) => found,
            none => none.insert(self.find(state, &progress.marks, options).await?),
        };
        let lists = announced_lists(state).map(|list| format!("{LISTS}/{}", list.file));
        lists.for_each(|path| found.spare(&path));
        let outdated = found.list.take_if(|list| list.files != found.candidates.len());
        self.drop_list(outdated).await?;
        if options.dry_run || found.candidates.is_empty() {
            return Ok(Some(found.report.clone()));
        }
        let now_ms = clock::now_ms();
        let list = match &found.list {
            Some(list) => list,
            None => found.list.insert(self.put_list(&found.candidates, now_ms).await?),
        };
        let path = format!("{LISTS}/{}", list.file);
        let (next, outdated) = announced(state, list, now_ms)?;
        match self.inner.state_file.swap(current, next, &[path]).await? {
            Swap::Won(_) => {
                self.store().backend().delete(&outdated).await?;
                Ok(Some(found.report.clone()))
            }
            Swap::Lost => Ok(None),
        }
    }

    /// Lists files that are not marked.
    async fn find(&self, state: &State, marks: &Marks, options: &GcOptions) -> Result<Found> {
        let mut report = GcReport { dry_run: options.dry_run, ..GcReport::default() };
        let mut candidates = BTreeMap::new();
        // All directories at the same time: each page of a listing is a request.
        let mut listings = Vec::new();
        for directory in directories() {
            listings.push(self.store().backend().list(directory).await?);
        }
        let oldest_kept = clock::now_ms() - options.min_age_ms;
        let mut listed = stream::select_all(listings);
        while let Some(meta) = listed.try_next().await? {
            if marks.files.contains(&meta.path)
                || meta.modified_ms > oldest_kept
                || !is_collectable(&meta.path)
            {
                report.kept += 1;
            } else {
                report.files += 1;
                report.bytes += meta.size;
                candidates.insert(meta.path, meta.size);
            }
        }
        Ok(Found { epoch: state.gc_epoch, candidates, report, list: None })
    }

    async fn put_list(&self, candidates: &BTreeMap<String, u64>, now_ms: i64) -> Result<List> {
        let files: Vec<String> = candidates.keys().cloned().collect();
        let sealed = collection_list::render(&files, self.dataset_id(), now_ms)?;
        let file = id::fresh()?;
        self.store().backend().put(&format!("{LISTS}/{file}"), vec![sealed.bytes]).await?;
        Ok(List { file, crc32c: sealed.crc32c, files: files.len() })
    }

    async fn drop_list(&self, list: Option<List>) -> Result<()> {
        match list {
            Some(list) => self.store().backend().delete(&[format!("{LISTS}/{}", list.file)]).await,
            None => Ok(()),
        }
    }

    /// Deletes the files that an announced collection lists, and marks it finished. Deletions are
    /// idempotent, so an interrupted collection is simply continued.
    async fn resume_collection(&self) -> Result<()> {
        let current = self.load().await?;
        let state = &current.state;
        let Some(pending) = state.gc.as_ref().and_then(|gc| gc.list_file.clone()) else {
            return Ok(());
        };
        let Some(list) = announced_lists(state).find(|list| list.file == pending) else {
            return Err(Error::Corrupt {
                file: "state.json".into(),
                what: "gc.lists".into(),
                expected: pending,
                found: "none".into(),
            });
        };
        let mut doomed: Vec<String> = match self.read_collection_list(list).await {
            Ok(doomed) => doomed.into_iter().collect(),
            // Another process finished it, so long ago that the list is gone.
            Err(error) => return self.overtaken(&current, error).await,
        };
        doomed.sort();
        for batch in doomed.chunks(DELETE_BATCH) {
            self.store().backend().delete(batch).await?;
        }
        self.update(|next| {
            next.keeps_history = true;
            if let Some(gc) = &mut next.gc
                && gc.list_file.as_ref() == Some(&pending)
            {
                gc.list_file = None;
            }
            Ok(())
        })
        .await
    }
}

/// Work of a collection before it is announced. A lost race loses none of it.
#[derive(Default)]
struct Progress {
    marks: Marks,
    found: Option<Found>,
}

/// Files that can go.
struct Found {
    /// The epoch of the state when they were listed.
    epoch: u64,
    /// Their paths and sizes.
    candidates: BTreeMap<String, u64>,
    report: GcReport,
    /// The list of them, once it is written.
    list: Option<List>,
}

/// A list that is written but not announced.
struct List {
    file: String,
    crc32c: u32,
    /// How many files it names. Candidates only become fewer, so an equal count means it is
    /// current.
    files: usize,
}

impl Progress {
    /// Adds marks, and keeps the marked files.
    fn add(&mut self, new: Marks) {
        if let Some(found) = &mut self.found {
            new.files.iter().for_each(|path| found.spare(path));
        }
        self.marks.absorb(new);
    }
}

impl Found {
    /// Takes out a file that turned out to be needed.
    fn spare(&mut self, path: &str) {
        if let Some(size) = self.candidates.remove(path) {
            self.report.files -= 1;
            self.report.bytes -= size;
            self.report.kept += 1;
        }
    }
}

/// The lists that the state names.
fn announced_lists(state: &State) -> impl Iterator<Item = &CollectionList> {
    state.gc.iter().flat_map(|gc| &gc.lists)
}

/// The state that announces a list, and the paths of lists that are now too old to keep.
fn announced(state: &State, list: &List, now_ms: i64) -> Result<(State, Vec<String>)> {
    let mut next = state.successor(now_ms)?;
    next.keeps_history = true; // or a collection would leave garbage
    next.gc_epoch += 1;
    let mut lists: Vec<_> = announced_lists(state).cloned().collect();
    let (epoch, file, crc32c) = (next.gc_epoch, list.file.clone(), list.crc32c);
    lists.push(CollectionList { epoch, file, crc32c });
    let surplus = lists.len().saturating_sub(LISTS_KEPT);
    let outdated = lists.drain(..surplus).map(|list| format!("{LISTS}/{}", list.file)).collect();
    let list_file = Some(list.file.clone());
    next.gc = Some(Collection { epoch, list_file, lists, time_ms: now_ms });
    Ok((next, outdated))
}
