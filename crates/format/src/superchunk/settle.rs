//! What a writer does before its first row: it keeps others out, looks at what is there, and finishes
//! what somebody left who died, or cut rows off.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use chunkyard_store::{Error, Kind, Result, TEMP_PREFIX, Version, alone};

use super::directory::{LOCK, SIZES, get};
use super::encoding::Rows;
use super::files;
use super::handle::{Inner, State};
use super::journal::JOURNAL;
use super::model::{Column, Style};
use super::names;
use super::write_out::gone;
use super::writer::{ColumnWriting, Writing};

/// How long a writer waits for another one.
const PATIENCE: Duration = Duration::from_secs(30);

impl Inner {
    /// Makes sure that this handle may add rows, and knows where.
    pub(super) async fn begin(&self, writing: &mut Writing) -> Result<()> {
        if writing.changed && writing.columns.is_some() {
            return Ok(());
        }
        let begun = alone(self.look_anew(writing)).await;
        if begun.is_err() {
            writing.reset();
        }
        begun
    }

    async fn look_anew(&self, writing: &mut Writing) -> Result<()> {
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
                && writing.seen.as_ref() == Some(&there)
                && self.marks(writing).await? == writing.marks
            {
                return Ok(());
            }
            self.sweep_meta().await?;
            let unfinished = self.finish_changes().await?;
            self.reread().await?;
            if unfinished {
                self.acknowledge_changes().await?;
            }
            writing.seen = Some(self.sizes_bytes().await?);
        } else {
            if writing.columns.is_some() {
                // Whoever came meanwhile has replaced what this handle expects to replace.
                return Ok(());
            }
            return self.settle_claimed(writing).await;
        }
        self.settle(writing).await
    }

    /// What tells the files at the end of each column from what anybody else makes of them. Somebody may
    /// have died who was adding rows, so that `meta/sizes` is as it was and they are not.
    pub(super) async fn marks(&self, writing: &Writing) -> Result<Vec<Option<String>>> {
        let columns = self.state().columns.clone();
        let mut marks = vec![self.store.head(JOURNAL).await.ok().and_then(|meta| meta.etag)];
        for (mine, column) in writing.columns.iter().flatten().zip(columns.iter()) {
            // Often the same one.
            let files = BTreeSet::from([column.place_of(mine.full).0, column.tail_file(mine.full)]);
            for file in files {
                let mark = match self.store.head(&column.file(self.style, file)).await {
                    Ok(meta) => meta.etag,
                    Err(Error::NotFound { .. }) => None,
                    Err(error) => return Err(error),
                };
                marks.push(mark);
            }
        }
        Ok(marks)
    }

    pub(super) async fn lock(&self) -> Result<chunkyard_store::Lock> {
        let path = self.lock_path();
        match tokio::time::timeout(PATIENCE, self.store.lock(&path)).await {
            Ok(lock) => lock,
            Err(_) => Err(Error::Conflict {
                message: format!(
                    "somebody else has been writing to {} for {} seconds; rows are added by one at a time",
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

    /// What the files say that are the commit.
    pub(super) async fn sizes_bytes(&self) -> Result<Bytes> {
        let paths = self.sizes_paths();
        let mut all = Vec::new();
        for path in paths {
            let object = get(&self.store, &path).await?;
            let missing =
                || Error::NotFound { what: "BLZ dataset", name: self.store.url().to_owned() };
            all.extend_from_slice(&object.ok_or_else(missing)?.bytes);
        }
        Ok(all.into())
    }

    pub(super) fn sizes_paths(&self) -> Vec<String> {
        let state = self.state();
        let own = state.columns.iter().filter_map(|column| column.meta.as_ref());
        let own: Vec<String> = own.map(|meta| format!("{meta}/sizes")).collect();
        if own.is_empty() { vec![SIZES.to_owned()] } else { own }
    }

    /// Lets everybody see that changes of somebody who died are finished, and takes the journal away.
    async fn acknowledge_changes(&self) -> Result<()> {
        let state = self.state().clone();
        self.next_generation(&state).await?;
        self.withdraw_journal().await?;
        self.reread().await
    }

    /// Looks at where each column ends, and takes away what lies behind.
    pub(super) async fn settle(&self, writing: &mut Writing) -> Result<()> {
        if self.store.kind() != Kind::Local && self.is_changing().await {
            self.withdraw_journal().await?;
        }
        self.bring_home().await?;
        let state = self.state().clone();
        let mut columns = Vec::with_capacity(state.columns.len());
        for (at, column) in state.columns.iter().enumerate() {
            columns.push(self.settle_column(&state, at, column).await?);
        }
        for (at, mine) in columns.iter().enumerate() {
            self.show(mine, at);
        }
        writing.columns = Some(columns);
        Ok(())
    }

    async fn settle_column(
        &self,
        state: &State,
        at: usize,
        column: &Column,
    ) -> Result<ColumnWriting> {
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
        let versions = self.clear(state, at, column, full, (rows > 0).then_some(&kept)).await?;
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

    /// Takes away what lies behind the last row: files that nobody counts, and chunks in the place of
    /// those that are to come. The rows of the chunk that is not full must not be lost by it.
    async fn clear(
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
            // What is counted: the files below the tail, and the tail if there are rows for it. Those that
            // are elsewhere are left here by somebody who died after moving them.
            let moved = !state.files.roots.is_here(number);
            if number > tail || (number == tail && rows.is_none()) || moved {
                stale.push((number, meta.path.clone(), meta.size));
            }
            if !local && (number >= open || self.mutable || moved) {
                versions.insert(number, Version::from(&meta));
            }
        }
        if !local {
            // Only now is it sure that whoever claims later replaces these objects later, too, and that
            // replacing them here fails then.
            self.refuse_lost_claim().await?;
        }
        if slot > 0 && state.files.roots.is_here(open) {
            let path = column.file(self.style, open);
            let rooted = state.files.roots.resolve(&column.folder, &path, open).await?;
            let mut index = files::read_index(rooted, column, self.style, slot).await?;
            if (index.chunks.len() as u64) < slot {
                return Err(gone(&path, slot));
            }
            index.chunks.truncate(usize::try_from(slot).unwrap_or(usize::MAX));
            // Any other file is written anew as a whole, by whoever adds to it.
            let grows = local && self.style == Style::Superchunk;
            if grows && !self.is_whole(column, open, &index).await? {
                if let Some(rows) = rows {
                    // Before the chunk goes that holds them as well.
                    self.put_tail(state, at, full, rows).await?;
                }
                self.cut_file(column, open, &index).await?;
            }
        }
        for file in [open, tail] {
            state.files.forget(at, file);
        }
        // The last first: nothing is ever missing before something that is there.
        stale.sort_unstable_by(|a, b| b.cmp(a));
        for (number, path, size) in stale {
            state.files.forget(at, number);
            if !local && size == 0 {
                continue;
            }
            let version = versions.get(&number).cloned();
            if let Some(version) = self.take_away(path, version).await? {
                versions.insert(number, version);
            }
        }
        Ok(versions)
    }
}

/// Which file of a column has a name, counted from 0.
pub(super) fn file_number(style: Style, name: &str) -> Option<u64> {
    let (found, number) = names::parse_file(name)?;
    match (style, found) {
        (Style::Bcolz, names::Style::Legacy) => Some(number),
        (Style::Superchunk | Style::Document, names::Style::Superchunk) => number.checked_sub(1),
        _ => None,
    }
}
