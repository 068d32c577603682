//! What a writer does before its first row: it keeps others out, looks at what is there, and finishes
//! what somebody left who died, or cut rows off.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;

use super::directory::{LOCK, SIZES, get};
use super::files;
use super::handle::{Inner, State};
use super::meta::Sizes;
use super::model::{Column, Style};
use super::names;
use super::writer::{ColumnWriting, Rows, Writing};
use crate::error::{Error, Result};
use crate::repo::Uid;
use crate::store::{Kind, Replaced, TEMP_PREFIX, Version};

/// How long a writer waits for another one.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a claim is tried.
const CLAIMS: usize = 8;
/// The key of `meta/sizes` by which writers on an object store tell each other.
const WRITER: &str = "writer";

impl Inner {
    /// Makes sure that this handle may add rows, and knows where.
    pub(super) async fn begin(&self, writing: &mut Writing) -> Result<()> {
        if writing.changed && writing.columns.is_some() {
            return Ok(());
        }
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
            if writing.columns.is_some() && writing.seen.as_ref() == Some(&there) {
                return Ok(());
            }
            self.reread().await?;
            writing.seen = Some(there);
        } else {
            if writing.columns.is_some() {
                // Whoever came meanwhile has replaced what this handle expects to replace.
                return Ok(());
            }
            self.claim().await?;
        }
        let settled = self.settle(writing).await;
        if settled.is_err() {
            writing.reset();
        }
        settled
    }

    async fn lock(&self) -> Result<crate::store::Lock> {
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

    /// On an object store: says in `meta/sizes` who writes from now on. Whoever wrote before can
    /// commit nothing any more.
    async fn claim(&self) -> Result<()> {
        for _ in 0..CLAIMS {
            self.reread().await?;
            let (mut sizes, version) = {
                let state = self.state();
                (state.sizes.clone(), state.version.clone())
            };
            sizes.generation = Some(sizes.generation.unwrap_or(0) + 1);
            sizes.other.insert(WRITER.to_owned(), json!(Uid::fresh()?.to_string()));
            if let Some(version) = self.swap_sizes(&sizes, &version).await? {
                let mut state = self.state();
                (state.sizes, state.version) = (sizes, version);
                return Ok(());
            }
        }
        Err(lost(self.store.url()))
    }

    /// Replaces `meta/sizes` if it is still in a state; `None` if it is not.
    pub(super) async fn swap_sizes(
        &self,
        sizes: &Sizes,
        expected: &Version,
    ) -> Result<Option<Version>> {
        let bytes = Bytes::from(sizes.render());
        match self.store.replace(SIZES, bytes.clone(), expected).await {
            Ok(Replaced::Done(version)) => Ok(Some(version)),
            // Ours, if only the reply was lost.
            Ok(Replaced::Lost) => self.ours(&bytes).await,
            Err(error) if crate::store::is_refusal(&error) => Err(error),
            Err(error) => match self.ours(&bytes).await {
                Ok(Some(version)) => Ok(Some(version)),
                Ok(None) => Err(error),
                Err(source) => Err(Error::OutcomeUnknown {
                    what: format!("replacing {SIZES} ({error})"),
                    source: Box::new(source),
                }),
            },
        }
    }

    async fn ours(&self, bytes: &Bytes) -> Result<Option<Version>> {
        let there = get(&self.store, SIZES).await?;
        Ok(there.filter(|there| there.bytes == *bytes).map(|there| Version::from(&there.meta)))
    }

    /// Looks at where each column ends, and takes away what lies behind.
    async fn settle(&self, writing: &mut Writing) -> Result<()> {
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
        let rows = Rows { chunk: full, bytes: kept.to_vec() };
        Ok(ColumnWriting {
            tail: (!rows.bytes.is_empty()).then_some(tail),
            rows: Arc::new(Mutex::new(rows)),
            pending: Vec::new(),
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
                stale.push((u64::MAX, meta.path));
                continue;
            }
            let Some(number) = file_number(self.style, name) else { continue };
            // What is counted: the files below the tail, and the tail if there are rows for it.
            if number > tail || (number == tail && rows.is_none()) {
                stale.push((number, meta.path.clone()));
            }
            if !local && number >= open {
                versions.insert(number, Version::from(&meta));
            }
        }
        if slot > 0 && state.files.roots.is_here(open) {
            let path = column.file(self.style, open);
            let rooted = state.files.roots.resolve(&column.folder, &path, open).await?;
            let believed = column.superchunk;
            let index = files::read_index(rooted, column, self.style, believed).await?;
            let behind = index.chunks.len() as u64 > slot || index.end() < index.size;
            if behind && local {
                if let Some(rows) = rows {
                    // Before the chunk goes that holds them as well.
                    self.put_tail(state, at, full, rows).await?;
                }
                self.cut_file(column, open, index, slot).await?;
            }
        }
        for file in [open, tail] {
            state.files.forget(at, file);
        }
        if local {
            stale.sort_unstable_by(|a, b| b.cmp(a));
            for (number, path) in stale {
                self.store.delete(&[path]).await?;
                state.files.forget(at, number);
            }
        }
        Ok(versions)
    }
}

fn file_number(style: Style, name: &str) -> Option<u64> {
    let (found, number) = names::parse_file(name)?;
    match (style, found) {
        (Style::Bcolz, names::Style::Legacy) => Some(number),
        (Style::Superchunk | Style::Document, names::Style::Superchunk) => number.checked_sub(1),
        _ => None,
    }
}

/// Somebody else writes.
pub(super) fn lost(url: &str) -> Error {
    Error::Conflict {
        message: format!(
            "somebody else has written to {url} meanwhile; rows of this writer that were not committed \
             are not there"
        ),
        conflicts: Vec::new(),
    }
}
