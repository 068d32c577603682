//! One open file of a container: its footer, read as far as needed.
//!
//! A file is opened by its tail, in one request if its footer is small. The [seal](crate::container::seal) in
//! front of the footer holds the lineage and the checksums; files of other programs have none.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use chunkyard_store::{Block, Error, Guard, Meta, Result, Store};

use super::footer_reader::{FooterReader, Windows, blame, read};
use super::name_index::NameIndex;
use super::stack::Id;
use crate::container::bytes::archive::{Resident, Stop, View};
use crate::container::bytes::footer::{self, Root};
use crate::container::bytes::seal::{self, PAGE_LEN, Seal};
use crate::container::bytes::stats_file;
use crate::container::bytes::trailer::{TRAILER_LEN, parse_trailer};
use crate::container::model::{ArrayStats, BlockMeta};

/// Bytes that are read of a file before anything is known about it.
const TAIL_BYTES: u64 = 64 << 10;

/// Bytes that are read of a seal before anything is known about it.
const SEAL_BYTES: u64 = 32 << 10;

/// Footers up to this size are kept whole.
const RESIDENT_BYTES_MAX: u64 = 512 << 10;

/// Blocks of a layer whose places are remembered.
const KNOWN_BLOCKS_MAX: usize = 16 << 10;

/// A layer's file.
#[derive(Debug)]
pub(crate) struct Layer {
    /// Its number; 0 for the base.
    pub(crate) number: u64,
    /// Its name in the store.
    pub(crate) path: Arc<str>,
    /// Bytes of the file.
    pub(crate) size: u64,
    /// Shows that the file is still the one that was opened.
    pub(crate) guard: Option<Guard>,
    /// Checksums and lineage; files of other programs have none.
    pub(crate) seal: Option<Seal>,
    /// The root of the footer.
    pub(crate) root: Root,
    /// Tells this opening of this file from any other, in caches.
    pub(crate) key: u64,
    reader: FooterReader,
    /// Checksums of blocks, once one has been read.
    block_crcs: tokio::sync::OnceCell<Option<Bytes>>,
    /// Positions of blocks by their ids, where the two differ.
    block_positions: OnceLock<HashMap<u32, u64>>,
    known_blocks: Mutex<HashMap<u32, Arc<Block>>>,
    name_index: tokio::sync::OnceCell<NameIndex>,
    statistics: tokio::sync::OnceCell<HashMap<String, ArrayStats>>,
    id: Id,
}

