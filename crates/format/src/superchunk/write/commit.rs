//! The commit: everything durable, then the one step that makes it count.
//!
//! ```text
//!  chunks ─▶ files ─▶ changed chunks, by a journal ─▶ tails ─▶ meta/sizes ─▶ files that count no more
//!  └──────────────── durable before ─────────────────────┘     │            └ removed
//!                                                              └ a rename; on an object store a conditional put
//! ```

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_store::{Error, Pooled, Result, Version, alone};

use super::Writing;
use super::claim::lost;
use super::encode::{encode_from, rows_of};
use crate::superchunk::access::Access;
use crate::superchunk::committed::Committed;
use crate::superchunk::handle::Blz;
use crate::superchunk::meta::Sizes;
use crate::superchunk::model::Column;
use crate::superchunk::protocol::Protocol;
use crate::superchunk::read::directory::SIZES;
use crate::superchunk::read::files::FileIndex;

impl Blz {
    /// Makes added rows durable and visible to every reader, in one step. Changed chunks become visible one by
    /// one. On an object store an `OutcomeUnknown` leaves the rows with this handle: the next flush finds out
    /// whether they exist, and adds nothing twice.
    pub async fn flush(&self) -> Result<()> {
        let mut writing = self.shared.writing.lock().await;
        // The steps are short and follow one another: changing threads would take longer.
        alone(writing.commit()).await
    }

    /// Drops all rows that were added or changed and are not committed.
    pub async fn discard(&self) {
        self.shared.writing.lock().await.abandon();
    }
}

impl Writing {
    /// Commits everything that was added and changed, and lets others write. After a conflict, or if the outcome
    /// is not known, this handle has none of it any more; after any other error the caller can try again.
    pub(crate) async fn commit(&mut self) -> Result<()> {
        if !self.changed {
            self.lock = None;
            return Ok(());
        }
        let committed = match self.commit_rows().await {
            Err(source) if self.journal => Err(Error::OutcomeUnknown {
                what: format!("changing rows of {}", self.access.store.url()),
                source: Box::new(source),
            }),
            Err(error) => Err(self.explain_loss(error).await),
            Ok(()) => Ok(()),
        };
        match &committed {
            Ok(()) => {
                self.changed = false;
                self.lock = None;
            }
            // The rows are there, or the next flush adds them.
            Err(Error::OutcomeUnknown { .. })
                if self.access.unsettled.has_commit() && !self.journal => {}
            Err(Error::Conflict { .. } | Error::OutcomeUnknown { .. }) => self.abandon(),
            Err(_) => {}
        }
        committed
    }

