//! Writes chunks to files.
//!
//! A file of our own layout grows in place: first the new chunks, behind its last one, then their offsets, then
//! the header with the new count. Any other file, and any object, is written as a whole and replaced in one
//! step. New chunks count only once `meta/sizes` counts them.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_store::{Digest, Error, Result, Uid};
use serde_json::json;

use super::append::chunk_len;
use super::claim::WRITER;
use super::encode::encode;
use super::{ColumnWriting, Writing};
use crate::superchunk::access::Access;
use crate::superchunk::bloscpack::{FileSpec, Version as PackVersion, head_bytes, render_head};
use crate::superchunk::committed::Committed;
use crate::superchunk::dtype;
use crate::superchunk::model::{Column, Style};
use crate::superchunk::names;
use crate::superchunk::protocol::Protocol;
use crate::superchunk::read::directory::{COLUMN, DATASET};
use crate::superchunk::read::files::FileIndex;
use crate::superchunk::roots::Rooted;

impl Column {
    /// The layout of a file whose first chunk is `first`, with room for `entries` chunks.
    pub(crate) fn file_spec(&self, style: Style, first: u64, entries: u64) -> Result<FileSpec> {
        let item = self.params_or_default().item;
        let chunk_bytes = u32::try_from(chunk_len(self)?).unwrap_or(u32::MAX);
        let spec = FileSpec::new(item, chunk_bytes, entries);
        let shape: Vec<u64> = [self.chunklen].into_iter().chain(self.row_shape.clone()).collect();
        let mut metadata = json!({
            "dtype": dtype::render(&self.row)?,
            "shape": shape,
            "superchunk": entries,
            "first_chunk": first,
            "others": [],
        });
        if let Some(dataset) = &self.dataset {
            metadata[DATASET] = json!(**dataset);
            metadata[COLUMN] = json!(*self.path);
        }
        let metadata = Some(metadata.to_string().into_bytes());
        Ok(match style {
            // The metadata never changes, so it needs no room to grow.
            Style::Superchunk => {
                let mut spec = FileSpec { metadata, digest: self.digest, ..spec };
                spec.section.deflate = false;
                spec.section.room =
                    spec.metadata.as_ref().and_then(|json| u32::try_from(json.len()).ok());
                spec
            }
            Style::Document => {
                FileSpec { version: PackVersion::Interim, metadata, digest: self.digest, ..spec }
            }
            Style::Bcolz => {
                FileSpec { version: PackVersion::V1, digest: Digest::None, offsets: false, ..spec }
            }
        })
    }
}

impl FileSpec {
    /// Copies the writer that the metadata `found` names, so that the two can be compared.
    pub(crate) fn sign_as(&mut self, found: Option<&[u8]>) -> Result<()> {
        let said = found.and_then(|json| serde_json::from_slice::<serde_json::Value>(json).ok());
        match said.as_ref().and_then(|said| said.get(WRITER)) {
            Some(writer) => self.sign(writer),
            None => Ok(()),
        }
    }

    /// Puts the name of a writer into the metadata.
    fn sign(&mut self, writer: &serde_json::Value) -> Result<()> {
        let Some(metadata) = &mut self.metadata else { return Ok(()) };
        let mut said: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(metadata)
            .map_err(|error| Error::invalid(format!("metadata of a file: {error}")))?;
        said.insert(WRITER.to_owned(), writer.clone());
        *metadata = json!(said).to_string().into_bytes();
        if let Some(room) = &mut self.section.room {
            *room = u32::try_from(metadata.len()).unwrap_or(u32::MAX);
        }
        Ok(())
    }
}

