//! What a writer does before its first row: it locks others out, looks at the files, and cleans up after
//! crashed writers and after rows that were cut off.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use chunkyard_store::{Error, Noun, Result, TEMP_PREFIX, Version, alone};

use super::chunk_files::too_few_chunks;
use super::encode::Rows;
use super::journal::JOURNAL;
use super::{ColumnWriting, Writing};
use crate::superchunk::committed::{Committed, View};
use crate::superchunk::model::{Column, Style};
use crate::superchunk::names;
use crate::superchunk::protocol::Protocol;
use crate::superchunk::read::directory::{LOCK, SIZES, get};
use crate::superchunk::read::files;

/// How long a writer waits for another one to finish.
const PATIENCE: Duration = Duration::from_secs(30);

impl Writing {
    /// Makes sure that this handle may add rows, and knows where.
    pub(crate) async fn begin(&mut self) -> Result<()> {
        if self.changed && self.columns.is_some() {
            return Ok(());
        }
        let begun = alone(self.begin_anew()).await;
        if begun.is_err() {
            self.reset();
        }
        begun
    }

    async fn begin_anew(&mut self) -> Result<()> {
        self.access.refuse_read_only()?;
        let committed = self.committed();
        if committed.columns.iter().any(|column| column.scalar) {
            let url = self.access.store.url();
            let what = format!("{url} has no dimensions, so nothing can be added");
            return Err(Error::invalid(what));
        }
        if self.access.protocol == Protocol::Claimed {
            if self.columns.is_some() {
                // If another writer came meanwhile, the conditional writes of this handle fail.
                return Ok(());
            }
            return self.claim_and_find_ends().await;
        }
        if self.lock.is_none() {
            self.lock = Some(committed.lock().await?);
        }
        let there = committed.sizes_bytes().await?;
        if self.columns.is_some()
            && self.sizes_seen.as_ref() == Some(&there)
            && self.end_etags().await? == self.end_etags
        {
            return Ok(());
        }
        self.delete_abandoned().await?;
        let unfinished = self.access.finish_changes().await?;
        self.reread().await?;
        if unfinished {
            self.acknowledge_changes().await?;
        }
        self.sizes_seen = Some(self.committed().sizes_bytes().await?);
        self.find_ends().await
    }

    /// Shows whether the files at the end of each column are still the same. A writer that died while it added
    /// rows leaves `meta/sizes` as it was, but not these files.
    pub(super) async fn end_etags(&self) -> Result<Vec<Option<String>>> {
        let (store, committed) = (&self.access.store, self.committed());
        let mut etags = vec![store.head(JOURNAL).await.ok().and_then(|meta| meta.etag)];
        for (mine, column) in self.columns.iter().flatten().zip(committed.columns.iter()) {
            // The two are often the same file.
            let files = BTreeSet::from([column.place_of(mine.full).0, column.tail_file(mine.full)]);
            for file in files {
                let etag = match store.head(&column.file(self.access.style, file)).await {
                    Ok(meta) => meta.etag,
                    Err(Error::NotFound { .. }) => None,
                    Err(error) => return Err(error),
                };
                etags.push(etag);
            }
        }
        Ok(etags)
    }

    /// Commits the changes that a dead writer left in the journal, and removes the journal.
    async fn acknowledge_changes(&self) -> Result<()> {
        self.next_generation(&self.committed()).await?;
        self.access.withdraw_journal().await?;
        self.reread().await
    }

    /// Finds the end of each column, and removes everything behind it.
    pub(super) async fn find_ends(&mut self) -> Result<()> {
        // It came with a copy of a directory.
        if !self.access.store.writes_in_place() && self.access.is_changing().await {
            self.access.withdraw_journal().await?;
        }
        self.bring_back().await?;
        let view = View::of(self.committed());
        let mut columns = Vec::with_capacity(view.committed.columns.len());
        for (at, column) in view.committed.columns.iter().enumerate() {
            columns.push(self.find_end(&view, at, column).await?);
        }
        for (at, mine) in columns.iter().enumerate() {
            self.current.show(at, mine.waiting());
        }
        self.columns = Some(columns);
        Ok(())
    }

    async fn find_end(&self, view: &View, at: usize, column: &Column) -> Result<ColumnWriting> {
        let (committed, len) = (&view.committed, view.len);
        let full = len / column.chunklen.max(1);
        let rows = column.rows_in(full, len);
        let (mut kept, mut tail_bytes) = (Bytes::new(), 0);
        if rows > 0 {
            let found = view.find(at, full).await?;
            tail_bytes = found.len().unwrap_or(0);
            kept = self.access.decode_rows(column, &found, full, rows).await?;
        }
        let tail = column.tail_file(full);
        let versions =
            self.remove_behind(committed, at, column, full, (rows > 0).then_some(&kept)).await?;
        let rows = Rows::new(full, &kept)?;
        Ok(ColumnWriting {
            tail: (!rows.bytes.is_empty()).then_some(tail),
            tail_chunk: None,
            rows: Arc::new(Mutex::new(rows)),
            pending: Vec::new(),
            changed: BTreeMap::new(),
            held: false,
            full,
            cbytes: committed.cbytes.get(at).copied().unwrap_or(0) - tail_bytes as i64,
            versions,
        })
    }

