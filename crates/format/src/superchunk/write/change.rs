//! Changes existing rows, in a dataset that was opened `mutable`.
//!
//! ```text
//!  Writer ─▶ accept ─▶ waits in memory, seen through this handle
//!                        │ flush
//!                        ▼
//!            it fits where it is: journal ─▶ over the old one    see `journal`
//!            it does not:         its file is written anew, and put in its place
//! ```
//!
//! One chunk changes in one step, several do not: a writer that dies on the way leaves some changed and some not.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_array::ChunkIndex;
use chunkyard_array::codec::blosc;
use chunkyard_store::{Error, Noun, Result, cpu};

use super::Writing;
use super::chunk_files::render;
use super::encode::{encode, rows_of};
use super::journal::{Entry, Journal};
use super::partial_chunk::PartialChunk;
use crate::superchunk::access::Access;
use crate::superchunk::committed::View;
use crate::superchunk::handle::{Blz, Shared};
use crate::superchunk::model::{Column, Style};
use crate::superchunk::protocol::Protocol;
use crate::superchunk::read::files::FileIndex;
use crate::{Accept, Exclusion, Writer};

/// Changed chunks that may wait in memory; beyond this they are committed without a flush.
const CHANGED_BYTES_MAX: usize = 64 << 20;

impl Blz {
    /// Changes existing rows of a column; see [`BlzOptions::mutable`](crate::superchunk::BlzOptions::mutable).
    /// This handle sees the new rows at once, others see them after [`Blz::flush`].
    ///
    /// A part of a chunk is read, changed and written. If another writer has committed since this handle
    /// last looked, the result is [`Error::Conflict`]; the handle has looked again by then, so the caller
    /// can retry.
    pub fn writer(&self, column: &str) -> Result<Writer> {
        let access = &self.shared.access;
        if !access.mutable {
            return Err(Error::unsupported(format!(
                "changing rows of {}: rows are only added and cut off, unless it is opened `mutable`",
                access.store.url()
            )));
        }
        access.refuse_read_only()?;
        let at = self.shared.current.committed().position(column)?;
        let target = Target { shared: self.shared.clone(), at };
        Ok(Writer::new(self.reader(column)?, Arc::new(target)))
    }
}

/// Where changed chunks of a column go.
#[derive(Debug)]
struct Target {
    shared: Arc<Shared>,
    at: usize,
}

#[async_trait]
impl Accept for Target {
    async fn accept(&self, chunks: Vec<(ChunkIndex, Option<Bytes>)>) -> Result<()> {
        let mut writing = self.shared.writing.lock().await;
        writing.begin_change().await?;
        // Only an encoded chunk, or one that is not full, can be changed.
        writing.take_encoded(self.at, 0).await?;
        for (index, bytes) in chunks {
            let chunk = index.first().copied().unwrap_or(0);
            writing.change_chunk(self.at, chunk, bytes).await?;
        }
        if let Some(mine) = writing.columns.as_ref().and_then(|all| all.get(self.at)) {
            writing.current.show(self.at, mine.waiting());
        }
        match writing.changed_bytes() > CHANGED_BYTES_MAX {
            true => writing.commit().await,
            false => Ok(()),
        }
    }

    async fn exclude(&self, alone: bool) -> Exclusion<'_> {
        self.shared.writers.exclude(alone).await
    }
}

impl Writing {
    /// Whether any chunk in a file is to be changed.
    pub(crate) fn changes_chunks(&self) -> bool {
        self.columns.iter().flatten().any(|mine| !mine.changed.is_empty())
    }

    fn changed_bytes(&self) -> usize {
        let columns = self.columns.iter().flatten();
        columns.flat_map(|mine| mine.changed.values()).map(Bytes::len).sum()
    }
}

/// The new bytes of a chunk, and where the chunk is.
struct Change {
    chunk: u64,
    slot: u64,
    bytes: Bytes,
}