impl Layer {
    /// Opens a layer. A file that is no layer, or a torn one, is [`Error::Corrupt`].
    pub(crate) async fn open(
        store: &Store,
        number: u64,
        meta: &Meta,
        windows: &Windows,
    ) -> Result<Self> {
        let (path, size): (Arc<str>, u64) = (meta.path.as_str().into(), meta.size);
        let corrupt = |what: &str, expected: String, found: String| Error::Corrupt {
            file: path.to_string(),
            what: what.to_owned(),
            expected,
            found,
        };
        let guard = Guard::of(meta);
        let tail_at = size.saturating_sub(TAIL_BYTES);
        let mut tail =
            Tail { at: tail_at, bytes: read(store, &path, tail_at..size, guard.as_ref()).await? };
        let first = tail.bytes.clone();
        let trailer_at = size.checked_sub(TRAILER_LEN).ok_or_else(|| {
            corrupt("size", format!("at least {TRAILER_LEN} bytes"), format!("{size}"))
        })?;
        let trailer = tail.get(trailer_at..size).and_then(|bytes| bytes.first_chunk());
        let trailer = trailer.ok_or_else(|| Error::store("read", &*path, "too few bytes"))?;
        let footer_len = parse_trailer(trailer).map_err(|error| blame(&path, error))?;
        let footer_at = trailer_at.checked_sub(footer_len).ok_or_else(|| {
            corrupt(
                "length of the footer",
                format!("at most {trailer_at}"),
                format!("{footer_len}"),
            )
        })?;
        // The seal, if there is one, ends where the footer begins; its last bytes hold its length.
        let fixed_at = footer_at.saturating_sub(seal::TAIL_LEN);
        let resident = footer_len <= RESIDENT_BYTES_MAX;
        if fixed_at < tail.at {
            // With the checksums of the pages and of the blocks, which may be in front of it.
            let front = footer_at.saturating_sub(SEAL_BYTES);
            let wanted = if resident { front..size } else { front..footer_at };
            tail.cover(wanted, store, &path, guard.as_ref()).await?;
        }
        // Taken now: the next read may be far in front of it, and replace it.
        let whole = resident.then(|| Resident(tail.get_bytes(footer_at..trailer_at)));
        let seal = match seal::parse_tail(tail.get(fixed_at..footer_at).unwrap_or_default())
            .map_err(|error| blame(&path, error))?
        {
            None => {
                tail.refuse_displaced_seal(trailer_at).map_err(|error| blame(&path, error))?;
                None
            }
            Some(fixed) => {
                let len = fixed.parse_len();
                let words_at = footer_at.checked_sub(len).ok_or_else(|| {
                    corrupt("length of the seal", format!("at most {footer_at}"), len.to_string())
                })?;
                tail.cover(words_at..footer_at, store, &path, guard.as_ref()).await?;
                let words = tail.get(words_at..footer_at).unwrap_or_default();
                let seal = seal::parse(words).map_err(|error| blame(&path, error))?;
                if seal.footer_size != footer_len || seal.len() > footer_at {
                    return Err(corrupt(
                        "seal",
                        format!("of a footer of {footer_len} bytes, after the blocks"),
                        format!("of one of {} bytes", seal.footer_size),
                    ));
                }
                Some(seal)
            }
        };
        let block_crcs = seal.as_ref().and_then(|seal| {
            let range = absolute(footer_at - seal.len(), seal.block_crcs(0..seal.blocks));
            tail.get(range).map(Bytes::copy_from_slice)
        });
        let page_crcs = match &seal {
            None => None,
            Some(seal) => {
                let range = absolute(footer_at - seal.len(), seal.page_crcs(0..seal.pages));
                tail.cover(range.clone(), store, &path, guard.as_ref()).await?;
                Some(tail.get_bytes(range))
            }
        };
        let reader = FooterReader {
            store: store.clone(),
            path: path.clone(),
            guard: guard.clone(),
            range: footer_at..trailer_at,
            key: Block::new_owner(),
            windows: windows.clone(),
            whole,
            page_crcs,
        };
        reader.check_whole()?;
        if !resident {
            let last = (footer_len - 1) / PAGE_LEN;
            let page = Tail { at: tail_at, bytes: first.clone() }
                .get(footer_at + last * PAGE_LEN..trailer_at)
                .map(Bytes::copy_from_slice);
            page.map_or(Ok(()), |page| reader.keep(last, page))?;
        }
        let root = reader.parse(footer::root).await?;
        let id = match &seal {
            Some(seal) => seal.layer,
            None => derived_id(size, &first),
        };
        Ok(Self {
            number,
            path,
            size,
            guard,
            seal,
            root,
            key: reader.key,
            reader,
            block_crcs: tokio::sync::OnceCell::new_with(block_crcs.map(Some)),
            block_positions: OnceLock::new(),
            known_blocks: Mutex::default(),
            name_index: tokio::sync::OnceCell::new(),
            statistics: tokio::sync::OnceCell::new(),
            id,
        })
    }

    /// Its identity. Newer layers name it as the layer that they were made on.
    pub(crate) fn id(&self) -> Id {
        self.id
    }

    pub(crate) fn name_index_cell(&self) -> &tokio::sync::OnceCell<NameIndex> {
        &self.name_index
    }

    /// Bytes of blocks, seal included.
    pub(crate) fn data_len(&self) -> u64 {
        self.reader.range.start
    }

    /// Bytes of the footer.
    pub(crate) fn footer_len(&self) -> u64 {
        self.reader.range.end - self.reader.range.start
    }

    /// Whether arrays are sorted by name, as far as the file says.
    pub(crate) fn arrays_sorted(&self) -> bool {
        self.seal.as_ref().is_some_and(|seal| seal.arrays_sorted)
    }

    /// Whether chunk tables are sorted, as far as the file says.
    pub(crate) fn chunks_sorted(&self) -> bool {
        self.seal.as_ref().is_some_and(|seal| seal.chunks_sorted) || self.root.version >= 6
    }

