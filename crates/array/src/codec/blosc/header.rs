//! The header of a Blosc-1 buffer.
//!
//! ```text
//! offset  0  format version (2)          4  decoded bytes, u32
//!         1  version of the compressor   8  bytes of a block, u32
//!         2  flags                       12 bytes of this buffer, u32
//!         3  bytes of an element
//! flags: 1 byte shuffle, 2 stored as it is, 4 bit shuffle, 8 reserved, 16 one stream per block,
//!        top three bits the compressor; 1 and 4 together announce the longer header of Blosc2
//! ```

use super::params::{Compressor, Shuffle};
use crate::{Error, Result};

/// Bytes of a header, and the most by which a buffer exceeds its content.
pub const HEADER_BYTES: usize = 16;

/// The most that a buffer can hold: its sizes, with the header, are numbers of 31 bits.
pub const DECODED_BYTES_MAX: usize = i32::MAX as usize - HEADER_BYTES;

/// The most that a byte of a buffer can stand for. Zstandard does best: a block of 128 KiB takes at
/// least its header of three bytes and the byte that is repeated.
const EXPANSION_MAX: u64 = (128 << 10) / 4;

const VERSION: u8 = 2;
const COMPRESSOR_VERSION: u8 = 1;
const SHUFFLED: u8 = 1;
const STORED: u8 = 2;
const BIT_SHUFFLED: u8 = 4;
const RESERVED: u8 = 8;
const ONE_STREAM: u8 = 16;
const COMPRESSOR_SHIFT: u8 = 5;

/// Blosc does not cut blocks of larger elements into streams, nor makes streams shorter than
/// [`STREAM_BYTES_MIN`].
const STREAMS_MAX: usize = 16;
pub(super) const STREAM_BYTES_MIN: usize = 128;

/// The header of a buffer, checked for being possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Version of the format: 2.
    pub version: u8,
    /// The flags as they are.
    pub flags: u8,
    /// Bytes of an element, at least 1.
    pub item: u8,
    /// Bytes of what the buffer holds.
    pub decoded_bytes: u64,
    /// Decoded bytes of a block; the last one may be shorter.
    pub block_bytes: u64,
    /// Bytes of the buffer, the header included.
    pub encoded_bytes: u64,
    compressor: Compressor,
}

