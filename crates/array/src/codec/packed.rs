//! Compression of plain bytes, for formats that pack many chunks together before they compress.
//!
//! Two of the compressors are also codecs of single chunks: `numcodecs.lz4` is exactly what
//! [`lz4_pack`] makes, `zstd` exactly what [`zstd_pack`] makes. A length inside packed bytes is
//! compared with the expected length and never allocated.

use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};
use serde_json::json;
use zarrs::metadata::v3::MetadataV3;
use zstd::zstd_safe::{
    find_frame_compressed_size, get_frame_content_size, max_c_level, min_c_level,
};

use super::blosc::{snappy_decode, snappy_into, snappy_max};
use super::zstd::{self as frames, Zstd};
use crate::{Error, Result};

/// Bytes of the length before an LZ4 block.
const LENGTH_BYTES: usize = 4;

/// The most that a byte of an LZ4 block can stand for.
const LZ4_EXPANSION_MAX: usize = 255;

/// The most that a byte of a Snappy block can stand for: three bytes copy 64.
const SNAPPY_EXPANSION_MAX: usize = 22;

/// The most that a byte of a Zstandard frame can stand for: a block of 128 KiB takes at least its
/// header of three bytes and the byte that is repeated.
const ZSTD_EXPANSION_MAX: usize = (128 << 10) / 4;

/// A compressor that is also a codec of single chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Packing {
    /// See [`lz4_pack`].
    Lz4,
    /// See [`zstd_pack`].
    Zstd,
}

impl Packing {
    /// The codec. Its level is not part of the format.
    pub(super) fn codec(self) -> MetadataV3 {
        let (name, configuration) = match self {
            Self::Lz4 => (super::lz4::NAME, json!({"acceleration": 1})),
            Self::Zstd => ("zstd", json!({"level": 3, "checksum": false})),
        };
        let configuration = configuration.as_object().cloned().unwrap_or_default();
        MetadataV3::new_with_configuration(name, configuration)
    }
}

/// Appends to `out` the length of `plain` as a little-endian `u32` and one LZ4 block.
pub fn lz4_pack(plain: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let length = u32::try_from(plain.len())
        .map_err(|cause| Error::invalid("lz4 takes less than 4 GiB").because(cause))?;
    let start = out.len();
    let block = start + LENGTH_BYTES;
    let room = LENGTH_BYTES + get_maximum_output_size(plain.len());
    out.try_reserve(room)
        .map_err(|_| Error::OutOfMemory { what: "an lz4 block".into(), bytes: room })?;
    out.resize(start + room, 0);
    out[start..block].copy_from_slice(&length.to_le_bytes());
    let written = compress_into(plain, &mut out[block..])
        .map_err(|cause| Error::invalid("lz4 cannot encode a chunk").because(cause))?;
    out.truncate(block + written);
    Ok(())
}

/// Fills all of `out` from bytes that [`lz4_pack`] made.
pub fn lz4_unpack(packed: &[u8], out: &mut [u8]) -> Result<()> {
    let block = lz4_block(packed, out.len())?;
    match decompress_into(block, out) {
        Ok(written) if written == out.len() => Ok(()),
        Ok(written) => Err(super::wrong_length(out.len(), written)),
        Err(cause) => {
            let expected = format!("an lz4 block of {} bytes", out.len());
            Err(Error::corrupt("chunk", expected, cause.to_string()).because(cause))
        }
    }
}

/// Refuses LZ4 packed bytes that cannot become `len` bytes, before memory is taken for them.
pub fn lz4_check_len(packed: &[u8], len: usize) -> Result<()> {
    lz4_block(packed, len).map(drop)
}

/// The length that LZ4 packed bytes claim, if such a block can hold that much.
pub(super) fn lz4_len(packed: &[u8]) -> Result<(usize, &[u8])> {
    let Some((length, block)) = packed.split_first_chunk::<LENGTH_BYTES>() else {
        let found = format!("{} bytes", packed.len());
        return Err(Error::corrupt("chunk", "an lz4 block after its length", found));
    };
    let length = u32::from_le_bytes(*length) as usize;
    if length > block.len().saturating_mul(LZ4_EXPANSION_MAX) {
        let expected = format!("what {} bytes of lz4 can hold", block.len());
        return Err(Error::corrupt("chunk", expected, format!("a length of {length}")));
    }
    Ok((length, block))
}