    /// Parses a part of the footer, and fetches the bytes needed.
    pub(crate) async fn parse<T>(
        &self,
        parse: impl FnMut(&dyn View) -> Result<T, Stop>,
    ) -> Result<T> {
        self.reader.parse(parse).await
    }

    /// All of the footer, and which of its pages are damaged.
    pub(crate) async fn whole_footer(&self) -> Result<(Bytes, Vec<Error>)> {
        self.reader.read_whole().await
    }

    /// A block by its id, checked to lie within the data.
    pub(crate) async fn block(&self, id: u32) -> Result<BlockMeta> {
        let found = match self.block_positions.get() {
            None if u64::from(id) < self.root.blocks.len => {
                let block = self.parse(|view| footer::block(view, &self.root, id.into())).await?;
                (block.id == id).then_some(block)
            }
            _ => None,
        };
        let block = match found {
            Some(block) => block,
            None => self.block_elsewhere(id).await?,
        };
        let end = block.file_offset.checked_add(block.compressed_size);
        if end.is_none_or(|end| end > self.data_len()) {
            return Err(Error::Corrupt {
                file: self.path.to_string(),
                what: format!("block {id}"),
                expected: format!("bytes within the {} before the footer", self.data_len()),
                found: format!("{} at {}", block.compressed_size, block.file_offset),
            });
        }
        Ok(block)
    }

    /// A block whose position is not its id.
    async fn block_elsewhere(&self, id: u32) -> Result<BlockMeta> {
        let missing = || Error::Corrupt {
            file: self.path.to_string(),
            what: "block table".to_owned(),
            expected: format!("a block {id}"),
            found: format!("{} blocks without it", self.root.blocks.len),
        };
        if self.block_positions.get().is_none() {
            let blocks = self
                .parse(|view| footer::blocks(view, &self.root, 0..self.root.blocks.len))
                .await?;
            let mut positions = HashMap::with_capacity(blocks.len());
            for (position, block) in (0..).zip(&blocks) {
                // The first of several counts, as for other readers.
                positions.entry(block.id).or_insert(position);
            }
            // Another thread may have been faster, with the same result.
            drop(self.block_positions.set(positions));
        }
        let position = self.block_positions.get().and_then(|positions| positions.get(&id));
        let position = *position.ok_or_else(missing)?;
        self.parse(|view| footer::block(view, &self.root, position)).await
    }

    /// Where a block is, as the fetcher takes it.
    pub(crate) async fn block_ref(&self, id: u32) -> Result<Arc<Block>> {
        if let Some(known) = self.known_blocks().get(&id) {
            return Ok(known.clone());
        }
        let block = self.block(id).await?;
        let block = Arc::new(Block {
            path: self.path.clone(),
            range: block.file_offset..block.file_offset + block.compressed_size,
            guard: self.guard.clone(),
            crc32c: self.block_crc(id).await?,
            codec: block.codec.map(Into::into),
            len: block.uncompressed_size,
            owner: self.key,
        });
        let mut known = self.known_blocks();
        if known.len() >= KNOWN_BLOCKS_MAX {
            known.clear();
        }
        known.insert(id, block.clone());
        Ok(block)
    }

    fn known_blocks(&self) -> MutexGuard<'_, HashMap<u32, Arc<Block>>> {
        self.known_blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The checksum of a block, if there is one. Blocks of ours are numbered by position.
    async fn block_crc(&self, id: u32) -> Result<Option<u32>> {
        let Some(seal) = &self.seal else { return Ok(None) };
        let crcs = self.block_crcs.get_or_try_init(|| async {
            let range = absolute(self.data_len() - seal.len(), seal.block_crcs(0..seal.blocks));
            if range.is_empty() {
                return Ok(None);
            }
            self.reader.read(range).await.map(Some)
        });
        let at = usize::try_from(id).unwrap_or(usize::MAX).saturating_mul(4);
        let crc = crcs.await?.as_ref().and_then(|crcs| crcs.get(at..)?.first_chunk());
        Ok(crc.map(|crc| u32::from_le_bytes(*crc)))
    }

