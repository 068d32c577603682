//! Memory for an output array.
//!
//! Writing into fresh 4 KiB pages costs several times the copy itself, so large outputs are mapped
//! anonymously and the system is asked for huge pages. Neither kind is zeroed by us: the system
//! hands out zero pages when they are touched.

use std::ops::{Deref, DerefMut};

use memmap2::MmapMut;

use crate::{Error, Result};

/// From this size on a buffer is mapped; below, a huge page or two would mostly be waste.
const MAPPED_BYTES_MIN: usize = 4 << 20;

/// Owned bytes, zero at first.
#[derive(Debug)]
pub struct Buffer(Memory);

#[derive(Debug)]
enum Memory {
    Heap(Vec<u8>),
    Mapped(MmapMut),
}

impl Buffer {
    /// A buffer of `len` zero bytes.
    pub fn zeroed(len: usize) -> Result<Self> {
        if len < MAPPED_BYTES_MIN {
            return Ok(Self(Memory::Heap(vec![0; len])));
        }
        let refused = |_| Error::OutOfMemory { what: "an output buffer".into(), bytes: len };
        let mapped = MmapMut::map_anon(len).map_err(refused)?;
        #[cfg(target_os = "linux")]
        if mapped.advise(memmap2::Advice::HugePage).is_err() {
            // Advice only: a kernel without transparent huge pages serves small ones.
        }
        Ok(Self(Memory::Mapped(mapped)))
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Memory::Heap(bytes) => bytes,
            Memory::Mapped(bytes) => bytes,
        }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Memory::Heap(bytes) => bytes,
            Memory::Mapped(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Buffer, MAPPED_BYTES_MIN};

    #[test]
    fn buffers_of_any_size_are_zero_and_writable() {
        for len in [0, 1, MAPPED_BYTES_MIN - 1, MAPPED_BYTES_MIN, MAPPED_BYTES_MIN + 1] {
            let mut buffer = Buffer::zeroed(len).unwrap();
            assert_eq!(buffer.len(), len);
            assert!(buffer.iter().all(|&byte| byte == 0));
            if let Some(last) = buffer.last_mut() {
                *last = 1;
            }
            assert_eq!(buffer.iter().filter(|&&byte| byte == 1).count(), len.min(1));
        }
    }

    #[test]
    fn an_impossible_size_is_an_error() {
        assert!(Buffer::zeroed(isize::MAX as usize).is_err());
    }
}