    /// Removes everything behind the last row: files that do not count, and chunks in the slots of future
    /// chunks. The rows of the chunk that is not full must survive this.
    async fn remove_behind(
        &self,
        committed: &Committed,
        at: usize,
        column: &Column,
        full: u64,
        rows: Option<&Bytes>,
    ) -> Result<BTreeMap<u64, Version>> {
        let (store, style) = (&self.access.store, self.access.style);
        let tail = column.tail_file(full);
        let (open, slot) = column.place_of(full);
        let protocol = self.access.protocol;
        let locked = protocol == Protocol::Locked;
        let mut versions = BTreeMap::new();
        let mut stale = Vec::new();
        for meta in store.list_dir(&column.folder).await?.objects {
            let name = meta.path.rsplit('/').next().unwrap_or_default();
            if locked && (name.starts_with(names::TEMP) || name.starts_with(TEMP_PREFIX)) {
                stale.push((u64::MAX, meta));
                continue;
            }
            let Some(number) = file_number(style, name) else { continue };
            // The files below the tail count, and the tail if it has rows. If a file is elsewhere, the copy
            // here was left by a writer that died after moving it.
            let moved = !committed.files.roots.is_here(number);
            if number > tail || (number == tail && rows.is_none()) || moved {
                stale.push((number, meta.clone()));
            }
            if number >= open || self.access.mutable || moved {
                versions.extend(protocol.version(&meta).map(|version| (number, version)));
            }
        }
        if !locked {
            // From here on, a writer that claims later also replaces these objects later, and a replacement
            // by this writer then fails.
            self.refuse_lost_claim().await?;
        }
        if slot > 0 && committed.files.roots.is_here(open) {
            let path = column.file(style, open);
            let rooted = committed.files.roots.resolve(&column.folder, &path, open).await?;
            let mut index = files::read_index(rooted, column, style, slot).await?;
            if (index.chunks.len() as u64) < slot {
                return Err(too_few_chunks(&path, slot));
            }
            index.chunks.truncate(usize::try_from(slot).unwrap_or(usize::MAX));
            // Any other file is written as a whole by the writer that adds to it.
            let grows = self.access.changes_in_place();
            if grows && !self.access.is_whole(column, open, &index).await? {
                if let Some(rows) = rows {
                    // The chunk that also holds these rows goes only after this.
                    self.access.put_tail(committed, at, full, rows).await?;
                }
                self.access.cut_file(column, open, &index).await?;
            }
        }
        for file in [open, tail] {
            committed.files.forget(at, file);
        }
        // The last first, so that a crash leaves no gap.
        stale.sort_unstable_by(|(a, one), (b, other)| (b, &other.path).cmp(&(a, &one.path)));
        for (number, meta) in stale {
            committed.files.forget(at, number);
            if protocol.is_removed(&meta) {
                continue;
            }
            let version = versions.get(&number).cloned();
            if let Some(version) = self.access.remove_file(meta.path, version).await? {
                versions.insert(number, version);
            }
        }
        Ok(versions)
    }
}

impl Committed {
    /// Keeps other writers out of the directory, until the lock is dropped.
    pub(crate) async fn lock(&self) -> Result<chunkyard_store::Lock> {
        let (store, path) = (&self.access.store, self.lock_path());
        match tokio::time::timeout(PATIENCE, store.lock(&path)).await {
            Ok(lock) => lock,
            Err(_) => Err(Error::Conflict {
                message: format!(
                    "another writer has been writing to {} for {} seconds; only one can add rows at a time",
                    store.url(),
                    PATIENCE.as_secs()
                ),
                conflicts: Vec::new(),
            }),
        }
    }

    fn lock_path(&self) -> String {
        match self.columns.first().and_then(|column| column.meta.clone()) {
            Some(meta) => format!("{meta}/lock"),
            None => LOCK.to_owned(),
        }
    }

    /// The bytes of all `sizes` files as they are now, which are the last commit.
    pub(crate) async fn sizes_bytes(&self) -> Result<Bytes> {
        let store = &self.access.store;
        let missing = || Error::NotFound { what: Noun::BlzDataset, name: store.url().to_owned() };
        let mut all = Vec::new();
        for path in self.sizes_paths() {
            let object = get(store, &path).await?;
            all.extend_from_slice(&object.ok_or_else(missing)?.bytes);
        }
        Ok(all.into())
    }

    pub(crate) fn sizes_paths(&self) -> Vec<String> {
        let own = self.columns.iter().filter_map(|column| column.meta.as_ref());
        let own: Vec<String> = own.map(|meta| format!("{meta}/sizes")).collect();
        if own.is_empty() { vec![SIZES.to_owned()] } else { own }
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
