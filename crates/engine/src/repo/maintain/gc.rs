//! Garbage collection that no clock can make unsafe.
//!
//! A collection *announces* the files it will delete through the same swap as commits, conditioned
//! on the state it marked from, and raises the epoch. A commit before the announcement makes the
//! announcement fail; a commit after it sees the higher epoch and checks its own files against the
//! list before it swaps. So no committed snapshot ever names a deleted file.

use futures::{TryStreamExt, stream};
use serde::Serialize;

use super::collection_list;
use super::mark::DATA_DIRECTORIES;
use crate::error::{Error, Result};
use crate::repo::state::{Collection, CollectionList, State};
use crate::repo::swap::{self, Swap, TEMPORARY};
use crate::repo::{Mode, Repository, clock, id, read_only};

/// Lists kept for committers that began before the last collections.
const LISTS_KEPT: usize = 2;
/// Deletions per request to the store.
const DELETE_BATCH: usize = 1000;

/// How to collect.
#[derive(Debug, Clone)]
pub struct GcOptions {
    /// Files younger than this, by the store's clock, are left alone: a courtesy to running
    /// sessions, which would otherwise have to start again.
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
    /// Files that something needs, or that are too young.
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
        for attempt in 0.. {
            let current = self.load().await?;
            if current.state.status.mode == Mode::ReadOnly {
                return Err(read_only(&current.state));
            }
            let now_ms = clock::now_ms();
            let found = self.candidates(&current.state, options, now_ms).await;
            let (candidates, mut report) = match found {
                Ok(found) => found,
                Err(error) => {
                    self.overtaken(&current, error).await?;
                    swap::back_off(attempt).await;
                    continue;
                }
            };
            report.dry_run = options.dry_run;
            if options.dry_run || candidates.is_empty() {
                return Ok(report);
            }
            let sealed = collection_list::render(&candidates, self.dataset_id(), now_ms)?;
            let file = id::fresh()?;
            let path = format!("gc/{file}");
            self.store().backend().put(&path, vec![sealed.bytes]).await?;
            let list =
                CollectionList { epoch: current.state.gc_epoch + 1, file, crc32c: sealed.crc32c };
            let (next, outdated) = announced(&current.state, list, now_ms)?;
            let files = std::slice::from_ref(&path);
            match self.inner.state_file.swap(&current, next, files).await? {
                Swap::Won(_) => {
                    self.store().backend().delete(&outdated).await?;
                    self.resume_collection().await?;
                    return Ok(report);
                }
                // A commit or a reference change came in between: mark again.
                Swap::Lost => {
                    self.store().backend().delete(&[path]).await?;
                    swap::back_off(attempt).await;
                }
            }
        }
        Err(Error::Conflict { message: "too many lost races".into(), conflicts: Vec::new() })
    }

    async fn candidates(
        &self,
        state: &State,
        options: &GcOptions,
        now_ms: i64,
    ) -> Result<(Vec<String>, GcReport)> {
        let mut needed = self.mark(state).await?;
        needed.extend(state.gc.iter().flat_map(|gc| &gc.lists).map(|l| format!("gc/{}", l.file)));
        let (mut candidates, mut report) = (Vec::new(), GcReport::default());
        // All directories at the same time: each page of a listing is a request.
        let mut listings = Vec::new();
        for directory in DATA_DIRECTORIES.into_iter().chain(["gc", TEMPORARY]) {
            listings.push(self.store().backend().list(directory).await?);
        }
        let mut listed = stream::select_all(listings);
        while let Some(meta) = listed.try_next().await? {
            if needed.contains(&meta.path) || meta.modified_ms > now_ms - options.min_age_ms {
                report.kept += 1;
            } else {
                report.files += 1;
                report.bytes += meta.size;
                candidates.push(meta.path);
            }
        }
        candidates.sort();
        Ok((candidates, report))
    }

    /// Deletes what an announced collection lists, and marks it finished. Deletions are idempotent,
    /// so a collection that was interrupted is simply carried on.
    async fn resume_collection(&self) -> Result<()> {
        let current = self.load().await?;
        let state = &current.state;
        let Some(pending) = state.gc.as_ref().and_then(|gc| gc.list_file.clone()) else {
            return Ok(());
        };
        let list = state.gc.iter().flat_map(|gc| &gc.lists).find(|list| list.file == pending);
        let Some(list) = list else {
            return Err(Error::Corrupt {
                file: "state.json".into(),
                what: "gc.lists".into(),
                expected: pending,
                found: "none".into(),
            });
        };
        let mut doomed: Vec<String> = match self.read_collection_list(list).await {
            Ok(doomed) => doomed.into_iter().collect(),
            // Carried on and finished by somebody else, so long ago that the list is gone.
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

/// The state that announces a list, and the lists that are now too old to keep.
fn announced(state: &State, list: CollectionList, now_ms: i64) -> Result<(State, Vec<String>)> {
    let mut next = state.successor(now_ms)?;
    next.keeps_history = true; // or a collection would leave garbage
    next.gc_epoch = list.epoch;
    let mut lists = state.gc.as_ref().map_or_else(Vec::new, |gc| gc.lists.clone());
    let list_file = Some(list.file.clone());
    lists.push(list);
    let surplus = lists.len().saturating_sub(LISTS_KEPT);
    let outdated = lists.drain(..surplus).map(|list| format!("gc/{}", list.file)).collect();
    next.gc = Some(Collection { epoch: next.gc_epoch, list_file, lists, time_ms: now_ms });
    Ok((next, outdated))
}
