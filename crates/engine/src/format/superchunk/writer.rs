//! Rows are added at the end.
//!
//! ```text
//!  append ─▶ full chunks, encoded ─▶ files, which nobody counts yet ─┐
//!        └─▶ rows that fill no chunk, in memory                      │ flush: tail file, then meta/sizes
//!                                                                    ▼
//!                                                     one rename: everybody sees all of it
//! ```
//!
//! Whoever writes holds a lock from the first row that is added until it is committed; on an object store
//! a claim on `meta/sizes` and conditional puts take its place. See `docs/design/010-superchunk.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use chunkyard_array::codec::blosc::{self, Params};
use rayon::prelude::*;

use super::bloscpack::CHUNK_BYTES_MAX;
use super::handle::{Blz, Inner, Waiting};
use super::model::Column;
use crate::error::{Error, Result};
use crate::format::{batched, encode_with};
use crate::pipeline::cpu;
use crate::store::{Lock, Version};

/// Rows that are encoded at once.
const BATCH_BYTES: u64 = 16 << 20;
/// Encoded chunks that wait in memory for a file that grows.
const PENDING_BYTES_MAX: usize = 8 << 20;

/// What a handle has added and not committed.
#[derive(Debug, Default)]
pub(super) struct Writing {
    /// Keeps others from writing.
    pub(super) lock: Option<Lock>,
    /// What is being written, once somebody has looked at where it goes.
    pub(super) columns: Option<Vec<ColumnWriting>>,
    /// Files that are written and not durable.
    pub(super) dirty: BTreeSet<String>,
    /// What `meta/sizes` was when this handle last read or wrote it.
    pub(super) seen: Option<Bytes>,
    /// What the files at the end of each column were when this handle last committed.
    pub(super) marks: Vec<Option<String>>,
    /// Whether rows were added or changed since the last commit.
    pub(super) changed: bool,
    /// Whether chunks are being changed that count already, so that there is no way back.
    pub(super) journal: bool,
    /// Whether `meta/sizes` was replaced to say who writes from now on.
    pub(super) claimed: bool,
}

/// The same of one column.
#[derive(Debug)]
pub(super) struct ColumnWriting {
    /// Rows behind the last full chunk.
    pub(super) rows: Arc<Mutex<Rows>>,
    /// Encoded chunks that are in no file.
    pub(super) pending: Vec<Bytes>,
    /// Chunks that are in a file and are to be others, encoded.
    pub(super) changed: BTreeMap<u64, Bytes>,
    /// Whether rows of the chunk that was not full are others now: then no chunk goes to a file before
    /// the commit, since it would take the place of what counts.
    pub(super) held: bool,
    /// Full chunks, those that wait included.
    pub(super) full: u64,
    /// Encoded bytes of full chunks, counted as in the state.
    pub(super) cbytes: i64,
    /// The file of the last tail that was committed.
    pub(super) tail: Option<u64>,
    /// The states of objects that may be replaced.
    pub(super) versions: BTreeMap<u64, Version>,
}

/// Rows of a chunk that is not full.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// The chunk.
    pub(super) chunk: u64,
    /// Its rows so far, as they lie in it.
    pub(super) bytes: Vec<u8>,
}

impl Writing {
    /// Whether nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        !self.changed
    }

    /// Forgets everything that is not committed, and lets others write.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}

