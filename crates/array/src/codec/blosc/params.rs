//! How a buffer is made: the compressor, its level, the filter before it.

use crate::{Error, Result};

/// How a buffer is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// What compresses the streams.
    pub compressor: Compressor,
    /// 0 (stored as it is) to 9 (slowest), as Blosc counts for all compressors.
    pub level: u8,
    /// The filter before the compressor.
    pub shuffle: Shuffle,
    /// Bytes of an element, 1 to 255. Blosc takes larger elements for single bytes.
    pub item: u8,
    /// Bytes of a block, which is what a small read decodes; 0 leaves it to the rule of c-blosc.
    pub block_bytes: usize,
}

impl Params {
    /// Refuses impossible parameters.
    pub(super) fn check(&self) -> Result<()> {
        if self.level > 9 {
            return Err(Error::invalid(format!("blosc has levels 0 to 9, not {}", self.level)));
        }
        if self.item == 0 {
            return Err(Error::invalid("blosc takes elements of 1 to 255 bytes, not 0"));
        }
        Ok(())
    }
}

/// What compresses the streams of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compressor {
    /// Blosc's own, a relative of FastLZ.
    BloscLz,
    /// LZ4 blocks, made quickly.
    Lz4,
    /// LZ4 blocks, made thoroughly. A buffer does not distinguish them from [`Compressor::Lz4`].
    Lz4Hc,
    /// Snappy. Most builds of c-blosc lack it: fit for reading, not for passing on.
    Snappy,
    /// Deflate in the envelope of zlib.
    Zlib,
    /// Zstandard frames.
    Zstd,
}

impl Compressor {
    /// All of them, in the order of c-blosc.
    pub const ALL: [Self; 6] =
        [Self::BloscLz, Self::Lz4, Self::Lz4Hc, Self::Snappy, Self::Zlib, Self::Zstd];

    /// The name that Zarr, bcolz and c-blosc use.
    pub fn name(self) -> &'static str {
        match self {
            Self::BloscLz => "blosclz",
            Self::Lz4 => "lz4",
            Self::Lz4Hc => "lz4hc",
            Self::Snappy => "snappy",
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
        }
    }

    /// The compressor of that name.
    pub fn parse(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|compressor| compressor.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::invalid(format!("blosc has no compressor {name:?}, only {names}"))
        })
    }

    /// Default bytes of a block: a small read decodes no more than that.
    ///
    /// Blocks of 64 KiB cost a hundredth of the ratio with LZ4 (a walk of int64: 7.45 instead of
    /// 7.51 with 256 KiB), and decode 1.4 times faster, because they stay in the nearest cache. The
    /// thorough compressors need earlier data, and small frames take them longer: the figures are
    /// in `docs/design/010-superchunk.md`.
    pub fn block_bytes(self) -> usize {
        match self {
            Self::BloscLz | Self::Lz4 | Self::Lz4Hc | Self::Snappy => 64 << 10,
            Self::Zlib | Self::Zstd => 256 << 10,
        }
    }

    /// Its number in the flags of a header.
    pub(super) fn format(self) -> u8 {
        match self {
            Self::BloscLz => 0,
            Self::Lz4 | Self::Lz4Hc => 1,
            Self::Snappy => 2,
            Self::Zlib => 3,
            Self::Zstd => 4,
        }
    }

    /// The first compressor of that number in the flags of a header.
    pub(super) fn from_format(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|compressor| compressor.format() == number)
    }

    /// Whether c-blosc gives it larger blocks, since it compresses thoroughly.
    pub(super) fn is_thorough(self) -> bool {
        matches!(self, Self::Lz4Hc | Self::Zlib | Self::Zstd)
    }
}

/// The filter that makes the elements of a block easier to compress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shuffle {
    /// The elements as they are.
    None,
    /// First all first bytes of the elements, then all second ones, and so on.
    Byte,
    /// First all lowest bits of the elements, then all second ones, and so on.
    Bit,
}

impl Shuffle {
    /// The name that Zarr uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "noshuffle",
            Self::Byte => "shuffle",
            Self::Bit => "bitshuffle",
        }
    }

    /// The filter of that name.
    pub fn parse(name: &str) -> Result<Self> {
        let all = [Self::None, Self::Byte, Self::Bit];
        all.into_iter().find(|shuffle| shuffle.name() == name).ok_or_else(|| {
            let names = all.map(Self::name).join(", ");
            Error::invalid(format!("blosc has no filter {name:?}, only {names}"))
        })
    }
}
