//! A whole buffer: where its blocks lie, and the streams of a block.
//!
//! ```text
//! header | offset of each block from the start of the buffer, i32 | blocks, in any order
//! block  = per stream: its length, i32, and its bytes
//! ```
//!
//! A block has one stream, or one per byte of an element. A stream as long as its decoded bytes is
//! uncompressed. The blocks need not fill the buffer: there may be room after them.

use super::header::{HEADER_BYTES, Header, wrong};
use crate::Result;

/// A buffer whose header has been checked against its length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer<'a> {
    header: Header,
    bytes: &'a [u8],
}

impl<'a> Buffer<'a> {
    /// Parses the header; bytes after the end of the buffer are no part of it.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self> {
        let header = Header::parse(bytes)?;
        let within = usize::try_from(header.encoded_bytes).ok().and_then(|len| bytes.get(..len));
        match within {
            Some(bytes) => Ok(Self { header, bytes }),
            None => Err(wrong(
                format!("{} bytes as the header says", header.encoded_bytes),
                bytes.len().to_string(),
            )),
        }
    }

    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    /// The decoded bytes, if the buffer stores them uncompressed.
    pub(super) fn stored(&self) -> Option<&'a [u8]> {
        if self.header.is_stored() { self.bytes.get(HEADER_BYTES..) } else { None }
    }

    /// Decoded bytes of the whole buffer.
    pub(super) fn decoded_bytes(&self) -> usize {
        self.header.decoded_bytes as usize
    }

    /// Decoded bytes of a block, at least 1; the last one may be shorter.
    pub(super) fn block_bytes(&self) -> usize {
        (self.header.block_bytes as usize).max(1)
    }

    pub(super) fn blocks(&self) -> usize {
        self.header.blocks() as usize
    }

    /// The streams of a block of `len` decoded bytes, which decode to equal parts of it.
    pub(super) fn streams(&self, block: usize, len: usize) -> Result<Streams<'a>> {
        let count = self.header.streams(len);
        if !len.is_multiple_of(count) {
            let expected = format!("blocks of whole elements of {count} bytes");
            return Err(wrong(expected, len.to_string()));
        }
        let at = read_u32(self.bytes, HEADER_BYTES + 4 * block)?;
        Ok(Streams { bytes: self.bytes, at, decoded_bytes: len / count })
    }
}

/// Walks from stream to stream of a block.
#[derive(Debug)]
pub(super) struct Streams<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Bytes that each of them decodes to.
    pub(super) decoded_bytes: usize,
}

impl<'a> Streams<'a> {
    /// The next stream, of which the block must have one more.
    pub(super) fn next(&mut self) -> Result<&'a [u8]> {
        let len = read_u32(self.bytes, self.at)?;
        let start = self.at + 4;
        let Some(stream) = self.bytes.get(start..).and_then(|rest| rest.get(..len)) else {
            let expected = format!("streams within {} bytes", self.bytes.len());
            return Err(wrong(expected, format!("{len} bytes at {start}")));
        };
        self.at = start + len;
        Ok(stream)
    }
}

fn read_u32(bytes: &[u8], at: usize) -> Result<usize> {
    match bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
        Some(number) => Ok(u32::from_le_bytes(*number) as usize),
        None => Err(wrong(format!("a number at {at}"), format!("{} bytes", bytes.len()))),
    }
}
