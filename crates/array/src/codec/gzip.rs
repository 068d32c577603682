//! Gzip streams in one call, for chunks that lie in memory as a whole.
//!
//! Specification: RFC 1952. Compatible implementations: all of gzip. Streams of several members, which no writer of
//! chunks makes but some compressors of files do, are read too.
//!
//! libdeflate does both ways, and need not be able to stop in between.

use std::cell::RefCell;
use std::io::Read;

use flate2::read::MultiGzDecoder;
use libdeflater::{CompressionLvl, Compressor, Decompressor, crc32};
use zarrs::metadata::v3::MetadataV3;

use super::scratch::zeroed;
use crate::{Error, Result};

/// The least and the most that a stream takes: a head of ten bytes, an empty block, and a tail.
const STREAM_BYTES_MIN: usize = 18;

/// The checksum and the length, modulo 2^32, of what the last member decodes to.
const TAIL_BYTES: usize = 8;

/// How many bytes a compressed byte can stand for at most.
const RATIO_MAX: usize = 1032;

/// The highest level of other implementations, and so of metadata.
const LEVEL_MAX: u32 = 9;

/// The level of a codec that makes such streams.
pub(super) fn recognise(codec: &MetadataV3) -> Option<u32> {
    let level = codec.configuration().filter(|_| codec.name() == "gzip")?.get("level")?.as_u64()?;
    u32::try_from(level).ok().filter(|level| *level <= LEVEL_MAX)
}

/// Appends the gzip stream of some bytes to `out`. Levels are from 0 to 9.
pub fn gzip_onto(plain: &[u8], level: u32, out: &mut Vec<u8>) -> Result<()> {
    thread_local! {
        static COMPRESSORS: RefCell<Vec<(u32, Compressor)>> = const { RefCell::new(Vec::new()) };
    }
    let known = i32::try_from(level).ok().filter(|_| level <= LEVEL_MAX);
    let known = known.and_then(|level| CompressionLvl::new(level).ok());
    let Some(setting) = known else {
        return Err(Error::invalid(format!("gzip has levels from 0 to 9, not {level}")));
    };
    COMPRESSORS.with_borrow_mut(|all| {
        let at = match all.iter().position(|(known, _)| *known == level) {
            Some(at) => at,
            None => {
                all.push((level, Compressor::new(setting)));
                all.len() - 1
            }
        };
        let Some((_, compressor)) = all.get_mut(at) else { return Ok(()) };
        let start = out.len();
        let room = compressor.gzip_compress_bound(plain.len());
        out.try_reserve(room)
            .map_err(|_| Error::OutOfMemory { what: "a gzip stream".to_owned(), bytes: room })?;
        out.resize(start + room, 0);
        let space = out.get_mut(start..).unwrap_or_default();
        let written = compressor.gzip_compress(plain, space).map_err(|cause| {
            Error::invalid("gzip cannot encode these bytes").because(cause.to_string())
        });
        out.truncate(start + *written.as_ref().unwrap_or(&0));
        written.map(drop)
    })
}

/// The bytes in a gzip stream, of which there may be at most `bytes_max`. Memory grows with what the stream can really
/// hold.
pub fn gunzip(stream: &[u8], bytes_max: usize) -> Result<Vec<u8>> {
    if let Some((_, len)) = tail(stream)
        && len <= bytes_max
        && len <= stream.len().saturating_mul(RATIO_MAX)
        && !repeats(stream)
    {
        let mut plain = zeroed(len)?;
        if decode_one(stream, &mut plain) {
            return Ok(plain);
        }
    }
    let mut plain = Vec::new();
    // One byte more than may be there, to notice it.
    let mut reader = MultiGzDecoder::new(stream).take((bytes_max as u64).saturating_add(1));
    reader
        .read_to_end(&mut plain)
        .map_err(|cause| corrupt("a gzip stream", cause.to_string()).because(cause))?;
    match plain.len() <= bytes_max {
        true => Ok(plain),
        false => Err(corrupt(format!("at most {bytes_max} bytes"), "more".to_owned())),
    }
}

/// Decodes a stream of exactly `out.len()` bytes.
pub(super) fn gunzip_into(stream: &[u8], out: &mut [u8]) -> Result<()> {
    if decode_one(stream, out) {
        return Ok(());
    }
    let plain = gunzip(stream, out.len())?;
    if plain.len() != out.len() {
        return Err(super::wrong_length(out.len(), plain.len()));
    }
    out.copy_from_slice(&plain);
    Ok(())
}

