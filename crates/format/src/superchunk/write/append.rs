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

use bytes::Bytes;
use chunkyard_store::{Error, Result};

use super::Writing;
use super::encode::{encode, rows_of};
use crate::superchunk::bloscpack::CHUNK_BYTES_MAX;
use crate::superchunk::committed::Committed;
use crate::superchunk::handle::Blz;
use crate::superchunk::model::Column;
use crate::superchunk::protocol::Protocol;

/// Bytes of encoded chunks that may wait in memory for a file that grows.
pub(crate) const PENDING_BYTES_MAX: usize = 8 << 20;

impl Blz {
    /// Adds rows: for each column, in the order of [`Blz::columns`], the elements of the same number of rows,
    /// row-major, little-endian. This handle sees them at once, others see them after [`Blz::flush`].
    pub async fn append(&self, columns: Vec<Bytes>) -> Result<()> {
        let added = self.shared.current.committed().count_rows(&columns)?;
        if added == 0 {
            return Ok(());
        }
        let mut writing = self.shared.writing.lock().await;
        writing.begin().await?;
        writing.changed = true;
        let described = writing.committed().columns.clone();
        for (at, (rows, column)) in columns.into_iter().zip(described.iter()).enumerate() {
            let rows = column.swapped(rows);
            if let Err(error) = writing.append_column(at, rows).await {
                let error = writing.explain_loss(error).await;
                // Columns would have different lengths.
                writing.abandon();
                return Err(error);
            }
        }
        writing.current.add_rows(added);
        Ok(())
    }

    /// Makes it `len` rows long: cuts rows off, or adds default rows.
    pub async fn resize(&self, len: u64) -> Result<()> {
        let mut writing = self.shared.writing.lock().await;
        // Only a writer that keeps others out knows the length: one that has the lock, or has just claimed.
        if writing.is_idle() && writing.access.protocol == Protocol::Claimed {
            writing.reset();
        }
        writing.begin().await?;
        let have = writing.current.view().len;
        match len.checked_sub(have) {
            None => writing.cut_off(have - len).await,
            Some(0) => {
                // There is nothing to commit, so others may write.
                if writing.is_idle() {
                    writing.lock = None;
                }
                Ok(())
            }
            Some(more) => writing.grow(more).await,
        }
    }
}

impl Committed {
    /// The number of rows given; an error unless all columns have the same.
    fn count_rows(&self, given: &[Bytes]) -> Result<u64> {
        let columns = &self.columns;
        if given.len() != columns.len() {
            return Err(Error::invalid(format!(
                "rows of {} columns; {} has {}",
                given.len(),
                self.access.store.url(),
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
}

impl Writing {
    /// Adds default rows.
    async fn grow(&mut self, more: u64) -> Result<()> {
        let columns = self.committed().columns.clone();
        self.changed = true;
        for (at, column) in columns.iter().enumerate() {
            if let Err(error) = self.grow_column(at, column, more).await {
                let error = self.explain_loss(error).await;
                self.abandon();
                return Err(error);
            }
        }
        self.current.add_rows(more);
        Ok(())
    }

    async fn grow_column(&mut self, at: usize, column: &Column, more: u64) -> Result<()> {
        let whole = chunk_len(column)?;
        let row = usize::try_from(column.row_bytes()).unwrap_or(usize::MAX).max(1);
        let left = self.columns.as_ref().and_then(|all| all.get(at));
        let have = left.map_or(0, |mine| rows_of(&mine.rows).bytes.len());
        let (room, mut bytes) = ((whole - have) / row, more);
        let first = bytes.min(room as u64);
        self.append_column(at, default_rows(column, first)).await?;
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
            self.take_encoded(at, 0).await?;
            let mut left = chunks;
            while left > 0 {
                let some = left.min((PENDING_BYTES_MAX / encoded.len().max(1)) as u64 + 1);
                let some = some.min(1 << 16);
                if let Some(mine) = self.columns.as_mut().and_then(|all| all.get_mut(at)) {
                    mine.add_chunks(vec![encoded.clone(); some as usize]);
                    self.current.show(at, mine.waiting());
                    rows_of(&mine.rows).chunk += some;
                }
                self.write_some(at, PENDING_BYTES_MAX).await?;
                left -= some;
            }
        }
        let rest = bytes % column.chunklen.max(1);
        self.append_column(at, default_rows(column, rest)).await
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
