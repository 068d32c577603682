//! Adds rows at the end.
//!
//! ```text
//!  append ─▶ full chunks, encoded ─▶ files, which do not count yet ──┐
//!        └─▶ rows that fill no chunk, in memory                      │ flush: tail file, then meta/sizes
//!                                                                    ▼
//!                                                     one rename: every reader sees all of it
//! ```
//!
//! A writer holds a lock from its first row until its commit; on an object store a claim on `meta/sizes` and
//! conditional puts take its place. See `docs/design/010-superchunk.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use chunkyard_store::{Error, Kind, Lock, Result, Version};

use super::encode::{Rows, encode, rows_of};
use crate::superchunk::bloscpack::CHUNK_BYTES_MAX;
use crate::superchunk::handle::{Blz, Inner, Waiting};
use crate::superchunk::model::Column;

/// Bytes of encoded chunks that may wait in memory for a file that grows.
pub(crate) const PENDING_BYTES_MAX: usize = 8 << 20;

/// What a handle has written and not committed.
#[derive(Debug, Default)]
pub(crate) struct Writing {
    /// Keeps other writers out.
    pub(crate) lock: Option<Lock>,
    /// What is being written, once the end of each column is known.
    pub(crate) columns: Option<Vec<ColumnWriting>>,
    /// Files that are written and not durable.
    pub(crate) dirty: BTreeSet<String>,
    /// `meta/sizes` as this handle last read or wrote it.
    pub(crate) sizes_seen: Option<Bytes>,
    /// The state of the files at the end of each column at this handle's last commit.
    pub(crate) end_etags: Vec<Option<String>>,
    /// Whether rows were added or changed since the last commit.
    pub(crate) changed: bool,
    /// Whether a journal is written: its chunks count already, so there is no way back.
    pub(crate) journal: bool,
    /// Whether this handle has just claimed, which moves the generation.
    pub(crate) claimed: bool,
}

/// The same for one column.
#[derive(Debug)]
pub(crate) struct ColumnWriting {
    /// Rows behind the last encoded chunk.
    pub(crate) rows: Arc<Mutex<Rows>>,
    /// Encoded chunks that are in no file.
    pub(crate) pending: Vec<Bytes>,
    /// New versions of chunks that are in a file, encoded.
    pub(crate) changed: BTreeMap<u64, Bytes>,
    /// Whether rows of the chunk that was not full have changed: then no chunk goes to a file before the
    /// commit, since it would replace rows that count.
    pub(crate) held: bool,
    /// The number of full encoded chunks, including those that wait for a file.
    pub(crate) full: u64,
    /// Encoded bytes of full chunks, counted as in the state.
    pub(crate) cbytes: i64,
    /// The file of the last committed tail.
    pub(crate) tail: Option<u64>,
    /// The number and the encoded bytes of the chunk in the last committed tail: the next tail begins with its
    /// rows.
    pub(crate) tail_chunk: Option<(u64, Bytes)>,
    /// The versions of the objects that this writer may replace.
    pub(crate) versions: BTreeMap<u64, Version>,
}

impl Writing {
    /// Whether nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        !self.changed
    }

    /// What is being written of a column.
    pub(crate) fn column(&mut self, at: usize) -> Option<&mut ColumnWriting> {
        self.columns.as_mut()?.get_mut(at)
    }

    /// Drops everything that is not committed, and lets others write.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}

impl Blz {
    /// Adds rows: for each column, in the order of [`Blz::columns`], the elements of the same number of rows,
    /// row-major, little-endian. This handle sees them at once, others see them after [`Blz::flush`].
    pub async fn append(&self, columns: Vec<Bytes>) -> Result<()> {
        let inner = &self.inner;
        let added = inner.count_rows(&columns)?;
        if added == 0 {
            return Ok(());
        }
        let mut writing = inner.writing.lock().await;
        inner.begin(&mut writing).await?;
        writing.changed = true;
        let described = inner.state().columns.clone();
        for (at, (rows, column)) in columns.into_iter().zip(described.iter()).enumerate() {
            let rows = column.swapped(rows);
            if let Err(error) = inner.append_column(&mut writing, at, rows).await {
                let error = inner.explain_loss(&writing, error).await;
                // Columns would have different lengths.
                inner.abandon(&mut writing);
                return Err(error);
            }
        }
        inner.state().len += added;
        Ok(())
    }

    /// Makes it `len` rows long: cuts rows off, or adds default rows.
    pub async fn resize(&self, len: u64) -> Result<()> {
        let inner = &self.inner;
        let mut writing = inner.writing.lock().await;
        // Only a writer that keeps others out knows the length: on an object store, one that has just
        // claimed.
        if writing.is_idle() && inner.store.kind() != Kind::Local {
            writing.reset();
        }
        inner.begin(&mut writing).await?;
        let have = inner.state().len;
        match len.checked_sub(have) {
            None => inner.cut_off(&mut writing, have - len).await,
            Some(0) => {
                inner.end_idle(&mut writing);
                Ok(())
            }
            Some(more) => inner.grow(&mut writing, more).await,
        }
    }
}

