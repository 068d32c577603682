//! What a writer does before its first row: it locks others out, looks at the files, and cleans up after
//! crashed writers and after rows that were cut off.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use chunkyard_store::{Error, Kind, Noun, Result, TEMP_PREFIX, Version, alone};

use super::append::{ColumnWriting, Writing};
use super::chunk_files::too_few_chunks;
use super::encode::Rows;
use super::journal::JOURNAL;
use crate::superchunk::handle::{Inner, State};
use crate::superchunk::model::{Column, Style};
use crate::superchunk::names;
use crate::superchunk::read::directory::{LOCK, SIZES, get};
use crate::superchunk::read::files;

/// How long a writer waits for another one to finish.
const PATIENCE: Duration = Duration::from_secs(30);

impl Inner {
    /// Makes sure that this handle may add rows, and knows where.
    pub(crate) async fn begin(&self, writing: &mut Writing) -> Result<()> {
        if writing.changed && writing.columns.is_some() {
            return Ok(());
        }
        let begun = alone(self.begin_anew(writing)).await;
        if begun.is_err() {
            writing.reset();
        }
        begun
    }

    async fn begin_anew(&self, writing: &mut Writing) -> Result<()> {
        self.refuse_read_only()?;
        if self.state().columns.iter().any(|column| column.scalar) {
            let what = format!("{} has no dimensions, so nothing can be added", self.store.url());
            return Err(Error::invalid(what));
        }
        if self.store.kind() == Kind::Local {
            if writing.lock.is_none() {
                writing.lock = Some(self.lock().await?);
            }
            let there = self.sizes_bytes().await?;
            if writing.columns.is_some()
                && writing.sizes_seen.as_ref() == Some(&there)
                && self.end_etags(writing).await? == writing.end_etags
            {
                return Ok(());
            }
            self.delete_abandoned().await?;
            let unfinished = self.finish_changes().await?;
            self.reread().await?;
            if unfinished {
                self.acknowledge_changes().await?;
            }
            writing.sizes_seen = Some(self.sizes_bytes().await?);
        } else {
            if writing.columns.is_some() {
                // If another writer came meanwhile, the conditional writes of this handle fail.
                return Ok(());
            }
            return self.claim_and_find_ends(writing).await;
        }
        self.find_ends(writing).await
    }

    /// Shows whether the files at the end of each column are still the same. A writer that died while it added
    /// rows leaves `meta/sizes` as it was, but not these files.
    pub(crate) async fn end_etags(&self, writing: &Writing) -> Result<Vec<Option<String>>> {
        let columns = self.state().columns.clone();
        let mut end_etags = vec![self.store.head(JOURNAL).await.ok().and_then(|meta| meta.etag)];
        for (mine, column) in writing.columns.iter().flatten().zip(columns.iter()) {
            // The two are often the same file.
            let files = BTreeSet::from([column.place_of(mine.full).0, column.tail_file(mine.full)]);
            for file in files {
                let mark = match self.store.head(&column.file(self.style, file)).await {
                    Ok(meta) => meta.etag,
                    Err(Error::NotFound { .. }) => None,
                    Err(error) => return Err(error),
                };
                end_etags.push(mark);
            }
        }
        Ok(end_etags)
    }

    pub(crate) async fn lock(&self) -> Result<chunkyard_store::Lock> {
        let path = self.lock_path();
        match tokio::time::timeout(PATIENCE, self.store.lock(&path)).await {
            Ok(lock) => lock,
            Err(_) => Err(Error::Conflict {
                message: format!(
                    "another writer has been writing to {} for {} seconds; only one can add rows at a time",
                    self.store.url(),
                    PATIENCE.as_secs()
                ),
                conflicts: Vec::new(),
            }),
        }
    }

    fn lock_path(&self) -> String {
        let state = self.state();
        match state.columns.first().and_then(|column| column.meta.clone()) {
            Some(meta) => format!("{meta}/lock"),
            None => LOCK.to_owned(),
        }
    }

    /// The bytes of all `sizes` files, which are the commit.
    pub(crate) async fn sizes_bytes(&self) -> Result<Bytes> {
        let paths = self.sizes_paths();
        let mut all = Vec::new();
        for path in paths {
            let object = get(&self.store, &path).await?;
            let missing =
                || Error::NotFound { what: Noun::BlzDataset, name: self.store.url().to_owned() };
            all.extend_from_slice(&object.ok_or_else(missing)?.bytes);
        }
        Ok(all.into())
    }

    pub(crate) fn sizes_paths(&self) -> Vec<String> {
        let state = self.state();
        let own = state.columns.iter().filter_map(|column| column.meta.as_ref());
        let own: Vec<String> = own.map(|meta| format!("{meta}/sizes")).collect();
        if own.is_empty() { vec![SIZES.to_owned()] } else { own }
    }

    /// Commits the changes that a dead writer left in the journal, and removes the journal.
    async fn acknowledge_changes(&self) -> Result<()> {
        let state = self.state().clone();
        self.next_generation(&state).await?;
        self.withdraw_journal().await?;
        self.reread().await
    }