impl Writing {
    /// Makes sure that the rows which were read for a change are still the current ones.
    async fn begin_change(&mut self) -> Result<()> {
        if self.changed {
            return Ok(());
        }
        let known = self.committed().sizes.generation;
        self.claimed = false;
        self.begin().await?;
        // A claim is a commit of this handle.
        let claimed = u64::from(std::mem::take(&mut self.claimed));
        let now = self.committed().sizes.generation;
        if known.map(|known| known + claimed) != now {
            self.reset();
            return Err(Error::Conflict {
                message: format!(
                    "another writer has written to {} since it was read here; do it again",
                    self.access.store.url()
                ),
                conflicts: Vec::new(),
            });
        }
        self.changed = true;
        Ok(())
    }

    /// Replaces a chunk, for now only for readers of this handle.
    async fn change_chunk(&mut self, at: usize, chunk: u64, bytes: Option<Bytes>) -> Result<()> {
        let View { committed, len, .. } = self.current.view();
        let (Some(column), Some(mine)) = (committed.columns.get(at), self.column(at)) else {
            return Ok(());
        };
        if column.rows_in(chunk, len) == 0 {
            let name = format!("{chunk} of {}", column.path);
            return Err(Error::NotFound { what: Noun::Chunk, name });
        }
        let bytes = match bytes {
            Some(bytes) => bytes,
            None => encode(column, fill(column)).await?,
        };
        if chunk == mine.full {
            let rows = mine.rows.clone();
            let wanted = rows_of(&rows).bytes.len();
            let plain = cpu(move || {
                let mut plain = vec![0; wanted];
                blosc::decode_range(&bytes, 0..wanted, &mut plain).map(|()| plain)
            });
            let plain = plain.await??;
            rows_of(&rows).bytes = PartialChunk::of(&plain)?;
            (mine.held, mine.tail_chunk) = (true, None);
            return Ok(());
        }
        let first = mine.full - mine.pending.len() as u64;
        let waiting = chunk.checked_sub(first).and_then(|at| usize::try_from(at).ok());
        match waiting.and_then(|at| mine.pending.get_mut(at)) {
            Some(waiting) => {
                // The chunk was filled after the last commit, but its first rows count already.
                mine.held |= chunk.saturating_mul(column.chunklen) < committed.len();
                mine.cbytes += bytes.len() as i64 - waiting.len() as i64;
                *waiting = bytes;
            }
            None => {
                let (file, _) = column.place_of(chunk);
                if !committed.files.roots.is_here(file) {
                    return Err(Error::unsupported(format!(
                        "changing chunk {chunk} of {}: its file is kept elsewhere, by meta/sizes",
                        column.path
                    )));
                }
                mine.changed.insert(chunk, bytes);
            }
        }
        Ok(())
    }

    /// Changes chunks in their files; durable when this returns. While the journal exists, the next writer
    /// does it again.
    pub(crate) async fn apply_changes(&mut self) -> Result<()> {
        let view = self.current.view();
        let mut files: BTreeMap<(usize, u64), Vec<Change>> = BTreeMap::new();
        for (at, mine) in self.columns.iter().flatten().enumerate() {
            let Some(column) = view.committed.columns.get(at) else { continue };
            for (chunk, bytes) in &mine.changed {
                let (file, slot) = column.place_of(*chunk);
                let change = Change { chunk: *chunk, slot, bytes: bytes.clone() };
                files.entry((at, file)).or_default().push(change);
            }
        }
        if files.is_empty() {
            return Ok(());
        }
        let (mut journal, mut anew) = (Journal::default(), Vec::new());
        for ((at, file), changes) in files {
            let column = &view.committed.columns[at];
            let first = changes.first().map_or(0, |change| change.chunk);
            let (index, _) = view.find_slot(at, first).await?;
            match self.access.journal_entries(column, &index, &changes)? {
                Some(entries) => journal.entries.extend(entries),
                None => anew.push((at, file, index, changes)),
            }
        }
        self.access.publish_journal(&journal).await?;
        self.journal = true;
        for (at, file, index, changes) in anew {
            self.rewrite_file(&view, (at, file), &index, &changes).await?;
        }
        self.access.replay(&journal).await?;
        for mine in self.columns.iter_mut().flatten() {
            mine.changed.clear();
        }
        Ok(())
    }

