//! A block of a table: keys that share the start of the first key, and their records.
//!
//! ```text
//!  entries │ u32 offset of each, little-endian │ u32 count │ checksum │ u32 length     big-endian
//!  entry:  u16 shared │ u16 more │ more bytes of the key │ record        little-endian
//! ```

use bytes::Bytes;
use chunkyard_array::codec::packed::{snappy_unpacked, zstd_unpacked};
use chunkyard_store::Result;

use super::manifest::Compression;
use super::record::Record;
use super::wire::{be_u32_last, corrupt, le_u16, take};
use super::{checksum, key};

/// The largest unpacked block that is read: blocks have 4 KiB, unless an entry or the writer's
/// settings make them larger.
const BYTES_MAX: usize = 16 << 20;

/// A block, unpacked and checked.
#[derive(Debug)]
pub(super) struct Block {
    /// Names it in errors.
    file: String,
    at: u64,
    entries: Bytes,
    offsets: Bytes,
    base: Bytes,
}

/// An entry of a block.
#[derive(Debug)]
pub(super) struct BlockEntry {
    /// The key with its time.
    pub(super) key: Vec<u8>,
    pub(super) record: Record,
}

/// Unpacks, checks and parses the block that begins at offset `at` of a table.
pub(super) fn read(
    file: &str,
    at: u64,
    stored: Bytes,
    compression: Compression,
    check: bool,
) -> Result<Block> {
    let what = || format!("the block at offset {at}");
    let unpacked = match compression {
        Compression::None => Ok(stored),
        Compression::Snappy => snappy_unpacked(&stored, BYTES_MAX).map(Bytes::from),
        Compression::Zstd => zstd_unpacked(&stored, BYTES_MAX).map(Bytes::from),
    };
    let unpacked = unpacked.map_err(|error| match error {
        chunkyard_array::Error::Corrupt { expected, found, .. } => {
            corrupt(file, format!("unpacking {}", what()), expected, found)
        }
        other => other.into(),
    })?;
    let split = || {
        let (rest, length) = be_u32_last(&unpacked)?;
        let (rest, sum) = rest.split_at_checked(rest.len().checked_sub(length as usize)?)?;
        Some((rest, sum))
    };
    let (rest, sum) =
        split().ok_or_else(|| corrupt(file, what(), "a checksum at its end", "other bytes"))?;
    if check {
        checksum::check(file, &what(), sum, rest)?;
    }
    let split = || {
        let (rest, count) = be_u32_last(rest)?;
        let offsets = usize::try_from(count).ok()?.checked_mul(4)?;
        rest.len().checked_sub(offsets).map(|entries| (entries, rest.len()))
    };
    let (entries, end) =
        split().ok_or_else(|| corrupt(file, what(), "a list of its entries", "other bytes"))?;
    let offsets = unpacked.slice(entries..end);
    let mut block = Block {
        file: file.to_owned(),
        at,
        entries: unpacked.slice(..entries),
        offsets,
        base: Bytes::new(),
    };
    if block.len() > 0 {
        let (shared, base, _) = block.parts(0)?;
        if shared != 0 {
            return Err(block.wrong(0, "a whole key", format!("{shared} shared bytes")));
        }
        block.base = base;
    }
    Ok(block)
}

impl Block {
    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.offsets.len() / 4
    }

    /// An entry.
    pub(super) fn entry(&self, at: usize) -> Result<BlockEntry> {
        let (shared, more, record) = self.parts(at)?;
        let Some(shared) = self.base.get(..shared) else {
            let found = format!("{shared} shared bytes");
            return Err(self.wrong(at, &format!("at most {}", self.base.len()), found));
        };
        let key = [shared, &more].concat();
        if key::split(&key).is_none() {
            let found = format!("{} bytes", key.len());
            return Err(self.wrong(at, "a key with a time of 8 bytes", found));
        }
        let Some(record) = Record::parse(&record) else {
            return Err(self.wrong(at, "a record", format!("{} bytes", record.len())));
        };
        Ok(BlockEntry { key, record })
    }

    /// How many bytes of the first key an entry shares, the rest of its key, and its record.
    fn parts(&self, at: usize) -> Result<(usize, Bytes, Bytes)> {
        let (start, end) = (self.offset(at), self.offset(at + 1));
        let bounds = start.zip(end.or(Some(self.entries.len())));
        let bounds = bounds.filter(|&(start, end)| start < end && end <= self.entries.len());
        let Some((start, end)) = bounds else {
            let expected = format!("a place within {} bytes", self.entries.len());
            return Err(self.wrong(at, &expected, format!("{start:?} to {end:?}")));
        };
        let entry = self.entries.slice(start..end);
        let mut rest = &entry[..];
        let parse = |rest: &mut &[u8]| {
            let (shared, more) = (le_u16(rest)?, le_u16(rest)?);
            let more = take(rest, usize::from(more))?.len();
            Some((usize::from(shared), more))
        };
        let Some((shared, more)) = parse(&mut rest) else {
            return Err(self.wrong(at, "a key", format!("{} bytes", entry.len())));
        };
        let record = entry.len() - rest.len();
        Ok((shared, entry.slice(record - more..record), entry.slice(record..)))
    }

    fn offset(&self, at: usize) -> Option<usize> {
        let start = at.checked_mul(4)?;
        let offset = self.offsets.get(start..)?.first_chunk()?;
        usize::try_from(u32::from_le_bytes(*offset)).ok()
    }

    fn wrong(&self, at: usize, expected: &str, found: String) -> chunkyard_store::Error {
        let what = format!("entry {at} of the block at offset {}", self.at);
        corrupt(&self.file, what, expected, found)
    }
}
