//! Memory for one decoded chunk, kept per thread.
//!
//! A fresh allocation per chunk costs page faults worth several times the decoding.

use std::cell::RefCell;

use crate::{Error, Result};

/// Scratch larger than this is given back to the system rather than kept.
const KEPT_BYTES_MAX: usize = 64 << 20;

thread_local! {
    static FREE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Calls `work` with `len` bytes of unspecified content. Calls may nest: a shard decodes inner
/// chunks while a chunk is being decoded.
pub(super) fn with_scratch<T>(len: usize, work: impl FnOnce(&mut [u8]) -> Result<T>) -> Result<T> {
    let mut bytes = FREE.with_borrow_mut(Vec::pop).unwrap_or_default();
    grow(&mut bytes, len)?;
    let result = work(&mut bytes[..len]);
    if bytes.capacity() <= KEPT_BYTES_MAX {
        FREE.with_borrow_mut(|free| free.push(bytes));
    }
    result
}

/// A vector of `len` zero bytes, or an error where the system has no such memory.
pub fn zeroed(len: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    grow(&mut bytes, len)?;
    Ok(bytes)
}

fn grow(bytes: &mut Vec<u8>, len: usize) -> Result<()> {
    if let Some(missing) = len.checked_sub(bytes.len()) {
        bytes
            .try_reserve_exact(missing)
            .map_err(|_| Error::OutOfMemory { what: "decoded elements".into(), bytes: len })?;
        bytes.resize(len, 0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{with_scratch, zeroed};

    #[test]
    fn scratch_is_reused_and_may_nest() {
        let first = with_scratch(100, |bytes| Ok(bytes.as_ptr() as usize)).unwrap();
        let (again, nested) = with_scratch(50, |outer| {
            assert_eq!(outer.len(), 50);
            let nested = with_scratch(10, |inner| Ok(inner.as_ptr() as usize))?;
            Ok((outer.as_ptr() as usize, nested))
        })
        .unwrap();
        assert_eq!(first, again);
        assert_ne!(again, nested);
    }

    #[test]
    fn an_impossible_chunk_size_is_an_error() {
        assert!(zeroed(isize::MAX as usize).is_err());
    }
}