    async fn commit_rows(&mut self) -> Result<()> {
        let (access, base, len) = (self.access.clone(), self.committed(), self.current.view().len);
        for at in 0..base.columns.len() {
            self.take_encoded(at, 0).await?;
            self.write_some(at, 0).await?;
        }
        let local = access.protocol == Protocol::Locked;
        // Files that grew, and files that were replaced.
        let mut dirty: Vec<String> = self.dirty.iter().cloned().collect();
        if self.changes_chunks() {
            // A journal counts at once, so all earlier writes must be durable before it.
            access.store.sync(&dirty).await?;
            self.dirty.clear();
            dirty.clear();
            self.apply_changes().await?;
        }
        let tails = self.tails(&base).await?;
        let cbytes = self.cbytes(&tails);
        let sizes = base.sizes_for(len, &cbytes);
        let stale = self.stale_tails(&base);
        let mut seen = Vec::new();
        if local {
            let mut temps = Vec::new();
            for tail in &tails {
                temps.push((
                    access.put_temporary(&tail.path, tail.parts.clone()).await?,
                    tail.path.clone(),
                ));
            }
            let commits = base.render_sizes(&sizes, &cbytes);
            let mut last = Vec::new();
            for (path, bytes) in commits {
                seen.extend_from_slice(&bytes);
                last.push((access.put_temporary(&path, vec![bytes]).await?, path));
            }
            let mut all: Vec<String> =
                temps.iter().chain(&last).map(|(temp, _)| temp.clone()).collect();
            all.extend(dirty.iter().cloned());
            // Only the bytes: the temporary names change next, and the folders are synced after that.
            access.store.sync_content(&all).await?;
            for (temp, path) in &temps {
                access.store.rename(temp, path).await?;
            }
            let folders: std::collections::BTreeSet<&str> =
                base.columns.iter().map(|column| column.folder.as_str()).collect();
            for folder in folders {
                if !tails.is_empty() || !dirty.is_empty() {
                    access.store.sync_dir(folder).await.or_else(missing_is_fine)?;
                }
            }
            self.dirty.clear();
            access.rename_sizes(&last).await?;
            self.show_commit(Committed { sizes, cbytes, ..(*base).clone() });
        } else {
            for tail in &tails {
                let Some(mine) = self.column(tail.at) else {
                    continue;
                };
                let expected = mine.versions.get(&tail.file).cloned();
                let version =
                    access.put_object(&tail.path, tail.parts.clone(), expected.as_ref()).await?;
                mine.versions.insert(tail.file, version);
                // If the commit fails, or its outcome is unknown, this is a tail to be removed.
                mine.tail = Some(tail.file);
            }
            self.show_commit(base.swap_rows(len, cbytes).await?);
        }
        for mine in self.columns.iter_mut().flatten() {
            (mine.tail, mine.tail_chunk, mine.held) = (None, None, false);
        }
        for tail in tails {
            let Some(mine) = self.column(tail.at) else {
                continue;
            };
            mine.tail = Some(tail.file);
            mine.tail_chunk = Some((mine.full, tail.chunk));
            base.files.keep(tail.at, tail.file, Arc::new(tail.index));
        }
        if self.journal {
            access.withdraw_journal().await?;
            self.journal = false;
        }
        // These files count no more. The next writer removes any that stay.
        for stale in stale {
            let gone = access.remove_file(stale.path, stale.version).await;
            base.files.forget(stale.at, stale.file);
            match (gone, self.column(stale.at)) {
                (Ok(Some(version)), Some(mine)) => {
                    mine.versions.insert(stale.file, version);
                }
                // The version is not known any more, so the next append finds the end again.
                (Err(_), _) if !local => self.columns = None,
                _ => {}
            }
        }
        if local {
            self.sizes_seen = Some(seen.into());
            // Without etags the next append finds the end again.
            self.end_etags = self.end_etags().await.unwrap_or_default();
        }
        Ok(())
    }

    /// Shows readers of this handle the commit that it just made.
    fn show_commit(&self, committed: Committed) {
        self.current.commit(committed);
        for (at, mine) in self.columns.iter().flatten().enumerate() {
            self.current.show(at, mine.waiting());
        }
    }

    /// The tail of each column that has one.
    async fn tails(&self, base: &Committed) -> Result<Vec<Tail>> {
        let mut tails = Vec::new();
        for (at, mine) in self.columns.iter().flatten().enumerate() {
            let Some(column) = base.columns.get(at) else { continue };
            let rows = Pooled::copy_of(&rows_of(&mine.rows).bytes)?.freeze();
            if rows.is_empty() {
                continue;
            }
            let before = mine.tail_chunk.as_ref().filter(|(chunk, _)| *chunk == mine.full);
            let before = before.map(|(_, bytes)| bytes.clone()).unwrap_or_default();
            let chunk = encode_from(column, rows, before).await?;
            let (path, parts, index) = base.render_tail(column, mine.full, &chunk)?;
            tails.push(Tail { at, file: column.tail_file(mine.full), path, parts, index, chunk });
        }
        Ok(tails)
    }
}

impl Access {
    /// Removes a file that does not count. On an object store it becomes empty, if it is unchanged: a writer
    /// that sleeps between looking and deleting must not delete a newer object.
    pub(crate) async fn remove_file(
        &self,
        path: String,
        version: Option<Version>,
    ) -> Result<Option<Version>> {
        if self.protocol == Protocol::Locked {
            return self.store.delete(&[path]).await.map(|()| None);
        }
        let Some(version) = version else { return Ok(None) };
        self.put_object(&path, Vec::new(), Some(&version)).await.map(Some)
    }

    /// Replaces `meta/sizes`, with nothing else to commit; gives its version.
    pub(crate) async fn commit_sizes(
        &self,
        base: &Committed,
        sizes: &Sizes,
        cbytes: &[i64],
    ) -> Result<Version> {
        match self.protocol {
            Protocol::Locked => {
                self.put_sizes(base, sizes, cbytes).await?;
                Ok(base.version.clone())
            }
            Protocol::Claimed => {
                let swapped = self.swap_sizes(sizes, &base.version).await?;
                swapped.ok_or_else(|| lost(self.store.url()))
            }
        }
    }

