//! Memory for bytes on their way: read from a file or encoded for one, and soon let go.
//!
//! The allocator gives large blocks back to the system, and the next one comes as fresh pages, each
//! of which costs a fault: for a chunk of half a megabyte that takes longer than reading it. Large
//! blocks ask for huge pages, of which few are needed. A block from here returns here when the last
//! [`Bytes`] of it is dropped, up to [`KEPT_BYTES_MAX`] in all.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use chunkyard_array::Buffer;

/// Smaller blocks are the allocator's business.
const POOLED_BYTES_MIN: usize = 64 << 10;
/// The most memory kept for later use, by all users together.
const KEPT_BYTES_MAX: usize = 64 << 20;

static FREE: Mutex<Free> = Mutex::new(Free { blocks: Vec::new(), bytes: 0 });

/// Blocks not in use, and how much memory they take.
struct Free {
    blocks: Vec<Buffer>,
    bytes: usize,
}

impl Free {
    /// The smallest block of at least `len` bytes that is not much too large; among equals the last
    /// used, because a part of it may still be in the processor's caches.
    fn take(&mut self, len: usize) -> Option<Buffer> {
        let fits = |block: &Buffer| (len..=len.saturating_mul(2)).contains(&block.len());
        let candidates = self.blocks.iter().enumerate().rev().filter(|(_, block)| fits(block));
        let (at, _) = candidates.min_by_key(|(_, block)| block.len())?;
        let block = self.blocks.remove(at);
        self.bytes -= block.len();
        Some(block)
    }

    fn give(&mut self, block: Buffer) {
        if !(POOLED_BYTES_MIN..=KEPT_BYTES_MAX).contains(&block.len()) {
            return;
        }
        self.bytes += block.len();
        self.blocks.push(block);
        // The oldest go first, so unused sizes leave over time.
        while self.bytes > KEPT_BYTES_MAX {
            self.bytes -= self.blocks.remove(0).len();
        }
    }
}

fn free() -> std::sync::MutexGuard<'static, Free> {
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes whose memory goes back to the pool.
#[derive(Debug)]
pub struct Pooled {
    /// Never shorter than `len`; `None` only while it is dropped.
    block: Option<Buffer>,
    len: usize,
}

impl Pooled {
    /// `len` bytes of unspecified content.
    pub fn new(len: usize) -> Result<Self, chunkyard_array::Error> {
        if len >= POOLED_BYTES_MIN
            && let Some(block) = free().take(len)
        {
            return Ok(Self { block: Some(block), len });
        }
        // Spare room, so that a slightly larger next chunk can use it too.
        let room = if len < POOLED_BYTES_MIN { len } else { len.saturating_add(len / 8) };
        Ok(Self { block: Some(Buffer::zeroed(room)?), len })
    }

    /// A copy of `bytes`.
    pub fn copy_of(bytes: &[u8]) -> Result<Self, chunkyard_array::Error> {
        let mut copy = Self::new(bytes.len())?;
        copy.copy_from_slice(bytes);
        Ok(copy)
    }

    /// The memory that these bytes occupy, which may be more than they need.
    pub fn room(&self) -> usize {
        self.block.as_ref().map_or(0, |block| block.len())
    }

    /// The bytes, shared from now on.
    pub fn freeze(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            free().give(block);
        }
    }
}

impl Deref for Pooled {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.block.as_ref().map_or(&[], |block| &block[..self.len])
    }
}

impl DerefMut for Pooled {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.block.as_mut().map_or(&mut [], |block| &mut block[..self.len])
    }
}

impl AsRef<[u8]> for Pooled {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_once_the_last_slice_is_gone() {
        // A size that no other test asks for, since the pool is shared.
        let len = 7_654_321;
        let mut block = Pooled::new(len).unwrap();
        block[..3].copy_from_slice(&[1, 2, 3]);
        let place = block.as_ptr();
        let bytes = block.freeze();
        assert_eq!(bytes.len(), len);
        let slice = bytes.slice(1..3);
        drop(bytes);
        assert_ne!(Pooled::new(len).unwrap().as_ptr(), place);
        assert_eq!(&slice[..], [2, 3]);
        drop(slice);
        assert_eq!(Pooled::new(len - 1).unwrap().len(), len - 1);
    }

    #[test]
    fn what_is_kept_is_bounded_and_fits() {
        let mut free = Free { blocks: Vec::new(), bytes: 0 };
        for _ in 0..100 {
            free.give(Buffer::zeroed(1 << 20).unwrap());
        }
        free.give(Buffer::zeroed(100).unwrap());
        free.give(Buffer::zeroed(KEPT_BYTES_MAX + 1).unwrap());
        assert!(free.bytes <= KEPT_BYTES_MAX && free.blocks.len() == 64);
        assert!(free.take(100).is_none(), "a megabyte for a hundred bytes");
        assert!(free.take((1 << 20) + 1).is_none());
        assert!(free.take(600 << 10).is_some_and(|block| block.len() == 1 << 20));
        assert_eq!(free.bytes, 63 << 20);
    }

    #[test]
    fn an_impossible_size_is_an_error() {
        assert!(Pooled::new(isize::MAX as usize).is_err());
    }
}