    /// The statistics in the seal, by name; none without a seal.
    pub(crate) async fn sealed_statistics(&self) -> Result<&HashMap<String, ArrayStats>> {
        self.statistics.get_or_try_init(|| self.read_statistics()).await
    }

    async fn read_statistics(&self) -> Result<HashMap<String, ArrayStats>> {
        let Some(seal) = self.seal.as_ref().filter(|seal| seal.statistics_len > 0) else {
            return Ok(HashMap::new());
        };
        let range = absolute(self.data_len() - seal.len(), seal.statistics());
        let bytes = self.reader.read(range).await?;
        let damaged = |expected: u32, found: u32| Error::Corrupt {
            file: self.path.to_string(),
            what: "checksum of the statistics".to_owned(),
            expected: format!("{expected:08x}"),
            found: format!("{found:08x}"),
        };
        let Some((payload, crc)) = bytes.split_last_chunk() else { return Err(damaged(0, 0)) };
        let (expected, found) = (u32::from_le_bytes(*crc), crc32c::crc32c(payload));
        if expected != found {
            return Err(damaged(expected, found));
        }
        let all = stats_file::parse_payload(payload).map_err(|error| blame(&self.path, error))?;
        Ok(all.into_iter().map(|stats| (stats.name.clone(), stats)).collect())
    }
}

/// The end of a file, as far as it was read.
struct Tail {
    at: u64,
    bytes: Bytes,
}

impl Tail {
    /// Reads more, if `wanted` begins before the bytes read so far.
    async fn cover(
        &mut self,
        wanted: Range<u64>,
        store: &Store,
        path: &str,
        guard: Option<&Guard>,
    ) -> Result<()> {
        if wanted.start >= self.at || wanted.is_empty() {
            return Ok(());
        }
        // The bytes between are not wanted when they are a large footer.
        if wanted.end <= self.at {
            let bytes = read(store, path, wanted.clone(), guard).await?;
            *self = Self { at: wanted.start, bytes };
            return Ok(());
        }
        let more = read(store, path, wanted.start..self.at, guard).await?;
        let bytes = [more, self.bytes.clone()].concat().into();
        *self = Self { at: wanted.start, bytes };
        Ok(())
    }

    /// Refuses a file whose seal is not where the trailer says: then the trailer is wrong.
    fn refuse_displaced_seal(&self, trailer_at: u64) -> Result<()> {
        let marks = self.bytes.windows(seal::MAGIC.len()).enumerate();
        for (at, _) in marks.filter(|(_, bytes)| *bytes == seal::MAGIC) {
            let end = at + seal::MAGIC.len();
            let footer_size = trailer_at.checked_sub(self.at + end as u64);
            let sealed = seal::parse_tail(self.bytes.get(..end).unwrap_or_default());
            if let Ok(Some(found)) = sealed
                && Some(found.footer_size()) == footer_size
            {
                return Err(Error::Corrupt {
                    file: String::new(),
                    what: "length of the footer in the trailer".to_owned(),
                    expected: found.footer_size().to_string(),
                    found: "another".to_owned(),
                });
            }
        }
        Ok(())
    }

    fn get(&self, range: Range<u64>) -> Option<&[u8]> {
        let start = usize::try_from(range.start.checked_sub(self.at)?).ok()?;
        let end = usize::try_from(range.end.checked_sub(self.at)?).ok()?;
        self.bytes.get(start..end)
    }

    /// A copy, so that a few bytes do not keep the whole read in memory.
    fn get_bytes(&self, range: Range<u64>) -> Bytes {
        Bytes::copy_from_slice(self.get(range).unwrap_or_default())
    }
}

/// A range relative to `at`, as a range of the file.
fn absolute(at: u64, within: Range<u64>) -> Range<u64> {
    at.saturating_add(within.start)..at.saturating_add(within.end)
}

/// An identity for a file without one: its size, and a checksum of its end.
fn derived_id(size: u64, tail: &[u8]) -> Id {
    let mut id = [0; 16];
    let (front, back) = id.split_at_mut(8);
    front.copy_from_slice(&size.to_le_bytes());
    back.copy_from_slice(&u64::from(crc32c::crc32c(tail)).to_le_bytes());
    id
}