/// Locks what is never held while anything can fail.
pub(super) fn rows_of(rows: &Mutex<Rows>) -> std::sync::MutexGuard<'_, Rows> {
    rows.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Blz {
    /// Adds rows: for each column, in the order of [`Blz::columns`], the elements of as many rows,
    /// row-major, little-endian. They are seen through this handle at once, and by others after
    /// [`Blz::flush`].
    pub async fn append(&self, columns: Vec<Bytes>) -> Result<()> {
        let inner = &self.inner;
        let added = inner.count_rows(&columns)?;
        if added == 0 {
            return Ok(());
        }
        let mut writing = inner.writing.lock().await;
        inner.begin(&mut writing).await?;
        writing.changed = true;
        for (at, rows) in columns.into_iter().enumerate() {
            let rows = inner.in_file_order(at, rows);
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
        // How long it is, only whoever keeps others from writing knows.
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
    /// How many rows these are; an error unless all columns have as many.
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

    /// Gives up what is not committed.
    pub(super) fn abandon(&self, writing: &mut Writing) {
        writing.reset();
        let mut state = self.state();
        state.len = state.committed();
        let none = vec![Waiting::default(); state.columns.len()];
        state.waiting = Arc::new(none);
    }

    /// Rows as they lie in a chunk.
    fn in_file_order(&self, at: usize, rows: Bytes) -> Bytes {
        match self.state().columns.get(at) {
            Some(column) => column.swapped(rows),
            None => rows,
        }
    }

    /// Adds rows to a column, given as they lie in a chunk.
    async fn append_column(&self, writing: &mut Writing, at: usize, rows: Bytes) -> Result<()> {
        let columns = self.state().columns.clone();
        let Some(column) = columns.get(at) else { return Ok(()) };
        let whole = chunk_len(column)?;
        let (mut chunks, mut rest) = (Vec::new(), rows);
        {
            let Some(mine) = writing.columns.as_mut().and_then(|all| all.get_mut(at)) else {
                return Ok(());
            };
            let mut left = rows_of(&mine.rows);
            if left.bytes.len() + rest.len() < whole {
                left.bytes.extend_from_slice(&rest);
                return Ok(());
            }
            if !left.bytes.is_empty() {
                let missing = whole - left.bytes.len();
                let mut first = Vec::with_capacity(whole);
                first.extend_from_slice(&left.bytes);
                first.extend_from_slice(&rest.split_to(missing));
                chunks.push(Bytes::from(first));
            }
        }
        while rest.len() >= whole {
            chunks.push(rest.split_to(whole));
        }
        let tried;
        let column = match column.params {
            Some(_) => column,
            None => {
                tried = self.try_codecs(at, chunks.first()).await?;
                &tried
            }
        };
        let per_batch = (BATCH_BYTES / whole as u64).clamp(1, 1024) as usize;
        let full = chunks.len() as u64;
        let mut batches = batched(chunks.into_iter(), per_batch);
        let mut next = batches.next();
        while let Some(batch) = next.take() {
            // What is encoded is written while the next ones are encoded.
            let (encoded, written) = futures::join!(
                encode(column, batch),
                self.write_some(writing, at, PENDING_BYTES_MAX)
            );
            written?;
            self.add_chunks(writing, at, encoded?);
            next = batches.next();
        }
        self.write_some(writing, at, PENDING_BYTES_MAX).await?;
        if let Some(mine) = writing.columns.as_mut().and_then(|all| all.get_mut(at)) {
            // Only now are the chunks where whoever reads finds them.
            let mut left = rows_of(&mine.rows);
            left.chunk += full;
            left.bytes.clear();
            left.bytes.extend_from_slice(&rest);
        }
        Ok(())
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
            // Compressed once, and its bytes repeated.
            let encoded = encode(&column, vec![plain]).await?.pop().unwrap_or_default();
            let mut left = chunks;
            while left > 0 {
                let some = left.min((PENDING_BYTES_MAX / encoded.len().max(1)) as u64 + 1);
                let some = some.min(1 << 16);
                self.add_chunks(writing, at, vec![encoded.clone(); some as usize]);
                if let Some(mine) = writing.columns.as_mut().and_then(|all| all.get_mut(at)) {
                    rows_of(&mine.rows).chunk += some;
                }
                self.write_some(writing, at, PENDING_BYTES_MAX).await?;
                left -= some;
            }
        }
        let rest = bytes % column.chunklen.max(1);
        self.append_column(writing, at, default_rows(column, rest)).await
    }

    /// Lets encoded chunks wait, where whoever reads finds them.
    fn add_chunks(&self, writing: &mut Writing, at: usize, encoded: Vec<Bytes>) {
        let Some(mine) = writing.columns.as_mut().and_then(|all| all.get_mut(at)) else { return };
        mine.full += encoded.len() as u64;
        mine.cbytes += encoded.iter().map(|chunk| chunk.len() as i64).sum::<i64>();
        mine.pending.extend(encoded);
        self.show(mine, at);
    }

    /// Lets whoever reads find what waits.
    pub(super) fn show(&self, mine: &ColumnWriting, at: usize) {
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
pub(super) fn chunk_len(column: &Column) -> Result<usize> {
    usize::try_from(column.chunk_bytes())
        .ok()
        .filter(|bytes| (1..=CHUNK_BYTES_MAX as usize).contains(bytes))
        .ok_or_else(|| {
            Error::invalid(format!("{}: chunks of {} bytes", column.path, column.chunk_bytes()))
        })
}

/// Default rows, as they lie in a chunk.
pub(super) fn default_rows(column: &Column, rows: u64) -> Bytes {
    let bytes = rows.saturating_mul(column.row_bytes());
    let mut plain = vec![0; usize::try_from(bytes).unwrap_or(0)];
    chunkyard_array::fill_slice(&mut plain, &column.default_row);
    plain.into()
}

/// Encodes chunks on all compute threads.
pub(super) async fn encode(column: &Column, chunks: Vec<Bytes>) -> Result<Vec<Bytes>> {
    let (params, slack) = (column.params_or_default(), column.slack);
    cpu(move || match chunks.len() {
        1 => chunks.iter().map(|plain| encode_one(&params, slack, plain)).collect(),
        _ => chunks.par_iter().map(|plain| encode_one(&params, slack, plain)).collect(),
    })
    .await?
}

fn encode_one(params: &Params, slack: u64, plain: &[u8]) -> Result<Bytes> {
    encode_with(|encoded| {
        blosc::encode_onto(params, plain, encoded)?;
        if slack > 0 {
            blosc::with_slack(encoded, usize::try_from(slack).unwrap_or(0))?;
        }
        Ok(())
    })
}
