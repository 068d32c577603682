//! The commit: everything durable, then one rename.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_store::{Error, Kind, Pooled, Result, Version, alone};

use super::append::Writing;
use super::claim::lost;
use super::encode::{encode_from, rows_of};
use crate::superchunk::handle::{Blz, Inner, State};
use crate::superchunk::meta::Sizes;
use crate::superchunk::read::directory::SIZES;

impl Blz {
    /// Makes all added rows durable and visible to every reader, in one step.
    pub async fn flush(&self) -> Result<()> {
        let inner = &self.inner;
        let mut writing = inner.writing.lock().await;
        // The steps are short and follow one another: changing threads would take longer.
        alone(inner.commit(&mut writing)).await
    }

    /// Drops all added rows that are not committed.
    pub async fn discard(&self) {
        let mut writing = self.inner.writing.lock().await;
        self.inner.abandon(&mut writing);
    }
}

impl Inner {
    pub(crate) async fn commit(&self, writing: &mut Writing) -> Result<()> {
        if !writing.changed {
            writing.lock = None;
            return Ok(());
        }
        let committed = match self.commit_rows(writing).await {
            Err(source) if writing.journal => Err(Error::OutcomeUnknown {
                what: format!("changing rows of {}", self.store.url()),
                source: Box::new(source),
            }),
            Err(error) => Err(self.explain_loss(writing, error).await),
            Ok(()) => Ok(()),
        };
        match &committed {
            Ok(()) => {
                writing.changed = false;
                writing.lock = None;
            }
            // Another writer was faster, so the rows of this handle have no place any more.
            Err(Error::Conflict { .. } | Error::OutcomeUnknown { .. }) => self.abandon(writing),
            Err(_) => {}
        }
        committed
    }

    async fn commit_rows(&self, writing: &mut Writing) -> Result<()> {
        let state = self.state().clone();
        for at in 0..state.columns.len() {
            self.take_encoded(writing, at, 0).await?;
            self.write_some(writing, at, 0).await?;
        }
        let local = self.store.kind() == Kind::Local;
        // Files that grew, and files that were replaced.
        let mut dirty: Vec<String> = writing.dirty.iter().cloned().collect();
        if writing.changes_chunks() {
            // A journal counts at once, so all earlier writes must be durable before it.
            self.store.sync(&dirty).await?;
            writing.dirty.clear();
            dirty.clear();
            self.apply_changes(writing).await?;
        }
        let tails = self.tails(writing, &state).await?;
        let cbytes = writing.cbytes(&tails);
        let sizes = state.sizes_for(state.len, &cbytes);
        let stale = writing.stale_tails(&state, self.style);
        let mut seen = Vec::new();
        if local {
            let mut temps = Vec::new();
            for tail in &tails {
                temps.push((
                    self.put_temporary(&tail.path, tail.parts.clone()).await?,
                    tail.path.clone(),
                ));
            }
            let commits = self.render_sizes(&state, &sizes, &cbytes);
            let mut last = Vec::new();
            for (path, bytes) in commits {
                seen.extend_from_slice(&bytes);
                last.push((self.put_temporary(&path, vec![bytes]).await?, path));
            }
            let mut all: Vec<String> =
                temps.iter().chain(&last).map(|(temp, _)| temp.clone()).collect();
            all.extend(dirty.iter().cloned());
            // No names yet: the temporary ones are renamed next, and the folder sync makes the others durable.
            self.store.sync_content(&all).await?;
            for (temp, path) in &temps {
                self.store.rename(temp, path).await?;
            }
            let folders: std::collections::BTreeSet<&str> =
                state.columns.iter().map(|column| column.folder.as_str()).collect();
            for folder in folders {
                if !tails.is_empty() || !dirty.is_empty() {
                    self.store.sync_dir(folder).await.or_else(missing_is_fine)?;
                }
            }
            writing.dirty.clear();
            self.rename_sizes(&last).await?;
            self.committed(writing, sizes, cbytes, None);
        } else {
            for tail in &tails {
                let Some(mine) = writing.column(tail.at) else {
                    continue;
                };
                let expected = mine.versions.get(&tail.file).cloned();
                let version =
                    self.put_object(&tail.path, tail.parts.clone(), expected.as_ref()).await?;
                mine.versions.insert(tail.file, version);
            }
            let swapped = self.swap_sizes(&sizes, &state.version).await?;
            let version = swapped.ok_or_else(|| lost(self.store.url()))?;
            self.committed(writing, sizes, cbytes, Some(version));
        }
        for mine in writing.columns.iter_mut().flatten() {
            (mine.tail, mine.tail_chunk, mine.held) = (None, None, false);
        }
        for tail in tails {
            let Some(mine) = writing.column(tail.at) else {
                continue;
            };
            mine.tail = Some(tail.file);
            mine.tail_chunk = Some((mine.full, tail.chunk));
            self.state().files.keep(tail.at, tail.file, Arc::new(tail.index));
        }
        if writing.journal {
            self.withdraw_journal().await?;
            writing.journal = false;
        }
        // These files count no more. The next writer removes any that stay.
        for stale in stale {
            let gone = self.remove_file(stale.path, stale.version).await;
            self.state().files.forget(stale.at, stale.file);
            match (gone, writing.column(stale.at)) {
                (Ok(Some(version)), Some(mine)) => {
                    mine.versions.insert(stale.file, version);
                }
                // The next append looks at the store again.
                (Err(_), _) if !local => writing.columns = None,
                _ => {}
            }
        }
        if local {
            writing.sizes_seen = Some(seen.into());
            // Without marks the next append looks again, too.
            writing.end_etags = self.end_etags(writing).await.unwrap_or_default();
        }
        Ok(())
    }