    /// Finds the end of each column, and removes everything behind it.
    pub(crate) async fn find_ends(&self, writing: &mut Writing) -> Result<()> {
        if self.store.kind() != Kind::Local && self.is_changing().await {
            self.withdraw_journal().await?;
        }
        self.bring_back().await?;
        let state = self.state().clone();
        let mut columns = Vec::with_capacity(state.columns.len());
        for (at, column) in state.columns.iter().enumerate() {
            columns.push(self.find_end(&state, at, column).await?);
        }
        for (at, mine) in columns.iter().enumerate() {
            self.show(mine, at);
        }
        writing.columns = Some(columns);
        Ok(())
    }

    async fn find_end(&self, state: &State, at: usize, column: &Column) -> Result<ColumnWriting> {
        let len = state.committed();
        let full = len / column.chunklen.max(1);
        let rows = column.rows_in(full, len);
        let (mut kept, mut tail_bytes) = (Bytes::new(), 0);
        if rows > 0 {
            let found = self.find(state, at, full).await?;
            tail_bytes = found.len().unwrap_or(0);
            kept = self.decode_rows(column, &found, full, rows).await?;
        }
        let tail = column.tail_file(full);
        let versions =
            self.remove_behind(state, at, column, full, (rows > 0).then_some(&kept)).await?;
        let rows = Rows::new(full, &kept)?;
        Ok(ColumnWriting {
            tail: (!rows.bytes.is_empty()).then_some(tail),
            tail_chunk: None,
            rows: Arc::new(Mutex::new(rows)),
            pending: Vec::new(),
            changed: BTreeMap::new(),
            held: false,
            full,
            cbytes: state.cbytes.get(at).copied().unwrap_or(0) - tail_bytes as i64,
            versions,
        })
    }

    /// Removes everything behind the last row: files that do not count, and chunks in the slots of future
    /// chunks. The rows of the chunk that is not full must survive this.
    async fn remove_behind(
        &self,
        state: &State,
        at: usize,
        column: &Column,
        full: u64,
        rows: Option<&Bytes>,
    ) -> Result<BTreeMap<u64, Version>> {
        let tail = column.tail_file(full);
        let (open, slot) = column.place_of(full);
        let local = self.store.kind() == Kind::Local;
        let mut versions = BTreeMap::new();
        let mut stale = Vec::new();
        for meta in self.store.list_dir(&column.folder).await?.objects {
            let name = meta.path.rsplit('/').next().unwrap_or_default();
            if local && (name.starts_with(names::TEMP) || name.starts_with(TEMP_PREFIX)) {
                stale.push((u64::MAX, meta.path, meta.size));
                continue;
            }
            let Some(number) = file_number(self.style, name) else { continue };
            // The files below the tail count, and the tail if it has rows. If a file is elsewhere, the copy
            // here was left by a writer that died after moving it.
            let moved = !state.files.roots.is_here(number);
            if number > tail || (number == tail && rows.is_none()) || moved {
                stale.push((number, meta.path.clone(), meta.size));
            }
            if !local && (number >= open || self.mutable || moved) {
                versions.insert(number, Version::from(&meta));
            }
        }
        if !local {
            // From here on, a writer that claims later also replaces these objects later, and a replacement
            // by this writer then fails.
            self.refuse_lost_claim().await?;
        }
        if slot > 0 && state.files.roots.is_here(open) {
            let path = column.file(self.style, open);
            let rooted = state.files.roots.resolve(&column.folder, &path, open).await?;
            let mut index = files::read_index(rooted, column, self.style, slot).await?;
            if (index.chunks.len() as u64) < slot {
                return Err(too_few_chunks(&path, slot));
            }
            index.chunks.truncate(usize::try_from(slot).unwrap_or(usize::MAX));
            // Any other file is written as a whole by the writer that adds to it.
            let grows = local && self.style == Style::Superchunk;
            if grows && !self.is_whole(column, open, &index).await? {
                if let Some(rows) = rows {
                    // The chunk that also holds these rows goes only after this.
                    self.put_tail(state, at, full, rows).await?;
                }
                self.cut_file(column, open, &index).await?;
            }
        }
        for file in [open, tail] {
            state.files.forget(at, file);
        }
        // The last first, so that a crash leaves no gap.
        stale.sort_unstable_by(|a, b| b.cmp(a));
        for (number, path, size) in stale {
            state.files.forget(at, number);
            if !local && size == 0 {
                continue;
            }
            let version = versions.get(&number).cloned();
            if let Some(version) = self.remove_file(path, version).await? {
                versions.insert(number, version);
            }
        }
        Ok(versions)
    }
}

/// The number of the file with this name, counted from 0.
pub(crate) fn file_number(style: Style, name: &str) -> Option<u64> {
    let (found, number) = names::parse_file(name)?;
    match (style, found) {
        (Style::Bcolz, names::Style::Legacy) => Some(number),
        (Style::Superchunk | Style::Document, names::Style::Superchunk) => number.checked_sub(1),
        _ => None,
    }
}
