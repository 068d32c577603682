//! Writes a pack as whole files of chunks.
//!
//! A file has all of its chunks, in order; a chunk that the pack lacks holds the fill value, which is
//! compressed once. In a directory a chunk is written as soon as all chunks before it are, and the head at
//! the end; an object is put when it is complete.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_array::ChunkIndex;
use chunkyard_array::codec::blosc;
use chunkyard_store::{Digest, Error, Result, Store, Upload, cpu};

use crate::superchunk::bloscpack::{FileSpec, head_bytes, render_head};
use crate::superchunk::model::{Column, Style};
use crate::superchunk::write::append::default_rows;
use crate::superchunk::write::encode::encode;
use crate::worker_packs::receipt;
use crate::{Pack, PackWriter, Receipt};

/// Bytes of one write.
const WRITE_BYTES: usize = 4 << 20;

/// Where the chunks of an array go.
#[derive(Debug)]
pub(crate) struct Target {
    /// Folder of the dataset, with a slash at the end, or empty.
    pub(crate) folder: String,
    /// The dataset's path in a tree.
    pub(crate) member: String,
    pub(crate) column: Column,
    pub(crate) style: Style,
    /// Rows of the array.
    pub(crate) len: u64,
}

impl Target {
    /// The same with an id, which tells the dataset from others.
    pub(crate) fn identified(&self, id: Option<&str>) -> Self {
        let dataset = id.filter(|_| self.style != Style::Bcolz);
        let dataset = dataset.map(|id| id_within(id, &self.member).into());
        let Self { folder, member, column, style, len } = self;
        let column = Column { dataset, ..column.clone() };
        Self { folder: folder.clone(), member: member.clone(), column, style: *style, len: *len }
    }

    /// The path of the file for a chunk, its first chunk, and how many chunks it will have.
    fn file_of(&self, chunk: u64) -> (String, u64, u64) {
        let full = self.len / self.column.chunklen.max(1);
        let (file, slot) = self.column.place_of(chunk);
        let (file, first, chunks) = match chunk < full {
            true => (file, chunk - slot, self.column.superchunk.min(full - (chunk - slot))),
            false => (self.column.tail_file(full), full, 1),
        };
        (format!("{}{}", self.folder, self.column.file(self.style, file)), first, chunks)
    }

    /// The layout of a file with `chunks` chunks.
    fn spec_of(&self, first: u64, chunks: u64) -> Result<FileSpec> {
        let tail = first >= self.len / self.column.chunklen.max(1);
        let entries = match self.style {
            Style::Superchunk if !tail => self.column.superchunk,
            _ => chunks,
        };
        self.column.file_spec(self.style, first, entries)
    }
}

/// The id of a dataset in a tree, from the id of the tree.
pub(crate) fn id_within(id: &str, member: &str) -> String {
    match member {
        "/" => id.to_owned(),
        path => format!("{id}{path}"),
    }
}

/// Writes a pack of an array.
pub(crate) struct SuperchunkWriter {
    store: Store,
    target: Arc<Target>,
    /// The next chunk to write, and the one after the last.
    next: u64,
    end: u64,
    /// Chunks that came too early: earlier ones are missing.
    held: BTreeMap<u64, Bytes>,
    /// A chunk of the fill value.
    default: Option<Bytes>,
    open: Option<OpenFile>,
    paths: Vec<String>,
    chunks: u64,
    bytes: u64,
}

impl SuperchunkWriter {
    pub(crate) fn new(store: Store, target: Arc<Target>, pack: &Pack) -> Self {
        let chunklen = target.column.chunklen.max(1);
        let origin = pack.region.origin().first().copied().unwrap_or(0);
        let rows = pack.region.shape().first().copied().unwrap_or(1);
        Self {
            store,
            target,
            next: origin / chunklen,
            end: origin.saturating_add(rows).div_ceil(chunklen),
            held: BTreeMap::new(),
            default: None,
            open: None,
            paths: Vec::new(),
            chunks: 0,
            bytes: 0,
        }
    }

    /// Writes the chunks whose predecessors are all written. The others wait, however many they are: a missing
    /// chunk may still come, and only at the end is it known which ones hold the fill value.
    async fn write_held(&mut self) -> Result<()> {
        while self.held.first_key_value().is_some_and(|(chunk, _)| *chunk == self.next) {
            self.write_next().await?;
        }
        Ok(())
    }

    /// Writes the next chunk: as it came, or one of the fill value.
    async fn write_next(&mut self) -> Result<()> {
        let chunk = self.next;
        let column = &self.target.column;
        let bytes = match (self.held.remove(&chunk), &self.default) {
            (Some(bytes), _) => bytes,
            (None, Some(default)) => default.clone(),
            (None, None) => {
                let plain = default_rows(column, column.chunklen);
                let encoded = encode(column, plain).await?;
                self.default = Some(encoded.clone());
                encoded
            }
        };
        let rows = column.rows_in(chunk, self.target.len);
        let bytes = if rows < column.chunklen { cut(column, bytes, rows).await? } else { bytes };
        let (path, first, chunks) = self.target.file_of(chunk);
        if self.open.as_ref().is_none_or(|open| open.path != path) {
            self.close_file().await?;
            let spec = self.target.spec_of(first, chunks)?;
            self.open = Some(OpenFile::begin(&self.store, spec, path, chunks).await?);
        }
        if let Some(open) = &mut self.open {
            (self.chunks, self.bytes) = (self.chunks + 1, self.bytes + bytes.len() as u64);
            open.add(bytes).await?;
        }
        self.next += 1;
        Ok(())
    }