/// The LZ4 block after the length, which must be the expected one.
fn lz4_block(packed: &[u8], len: usize) -> Result<&[u8]> {
    match lz4_len(packed)? {
        (length, block) if length == len => Ok(block),
        (length, _) => Err(super::wrong_length(len, length)),
    }
}

/// Appends to `out` one Snappy block, which begins with the length of `plain`.
pub(super) fn snappy_pack(plain: &[u8], out: &mut Vec<u8>) -> Result<()> {
    if u32::try_from(plain.len()).is_err() {
        return Err(Error::invalid("snappy takes less than 4 GiB"));
    }
    let (start, room) = (out.len(), snappy_max(plain.len()));
    out.try_reserve(room)
        .map_err(|_| Error::OutOfMemory { what: "a snappy block".into(), bytes: room })?;
    out.resize(start + room, 0);
    let written = snappy_into(plain, &mut out[start..])
        .ok_or_else(|| Error::invalid("snappy cannot encode these bytes"))?;
    out.truncate(start + written);
    Ok(())
}

/// The most bytes that Zstandard frames can become, by their number and by what a single frame says.
pub(super) fn zstd_bytes_max(packed: &[u8]) -> usize {
    let most = packed.len().saturating_mul(ZSTD_EXPANSION_MAX);
    let single = find_frame_compressed_size(packed) == Ok(packed.len());
    match get_frame_content_size(packed) {
        Ok(Some(size)) if single => usize::try_from(size).map_or(most, |size| size.min(most)),
        _ => most,
    }
}

/// Fills all of `out` from a Snappy block.
pub(super) fn snappy_unpack(packed: &[u8], out: &mut [u8]) -> Result<()> {
    match snappy_decode(packed, out) {
        Some(written) if written == out.len() => Ok(()),
        Some(written) => Err(super::wrong_length(out.len(), written)),
        None => {
            let expected = format!("a snappy block of {} bytes", out.len());
            Err(Error::corrupt("chunk", expected, "other bytes"))
        }
    }
}

/// The length that a Snappy block claims, if such a block can hold that much.
pub(super) fn snappy_len(packed: &[u8]) -> Result<usize> {
    let mut len = 0u64;
    for (at, &byte) in packed.iter().take(5).enumerate() {
        len |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            let most = packed.len().saturating_mul(SNAPPY_EXPANSION_MAX);
            return usize::try_from(len).ok().filter(|&len| len <= most).ok_or_else(|| {
                let expected = format!("what {} bytes of snappy can hold", packed.len());
                Error::corrupt("chunk", expected, format!("a length of {len}"))
            });
        }
    }
    let found = format!("{} bytes", packed.len());
    Err(Error::corrupt("chunk", "a snappy block after its length", found))
}

/// The bytes of a Snappy block that begins with their number, of which there may be at most
/// `bytes_max`.
pub fn snappy_unpacked(packed: &[u8], bytes_max: usize) -> Result<Vec<u8>> {
    let len = snappy_len(packed)?;
    if len > bytes_max {
        let expected = format!("at most {bytes_max} bytes");
        return Err(Error::corrupt("snappy block", expected, format!("{len} bytes")));
    }
    let mut plain = super::zeroed(len)?;
    snappy_unpack(packed, &mut plain)?;
    Ok(plain)
}

/// The bytes of Zstandard frames, of which there may be at most `bytes_max`.
pub fn zstd_unpacked(packed: &[u8], bytes_max: usize) -> Result<Vec<u8>> {
    let most = zstd_bytes_max(packed).min(bytes_max);
    // Decompressed at once, so no memory is taken for the window that a frame claims.
    let mut plain = ::zstd::bulk::decompress(packed, most).map_err(|cause| {
        let expected = format!("whole frames of at most {bytes_max} bytes");
        Error::corrupt("zstd frames", expected, cause.to_string()).because(cause)
    })?;
    plain.shrink_to_fit();
    Ok(plain)
}

/// Appends to `out` one Zstandard frame with its content size and without a checksum. Reuses the
/// contexts of this thread.
pub fn zstd_pack(plain: &[u8], level: i32, out: &mut Vec<u8>) -> Result<()> {
    check_level(level)?;
    Zstd { level, checksum: false }.compress_onto(plain, out)
}

fn check_level(level: i32) -> Result<()> {
    if !(min_c_level()..=max_c_level()).contains(&level) {
        return Err(Error::invalid(format!(
            "zstd has levels from {} to {}, not {level}",
            min_c_level(),
            max_c_level()
        )));
    }
    Ok(())
}