    /// Replaces `meta/sizes` under the lock.
    pub(crate) async fn put_sizes(
        &self,
        committed: &Committed,
        sizes: &Sizes,
        cbytes: &[i64],
    ) -> Result<()> {
        let mut last = Vec::new();
        for (path, bytes) in committed.render_sizes(sizes, cbytes) {
            last.push((self.put_temporary(&path, vec![bytes]).await?, path));
        }
        let temps: Vec<String> = last.iter().map(|(temp, _)| temp.clone()).collect();
        self.store.sync_content(&temps).await?;
        self.rename_sizes(&last).await
    }

    /// Renames `meta/sizes`, durably: the commit.
    async fn rename_sizes(&self, last: &[(String, String)]) -> Result<()> {
        for (temp, path) in last {
            self.store.rename(temp, path).await?;
        }
        for (_, path) in last {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            self.store.sync_dir(folder).await.map_err(|source| Error::OutcomeUnknown {
                what: format!("making {path} durable"),
                source: Box::new(source),
            })?;
        }
        Ok(())
    }
}

/// The rows of a column that fill no chunk, as a file.
struct Tail {
    at: usize,
    file: u64,
    path: String,
    parts: Vec<Bytes>,
    index: FileIndex,
    chunk: Bytes,
}

/// A file that stops counting with the next commit.
struct Stale {
    at: usize,
    file: u64,
    path: String,
    version: Option<Version>,
}

impl Writing {
    /// Encoded bytes of each column, its tail included.
    fn cbytes(&self, tails: &[Tail]) -> Vec<i64> {
        let mut each: Vec<i64> = self.columns.iter().flatten().map(|mine| mine.cbytes).collect();
        for tail in tails {
            if let Some(bytes) = each.get_mut(tail.at) {
                *bytes += tail.chunk.len() as i64;
            }
        }
        each
    }

    /// Committed tails that the next commit makes useless and does not replace.
    fn stale_tails(&self, base: &Committed) -> Vec<Stale> {
        let style = self.access.style;
        let columns = self.columns.iter().flatten().zip(base.columns.iter()).enumerate();
        let stale = columns.filter_map(|(at, (mine, column))| {
            let file = mine.tail?;
            let empty = rows_of(&mine.rows).bytes.is_empty();
            let used = column.tail_file(mine.full);
            let gone = file > used || (file == used && empty);
            let version = mine.versions.get(&file).cloned();
            gone.then(|| Stale { at, file, path: column.file(style, file), version })
        });
        stale.collect()
    }
}

impl Committed {
    /// The `sizes` files: one, or one for each column.
    fn render_sizes(&self, sizes: &Sizes, cbytes: &[i64]) -> Vec<(String, Bytes)> {
        let own = self.columns.iter().zip(cbytes).filter_map(|(column, cbytes)| {
            let path = format!("{}/sizes", column.meta.as_ref()?);
            let len = sizes.shape.first().copied().unwrap_or(0);
            let shape: Vec<u64> = [len].into_iter().chain(column.row_shape.clone()).collect();
            let nbytes = len.saturating_mul(column.row_bytes());
            let cbytes = u64::try_from(*cbytes).unwrap_or(0);
            let sizes = Sizes { shape, nbytes, cbytes, ..sizes.clone() };
            Some((path, Bytes::from(sizes.render())))
        });
        let own: Vec<_> = own.collect();
        if own.is_empty() { vec![(SIZES.to_owned(), sizes.render().into())] } else { own }
    }

    /// The `meta/sizes` of the next commit, for `len` rows.
    pub(crate) fn sizes_for(&self, len: u64, cbytes: &[i64]) -> Sizes {
        let mut shape = self.sizes.shape.clone();
        match shape.first_mut() {
            Some(first) => *first = len,
            None => shape.push(len),
        }
        let row: u64 = self.columns.iter().map(Column::row_bytes).sum();
        let nbytes = len.saturating_mul(row);
        let cbytes = u64::try_from(cbytes.iter().sum::<i64>()).unwrap_or(0);
        // Where each column has its own `sizes`, no file counts commits, so this handle does not either.
        let counts = self.columns.iter().all(|column| column.meta.is_none());
        let generation = counts.then(|| self.sizes.generation.unwrap_or(0) + 1);
        Sizes { shape, nbytes, cbytes, generation, ..self.sizes.clone() }
    }
}

/// A folder without files may be missing.
fn missing_is_fine(error: Error) -> Result<()> {
    match error {
        Error::NotFound { .. } => Ok(()),
        other => Err(other),
    }
}