impl Writing {
    /// Writes the waiting chunks once there are many of them or they fill a file.
    pub(super) async fn write_some(&mut self, at: usize, bytes_max: usize) -> Result<()> {
        loop {
            let committed = self.committed();
            let Some(column) = committed.columns.get(at) else { return Ok(()) };
            let Some(mine) = self.columns.as_mut().and_then(|all| all.get_mut(at)) else {
                return Ok(());
            };
            if mine.held && bytes_max > 0 {
                return Ok(());
            }
            let first = mine.full - mine.pending.len() as u64;
            let (_, slot) = column.place_of(first);
            let room =
                usize::try_from(column.superchunk.saturating_sub(slot)).unwrap_or(usize::MAX);
            let waiting: usize = mine.pending.iter().map(Bytes::len).sum();
            // An object is written as a whole, so its chunks wait until it is complete.
            let many = waiting > bytes_max && self.access.store.writes_in_place();
            let all = bytes_max == 0 && !mine.pending.is_empty();
            if mine.pending.len() < room && !many && !all {
                return Ok(());
            }
            let some: Vec<Bytes> = mine.pending.drain(..room.min(mine.pending.len())).collect();
            let written = mine.write_chunks(&committed, &mut self.dirty, at, first, &some).await;
            if let Err(error) = written {
                mine.pending.splice(0..0, some);
                return Err(error);
            }
            self.current.show(at, mine.waiting());
        }
    }
}

impl ColumnWriting {
    /// Writes chunks to one file, beginning with chunk `first`.
    async fn write_chunks(
        &mut self,
        committed: &Committed,
        dirty: &mut std::collections::BTreeSet<String>,
        at: usize,
        first: u64,
        chunks: &[Bytes],
    ) -> Result<()> {
        let (access, column) = (&committed.access, &committed.columns[at]);
        let (file, slot) = column.place_of(first);
        let path = column.file(access.style, file);
        let begins = first - slot;
        let before = match slot {
            0 => None,
            _ => {
                let found = committed.files.index(at, column, access.style, file, slot).await?;
                let there = found.filter(|index| index.chunks.len() as u64 >= slot);
                Some(there.ok_or_else(|| too_few_chunks(&path, slot))?)
            }
        };
        let index = match &before {
            Some(before) if access.changes_in_place() && before.rooted.url.is_none() => {
                dirty.insert(path.clone());
                access.grow_file(column, before, begins, slot, chunks).await?
            }
            _ => {
                let old = match &before {
                    Some(before) => access.chunks_of(before, slot).await?,
                    None => Vec::new(),
                };
                let whole: Vec<Bytes> = old.into_iter().chain(chunks.iter().cloned()).collect();
                let entries = match access.style {
                    Style::Superchunk => column.superchunk,
                    _ => whole.len() as u64,
                };
                let spec = column.file_spec(access.style, begins, entries)?;
                let (parts, index) = render(&spec, &path, committed, &whole, begins)?;
                if access.protocol == Protocol::Locked {
                    if self.tail == Some(file) {
                        // This replaces the old tail. Its rows are in a full chunk of an earlier file.
                        let before: Vec<String> = dirty.iter().cloned().collect();
                        access.store.sync_content(&before).await?;
                    }
                    // Rows that count must not go before their replacement is durable.
                    match slot > 0 || self.tail == Some(file) {
                        true => access.replace_file(&path, parts).await?,
                        false => access.store.put(&path, parts).await?,
                    }
                    dirty.insert(path.clone());
                } else {
                    let version = access.put_object(&path, parts, self.versions.get(&file)).await?;
                    self.versions.insert(file, version);
                }
                index
            }
        };
        committed.files.keep(at, file, Arc::new(index));
        Ok(())
    }
}

