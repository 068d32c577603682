//! Checksums of many chunks at once.

use bytes::Bytes;
use rayon::prelude::*;

use crate::error::Result;
use crate::pipeline::cpu;

/// Up to here a checksum takes less time than asking another thread for it.
const INLINE_BYTES_MAX: usize = 1 << 20;

/// Bytes and what their CRC-32C should be.
pub(super) struct Checked {
    /// Which of the caller's they are.
    pub(super) at: usize,
    pub(super) expected: u32,
    pub(super) bytes: Bytes,
}

/// Bytes that are not what they should be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mismatch {
    pub(super) at: usize,
    pub(super) expected: u32,
    pub(super) found: u32,
}

/// The first bytes whose checksum does not hold; those of many megabytes on the compute threads.
pub(super) async fn first_mismatch(checked: Vec<Checked>) -> Result<Option<Mismatch>> {
    let bytes: usize = checked.iter().map(|checked| checked.bytes.len()).sum();
    if bytes <= INLINE_BYTES_MAX {
        return Ok(checked.iter().find_map(mismatch));
    }
    cpu(move || checked.par_iter().find_map_first(mismatch)).await
}

fn mismatch(checked: &Checked) -> Option<Mismatch> {
    let found = crc32c::crc32c(&checked.bytes);
    let Checked { at, expected, .. } = *checked;
    (found != expected).then_some(Mismatch { at, expected, found })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_that_does_not_hold_is_named_however_many_bytes_there_are() {
        for len in [10, INLINE_BYTES_MAX] {
            let bytes = Bytes::from(vec![7; len]);
            let found = crc32c::crc32c(&bytes);
            let checked = |expected: [u32; 4]| {
                let each = expected.into_iter().enumerate();
                each.map(|(at, expected)| Checked { at, expected, bytes: bytes.clone() }).collect()
            };
            assert_eq!(first_mismatch(checked([found; 4])).await.unwrap(), None);
            let wrong = first_mismatch(checked([found, 1, found, 2])).await.unwrap();
            assert_eq!(wrong, Some(Mismatch { at: 1, expected: 1, found }));
        }
    }
}
