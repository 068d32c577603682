//! The files of a column: what the head of each says, and where its chunks lie.
//!
//! The chunks are the truth. In a file that grows in place, a reader trusts only the offsets of chunks that
//! count, since those never change; the header and everything behind these chunks may be torn.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::codec::blosc;
use chunkyard_store::{ByteCache, Digest, Error, Guard, Noun, Result};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value;

use super::directory::{COLUMN, DATASET};
use crate::superchunk::bloscpack::{FileHead, Header, Parsed};
use crate::superchunk::corrupt;
use crate::superchunk::model::{Column, Style};
use crate::superchunk::roots::{Rooted, Roots};

/// The first read of a file: enough for the header, the metadata and the offsets of most files.
const HEAD_BYTES: u64 = 16 << 10;
/// A longer head is refused: no file has that many chunks.
const HEAD_BYTES_MAX: u64 = 256 << 20;
/// Headers of chunks that are read at the same time, where offsets do not say where chunks end.
const LOOKS: usize = 32;
/// Memory for the heads that are kept.
const INDEX_BYTES_MAX: u64 = 32 << 20;

/// What is known about a file.
#[derive(Debug, Clone)]
pub(crate) struct FileIndex {
    /// Where it is.
    pub(crate) rooted: Rooted,
    /// Its length in bytes when it was read.
    pub(crate) size: u64,
    /// Tells it from a later file of the same name.
    pub(crate) guard: Option<Guard>,
    /// The digest behind each chunk.
    pub(crate) digest: Digest,
    /// The number of its first chunk, if its metadata has it.
    pub(crate) first_chunk: Option<u64>,
    /// Where its first chunk begins, if it has any.
    pub(crate) chunks_at: u64,
    /// The chunks in it, each with its header and without its digest.
    pub(crate) chunks: Vec<Range<u64>>,
}

impl FileIndex {
    /// Where the last chunk and its digest end.
    pub(crate) fn end(&self) -> u64 {
        let behind = self.digest.bytes() as u64;
        self.chunks.last().map_or(self.chunks_at, |chunk| chunk.end.saturating_add(behind))
    }

    fn weight(&self) -> usize {
        256 + self.chunks.len() * size_of::<Range<u64>>()
    }
}

/// The files that were read, by column and number. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) roots: Roots,
    kept: ByteCache<(usize, u64), Arc<FileIndex>>,
}

impl Files {
    pub(crate) fn new(roots: Roots) -> Self {
        let kept = ByteCache::new(INDEX_BYTES_MAX, |_, file: &Arc<FileIndex>| file.weight());
        Self { roots, kept }
    }

    /// Keeps the index of a file that was just written, so that it need not be read.
    pub(crate) fn keep(&self, column: usize, file: u64, index: Arc<FileIndex>) {
        self.kept.insert((column, file), index);
    }

    /// Forgets a file that was replaced.
    pub(crate) fn forget(&self, column: usize, file: u64) {
        self.kept.remove(&(column, file));
    }