impl Access {
    /// Adds chunks to a file that has `slot` chunks.
    async fn grow_file(
        &self,
        column: &Column,
        before: &FileIndex,
        begins: u64,
        slot: u64,
        chunks: &[Bytes],
    ) -> Result<FileIndex> {
        let path = before.rooted.path.clone();
        let spec = column.file_spec(self.style, begins, column.superchunk)?;
        let behind = spec.digest.bytes() as u64;
        let mut index = before.clone();
        index.chunks.truncate(usize::try_from(slot).unwrap_or(usize::MAX));
        let start = index.end();
        let (mut parts, mut offsets, mut end) = (Vec::new(), Vec::new(), start);
        for chunk in chunks {
            offsets.extend_from_slice(&end.to_le_bytes());
            index.chunks.push(end..end + chunk.len() as u64);
            end += chunk.len() as u64 + behind;
            parts.push(chunk.clone());
            parts.push(spec.digest.of(chunk).into());
        }
        self.store.write_at(&path, start, parts).await?;
        let table = before.table_at(column);
        self.store.write_at(&path, table + 8 * slot, vec![offsets.into()]).await?;
        let header = spec.header(index.chunks.len() as u64, spec.chunk_bytes)?.render()?;
        self.store.write_at(&path, 0, vec![header.into()]).await?;
        index.size = index.size.max(end);
        index.guard = None;
        Ok(index)
    }

    /// Cuts a file to the chunks in `index`, which are its first ones.
    pub(crate) async fn cut_file(
        &self,
        column: &Column,
        file: u64,
        index: &FileIndex,
    ) -> Result<()> {
        let path = column.file(self.style, file);
        let (header, table) = self.head_of(column, file, index)?;
        self.store.write_at(&path, index.table_at(column), vec![table.into()]).await?;
        self.store.write_at(&path, 0, vec![header.into()]).await?;
        let paths = [path];
        self.store.sync(&paths).await?;
        let [path] = paths;
        self.store.truncate(&path, index.end()).await?;
        self.store.sync(&[path]).await
    }

    /// The header and the offsets of a file of ours with these chunks.
    fn head_of(&self, column: &Column, file: u64, index: &FileIndex) -> Result<(Vec<u8>, Vec<u8>)> {
        let begins = file.saturating_mul(column.superchunk);
        let spec = column.file_spec(self.style, begins, column.superchunk)?;
        let header = spec.header(index.chunks.len() as u64, spec.chunk_bytes)?.render()?;
        let mut table = Vec::new();
        index.chunks.iter().for_each(|chunk| table.extend(chunk.start.to_le_bytes()));
        let entries = usize::try_from(column.superchunk.saturating_mul(8)).unwrap_or(0);
        table.resize(entries.max(table.len()), 0xff);
        Ok((header, table))
    }

    /// Whether header and offsets of a file of ours list exactly these chunks, and nothing follows them.
    pub(crate) async fn is_whole(
        &self,
        column: &Column,
        file: u64,
        index: &FileIndex,
    ) -> Result<bool> {
        if index.end() != index.size {
            return Ok(false);
        }
        let (header, table) = self.head_of(column, file, index)?;
        let (path, at) = (&index.rooted.path, index.table_at(column));
        let ranges = [0..header.len() as u64, at..at + table.len() as u64];
        let found = index.rooted.store.get_ranges(path, &ranges, None).await?;
        Ok(found.iter().map(|bytes| bytes.to_vec()).eq([header, table]))
    }

    /// Writes the rows behind the last full chunk to a file of their own; durable when this returns.
    pub(crate) async fn put_tail(
        &self,
        committed: &Committed,
        at: usize,
        full: u64,
        rows: &Bytes,
    ) -> Result<()> {
        let column = &committed.columns[at];
        let chunk = encode(column, rows.clone()).await?;
        let (path, parts, _) = committed.render_tail(column, full, &chunk)?;
        self.replace_file(&path, parts).await?;
        self.store.sync_dir(&column.folder).await
    }

