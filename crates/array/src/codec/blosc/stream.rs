//! One stream: a part of a block, compressed.

use std::cell::RefCell;

use flate2::{Decompress, FlushDecompress, Status};

use super::header::wrong;
use super::params::Compressor;
use super::{blosclz, c};
use crate::Result;
use crate::codec::zstd::{self, Zstd};

/// How streams are made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Maker {
    pub(super) compressor: Compressor,
    /// 1 to 9.
    pub(super) level: u8,
    /// Whether whole blocks are cut into several streams.
    pub(super) cut: bool,
}

impl Maker {
    /// Room that c-blosc gives to the stream of `len` bytes.
    pub(super) fn room(self, len: usize) -> usize {
        if self.compressor == Compressor::Snappy { c::snappy_max(len) } else { len }
    }

    /// A stream at the start of `out`, and its length; `None` if there is no room for one.
    pub(super) fn compress(self, plain: &[u8], out: &mut [u8]) -> Option<usize> {
        match self.compressor {
            Compressor::BloscLz => c::blosclz_into(self.level, self.cut, plain, out),
            Compressor::Lz4 => c::lz4_into(10_u8.saturating_sub(self.level), plain, out),
            Compressor::Lz4Hc => c::lz4hc_into(self.level, plain, out),
            Compressor::Snappy => c::snappy_into(plain, out),
            Compressor::Zlib => c::zlib_into(self.level, plain, out),
            Compressor::Zstd => {
                let level = match i32::from(self.level) {
                    9 => *::zstd::compression_level_range().end(),
                    level => 2 * level - 1,
                };
                Zstd { level, checksum: false }.compress_into(plain, out)
            }
        }
    }
}

/// Decodes a stream of exactly `out.len()` bytes.
pub(super) fn decompress(compressor: Compressor, stream: &[u8], out: &mut [u8]) -> Result<()> {
    if stream.len() == out.len() {
        out.copy_from_slice(stream);
        return Ok(());
    }
    let written = match compressor {
        Compressor::Zstd => return zstd::decompress_into(stream, out),
        Compressor::Lz4 | Compressor::Lz4Hc => c::lz4_decode(stream, out),
        Compressor::BloscLz => blosclz::decode(stream, out),
        Compressor::Snappy => c::snappy_decode(stream, out),
        Compressor::Zlib => inflate(stream, out),
    };
    if written == Some(out.len()) {
        return Ok(());
    }
    let expected = format!("{} bytes of {}", out.len(), compressor.name());
    Err(wrong(expected, written.map_or("other bytes".into(), |written| written.to_string())))
}

fn inflate(stream: &[u8], out: &mut [u8]) -> Option<usize> {
    thread_local! {
        static CONTEXT: RefCell<Decompress> = RefCell::new(Decompress::new(true));
    }
    CONTEXT.with_borrow_mut(|context| {
        context.reset(true);
        let status = context.decompress(stream, out, FlushDecompress::Finish).ok()?;
        let written = usize::try_from(context.total_out()).ok()?;
        (status == Status::StreamEnd).then_some(written)
    })
}
