//! Archives of rkyv 0.8, by hand: the encoding of footers and statistics.
//!
//! ```text
//!  children before parents, the root last        everything little-endian, padding zero
//!
//!  pointer   i64: target − position of the pointer itself
//!  Vec       pointer · u64 length                             16 bytes
//!  Box       pointer (of a slice: · u64 length)               8 bytes (16)
//!  String    ≤ 16 bytes: in place, the rest 0xFF              16 bytes
//!            more: u64 length, two bits of it marked · i64 from the start of the String
//!  enum      u8 tag, then the fields of the variant as in a C struct
//! ```
//!
//! By hand because the layout that the library writes depends on features that any crate of a build
//! can turn on, because it reads an archive whole or not at all, and because a footer of a million
//! chunks is 36 MB. Parsers here are pure functions over a [`View`]: the bytes of an archive, as far
//! as they are in memory. A parser that needs more stops with [`Stop::Lack`]; its caller fetches them
//! and calls it again. Every position is checked against the length of the archive before it is
//! followed, and every count before anything is allocated for it.

mod read;
mod write;

use std::ops::Range;

use bytes::Bytes;

pub(crate) use self::read::{Record, bytes, numbers, strings};
pub(crate) use self::write::Writer;
use chunkyard_store::Error;

/// Size of a `Vec`, and of a `Box` of a slice.
pub(crate) const VEC_LEN: u64 = 16;

/// Size of a `String`.
pub(crate) const STRING_LEN: u64 = 16;

/// The longest string that is held in place.
const INLINE_MAX: usize = 16;

/// Why a parser returned without a result.
#[derive(Debug)]
pub enum Stop {
    /// It needs these bytes of the archive, which are not in memory yet.
    Lack(Range<u64>),
    /// The bytes are wrong.
    Corrupt(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Corrupt(error)
    }
}

/// The bytes of an archive, as far as they are in memory.
pub trait View {
    /// Bytes of the whole archive.
    fn len(&self) -> u64;

    /// Whether the archive has no bytes; every archive has some.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Some of the bytes; the range has been checked to end within [`View::len`].
    fn get(&self, range: Range<u64>) -> Result<Bytes, Stop>;
}

/// An archive that is wholly in memory.
#[derive(Debug, Clone)]
pub struct Resident(pub Bytes);

impl View for Resident {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn get(&self, range: Range<u64>) -> Result<Bytes, Stop> {
        let outside = || corrupt(range.start, "bytes within the archive", "a range beyond its end");
        let start = usize::try_from(range.start).map_err(|_| outside())?;
        let end = usize::try_from(range.end).map_err(|_| outside())?;
        if start > end || end > self.0.len() {
            return Err(outside());
        }
        Ok(self.0.slice(start..end))
    }
}

/// The elements of a `Vec`: all of them are within the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    /// Position of the first one.
    pub at: u64,
    /// How many.
    pub len: u64,
}

impl Table {
    /// Elements of `item` bytes, if all of them are in an archive of that many bytes.
    pub(crate) fn new(at: u64, len: u64, item: u64, archive_len: u64) -> Result<Self, Stop> {
        let end = len.checked_mul(item).and_then(|bytes| bytes.checked_add(at));
        if end.is_none_or(|end| end > archive_len) {
            let expected = format!("elements within the {archive_len} bytes of the archive");
            return Err(corrupt(at, expected, format!("{len} elements of {item} bytes")));
        }
        Ok(Self { at, len })
    }

    /// The places of the elements with these numbers, of `item` bytes each. An error, if there are
    /// too few, calls them `what`.
    pub(crate) fn items(
        &self,
        range: Range<u64>,
        item: u64,
        what: &str,
    ) -> Result<Range<u64>, Stop> {
        if range.start > range.end || range.end > self.len {
            let found = format!("{what} {}..{}", range.start, range.end);
            return Err(corrupt(self.at, format!("{} of them", self.len), found));
        }
        Ok(self.position(range.start, item)..self.position(range.end, item))
    }

    /// The place of the element with that number.
    pub(crate) fn item(&self, number: u64, item: u64, what: &str) -> Result<u64, Stop> {
        if number >= self.len {
            let found = format!("{what} {number}");
            return Err(corrupt(self.at, format!("one of {}", self.len), found));
        }
        Ok(self.position(number, item))
    }

    /// A table was checked to end within the archive, so this saturates only for an invented one; and
    /// every read there is checked again.
    fn position(&self, number: u64, item: u64) -> u64 {
        self.at.saturating_add(number.saturating_mul(item))
    }
}

/// The error of a wrong value at a position.
pub(crate) fn corrupt(at: u64, expected: impl Into<String>, found: impl Into<String>) -> Stop {
    Stop::Corrupt(Error::Corrupt {
        file: "archive".into(),
        what: format!("the value at byte {at}"),
        expected: expected.into(),
        found: found.into(),
    })
}