    /// The first chunks of a file, still encoded, with their digests checked.
    pub(crate) async fn chunks_of(&self, index: &FileIndex, count: u64) -> Result<Vec<Bytes>> {
        let wanted: Vec<_> = (0..count).filter_map(|slot| index.reference(slot)).collect();
        let wanted: Vec<_> = wanted.iter().collect();
        let name = index.rooted.name();
        let fetched = self.fetcher.fetch_named(&wanted, |slot| format!("chunk {slot} of {name}"));
        Ok(fetched.await?.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// Writes a file under a temporary name, which no reader looks for.
    pub(crate) async fn put_temporary(&self, path: &str, parts: Vec<Bytes>) -> Result<String> {
        let (folder, _) = path.rsplit_once('/').unwrap_or(("", path));
        let temp = format!("{folder}/{}{}", names::TEMP, Uid::fresh()?);
        self.store.put(&temp, parts).await?;
        Ok(temp)
    }

    /// Replaces a file by a new one whose bytes are durable first. The new name is durable once the folder is
    /// synced.
    pub(crate) async fn replace_file(&self, path: &str, parts: Vec<Bytes>) -> Result<()> {
        let temp = self.put_temporary(path, parts).await?;
        self.store.sync_content(std::slice::from_ref(&temp)).await?;
        self.store.rename(&temp, path).await
    }
}

impl Committed {
    /// The tail file, whose rows are in `chunk`.
    pub(crate) fn render_tail(
        &self,
        column: &Column,
        full: u64,
        chunk: &Bytes,
    ) -> Result<(String, Vec<Bytes>, FileIndex)> {
        let path = column.file(self.access.style, column.tail_file(full));
        let spec = column.file_spec(self.access.style, full, 1)?;
        let (parts, index) = render(&spec, &path, self, std::slice::from_ref(chunk), full)?;
        Ok((path, parts, index))
    }

    /// On an object store, adds the writer to the metadata. There an etag may be a digest of the bytes, so if
    /// the same rows are cut off and added again, the object gets its old etag: a writer that slept
    /// would not notice that it was replaced.
    fn signed(&self, spec: &FileSpec) -> Result<FileSpec> {
        let mut spec = spec.clone();
        let writer = self.sizes.other.get(WRITER).cloned();
        if let Some(writer) = writer.filter(|_| self.access.protocol == Protocol::Claimed) {
            spec.sign(&writer)?;
        }
        Ok(spec)
    }
}

impl FileIndex {
    /// The position of the table of offsets, in a file of ours.
    fn table_at(&self, column: &Column) -> u64 {
        self.chunks_at.saturating_sub(column.superchunk.saturating_mul(8))
    }
}

/// The bytes of a file of chunks, and where each chunk lies in it.
pub(crate) fn render(
    spec: &FileSpec,
    path: &str,
    committed: &Committed,
    chunks: &[Bytes],
    first: u64,
) -> Result<(Vec<Bytes>, FileIndex)> {
    let spec = &committed.signed(spec)?;
    let chunks_at = head_bytes(spec)?;
    let mut index = FileIndex {
        rooted: Rooted { store: committed.access.store.clone(), path: path.into(), url: None },
        size: 0,
        guard: None,
        digest: spec.digest,
        first_chunk: (spec.metadata.is_some()).then_some(first),
        chunks_at,
        chunks: Vec::with_capacity(chunks.len()),
    };
    let mut parts = vec![Bytes::new()];
    for chunk in chunks {
        let start = index.end();
        index.chunks.push(start..start + chunk.len() as u64);
        parts.push(chunk.clone());
        if spec.digest != Digest::None {
            parts.push(spec.digest.of(chunk).into());
        }
    }
    index.size = index.end();
    let offsets: Vec<u64> = index.chunks.iter().map(|chunk| chunk.start).collect();
    let last = chunks.last().map(|chunk| chunkyard_array::codec::blosc::Header::parse(chunk));
    let last = last.transpose()?.map_or(0, |header| header.decoded_bytes);
    let head = render_head(spec, &offsets, u32::try_from(last).unwrap_or(u32::MAX))?;
    if let Some(place) = parts.first_mut() {
        *place = head.into();
    }
    Ok((parts, index))
}

pub(crate) fn too_few_chunks(path: &str, slot: u64) -> Error {
    Error::Corrupt {
        file: path.to_owned(),
        what: "the chunks before those that are added".to_owned(),
        expected: slot.to_string(),
        found: "fewer".to_owned(),
    }
}