impl Inner {
    /// The number of rows given; an error unless all columns have the same.
    fn count_rows(&self, given: &[Bytes]) -> Result<u64> {
        let columns = self.state().columns.clone();
        if given.len() != columns.len() {
            return Err(Error::invalid(format!(
                "rows of {} columns; {} has {}",
                given.len(),
                self.store.url(),
                columns.len()
            )));
        }
        let mut rows = None;
        for (column, bytes) in columns.iter().zip(given) {
            let row = column.row_bytes();
            let len = bytes.len() as u64;
            if row == 0 || !len.is_multiple_of(row) {
                return Err(Error::invalid(format!(
                    "{}: rows have {row} bytes, {len} were given",
                    column.path
                )));
            }
            if *rows.get_or_insert(len / row) != len / row {
                return Err(Error::invalid(format!(
                    "{}: {} rows, while other columns have {}",
                    column.path,
                    len / row,
                    rows.unwrap_or(0)
                )));
            }
        }
        rows.ok_or_else(|| Error::invalid("a table without columns has no rows"))
    }

    /// Adds default rows.
    async fn grow(&self, writing: &mut Writing, more: u64) -> Result<()> {
        let columns = self.state().columns.clone();
        writing.changed = true;
        for (at, column) in columns.iter().enumerate() {
            if let Err(error) = self.grow_column(writing, at, column, more).await {
                let error = self.explain_loss(writing, error).await;
                self.abandon(writing);
                return Err(error);
            }
        }
        self.state().len += more;
        Ok(())
    }

    /// Lets others write, if there is nothing to commit.
    fn end_idle(&self, writing: &mut Writing) {
        if writing.is_idle() {
            writing.lock = None;
        }
    }

    /// Drops everything that is not committed.
    pub(crate) fn abandon(&self, writing: &mut Writing) {
        writing.reset();
        let mut state = self.state();
        state.len = state.committed();
        let none = vec![Waiting::default(); state.columns.len()];
        state.waiting = Arc::new(none);
    }

    async fn grow_column(
        &self,
        writing: &mut Writing,
        at: usize,
        column: &Column,
        more: u64,
    ) -> Result<()> {
        let whole = chunk_len(column)?;
        let row = usize::try_from(column.row_bytes()).unwrap_or(usize::MAX).max(1);
        let left = writing.columns.as_ref().and_then(|all| all.get(at));
        let have = left.map_or(0, |mine| rows_of(&mine.rows).bytes.len());
        let (room, mut bytes) = ((whole - have) / row, more);
        let first = bytes.min(room as u64);
        self.append_column(writing, at, default_rows(column, first)).await?;
        bytes -= first;
        let chunks = bytes / column.chunklen.max(1);
        if chunks > 0 {
            let plain = default_rows(column, column.chunklen);
            let column = match column.params {
                Some(_) => column.clone(),
                None => self.try_codecs(at, Some(&plain)).await?,
            };
            // Compress the chunk once and repeat its bytes.
            let encoded = encode(&column, plain).await?;
            self.take_encoded(writing, at, 0).await?;
            let mut left = chunks;
            while left > 0 {
                let some = left.min((PENDING_BYTES_MAX / encoded.len().max(1)) as u64 + 1);
                let some = some.min(1 << 16);
                if let Some(mine) = writing.column(at) {
                    self.add_chunks(mine, at, vec![encoded.clone(); some as usize]);
                    rows_of(&mine.rows).chunk += some;
                }
                self.write_some(writing, at, PENDING_BYTES_MAX).await?;
                left -= some;
            }
        }
        let rest = bytes % column.chunklen.max(1);
        self.append_column(writing, at, default_rows(column, rest)).await
    }

    /// Lets encoded chunks wait, where readers find them.
    pub(crate) fn add_chunks(&self, mine: &mut ColumnWriting, at: usize, encoded: Vec<Bytes>) {
        if encoded.is_empty() {
            return;
        }
        mine.full += encoded.len() as u64;
        mine.cbytes += encoded.iter().map(|chunk| chunk.len() as i64).sum::<i64>();
        mine.pending.extend(encoded);
        self.show(mine, at);
    }

    /// Shows waiting chunks and rows to readers.
    pub(crate) fn show(&self, mine: &ColumnWriting, at: usize) {
        let mut state = self.state();
        let shown = Waiting {
            first: mine.full - mine.pending.len() as u64,
            chunks: mine.pending.clone(),
            changed: mine.changed.clone(),
            rows: Some(mine.rows.clone()),
        };
        if let Some(waiting) = Arc::make_mut(&mut state.waiting).get_mut(at) {
            *waiting = shown;
        }
    }
}

/// Bytes of a whole chunk, in memory.
pub(crate) fn chunk_len(column: &Column) -> Result<usize> {
    usize::try_from(column.chunk_bytes())
        .ok()
        .filter(|bytes| (1..=CHUNK_BYTES_MAX as usize).contains(bytes))
        .ok_or_else(|| {
            Error::invalid(format!("{}: chunks of {} bytes", column.path, column.chunk_bytes()))
        })
}

/// Default rows, in the byte order of the file.
pub(crate) fn default_rows(column: &Column, rows: u64) -> Bytes {
    let bytes = rows.saturating_mul(column.row_bytes());
    let mut plain = vec![0; usize::try_from(bytes).unwrap_or(0)];
    chunkyard_array::fill_slice(&mut plain, &column.default_row);
    plain.into()
}