/// Whether the stream is one member that decodes to exactly this many bytes.
fn decode_one(stream: &[u8], out: &mut [u8]) -> bool {
    thread_local! {
        static DECOMPRESSOR: RefCell<Decompressor> = RefCell::new(Decompressor::new());
    }
    let Some((checksum, len)) = tail(stream) else { return false };
    if len != out.len() {
        return false;
    }
    let decoded =
        DECOMPRESSOR.with_borrow_mut(|decompressor| decompressor.gzip_decompress(stream, out));
    // libdeflate stops at the end of the first member. If that is not the end of the stream, the tail is another one's.
    decoded.is_ok_and(|written| written == out.len()) && crc32(out) == checksum
}

/// Whether the tail of the stream is there before its end too, so that the first of several equal members might pass
/// for all of it.
fn repeats(stream: &[u8]) -> bool {
    let Some((before, tail)) = stream.split_last_chunk::<TAIL_BYTES>() else { return false };
    before.windows(TAIL_BYTES).any(|bytes| bytes == tail)
}

/// The checksum and the length at the end of a stream.
fn tail(stream: &[u8]) -> Option<(u32, usize)> {
    let tail = stream.last_chunk::<TAIL_BYTES>().filter(|_| stream.len() >= STREAM_BYTES_MIN)?;
    let [a, b, c, d, e, f, g, h] = *tail;
    let len = usize::try_from(u32::from_le_bytes([e, f, g, h])).ok()?;
    Some((u32::from_le_bytes([a, b, c, d]), len))
}

fn corrupt(expected: impl Into<String>, found: impl Into<String>) -> Error {
    Error::corrupt("gzip stream", expected, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gzip(plain: &[u8], level: u32) -> Vec<u8> {
        let mut out = Vec::new();
        gzip_onto(plain, level, &mut out).unwrap();
        out
    }

    #[test]
    fn streams_go_there_and_back_at_every_level() {
        let plain: Vec<u8> = (0..100_000u32).flat_map(|n| (n / 7).to_le_bytes()).collect();
        for level in 0..=9 {
            let stream = gzip(&plain, level);
            assert_eq!(gunzip(&stream, plain.len()).unwrap(), plain);
            let mut others = Vec::new();
            flate2::read::GzDecoder::new(&stream[..]).read_to_end(&mut others).unwrap();
            assert_eq!(others, plain);
        }
        assert!(gunzip(&gzip(&[], 6), 0).unwrap().is_empty());
        assert!(gzip_onto(&plain, 10, &mut Vec::new()).is_err());
    }

    #[test]
    fn a_stream_of_several_members_is_all_of_them() {
        let both = [gzip(b"first", 6), gzip(b"second", 6)].concat();
        assert_eq!(gunzip(&both, 11).unwrap(), b"firstsecond");
        let mut out = [0; 11];
        gunzip_into(&both, &mut out).unwrap();
        assert_eq!(&out, b"firstsecond");
        // The tail of the second is that of the first.
        let same = gzip(b"first", 6).repeat(2);
        assert_eq!(gunzip(&same, 10).unwrap(), b"firstfirst");
        gunzip_into(&same, &mut out[..10]).unwrap();
    }

    #[test]
    fn more_than_may_be_there_is_refused() {
        let stream = gzip(&[7; 1000], 6);
        let error = gunzip(&stream, 999).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        // A length that no stream of this size has.
        let mut forged = stream.clone();
        let at = forged.len() - 4;
        forged[at..].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(gunzip(&forged, usize::MAX).is_err());
    }

    #[test]
    fn every_flipped_bit_of_a_stream_is_noticed_or_harmless() {
        let plain: Vec<u8> = (0..64).collect();
        let stream = gzip(&plain, 9);
        for bit in 0..stream.len() * 8 {
            let mut flipped = stream.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            if let Ok(found) = gunzip(&flipped, 64) {
                assert!(found == plain, "bit {bit}");
            }
        }
        for len in 0..stream.len() {
            assert!(gunzip(&stream[..len], 64).is_err(), "{len} bytes");
        }
    }
}