    /// The file with a number; `None` if it does not exist. Its first `counted` chunks are full and
    /// trusted; one more is found if it lies right behind them.
    pub(crate) async fn index(
        &self,
        at: usize,
        column: &Column,
        style: Style,
        file: u64,
        counted: u64,
    ) -> Result<Option<Arc<FileIndex>>> {
        if let Some(known) = self.kept.get(&(at, file)) {
            return Ok(Some(known));
        }
        let rooted = self.roots.resolve(&column.folder, &column.file(style, file), file).await?;
        match read_index(rooted, column, style, counted).await {
            Ok(index) => {
                let index = Arc::new(index);
                self.kept.insert((at, file), index.clone());
                Ok(Some(index))
            }
            Err(Error::NotFound { what: Noun::Object, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Reads the head of a file, and finds its chunks.
pub(crate) async fn read_index(
    rooted: Rooted,
    column: &Column,
    style: Style,
    counted: u64,
) -> Result<FileIndex> {
    let meta = rooted.store.head(&rooted.path).await?;
    if meta.size == 0 {
        // On an object store an empty object is a removed one: see `remove_file`.
        return Err(Error::NotFound { what: Noun::Object, name: rooted.name() });
    }
    let (layout, offsets, head) = read_head(&rooted, meta.size, style == Style::Superchunk).await?;
    let digest = layout.header.digest;
    let own = OwnMetadata::of(&layout);
    refuse_foreign_file(&rooted.name(), column, own.as_ref())?;
    let file = File { rooted: &rooted, size: meta.size, head: &head, digest };
    let chunks = match &own {
        // Our writer lays chunks out in order and without gaps.
        Some(_) if style == Style::Superchunk && layout.header.has_offsets => {
            file.by_offsets(layout.chunks_at, &offsets, counted, column.chunk_bytes()).await?
        }
        _ => {
            let counted = counted.saturating_add(1);
            let counted = layout.header.chunks.unwrap_or(u64::MAX).min(counted);
            let most = column.chunk_bytes();
            match offsets.get(..usize::try_from(counted).unwrap_or(usize::MAX)) {
                Some(known) if known.iter().all(Option::is_some) => {
                    file.at_offsets(known, most).await?
                }
                _ => file.walk(layout.chunks_at, counted, most).await?,
            }
        }
    };
    Ok(FileIndex {
        size: meta.size,
        guard: Guard::of(&meta),
        digest,
        first_chunk: own.map(|own| own.first_chunk),
        chunks_at: layout.chunks_at,
        chunks,
        rooted,
    })
}

/// Reads a file and trusts its chunks only: all that seem to be there, and why there are no more.
pub(crate) async fn read_whole(
    rooted: Rooted,
    column: &Column,
    style: Style,
) -> Result<(FileIndex, Option<String>)> {
    let meta = rooted.store.head(&rooted.path).await?;
    if meta.size == 0 {
        return Err(Error::NotFound { what: Noun::Object, name: rooted.name() });
    }
    let (layout, _, head) = read_head(&rooted, meta.size, style == Style::Superchunk).await?;
    let (digest, own) = (layout.header.digest, OwnMetadata::of(&layout));
    refuse_foreign_file(&rooted.name(), column, own.as_ref())?;
    let file = File { rooted: &rooted, size: meta.size, head: &head, digest };
    let entries = own.as_ref().map_or(layout.header.chunks, |own| Some(own.superchunk));
    let (mut at, mut chunks, mut problem) = (layout.chunks_at, Vec::new(), None);
    while (chunks.len() as u64) < entries.unwrap_or(u64::MAX) && at < meta.size {
        match file.chunk_at(at, column.chunk_bytes()).await {
            Ok(chunk) => {
                at = chunk.end.saturating_add(digest.bytes() as u64);
                chunks.push(chunk);
            }
            Err(error @ Error::Corrupt { .. }) => {
                problem = Some(error.to_string());
                break;
            }
            Err(error) => return Err(error),
        }
    }
    let index = FileIndex {
        size: meta.size,
        guard: None,
        digest,
        first_chunk: own.map(|own| own.first_chunk),
        chunks_at: layout.chunks_at,
        chunks,
        rooted,
    };
    Ok((index, problem))
}

/// Header, metadata and offsets of a file, and the bytes that were read for them. A file that grows in
/// place may have a torn header.
pub(crate) async fn read_head(
    rooted: &Rooted,
    size: u64,
    grows: bool,
) -> Result<(FileHead, Vec<Option<u64>>, Bytes)> {
    let name = rooted.name();
    let mut wanted = HEAD_BYTES.min(size);
    loop {
        let head = rooted.store.get_range(&rooted.path, 0..wanted).await?;
        let own = if grows { OwnMetadata::read(&name, &head, size)? } else { None };
        let parsed = match own {
            Some(found) => found,
            None => FileHead::parse(&name, &head, size)?,
        };
        let more = match parsed {
            Parsed::Whole(layout, offsets) => return Ok((layout, offsets, head)),
            Parsed::Needs(more) => more,
        };
        if more <= wanted || more > size.min(HEAD_BYTES_MAX) {
            return Err(Error::Corrupt {
                file: name,
                what: "length of header, metadata and offsets".to_owned(),
                expected: format!("at most {} bytes", size.min(HEAD_BYTES_MAX)),
                found: format!("{more}"),
            });
        }
        wanted = more;
    }
}

/// The metadata of a file of ours, which never changes.
struct OwnMetadata {
    /// Entries of its table of offsets.
    superchunk: u64,
    first_chunk: u64,
    /// The dataset and the column it belongs to, if the metadata names them.
    of: Option<(String, String)>,
}

/// Refuses a file of another dataset or column: its chunks are sound, but their rows are the wrong ones.
fn refuse_foreign_file(file: &str, column: &Column, own: Option<&OwnMetadata>) -> Result<()> {
    let Some(dataset) = &column.dataset else { return Ok(()) };
    let shown = |dataset: &str, column: &str| format!("column {column} of dataset {dataset}");
    let found = own.and_then(|own| own.of.as_ref());
    match found.is_some_and(|(id, path)| **id == **dataset && **path == *column.path) {
        true => Ok(()),
        false => Err(corrupt(
            file,
            "the dataset and column of the file",
            shown(dataset, &column.path),
            found.map_or_else(|| "nothing".to_owned(), |(id, path)| shown(id, path)),
        )),
    }
}

impl OwnMetadata {
    fn of(layout: &FileHead) -> Option<Self> {
        let metadata: Value = serde_json::from_slice(layout.metadata.as_ref()?).ok()?;
        let number = |key: &str| metadata.get(key)?.as_u64();
        let text = |key: &str| Some(metadata.get(key)?.as_str()?.to_owned());
        Some(Self {
            superchunk: number("superchunk")?,
            first_chunk: number("first_chunk")?,
            of: text(DATASET).zip(text(COLUMN)),
        })
    }

    /// Reads the head of a file of ours without the chunk count in its header, which is overwritten in
    /// place and may be torn. `None` if it is not a file of ours.
    fn read(name: &str, head: &[u8], size: u64) -> Result<Option<Parsed>> {
        let mut still = head.to_vec();
        let Some(counts) = still.get_mut(16..32) else { return Ok(None) };
        counts.fill(0);
        let (mut layout, own) = match FileHead::parse_torn(name, &still, size)? {
            Parsed::Whole(layout, _) => match Self::of(&layout) {
                Some(own) if layout.header.has_offsets => (layout, own),
                _ => return Ok(None),
            },
            needs => return Ok(Some(needs)),
        };
        let end = own.superchunk.checked_mul(8);
        let end = end.and_then(|bytes| layout.offsets_at.checked_add(bytes)).unwrap_or(u64::MAX);
        let within = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let Some(table) = head.get(within(layout.offsets_at)..within(end)) else {
            return Ok(Some(Parsed::Needs(end)));
        };
        if let Ok(header) = Header::parse(name, head, size) {
            layout.header = header;
        }
        (layout.entries, layout.chunks_at) = (own.superchunk, end);
        let entries =
            table.as_chunks().0.iter().map(|entry| u64::try_from(i64::from_le_bytes(*entry)).ok());
        let offsets = entries.map(|entry| entry.filter(|at| (end..size).contains(at))).collect();
        Ok(Some(Parsed::Whole(layout, offsets)))
    }
}

/// A file whose chunks are looked for.
struct File<'a> {
    rooted: &'a Rooted,
    size: u64,
    /// Its first bytes.
    head: &'a Bytes,
    digest: Digest,
}

impl File<'_> {
    /// The chunks of a file of ours. Only the header of the last counted chunk says where it ends: the
    /// next offset may be torn. The bytes behind it are from a writer that is adding rows, or died; they
    /// are a chunk if they look like one.
    async fn by_offsets(
        &self,
        chunks_at: u64,
        offsets: &[Option<u64>],
        counted: u64,
        most: u64,
    ) -> Result<Vec<Range<u64>>> {
        let behind = self.digest.bytes() as u64;
        let least = blosc::HEADER_BYTES as u64 + behind;
        let counted = usize::try_from(counted).unwrap_or(usize::MAX);
        let mut starts: Vec<u64> = Vec::new();
        for offset in offsets.iter().take(counted) {
            let after = starts.last().map_or(chunks_at, |last| last + least);
            match offset.filter(|at| *at >= after && at.saturating_add(least) <= self.size) {
                Some(at) => starts.push(at),
                // The offset is damaged; the chunks show where they are, too.
                None => return self.walk(chunks_at, counted as u64, most).await,
            }
        }
        let mut chunks: Vec<Range<u64>> =
            starts.windows(2).map(|pair| pair[0]..pair[1].saturating_sub(behind)).collect();
        let mut end = chunks_at;
        if let Some(last) = starts.last() {
            let chunk = match self.chunk_at(*last, most).await {
                // A read of this chunk reports the damage; all others can be read.
                Err(Error::Corrupt { .. }) => *last..self.size.saturating_sub(behind),
                other => other?,
            };
            end = chunk.end.saturating_add(behind);
            chunks.push(chunk);
        }
        if offsets.get(counted).copied().flatten() == Some(end) {
            match self.chunk_at(end, most).await {
                Ok(chunk) => chunks.push(chunk),
                // Torn, and not counted yet.
                Err(Error::Corrupt { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(chunks)
    }

    /// Chunks at known offsets whose ends are not known.
    async fn at_offsets(&self, offsets: &[Option<u64>], most: u64) -> Result<Vec<Range<u64>>> {
        stream::iter(offsets.iter().flatten().copied().collect::<Vec<u64>>())
            .map(|offset| self.chunk_at(offset, most))
            .buffered(LOOKS)
            .try_collect()
            .await
    }

    /// Walks from chunk to chunk, until `counted` chunks are found or the file ends.
    async fn walk(&self, from: u64, counted: u64, most: u64) -> Result<Vec<Range<u64>>> {
        let (mut at, mut chunks) = (from, Vec::new());
        while (chunks.len() as u64) < counted && at < self.size {
            let chunk = self.chunk_at(at, most).await?;
            at = chunk.end.saturating_add(self.digest.bytes() as u64);
            chunks.push(chunk);
        }
        Ok(chunks)
    }

    /// The chunk that begins at a position, by its own header.
    async fn chunk_at(&self, at: u64, most: u64) -> Result<Range<u64>> {
        let corrupt = |expected: String, found: String| Error::Corrupt {
            file: self.rooted.name(),
            what: format!("the chunk at byte {at}"),
            expected,
            found,
        };
        let end = at.checked_add(blosc::HEADER_BYTES as u64).filter(|end| *end <= self.size);
        let Some(end) = end else {
            return Err(corrupt("a header of 16 bytes".into(), format!("{} bytes", self.size)));
        };
        let header = match self.head.get(at as usize..end as usize) {
            Some(header) => Bytes::copy_from_slice(header),
            None => self.rooted.store.get_range(&self.rooted.path, at..end).await?,
        };
        let header = blosc::Header::parse(&header)
            .map_err(|error| corrupt("the header of a Blosc chunk".into(), error.to_string()))?;
        if header.decoded_bytes > most {
            let expected = format!("at most {most} bytes when decoded");
            return Err(corrupt(expected, header.decoded_bytes.to_string()));
        }
        let behind = self.digest.bytes() as u64;
        let end = at.checked_add(header.encoded_bytes);
        match end.filter(|end| end.saturating_add(behind) <= self.size) {
            Some(end) => Ok(at..end),
            None => {
                let expected = format!("{} bytes and a digest of {behind}", header.encoded_bytes);
                Err(corrupt(expected, format!("the end of the file at {}", self.size)))
            }
        }
    }
}
