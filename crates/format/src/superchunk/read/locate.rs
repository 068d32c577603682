//! Where a chunk is.
//!
//! The number of a full chunk gives its file and its slot. The rows behind the last full chunk are in a file of
//! their own, the tail. After rows were cut off, or after a writer died while it added rows, they may instead be
//! the first rows of a longer chunk, in the slot that their chunk gets once it is full. The rows of the last
//! chunk leave this module filled up to a whole chunk, so no other code has to handle a shorter or longer one.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::codec::blosc::{self, Params};
use chunkyard_store::{Check, ChunkRef, Digest, Error, Noun, Result, cpu};

use super::directory;
use super::files::FileIndex;
use crate::superchunk::access::Access;
use crate::superchunk::committed::{View, Waiting};
use crate::superchunk::corrupt;
use crate::superchunk::handle::Shared;
use crate::superchunk::model::Column;
use crate::superchunk::write::encode::rows_of;

/// How often a reader looks again for rows that are moving.
const LOOKS_AGAIN: usize = 8;

impl Shared {
    /// Where a chunk of a view is. With `packed`, a last chunk that is not full is compressed like the others.
    ///
    /// The rows of such a chunk move: into the next tail, or into the full chunk. A reader that looks in between
    /// finds neither, forgets what it knows about the two files, and looks again.
    pub(crate) async fn locate_chunk(
        &self,
        view: &View,
        at: usize,
        chunk: u64,
        packed: bool,
    ) -> Result<ChunkRef> {
        let Some(column) = view.committed.columns.get(at) else {
            return Err(Error::NotFound { what: Noun::Column, name: at.to_string() });
        };
        if column.rows_in(chunk, view.len) == 0 {
            let name = format!("{chunk} of {}", column.path);
            return Err(Error::NotFound { what: Noun::Chunk, name });
        }
        let mut found = view.locate_once(at, chunk, packed).await;
        for _ in 0..LOOKS_AGAIN {
            if !found.as_ref().is_err_and(may_be_moving) {
                break;
            }
            // As many rows as the reader asked for, wherever this handle knows them to be by now.
            let now = View { len: view.len, ..self.current.view() };
            let (file, _) = column.place_of(chunk);
            now.committed.files.forget(at, file);
            now.committed.files.forget(at, column.tail_file(chunk));
            found = now.locate_once(at, chunk, packed).await;
        }
        found
    }

    /// Tells a chunk that is damaged from one that was changed while it was read.
    pub(crate) async fn explain_change(&self, error: Error) -> Error {
        if !may_be_moving(&error) && !matches!(error, Error::Array(_)) {
            return error;
        }
        let known = self.current.committed().sizes.generation;
        // The journal first, then the generation: a writer moves the generation before it removes the journal,
        // so a change shows in one of the two.
        let changing = self.access.is_changing().await;
        let now = match directory::read(&self.access.store).await {
            Ok(Some(found)) => found.sizes.generation,
            _ => return error,
        };
        if !changing && (known.is_none() || now == known) {
            return error;
        }
        Error::Conflict {
            message: format!(
                "{} was changed while it was read ({error}); open it again",
                self.access.store.url()
            ),
            conflicts: Vec::new(),
        }
    }
}

impl View {
    /// Where a chunk is: in memory, or in a file as far as the files are known.
    async fn locate_once(&self, at: usize, chunk: u64, packed: bool) -> Result<ChunkRef> {
        let column = &self.committed.columns[at];
        let rows = column.rows_in(chunk, self.len);
        let waiting = self.waiting.get(at);
        let encoded = waiting.and_then(|waiting| waiting.chunk(chunk)).or_else(|| {
            // The file may still have the chunk as it was before the change.
            self.committed.journal.get(at)?.get(&chunk).cloned()
        });
        if let Some(bytes) = encoded {
            return Ok(ChunkRef::Inline(bytes));
        }
        let plain = match waiting.and_then(|waiting| waiting.rows_of(column, chunk, rows)) {
            Some(plain) => plain,
            None => {
                let found = self.find(at, chunk).await?;
                if rows == column.chunklen {
                    return Ok(found);
                }
                self.committed.access.decode_rows(column, &found, chunk, rows).await?
            }
        };
        let (padded, params) = (padded(column, &plain), column.params_or_default());
        let level = if packed { params.level } else { 0 };
        let params = Params { level, ..params };
        let encoded = cpu(move || {
            let mut encoded = Vec::new();
            blosc::encode_onto(&params, &padded, &mut encoded).map(|()| encoded)
        });
        Ok(ChunkRef::Inline(encoded.await??.into()))
    }

    /// Where in its file a chunk is. A last chunk that is not full may have more rows there than count.
    pub(crate) async fn find(&self, at: usize, chunk: u64) -> Result<ChunkRef> {
        let (column, files) = (&self.committed.columns[at], &self.committed.files);
        let (mut file, mut slot) = self.find_slot(at, chunk).await?;
        let moves = chunk == self.len / column.chunklen.max(1);
        if moves && file.guard.is_none() {
            // The index was kept when this handle wrote the file: it has no guard, and may be old.
            files.forget(at, column.place_of(chunk).0);
            files.forget(at, column.tail_file(chunk));
            (file, slot) = self.find_slot(at, chunk).await?;
        }
        let mut found =
            file.reference(slot).ok_or_else(|| missing(column, &file.rooted.name(), chunk))?;
        // A later tail with another chunk may lie at the same bytes, with a right digest. So the guard must
        // be the one of the file whose `first_chunk` was read.
        if let ChunkRef::Object { guard, .. } | ChunkRef::Remote { guard, .. } = &mut found {
            *guard = file.guard.clone().filter(|_| moves);
        }
        Ok(found)
    }

