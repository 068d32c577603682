//! Checksums of chunks, and checking many of them at once.

use bytes::Bytes;
use rayon::prelude::*;

use super::Digest;
use crate::cpu;
use crate::error::Result;

/// Up to here a checksum takes less time than asking another thread for it.
const INLINE_BYTES_MAX: usize = 1 << 20;

/// About how much longer a cryptographic hash takes than a checksum.
const HASH_EFFORT: usize = 16;

/// What the bytes of a chunk are checked against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// CRC-32C of these bytes.
    Crc32c(u32),
    /// A digest of these bytes lies right behind them in the object.
    Behind(Digest),
    /// The chunk is the end of an entry of a log: `before` bytes ahead of it belong to the entry, and
    /// a CRC-32C of all of them, big-endian, lies right behind it. Of the bytes ahead, the last
    /// `known` have the CRC-32C `head`; so an entry that is whole but another one is noticed.
    Entry {
        /// How many bytes of the entry lie before the chunk.
        before: u32,
        /// How many of these are known beforehand.
        known: u32,
        /// CRC-32C of the known bytes.
        head: u32,
    },
}

/// Bytes of the CRC-32C behind an entry of a log.
const ENTRY_CRC_BYTES: usize = 4;

impl Check {
    /// The checksum, if it is known before anything is read.
    pub fn crc32c(self) -> Option<u32> {
        match self {
            Self::Crc32c(crc) => Some(crc),
            Self::Behind(_) | Self::Entry { .. } => None,
        }
    }

    /// How many bytes of the object before the chunk belong to it.
    pub fn bytes_before(self) -> usize {
        match self {
            Self::Crc32c(_) | Self::Behind(_) => 0,
            Self::Entry { before, .. } => before as usize,
        }
    }

    /// How many bytes of the object behind the chunk belong to it.
    pub fn bytes_behind(self) -> usize {
        match self {
            Self::Crc32c(_) => 0,
            Self::Behind(digest) => digest.bytes(),
            Self::Entry { .. } => ENTRY_CRC_BYTES,
        }
    }
}

/// Bytes and what to check them against.
pub(super) struct Checked {
    /// Their index in the caller's list.
    pub(super) at: usize,
    pub(super) check: Check,
    /// The bytes before in the object, as far as the check needs them.
    pub(super) before: Bytes,
    pub(super) bytes: Bytes,
    /// The bytes that follow in the object, as far as the check needs them.
    pub(super) behind: Bytes,
}

/// Bytes that are not what they should be, and the two values in hexadecimal digits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mismatch {
    pub(super) at: usize,
    pub(super) kind: &'static str,
    pub(super) expected: String,
    pub(super) found: String,
}

/// The first bytes whose checksum does not match. Many megabytes are checked on the compute
/// threads.
pub(super) async fn first_mismatch(checked: Vec<Checked>) -> Result<Option<Mismatch>> {
    let effort = checked.iter().map(Checked::effort).fold(0, usize::saturating_add);
    if effort <= INLINE_BYTES_MAX {
        return Ok(checked.iter().find_map(Checked::mismatch));
    }
    cpu(move || match &checked[..] {
        // One thread is enough, so the pool is not asked.
        [only] => only.mismatch(),
        many => many.par_iter().find_map_first(Checked::mismatch),
    })
    .await
}

impl Checked {
    /// About how many bytes a plain checksum gets through in the same time.
    fn effort(&self) -> usize {
        match self.check {
            Check::Behind(Digest::None) => 0,
            Check::Crc32c(_)
            | Check::Behind(Digest::Adler32 | Digest::Crc32)
            | Check::Entry { .. } => self.bytes.len(),
            Check::Behind(_) => self.bytes.len().saturating_mul(HASH_EFFORT),
        }
    }

    fn mismatch(&self) -> Option<Mismatch> {
        let wrong = |kind, expected, found| Mismatch { at: self.at, kind, expected, found };
        match self.check {
            Check::Crc32c(expected) => {
                let found = crc32c::crc32c(&self.bytes);
                (found != expected)
                    .then(|| wrong("checksum", format!("{expected:08x}"), format!("{found:08x}")))
            }
            Check::Behind(digest) => {
                let found = digest.of(&self.bytes);
                (found != self.behind).then(|| wrong(digest.name(), hex(&self.behind), hex(&found)))
            }
            Check::Entry { known, head, .. } => {
                let found = crc32c::crc32c_append(crc32c::crc32c(&self.before), &self.bytes);
                if found.to_be_bytes() != *self.behind {
                    return Some(wrong("checksum", hex(&self.behind), format!("{found:08x}")));
                }
                let known = self.before.len().saturating_sub(known as usize);
                let found = crc32c::crc32c(self.before.get(known..).unwrap_or_default());
                (found != head).then(|| {
                    wrong("key and lengths", format!("{head:08x}"), format!("{found:08x}"))
                })
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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
                let one = |(at, expected)| Checked {
                    at,
                    check: Check::Crc32c(expected),
                    before: Bytes::new(),
                    bytes: bytes.clone(),
                    behind: Bytes::new(),
                };
                each.map(one).collect()
            };
            assert_eq!(first_mismatch(checked([found; 4])).await.unwrap(), None);
            let wrong = first_mismatch(checked([found, 1, found, 2])).await.unwrap();
            let (expected, found) = ("00000001".to_owned(), format!("{found:08x}"));
            assert_eq!(wrong, Some(Mismatch { at: 1, kind: "checksum", expected, found }));
        }
    }

    #[tokio::test]
    async fn digests_of_every_kind_are_compared_with_what_lies_behind() {
        for digest in Digest::ALL {
            for len in [0, 10, INLINE_BYTES_MAX + 1] {
                let bytes = Bytes::from(vec![7; len]);
                let behind: Bytes = digest.of(&bytes).into();
                let check = Check::Behind(digest);
                assert_eq!(check.bytes_behind(), behind.len());
                let checked = |bytes, behind| {
                    vec![Checked { at: 5, check, before: Bytes::new(), bytes, behind }]
                };
                let right = first_mismatch(checked(bytes.clone(), behind.clone()));
                assert_eq!(right.await.unwrap(), None);
                if digest != Digest::None {
                    let more = Bytes::from(vec![7; len + 1]);
                    let wrong =
                        first_mismatch(checked(more, behind.clone())).await.unwrap().unwrap();
                    assert_eq!((wrong.at, wrong.kind), (5, digest.name()));
                    assert_eq!(wrong.expected, hex(&behind));
                    assert_ne!(wrong.found, wrong.expected);
                }
            }
        }
    }
}