    /// Writes a new file with the changed chunks, and replaces the old one.
    async fn rewrite_file(
        &mut self,
        view: &View,
        (at, file): (usize, u64),
        index: &FileIndex,
        changes: &[Change],
    ) -> Result<()> {
        let (access, committed) = (&self.access, &view.committed);
        let column = &committed.columns[at];
        let path = column.file(access.style, file);
        let begins = file.saturating_mul(column.superchunk);
        let count = (view.len / column.chunklen.max(1)).saturating_sub(begins);
        let count = count.min(index.chunks.len() as u64);
        let mut chunks = access.chunks_of(index, count).await?;
        let mut grown = 0;
        for change in changes {
            let slot = usize::try_from(change.slot).unwrap_or(usize::MAX);
            let Some(chunk) = chunks.get_mut(slot) else { continue };
            let mut bytes = change.bytes.to_vec();
            if column.slack > 0 {
                blosc::with_slack(&mut bytes, usize::try_from(column.slack).unwrap_or(0))?;
            }
            grown += bytes.len() as i64 - chunk.len() as i64;
            *chunk = bytes.into();
        }
        let entries = match access.style {
            Style::Superchunk => column.superchunk,
            _ => chunks.len() as u64,
        };
        let spec = column.file_spec(access.style, begins, entries)?;
        let (parts, index) = render(&spec, &path, committed, &chunks, begins)?;
        let mine = self.columns.as_mut().and_then(|all| all.get_mut(at));
        if let Some(mine) = mine {
            match access.protocol {
                Protocol::Locked => {
                    access.replace_file(&path, parts).await?;
                    access.store.sync_dir(&column.folder).await?;
                }
                Protocol::Claimed => {
                    let version = access.put_object(&path, parts, mine.versions.get(&file)).await?;
                    mine.versions.insert(file, version);
                }
            }
            mine.cbytes += grown;
        }
        committed.files.keep(at, file, Arc::new(index));
        Ok(())
    }
}

impl Access {
    /// The journal entries for the changes of a file, if each new chunk fits where the old one is.
    fn journal_entries(
        &self,
        column: &Column,
        index: &FileIndex,
        changes: &[Change],
    ) -> Result<Option<Vec<Entry>>> {
        if !self.changes_in_place() {
            return Ok(None);
        }
        let mut entries = Vec::with_capacity(changes.len());
        for change in changes {
            let at = usize::try_from(change.slot).unwrap_or(usize::MAX);
            let Some(place) = index.chunks.get(at) else { return Ok(None) };
            let room = usize::try_from(place.end - place.start).unwrap_or(usize::MAX);
            let Some(slack) = room.checked_sub(change.bytes.len()) else { return Ok(None) };
            let mut bytes = change.bytes.to_vec();
            if slack > 0 && !blosc::with_slack(&mut bytes, slack)? {
                return Ok(None);
            }
            let encoded = bytes.len() as u64;
            bytes.extend(index.digest.of(&bytes));
            entries.push(Entry {
                column: column.path.to_string(),
                chunk: change.chunk,
                file: index.rooted.path.to_string(),
                position: place.start,
                encoded,
                bytes: bytes.into(),
            });
        }
        Ok(Some(entries))
    }
}

/// A chunk of default elements, in the byte order of the file, not encoded.
fn fill(column: &Column) -> Bytes {
    let mut plain = vec![0; usize::try_from(column.chunk_bytes()).unwrap_or(0)];
    let item = usize::try_from(column.item_bytes()).unwrap_or(usize::MAX);
    if let Some(element) = column.default_row.get(..item) {
        chunkyard_array::fill_slice(&mut plain, element);
    }
    plain.into()
}
