//! The index of a table: where each block is, and its first key.
//!
//! ```text
//!  blocks │ index, a flatbuffer │ u32 length │ checksum │ u32 length       big-endian
//! ```

use std::ops::Range;

use chunkyard_store::Result;

use super::wire::{be_u32_last, corrupt};
use super::{checksum, key};

/// The most bytes that a checksum takes as protobuf.
const CHECKSUM_BYTES_MAX: usize = 64;

/// The largest index that is read, and the largest block: more could be a hole in a file, which takes no room there
/// and much in memory. Indices of Badger's largest tables have a few MiB, blocks mostly 4 KiB.
const INDEX_BYTES_MAX: u64 = 256 << 20;
const BLOCK_BYTES_MAX: u64 = 24 << 20;

/// Field of the index that lists blocks.
const BLOCKS: usize = 0;

/// Fields of a block in the list.
const KEY: usize = 0;
const OFFSET: usize = 1;
const LENGTH: usize = 2;

/// What the end of a table says about its index.
#[derive(Debug)]
pub(super) struct Footer<'a> {
    /// Where the index lies in the file.
    pub(super) index: Range<u64>,
    /// The checksum of the index.
    pub(super) checksum: &'a [u8],
}

/// Reads the end of a table of `size` bytes.
pub(super) fn footer<'a>(file: &str, tail: &'a [u8], size: u64) -> Result<Footer<'a>> {
    let parse = || {
        let (rest, length) = be_u32_last(tail)?;
        let length = usize::try_from(length).ok().filter(|&len| len <= CHECKSUM_BYTES_MAX)?;
        let (rest, checksum) = rest.split_at_checked(rest.len().checked_sub(length)?)?;
        let (rest, length) = be_u32_last(rest)?;
        let end = size.checked_sub((tail.len() - rest.len()) as u64)?;
        Some(Footer { index: end.checked_sub(u64::from(length))?..end, checksum })
    };
    let is_plausible =
        |footer: &Footer<'_>| footer.index.end - footer.index.start <= INDEX_BYTES_MAX;
    parse().filter(is_plausible).ok_or_else(|| {
        let found = format!("other bytes at the end of {size}");
        corrupt(file, "its footer", "lengths of an index and its checksum", found)
    })
}

/// The blocks of a table, in the order of their keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Index {
    /// The first keys of all blocks, back to back, with their times.
    keys: Vec<u8>,
    blocks: Vec<BlockAt>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BlockAt {
    /// Where its first key ends among the keys.
    key_end: u32,
    offset: u32,
    len: u32,
}

impl Index {
    /// How many blocks there are.
    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Where a block lies in the file.
    pub(super) fn block(&self, at: usize) -> Option<Range<u64>> {
        let block = self.blocks.get(at)?;
        let start = u64::from(block.offset);
        Some(start..start + u64::from(block.len))
    }

    /// The first key of a block, with its time.
    pub(super) fn first_key(&self, at: usize) -> Option<&[u8]> {
        let end = self.blocks.get(at)?.key_end as usize;
        let start = match at.checked_sub(1) {
            Some(before) => self.blocks.get(before)?.key_end as usize,
            None => 0,
        };
        self.keys.get(start..end)
    }

    /// The first block that may have this user key or a later one.
    pub(super) fn seek(&self, user: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.blocks.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.first_key(middle).is_some_and(|first| key::user(first) < user) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        // The block before may end with this key.
        low.saturating_sub(1)
    }

    /// About the memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.keys.capacity() + self.blocks.capacity() * size_of::<BlockAt>()
    }
}

/// Checks and parses an index whose blocks lie before `end`.
pub(super) fn read(file: &str, bytes: &[u8], checksum: &[u8], end: u64) -> Result<Index> {
    checksum::check(file, "the index", checksum, bytes)?;
    parse(file, bytes, end)
}

