//! The compressors that are C code, one stream at a time.
//!
//! c-blosc itself is not called: it decodes whole buffers, trusts more of them than it should and
//! makes new contexts for every block. Its compressors are, so that our output equals c-blosc's.
//! The decoders of outside bytes, LZ4 and Snappy, check every length against the two slices they
//! are given.
#![expect(unsafe_code, reason = "the compressors of c-blosc are C code")]

use std::ffi::c_int;

// For its `blosclz_compress`, which its Rust side does not declare.
use blosc_src as _;
use libz_sys::{Z_OK, compress2};
use lz4_sys::{LZ4_compress_HC, LZ4_compress_fast, LZ4_decompress_safe};
use snappy_src::{
    snappy_compress, snappy_max_compressed_length, snappy_status_SNAPPY_OK, snappy_uncompress,
};

/// BloscLZ reads and writes this much without a check.
const BLOSCLZ_INPUT_MIN: usize = 16;
const BLOSCLZ_OUTPUT_MIN: usize = 66;

unsafe extern "C" {
    fn blosclz_compress(
        level: c_int,
        input: *const u8,
        length: c_int,
        output: *mut u8,
        output_max: c_int,
        split: c_int,
    ) -> c_int;
}

/// A BloscLZ stream at the start of `out`, and its length; `None` if there is no such stream.
/// `split` says whether blocks are cut into streams, which in c-blosc decides how matches end.
pub(super) fn blosclz_into(level: u8, split: bool, plain: &[u8], out: &mut [u8]) -> Option<usize> {
    if plain.len() < BLOSCLZ_INPUT_MIN || out.len() < BLOSCLZ_OUTPUT_MIN || level > 9 {
        return None;
    }
    let (length, room) = (int(plain.len())?, int(out.len())?);
    // SAFETY: pointers and lengths come from the slices, not less than what the function reads and
    // writes without a check; the level is an index of its tables of ten.
    let written = unsafe {
        let (input, output) = (plain.as_ptr(), out.as_mut_ptr());
        blosclz_compress(level.into(), input, length, output, room, split.into())
    };
    some(written)
}

/// An LZ4 block at the start of `out`, made `acceleration` times more hastily than well.
pub(super) fn lz4_into(acceleration: u8, plain: &[u8], out: &mut [u8]) -> Option<usize> {
    let (length, room) = (int(plain.len())?, int(out.len())?);
    // SAFETY: pointers and lengths come from the slices.
    let written = unsafe {
        let (input, output) = (plain.as_ptr().cast(), out.as_mut_ptr().cast());
        LZ4_compress_fast(input, output, length, room, acceleration.into())
    };
    some(written)
}

/// An LZ4 block at the start of `out`, made thoroughly.
pub(super) fn lz4hc_into(level: u8, plain: &[u8], out: &mut [u8]) -> Option<usize> {
    let (length, room) = (int(plain.len())?, int(out.len())?);
    // SAFETY: pointers and lengths come from the slices.
    let written = unsafe {
        let (input, output) = (plain.as_ptr().cast(), out.as_mut_ptr().cast());
        LZ4_compress_HC(input, output, length, room, level.into())
    };
    some(written)
}

/// A zlib stream at the start of `out`.
pub(super) fn zlib_into(level: u8, plain: &[u8], out: &mut [u8]) -> Option<usize> {
    let mut written = out.len().try_into().ok()?;
    let length = plain.len().try_into().ok()?;
    // SAFETY: pointers and lengths come from the slices; `written` is the room on the way in.
    let status = unsafe {
        compress2(out.as_mut_ptr(), &raw mut written, plain.as_ptr(), length, level.into())
    };
    usize::try_from(written).ok().filter(|_| status == Z_OK)
}

/// A Snappy block at the start of `out`, which must have room for [`snappy_max`].
pub(in crate::codec) fn snappy_into(plain: &[u8], out: &mut [u8]) -> Option<usize> {
    let mut written = out.len();
    // SAFETY: pointers and lengths come from the slices; `written` is the room on the way in, and
    // the function refuses less than it may need.
    let status = unsafe {
        let (input, output) = (plain.as_ptr().cast(), out.as_mut_ptr().cast());
        snappy_compress(input, plain.len(), output, &raw mut written)
    };
    (status == snappy_status_SNAPPY_OK).then_some(written)
}

/// The most that Snappy makes of `len` bytes.
pub(in crate::codec) fn snappy_max(len: usize) -> usize {
    // SAFETY: arithmetic.
    unsafe { snappy_max_compressed_length(len) }
}

/// Decodes an LZ4 block and says how much of `out` it fills.
pub(super) fn lz4_decode(stream: &[u8], out: &mut [u8]) -> Option<usize> {
    let (length, room) = (int(stream.len())?, int(out.len())?);
    // SAFETY: pointers and lengths come from the slices. This is the function of LZ4 that never
    // reads or writes outside of them, whatever the block says.
    let written = unsafe {
        let (input, output) = (stream.as_ptr().cast(), out.as_mut_ptr().cast());
        LZ4_decompress_safe(input, output, length, room)
    };
    usize::try_from(written).ok()
}

/// Decodes a Snappy block and says how much of `out` it fills.
pub(in crate::codec) fn snappy_decode(stream: &[u8], out: &mut [u8]) -> Option<usize> {
    let mut written = out.len();
    // SAFETY: pointers and lengths come from the slices; `written` is the room on the way in, and
    // the function refuses blocks that say they need more.
    let status = unsafe {
        let (input, output) = (stream.as_ptr().cast(), out.as_mut_ptr().cast());
        snappy_uncompress(input, stream.len(), output, &raw mut written)
    };
    (status == snappy_status_SNAPPY_OK).then_some(written)
}

fn int(len: usize) -> Option<c_int> {
    c_int::try_from(len).ok()
}

/// The length of a stream; compressors say 0 or less where they give up.
fn some(written: c_int) -> Option<usize> {
    usize::try_from(written).ok().filter(|&written| written > 0)
}

/// c-blosc itself, for tests and measurements.
#[cfg(test)]
pub(super) mod reference {
    use std::ffi::CString;

    use super::super::{HEADER_BYTES, Params, Shuffle};

    /// `params.block_bytes` is passed on unchanged and has c-blosc's meaning.
    pub(in super::super) fn encode(params: &Params, plain: &[u8]) -> Vec<u8> {
        let mut out = vec![0; plain.len() + HEADER_BYTES];
        let name = CString::new(params.compressor.name()).unwrap();
        let shuffle = match params.shuffle {
            Shuffle::None => 0,
            Shuffle::Byte => 1,
            Shuffle::Bit => 2,
        };
        // SAFETY: pointers and lengths come from the slices.
        let written = unsafe {
            blosc_src::blosc_compress_ctx(
                params.level.into(),
                shuffle,
                params.item.into(),
                plain.len(),
                plain.as_ptr().cast(),
                out.as_mut_ptr().cast(),
                out.len(),
                name.as_ptr(),
                params.block_bytes,
                1,
            )
        };
        out.truncate(usize::try_from(written).unwrap());
        out
    }

    /// Only for buffers that are known to be sound.
    pub(in super::super) fn decode_into(encoded: &[u8], out: &mut [u8]) {
        // SAFETY: pointers and lengths come from the slices, and the buffer is not hostile.
        let written = unsafe {
            let (input, output) = (encoded.as_ptr().cast(), out.as_mut_ptr().cast());
            blosc_src::blosc_decompress_ctx(input, output, out.len(), 1)
        };
        assert_eq!(usize::try_from(written).unwrap(), out.len());
    }
}
