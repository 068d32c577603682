//! The header of a Blosc-1 buffer, and where its blocks lie.
//!
//! ```text
//! offset  0  format version (2)          8  bytes of a block, u32
//!         1  version of the inner codec  12 bytes of this buffer, u32
//!         2  flags                       16 offset of each block, u32
//!         3  bytes of an element         .. per stream: its length, u32, and its bytes
//!         4  decoded bytes, u32
//! flags: 1 byte shuffle, 2 stored as it is, 4 bit shuffle, 16 one stream per block,
//!        top three bits the inner codec
//! ```
//!
//! A block has one stream, or one per byte of an element. A stream as long as what it decodes to is
//! stored as it is.

use crate::{Error, Result};

pub(super) const VERSION: u8 = 2;
pub(super) const HEADER_BYTES: usize = 16;
pub(super) const SHUFFLED: u8 = 1;
pub(super) const STORED: u8 = 2;
pub(super) const BIT_SHUFFLED: u8 = 4;
pub(super) const ONE_STREAM: u8 = 16;
pub(super) const INNER_SHIFT: u8 = 5;

/// Blosc does not cut blocks into streams for elements larger than this, nor streams shorter than
/// [`STREAM_BYTES_MIN`].
const STREAMS_MAX: usize = 16;
pub(super) const STREAM_BYTES_MIN: usize = 128;

/// The codecs inside that are read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inner {
    Lz4,
    Zstd,
}

impl Inner {
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Lz4 => 1,
            Self::Zstd => 4,
        }
    }

    fn from_flags(flags: u8) -> Option<Self> {
        match flags >> INNER_SHIFT {
            1 => Some(Self::Lz4),
            4 => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// A buffer whose header has been checked against its length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer<'a> {
    bytes: &'a [u8],
    flags: u8,
    inner: Inner,
    item: usize,
    decoded_bytes: usize,
    block_bytes: usize,
}

/// Whether the buffer is of a kind that is read here; its header may still be wrong.
pub(in crate::codec) fn is_ours(bytes: &[u8]) -> bool {
    matches!(bytes, [VERSION, _, flags, ..]
        if flags & BIT_SHUFFLED == 0 && (flags & STORED != 0 || Inner::from_flags(*flags).is_some()))
}

impl<'a> Buffer<'a> {
    /// Parses the header of a buffer for which [`is_ours`] holds.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self> {
        let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(wrong("a header of 16 bytes", format!("{} bytes", bytes.len())));
        };
        let [version, _, flags, item, decoded @ .., _, _, _, _, _, _, _, _] = *header;
        let number = |at: usize| read_u32(bytes, at);
        let decoded_bytes = u32::from_le_bytes(decoded) as usize;
        let (block_bytes, buffer_bytes) = (number(8)?, number(12)?);
        if version != VERSION {
            return Err(wrong("format version 2", version.to_string()));
        }
        if buffer_bytes != bytes.len() {
            return Err(wrong(
                format!("a length of {buffer_bytes} bytes"),
                bytes.len().to_string(),
            ));
        }
        if item == 0 {
            return Err(wrong("elements of at least one byte", "0"));
        }
        let stored = flags & STORED != 0;
        let inner = match Inner::from_flags(flags) {
            Some(inner) => inner,
            // It is not asked for anything.
            None if stored => Inner::Zstd,
            None => return Err(wrong("lz4 or zstd inside", format!("flags {flags:#04x}"))),
        };
        let buffer = Self { bytes, flags, inner, item: item.into(), decoded_bytes, block_bytes };
        if stored && bytes.len() != HEADER_BYTES + decoded_bytes {
            let expected = format!("{decoded_bytes} bytes stored as they are");
            return Err(wrong(expected, format!("{} bytes", bytes.len() - HEADER_BYTES)));
        }
        if !stored && decoded_bytes > 0 {
            if block_bytes == 0 || block_bytes > decoded_bytes {
                let expected = format!("blocks of 1 to {decoded_bytes} bytes");
                return Err(wrong(expected, block_bytes.to_string()));
            }
            if buffer.blocks() > (bytes.len() - HEADER_BYTES) / 4 {
                let expected = format!("offsets of {} blocks", buffer.blocks());
                return Err(wrong(expected, format!("a buffer of {} bytes", bytes.len())));
            }
        }
        Ok(buffer)
    }

    /// The decoded bytes, where they lie in the buffer as they are.
    pub(super) fn stored(&self) -> Option<&'a [u8]> {
        (self.flags & STORED != 0).then(|| &self.bytes[HEADER_BYTES..])
    }

    /// Bytes of all that the buffer holds.
    pub(super) fn decoded_bytes(&self) -> usize {
        self.decoded_bytes
    }

    /// Decoded bytes of a block; the last one may be shorter.
    pub(super) fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    pub(super) fn blocks(&self) -> usize {
        self.decoded_bytes.div_ceil(self.block_bytes.max(1))
    }

    pub(super) fn inner(&self) -> Inner {
        self.inner
    }

    /// Bytes of an element, if the elements are shuffled.
    pub(super) fn shuffled(&self) -> Option<usize> {
        (self.flags & SHUFFLED != 0 && self.item > 1).then_some(self.item)
    }

    /// The streams of a block of `len` decoded bytes. They decode to equal parts of it.
    pub(super) fn streams(&self, block: usize, len: usize) -> Result<Vec<&'a [u8]>> {
        let cut = self.flags & ONE_STREAM == 0
            && self.item <= STREAMS_MAX
            && len == self.block_bytes
            && len / self.item >= STREAM_BYTES_MIN;
        let count = if cut { self.item } else { 1 };
        if !len.is_multiple_of(count) {
            return Err(wrong(
                format!("blocks of whole elements of {count} bytes"),
                len.to_string(),
            ));
        }
        let mut at = read_u32(self.bytes, HEADER_BYTES + 4 * block)?;
        let mut streams = Vec::with_capacity(count);
        for _ in 0..count {
            let stream_bytes = read_u32(self.bytes, at)?;
            let stream = self.bytes.get(at + 4..).and_then(|rest| rest.get(..stream_bytes));
            let Some(stream) = stream else {
                let expected = format!("block {block} within {} bytes", self.bytes.len());
                return Err(wrong(expected, format!("{stream_bytes} bytes at {at}")));
            };
            streams.push(stream);
            at += 4 + stream_bytes;
        }
        Ok(streams)
    }
}

fn read_u32(bytes: &[u8], at: usize) -> Result<usize> {
    match bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
        Some(number) => Ok(u32::from_le_bytes(*number) as usize),
        None => Err(wrong(format!("a number at {at}"), format!("{} bytes", bytes.len()))),
    }
}

fn wrong(expected: impl Into<String>, found: impl Into<String>) -> Error {
    Error::corrupt("blosc buffer", expected, found)
}