impl Header {
    /// Parses the first 16 of the bytes, whatever comes after them.
    ///
    /// A sound header of another format, such as Blosc2, is [`Error::Unsupported`].
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let Some(&[version, compressor_version, flags, item, ref sizes @ ..]) =
            bytes.first_chunk::<HEADER_BYTES>()
        else {
            return Err(wrong("a header of 16 bytes", format!("{} bytes", bytes.len())));
        };
        match version {
            VERSION => {}
            3..=5 => {
                return Err(Error::unsupported(format!("a Blosc2 buffer (version {version})")));
            }
            _ => return Err(wrong("format version 2", version.to_string())),
        }
        if flags & RESERVED != 0 || flags & (SHUFFLED | BIT_SHUFFLED) == SHUFFLED | BIT_SHUFFLED {
            return Err(Error::unsupported(format!("a blosc buffer with flags {flags:#04x}")));
        }
        let Some(compressor) = Compressor::from_format(flags >> COMPRESSOR_SHIFT) else {
            let number = flags >> COMPRESSOR_SHIFT;
            return Err(Error::unsupported(format!("compressor {number} of a blosc buffer")));
        };
        if flags & STORED == 0 && compressor_version != COMPRESSOR_VERSION {
            let name = compressor.name();
            let what = format!("version {compressor_version} of {name} in a blosc buffer");
            return Err(Error::unsupported(what));
        }
        let size = |at: usize| {
            let bytes = sizes.get(at..).and_then(|rest| rest.first_chunk::<4>());
            bytes.map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)))
        };
        let header = Self {
            version,
            flags,
            item,
            decoded_bytes: size(0),
            block_bytes: size(4),
            encoded_bytes: size(8),
            compressor,
        };
        header.check()?;
        Ok(header)
    }

    fn check(&self) -> Result<()> {
        let Self { decoded_bytes, block_bytes, encoded_bytes, .. } = *self;
        if self.item == 0 {
            return Err(wrong("elements of at least one byte", "0"));
        }
        if decoded_bytes > DECODED_BYTES_MAX as u64 {
            let expected = format!("at most {DECODED_BYTES_MAX} decoded bytes");
            return Err(wrong(expected, decoded_bytes.to_string()));
        }
        let whole = HEADER_BYTES as u64 + decoded_bytes;
        if self.is_stored() && encoded_bytes != whole {
            let expected = format!("{whole} bytes around {decoded_bytes} that are stored");
            return Err(wrong(expected, encoded_bytes.to_string()));
        }
        if !self.is_stored() && decoded_bytes > 0 && !(1..=decoded_bytes).contains(&block_bytes) {
            let expected = format!("blocks of 1 to {decoded_bytes} bytes");
            return Err(wrong(expected, block_bytes.to_string()));
        }
        let blocks = if self.is_stored() { 0 } else { self.blocks() };
        let least = HEADER_BYTES as u64 + 4 * blocks;
        if encoded_bytes < least {
            let expected = format!("at least {least} bytes, for the offsets of {blocks} blocks");
            return Err(wrong(expected, encoded_bytes.to_string()));
        }
        // A decoder allocates this many bytes.
        if decoded_bytes > encoded_bytes.saturating_mul(EXPANSION_MAX) {
            let expected = format!("what {encoded_bytes} bytes can hold");
            return Err(wrong(expected, format!("{decoded_bytes} decoded bytes")));
        }
        Ok(())
    }

    /// What compressed the streams. LZ4 and LZ4HC look alike; in a stored buffer it means nothing.
    pub fn compressor(&self) -> Compressor {
        self.compressor
    }

    /// The filter of the blocks. In a stored buffer it means nothing.
    pub fn shuffle(&self) -> Shuffle {
        match self.flags & (SHUFFLED | BIT_SHUFFLED) {
            0 => Shuffle::None,
            SHUFFLED => Shuffle::Byte,
            _ => Shuffle::Bit,
        }
    }

    /// Whether the decoded bytes follow the header as they are.
    pub fn is_stored(&self) -> bool {
        self.flags & STORED != 0
    }

    /// Number of blocks.
    pub fn blocks(&self) -> u64 {
        self.decoded_bytes.div_ceil(self.block_bytes.max(1))
    }

    /// Streams of a block of `len` decoded bytes.
    pub(super) fn streams(&self, len: usize) -> usize {
        let whole = len as u64 == self.block_bytes;
        let cut = self.flags & ONE_STREAM == 0 && whole && may_cut(self.item, len);
        if cut { usize::from(self.item) } else { 1 }
    }

    /// The header of a buffer that is being made.
    pub(super) fn describe(
        compressor: Compressor,
        shuffle: Shuffle,
        item: u8,
        decoded_bytes: usize,
        block_bytes: usize,
    ) -> Self {
        let shuffled = match shuffle {
            Shuffle::None => 0,
            Shuffle::Byte => SHUFFLED,
            Shuffle::Bit => BIT_SHUFFLED,
        };
        let cut = cuts(compressor, item, block_bytes);
        let streams = if cut { 0 } else { ONE_STREAM };
        Self {
            version: VERSION,
            flags: shuffled | streams | compressor.format() << COMPRESSOR_SHIFT,
            item,
            decoded_bytes: decoded_bytes as u64,
            block_bytes: block_bytes as u64,
            encoded_bytes: 0,
            compressor,
        }
    }

    /// The same for bytes that are stored as they are.
    pub(super) fn stored(self) -> Self {
        Self { flags: self.flags | STORED, ..self }
    }

    pub(super) fn render(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&[self.version, COMPRESSOR_VERSION, self.flags, self.item]);
        let sizes = [self.decoded_bytes, self.block_bytes, self.encoded_bytes];
        for (field, size) in bytes[4..].chunks_exact_mut(4).zip(sizes) {
            field.copy_from_slice(&(size as u32).to_le_bytes());
        }
        bytes
    }
}

/// Whether c-blosc cuts blocks of that size into one stream per byte of an element, in its default
/// mode: for all compressors older than the flag for it.
pub(super) fn cuts(compressor: Compressor, item: u8, block_bytes: usize) -> bool {
    compressor != Compressor::Zstd && may_cut(item, block_bytes)
}

fn may_cut(item: u8, block_bytes: usize) -> bool {
    let item = usize::from(item);
    item <= STREAMS_MAX && block_bytes / item.max(1) >= STREAM_BYTES_MIN
}

pub(super) fn wrong(expected: impl Into<String>, found: impl Into<String>) -> Error {
    Error::corrupt("blosc buffer", expected, found)
}
