//! Blocks: runs of chunks that were packed together.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Check, ChunkRef, Guard};
use crate::error::{Error, Result};

/// A run of bytes in an object of the same store: one or more chunks, packed together. The
/// references to these chunks share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The object.
    pub path: Arc<str>,
    /// Where in the object the packed block lies.
    pub range: Range<u64>,
    /// Checks that the object has not changed since the block was found.
    pub guard: Option<Guard>,
    /// CRC-32C of the packed bytes, where recorded.
    pub crc32c: Option<u32>,
    /// The name of the [packing](super::block_codec); `None` for bytes that are not packed.
    pub codec: Option<Arc<str>>,
    /// Length of the unpacked block in bytes.
    pub len: u64,
    /// Number of the opened object, from [`Block::new_owner`]. Together with its start it
    /// identifies a block in the cache.
    pub owner: u64,
}

impl Block {
    /// A number that is unique to one opened object in this process.
    pub fn new_owner() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether the block holds this chunk only.
    pub fn is_all(&self, within: &Range<u64>) -> bool {
        *within == (0..self.len)
    }

    /// The packed block as if it were a chunk, whose last codec is then the packing.
    pub fn packed(&self) -> ChunkRef {
        self.object(self.range.clone(), self.crc32c)
    }

    /// The range of the object that holds a chunk of an unpacked block; `None` for a packed block,
    /// where a chunk has no range of its own.
    pub fn plain(&self, within: &Range<u64>) -> Result<Option<ChunkRef>> {
        self.check(within)?;
        if self.codec.is_some() {
            return Ok(None);
        }
        // Cannot overflow: the chunk lies within the block.
        let range = self.range.start + within.start..self.range.start + within.end;
        let crc32c = self.crc32c.filter(|_| self.is_all(within));
        Ok(Some(self.object(range, crc32c)))
    }

    fn object(&self, range: Range<u64>, crc32c: Option<u32>) -> ChunkRef {
        let (path, guard) = (self.path.clone(), self.guard.clone());
        ChunkRef::Object { path, range, guard, check: crc32c.map(Check::Crc32c) }
    }

    /// Refuses a chunk outside the block, and a block whose lengths contradict each other.
    pub(super) fn check(&self, within: &Range<u64>) -> Result<()> {
        if within.start > within.end || within.end > self.len {
            let found = format!("bytes {}..{}", within.start, within.end);
            return Err(self.corrupt("a chunk of it", format!("within {} bytes", self.len), found));
        }
        let stored = self.range.end.checked_sub(self.range.start);
        if stored.is_none() || (self.codec.is_none() && stored != Some(self.len)) {
            let expected = format!("{} bytes that are not packed", self.len);
            return Err(self.corrupt("its length", expected, format!("{stored:?}")));
        }
        Ok(())
    }

    /// The error of a block that fails a check.
    pub(super) fn corrupt(&self, what: &str, expected: String, found: String) -> Error {
        let Range { start, end } = self.range;
        let what = format!("{what}, block at bytes {start}..{end}");
        Error::Corrupt { file: self.path.to_string(), what, expected, found }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn block(range: Range<u64>, codec: Option<&str>, len: u64) -> Block {
        let (path, codec) = ("a.af".into(), codec.map(Arc::from));
        Block { path, range, guard: None, crc32c: Some(7), codec, len, owner: Block::new_owner() }
    }

    #[test]
    fn a_chunk_of_a_block_that_is_not_packed_is_a_range_of_the_object() {
        let plain = block(100..110, None, 10);
        let chunk = |range, crc32c: Option<u32>| {
            let check = crc32c.map(Check::Crc32c);
            Some(ChunkRef::Object { path: "a.af".into(), range, guard: None, check })
        };
        assert_eq!(plain.plain(&(2..5)).unwrap(), chunk(102..105, None));
        assert_eq!(plain.plain(&(0..10)).unwrap(), chunk(100..110, Some(7)));
        assert_eq!(block(100..110, Some("lz4"), 20).plain(&(2..5)).unwrap(), None);
    }

    #[test]
    fn chunks_outside_and_lengths_that_contradict_are_corrupt() {
        #[expect(clippy::reversed_empty_ranges, reason = "a file may say so")]
        let wrong = [
            (block(0..10, None, 10), 5..11),
            (block(0..10, None, 10), 6..5),
            (block(0..10, None, 11), 0..1),
            (block(10..5, Some("lz4"), 11), 0..1),
            (block(0..10, Some("lz4"), 10), 0..u64::MAX),
        ];
        for (block, within) in wrong {
            let error = block.check(&within).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{block:?}");
            assert!(error.to_string().contains("a.af"), "{error}");
        }
    }
}