/// Parses an index whose blocks lie before `end`.
pub(super) fn parse(file: &str, bytes: &[u8], end: u64) -> Result<Index> {
    let flat = Flat(bytes);
    let wrong = |what: &str| corrupt(file, "its index", "a flatbuffer", format!("a wrong {what}"));
    let root = flat.follow(0).ok_or_else(|| wrong("root"))?;
    let list = flat.field(root, BLOCKS).ok_or_else(|| wrong("table"))?;
    let Some(list) = list else { return Ok(Index::default()) };
    let (list, count) = flat.vector(list, 4).ok_or_else(|| wrong("list of blocks"))?;
    let mut index = Index::default();
    index.blocks.reserve_exact(count);
    let mut free = 0;
    for at in 0..count {
        let block = flat.follow(list + at * 4);
        let block = block.and_then(|block| flat.block(block)).ok_or_else(|| wrong("block"))?;
        let what = || format!("block {at} in its index");
        let (start, len) = (u64::from(block.offset), u64::from(block.len));
        // Blocks that share bytes would have more entries than the file has bytes.
        if start < free || start + len > end {
            let found = format!("bytes {start}..{}", start + len);
            return Err(corrupt(file, what(), format!("within bytes {free}..{end}"), found));
        }
        if len > BLOCK_BYTES_MAX {
            let expected = format!("at most {BLOCK_BYTES_MAX} bytes");
            return Err(corrupt(file, what(), expected, len.to_string()));
        }
        free = start + len;
        if key::split(block.key).is_none() {
            let found = format!("{} bytes", block.key.len());
            return Err(corrupt(file, what(), "a key with a time of 8 bytes", found));
        }
        let before = at.checked_sub(1).and_then(|before| index.first_key(before));
        if before.is_some_and(|before| !key::is_ascending(before, block.key)) {
            return Err(corrupt(file, what(), "a greater key than before", "a smaller one"));
        }
        // Keys that share bytes would take more memory than the index has.
        let key_end = index.keys.len() + block.key.len();
        let key_end = u32::try_from(key_end).ok().filter(|_| key_end <= bytes.len());
        let key_end = key_end.ok_or_else(|| wrong("key"))?;
        index.keys.extend_from_slice(block.key);
        index.blocks.push(BlockAt { key_end, offset: block.offset, len: block.len });
    }
    index.keys.shrink_to_fit();
    Ok(index)
}

/// A flatbuffer, of which every offset is checked before it is followed.
#[derive(Clone, Copy)]
struct Flat<'a>(&'a [u8]);

struct FlatBlock<'a> {
    key: &'a [u8],
    offset: u32,
    len: u32,
}

impl<'a> Flat<'a> {
    fn u16(self, at: usize) -> Option<u16> {
        Some(u16::from_le_bytes(*self.0.get(at..)?.first_chunk()?))
    }

    fn u32(self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(*self.0.get(at..)?.first_chunk()?))
    }

    /// Where the offset at a place leads.
    fn follow(self, at: usize) -> Option<usize> {
        at.checked_add(usize::try_from(self.u32(at)?).ok()?).filter(|&to| to < self.0.len())
    }

    /// Where a field of a table is; `Some(None)` if it is left out.
    fn field(self, table: usize, slot: usize) -> Option<Option<usize>> {
        let back = i32::from_le_bytes(self.u32(table)?.to_le_bytes());
        let vtable = i64::try_from(table).ok()?.checked_sub(i64::from(back))?;
        let vtable = usize::try_from(vtable).ok()?;
        let entry = 4 + 2 * slot;
        if entry + 2 > usize::from(self.u16(vtable)?) {
            return Some(None);
        }
        match self.u16(vtable.checked_add(entry)?)? {
            0 => Some(None),
            offset => Some(Some(table.checked_add(usize::from(offset))?)),
        }
    }

    /// Start and length of the vector that a field refers to, if all of it is there.
    fn vector(self, field: usize, element: usize) -> Option<(usize, usize)> {
        let at = self.follow(field)?;
        let count = usize::try_from(self.u32(at)?).ok()?;
        let start = at.checked_add(4)?;
        let end = start.checked_add(count.checked_mul(element)?)?;
        (end <= self.0.len()).then_some((start, count))
    }

    fn number(self, table: usize, slot: usize) -> Option<u32> {
        match self.field(table, slot)? {
            Some(at) => self.u32(at),
            None => Some(0),
        }
    }

    fn block(self, table: usize) -> Option<FlatBlock<'a>> {
        let (start, len) = self.vector(self.field(table, KEY)??, 1)?;
        let key = self.0.get(start..start.checked_add(len)?)?;
        let (offset, len) = (self.number(table, OFFSET)?, self.number(table, LENGTH)?);
        Some(FlatBlock { key, offset, len })
    }
}