    /// The file that holds a chunk, and the chunk's slot in it.
    pub(crate) async fn find_slot(&self, at: usize, chunk: u64) -> Result<(Arc<FileIndex>, u64)> {
        let (column, files) = (&self.committed.columns[at], &self.committed.files);
        let style = self.committed.access.style;
        let (file, slot) = column.place_of(chunk);
        let full = self.len / column.chunklen.max(1);
        let tail = column.tail_file(full);
        // The tail first: a writer may still be writing the full chunk in its slot.
        let mut torn = None;
        if chunk == full
            && tail != file
            && let Some(index) = files.index(at, column, style, tail, 0).await?
        {
            if !index.chunks.is_empty() && index.first_chunk == Some(chunk) {
                return Ok((index, 0));
            }
            torn = Some(index.rooted.name());
        }
        let first = chunk - slot;
        let counted = full.saturating_sub(first).min(column.superchunk);
        let index = files.index(at, column, style, file, counted).await?;
        if let Some(index) = &index
            && slot < index.chunks.len() as u64
            && index.first_chunk.is_none_or(|said| said == first)
        {
            return Ok((index.clone(), slot));
        }
        // The message names the file that should hold the rows: behind the last full chunk that is the tail.
        Err(match (torn, index) {
            (Some(torn), _) => missing(column, &torn, chunk),
            (None, Some(index)) if chunk != full || tail == file => {
                missing(column, &index.rooted.name(), chunk)
            }
            (None, Some(_)) => no_file(column, &column.file(style, tail), chunk),
            (None, None) => no_file(column, &column.file(style, file), chunk),
        })
    }
}

impl Access {
    /// The first rows of a chunk, decoded.
    pub(crate) async fn decode_rows(
        &self,
        column: &Column,
        found: &ChunkRef,
        chunk: u64,
        rows: u64,
    ) -> Result<Bytes> {
        let name = format!("chunk {chunk} of {}", column.path);
        let bytes = self.fetcher.fetch_named(&[found], |_| name.clone()).await?.pop();
        let bytes = bytes.flatten().unwrap_or_default();
        let wanted = usize::try_from(rows.saturating_mul(column.row_bytes())).unwrap_or(usize::MAX);
        let most = column.chunk_bytes();
        cpu(move || {
            let header = blosc::Header::parse(&bytes)?;
            if header.decoded_bytes > most || header.decoded_bytes < wanted as u64 {
                return Err(Error::Corrupt {
                    file: name,
                    what: "its bytes when decoded".to_owned(),
                    expected: format!("{wanted} to {most}"),
                    found: header.decoded_bytes.to_string(),
                });
            }
            let mut rows = vec![0; wanted];
            blosc::decode_range(&bytes, 0..wanted, &mut rows)?;
            Ok(rows.into())
        })
        .await?
    }
}

impl Waiting {
    /// An encoded chunk.
    fn chunk(&self, chunk: u64) -> Option<Bytes> {
        if let Some(changed) = self.changed.get(&chunk) {
            return Some(changed.clone());
        }
        let at = usize::try_from(chunk.checked_sub(self.first)?).ok()?;
        self.chunks.get(at).cloned()
    }

    /// The first rows of a chunk that is not encoded yet; `None` if it is by now.
    fn rows_of(&self, column: &Column, chunk: u64, rows: u64) -> Option<Bytes> {
        let wanted = usize::try_from(rows.checked_mul(column.row_bytes())?).ok()?;
        rows_of(self.rows.as_ref()?).start_of(chunk, wanted)
    }
}

impl FileIndex {
    /// Where a chunk of the file is.
    pub(crate) fn reference(&self, slot: u64) -> Option<ChunkRef> {
        let range = self.chunks.get(usize::try_from(slot).ok()?)?.clone();
        let check = (self.digest != Digest::None).then_some(Check::Behind(self.digest));
        Some(match &self.rooted.url {
            None => ChunkRef::Object { path: self.rooted.path.clone(), range, guard: None, check },
            Some(url) => ChunkRef::Remote { url: url.clone(), range, guard: None, check },
        })
    }
}

/// Whether an error may mean that the rows have just moved.
pub(crate) fn may_be_moving(error: &Error) -> bool {
    matches!(
        error,
        Error::Corrupt { .. } | Error::NotFound { .. } | Error::VirtualSourceChanged { .. }
    )
}

/// The rows, filled up with default rows to a whole chunk.
pub(crate) fn padded(column: &Column, rows: &[u8]) -> Vec<u8> {
    let whole = usize::try_from(column.chunk_bytes()).unwrap_or(usize::MAX);
    let mut padded = Vec::with_capacity(whole);
    padded.extend_from_slice(rows);
    padded.resize(whole, 0);
    if let Some(rest) = padded.get_mut(rows.len()..) {
        chunkyard_array::fill_slice(rest, &column.default_row);
    }
    padded
}

fn missing(column: &Column, file: &str, chunk: u64) -> Error {
    lacking(column, file, chunk, "no such chunk in it")
}

fn no_file(column: &Column, file: &str, chunk: u64) -> Error {
    lacking(column, file, chunk, "no such file")
}

fn lacking(column: &Column, file: &str, chunk: u64, found: &str) -> Error {
    let what = format!("chunk {chunk} of {}", column.path);
    corrupt(file, &what, "there, because meta/sizes counts its rows", found)
}