    async fn close_file(&mut self) -> Result<()> {
        if let Some(open) = self.open.take() {
            self.paths.push(open.close(&self.store).await?);
        }
        Ok(())
    }
}

#[async_trait]
impl PackWriter for SuperchunkWriter {
    async fn push(&mut self, chunks: Vec<(ChunkIndex, Bytes)>) -> Result<()> {
        for (index, bytes) in chunks {
            let chunk = index.first().copied().unwrap_or(0);
            if !(self.next..self.end).contains(&chunk) {
                return Err(Error::invalid(format!(
                    "chunk {chunk} of {} came twice, or is of another pack",
                    self.target.column.path
                )));
            }
            check(&self.target.column, chunk, &bytes)?;
            self.held.insert(chunk, bytes);
        }
        self.write_held().await
    }

    async fn close(mut self: Box<Self>) -> Result<Receipt> {
        while self.next < self.end {
            self.write_next().await?;
        }
        self.close_file().await?;
        Ok(receipt(self.chunks, self.bytes, &self.paths))
    }
}

/// Refuses a chunk that is not whole: no reader could read the file.
fn check(column: &Column, chunk: u64, bytes: &Bytes) -> Result<()> {
    let header = blosc::Header::parse(bytes)?;
    let expected = (column.chunk_bytes(), bytes.len() as u64);
    let found = (header.decoded_bytes, header.encoded_bytes);
    match found == expected {
        true => Ok(()),
        false => Err(Error::Corrupt {
            file: format!("chunk {chunk} of {}", column.path),
            what: "its bytes when decoded and encoded".to_owned(),
            expected: format!("{} and {}", expected.0, expected.1),
            found: format!("{} and {}", found.0, found.1),
        }),
    }
}

/// The first rows of a chunk, as a shorter chunk.
async fn cut(column: &Column, bytes: Bytes, rows: u64) -> Result<Bytes> {
    let wanted = usize::try_from(rows.saturating_mul(column.row_bytes())).unwrap_or(usize::MAX);
    let plain = cpu(move || {
        let mut plain = vec![0; wanted];
        blosc::decode_range(&bytes, 0..wanted, &mut plain)?;
        Ok::<_, Error>(Bytes::from(plain))
    });
    encode(column, plain.await??).await
}

/// A file of chunks being written. Its head is known only after the last chunk.
pub(crate) struct OpenFile {
    path: String,
    spec: FileSpec,
    offsets: Vec<u64>,
    /// Bytes so far, its head included.
    length: u64,
    last_bytes: u32,
    waiting: Vec<Bytes>,
    waiting_bytes: usize,
    /// Takes the waiting bytes; `None` if the whole file waits in memory.
    upload: Option<Box<dyn Upload>>,
}

impl OpenFile {
    /// Begins a file.
    pub(crate) async fn begin(
        store: &Store,
        spec: FileSpec,
        path: String,
        chunks: u64,
    ) -> Result<Self> {
        let length = head_bytes(&spec)?;
        let mut upload = None;
        if store.writes_in_place() && chunks > 1 {
            let mut begun = store.begin(&path).await?;
            let room = vec![0; usize::try_from(length).unwrap_or(0)];
            begun.write(vec![room.into()]).await?;
            upload = Some(begun);
        }
        Ok(Self {
            path,
            spec,
            offsets: Vec::new(),
            length,
            last_bytes: 0,
            waiting: Vec::new(),
            waiting_bytes: 0,
            upload,
        })
    }

    /// Adds the next chunk.
    pub(crate) async fn add(&mut self, chunk: Bytes) -> Result<()> {
        let decoded = blosc::Header::parse(&chunk)?.decoded_bytes;
        self.last_bytes = u32::try_from(decoded).unwrap_or(u32::MAX);
        self.offsets.push(self.length);
        self.length += chunk.len() as u64 + self.spec.digest.bytes() as u64;
        self.waiting_bytes += chunk.len();
        let digest = (self.spec.digest != Digest::None).then(|| self.spec.digest.of(&chunk).into());
        self.waiting.push(chunk);
        self.waiting.extend(digest);
        if let Some(upload) = self.upload.as_mut().filter(|_| self.waiting_bytes > WRITE_BYTES) {
            self.waiting_bytes = 0;
            upload.write(std::mem::take(&mut self.waiting)).await?;
        }
        Ok(())
    }

    /// Completes the file, and gives its path.
    pub(crate) async fn close(self, store: &Store) -> Result<String> {
        let head = Bytes::from(render_head(&self.spec, &self.offsets, self.last_bytes)?);
        match self.upload {
            Some(mut upload) => {
                upload.write(self.waiting).await?;
                upload.patch(0, head).await?;
                upload.finish().await?;
            }
            None => {
                let parts = std::iter::once(head).chain(self.waiting).collect();
                store.put(&self.path, parts).await?;
            }
        }
        Ok(self.path)
    }
}