    /// Removes a file that does not count. On an object store it becomes empty, if it is unchanged: a writer
    /// that sleeps between looking and deleting must not delete a newer object.
    pub(crate) async fn remove_file(
        &self,
        path: String,
        version: Option<Version>,
    ) -> Result<Option<Version>> {
        if self.store.kind() == Kind::Local {
            return self.store.delete(&[path]).await.map(|()| None);
        }
        let Some(version) = version else { return Ok(None) };
        self.put_object(&path, Vec::new(), Some(&version)).await.map(Some)
    }

    /// Replaces `meta/sizes` in a directory, with nothing else to commit.
    pub(crate) async fn put_sizes(
        &self,
        state: &State,
        sizes: &Sizes,
        cbytes: &[i64],
    ) -> Result<()> {
        let mut last = Vec::new();
        for (path, bytes) in self.render_sizes(state, sizes, cbytes) {
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

    /// The `sizes` files: one, or one for each column.
    fn render_sizes(&self, state: &State, sizes: &Sizes, cbytes: &[i64]) -> Vec<(String, Bytes)> {
        let own = state.columns.iter().zip(cbytes).filter_map(|(column, cbytes)| {
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

    /// Updates the state of this handle to the commit it just made.
    fn committed(
        &self,
        writing: &Writing,
        sizes: Sizes,
        cbytes: Vec<i64>,
        version: Option<Version>,
    ) {
        let mut state = self.state();
        (state.sizes, state.cbytes) = (sizes, cbytes);
        if let Some(version) = version {
            state.version = version;
        }
        drop(state);
        for (at, mine) in writing.columns.iter().flatten().enumerate() {
            self.show(mine, at);
        }
    }

    /// The tail of each column that has one.
    async fn tails(&self, writing: &Writing, state: &State) -> Result<Vec<Tail>> {
        let mut tails = Vec::new();
        for (at, mine) in writing.columns.iter().flatten().enumerate() {
            let Some(column) = state.columns.get(at) else { continue };
            let rows = Pooled::copy_of(&rows_of(&mine.rows).bytes)?.freeze();
            if rows.is_empty() {
                continue;
            }
            let before = mine.tail_chunk.as_ref().filter(|(chunk, _)| *chunk == mine.full);
            let before = before.map(|(_, bytes)| bytes.clone()).unwrap_or_default();
            let chunk = encode_from(column, rows, before).await?;
            let (path, parts, index) = self.render_tail(column, mine.full, &chunk)?;
            tails.push(Tail { at, file: column.tail_file(mine.full), path, parts, index, chunk });
        }
        Ok(tails)
    }
}

/// The rows of a column that fill no chunk, as a file.
struct Tail {
    at: usize,
    file: u64,
    path: String,
    parts: Vec<Bytes>,
    index: crate::superchunk::read::files::FileIndex,
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
    fn stale_tails(&self, state: &State, style: crate::superchunk::model::Style) -> Vec<Stale> {
        let columns = self.columns.iter().flatten().zip(state.columns.iter()).enumerate();
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

impl State {
    /// The `meta/sizes` of the next commit, for `len` rows.
    pub(crate) fn sizes_for(&self, len: u64, cbytes: &[i64]) -> Sizes {
        let mut shape = self.sizes.shape.clone();
        match shape.first_mut() {
            Some(first) => *first = len,
            None => shape.push(len),
        }
        let row: u64 = self.columns.iter().map(crate::superchunk::model::Column::row_bytes).sum();
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