/// Like [`zstd_pack`], with a checksum of the content at the end of the frame.
pub fn zstd_pack_checked(plain: &[u8], level: i32, out: &mut Vec<u8>) -> Result<()> {
    check_level(level)?;
    Zstd { level, checksum: true }.compress_onto(plain, out)
}

/// Fills all of `out` from Zstandard frames.
pub fn zstd_unpack(packed: &[u8], out: &mut [u8]) -> Result<()> {
    frames::decompress_into(packed, out)
}

/// Refuses Zstandard frames that cannot become `len` bytes, before memory is taken for them.
pub fn zstd_check_len(packed: &[u8], len: usize) -> Result<()> {
    if len > packed.len().saturating_mul(ZSTD_EXPANSION_MAX) {
        let expected = format!("what {} bytes of zstd can hold", packed.len());
        return Err(Error::corrupt("chunk", expected, format!("a length of {len}")));
    }
    match get_frame_content_size(packed) {
        // The first frame of several says less than all of them hold.
        Ok(Some(size)) if size > len as u64 => {
            Err(super::wrong_length(len, usize::try_from(size).unwrap_or(usize::MAX)))
        }
        Ok(_) => Ok(()),
        Err(_) => Err(Error::corrupt("chunk", "a zstd frame", "another beginning")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Vec<u8>> {
        let noise = (0..5000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8);
        vec![vec![], vec![7], vec![0; 300_000], noise.collect()]
    }

    #[test]
    fn packing_appends_and_unpacking_gives_the_same_bytes() {
        for plain in samples() {
            let mut packed = b"before".to_vec();
            lz4_pack(&plain, &mut packed).unwrap();
            let mut out = vec![1; plain.len()];
            lz4_check_len(&packed[6..], plain.len()).unwrap();
            lz4_unpack(&packed[6..], &mut out).unwrap();
            assert_eq!(out, plain);
            for level in [1, 3] {
                packed.truncate(6);
                zstd_pack(&plain, level, &mut packed).unwrap();
                let mut out = vec![1; plain.len()];
                zstd_check_len(&packed[6..], plain.len()).unwrap();
                zstd_unpack(&packed[6..], &mut out).unwrap();
                assert_eq!(out, plain);
            }
        }
    }

    #[test]
    fn a_frame_tells_its_size_and_carries_no_checksum() {
        let mut packed = Vec::new();
        zstd_pack(&[9; 1000], 3, &mut packed).unwrap();
        assert!(matches!(get_frame_content_size(&packed), Ok(Some(1000))));
        assert_eq!(packed[4] & 0b100, 0, "the checksum flag of the frame header");
    }

    #[test]
    fn other_lengths_cuts_and_flips_are_errors_and_no_panics() {
        for plain in samples() {
            let (mut lz4, mut zstd) = (Vec::new(), Vec::new());
            lz4_pack(&plain, &mut lz4).unwrap();
            zstd_pack(&plain, 3, &mut zstd).unwrap();
            for len in [plain.len() + 1, plain.len().saturating_sub(1), 2 * plain.len() + 3] {
                if len != plain.len() {
                    assert!(lz4_unpack(&lz4, &mut vec![0; len]).is_err(), "{len}");
                    assert!(zstd_unpack(&zstd, &mut vec![0; len]).is_err(), "{len}");
                }
            }
            let mut out = vec![0; plain.len()];
            for cut in 0..lz4.len().min(50) {
                assert!(lz4_unpack(&lz4[..cut], &mut out).is_err(), "{cut}");
            }
            for cut in 1..zstd.len().min(50) {
                assert!(zstd_unpack(&zstd[..cut], &mut out).is_err(), "{cut}");
            }
            for at in 0..lz4.len().min(100) {
                lz4[at] ^= 0x55;
                // Not every flip is found, but none may panic.
                drop(lz4_unpack(&lz4, &mut out));
                lz4[at] ^= 0x55;
            }
        }
    }

    #[test]
    fn lengths_that_the_bytes_cannot_have_are_refused_without_memory_for_them() {
        let huge = usize::MAX / 2;
        assert!(zstd_check_len(&[0x28, 0xb5, 0x2f, 0xfd, 0, 0], huge).is_err());
        assert!(lz4_check_len(&[255, 255, 255, 255, 0], u32::MAX as usize).is_err());
        assert!(zstd_check_len(b"no frame", 8).is_err());
        assert!(zstd_pack(&[], 1000, &mut Vec::new()).is_err());
    }
}
