//! The wrapper in which DVID stores blocks and label indices.
//!
//! ```text
//!  u8 compression << 5 │ checksum << 3      u32 CRC-32, if there is one      payload
//! ```
//!
//! | number | compression | payload |
//! |---|---|---|
//! | 0 | none | the bytes |
//! | 1 | snappy | a Snappy block with its length |
//! | 2 | gzip | gzip members |
//! | 4 | lz4 | `u32` length, one LZ4 block; a length of 0 means that the rest is not compressed |
//! | 5 | jpeg | an image, never labels; refused |
//!
//! The checksum, little-endian like all numbers here, covers the payload as it is stored. A value
//! without bytes is empty. Compatible implementations: DVID (`dvid/serialize.go`).

use std::borrow::Cow;

use flate2::Crc;

use crate::codec::gzip::{gunzip, gzip_onto};
use crate::codec::packed::{lz4_len, lz4_pack, lz4_unpack, snappy_len, snappy_pack, snappy_unpack};
use crate::codec::zeroed;
use crate::{Error, Result};

/// How the payload of a value is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all.
    None,
    /// A Snappy block.
    Snappy,
    /// A gzip stream of a level from 0 to 9, which readers need not know.
    Gzip(u32),
    /// An LZ4 block behind its length.
    Lz4,
}

impl Compression {
    fn number(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Snappy => 1,
            Self::Gzip(_) => 2,
            Self::Lz4 => 4,
        }
    }
}

/// Appends a value to `out`. Empty bytes are an empty value.
///
/// As in DVID, a gzip stream gets no checksum besides its own. `out` stays as it was if this fails.
pub fn wrap_onto(
    plain: &[u8],
    compression: Compression,
    checksum: bool,
    out: &mut Vec<u8>,
) -> Result<()> {
    let start = out.len();
    let done = write(plain, compression, checksum, out);
    if done.is_err() {
        out.truncate(start);
    }
    done
}

fn write(plain: &[u8], compression: Compression, checksum: bool, out: &mut Vec<u8>) -> Result<()> {
    if plain.is_empty() {
        return Ok(());
    }
    let checksum = checksum && !matches!(compression, Compression::Gzip(_));
    out.push(compression.number() << 5 | u8::from(checksum) << 3);
    let checksum_at = out.len();
    if checksum {
        out.extend_from_slice(&[0; 4]);
    }
    let payload_at = out.len();
    match compression {
        Compression::None => out.extend_from_slice(plain),
        Compression::Snappy => snappy_pack(plain, out)?,
        Compression::Lz4 => lz4_pack(plain, out)?,
        Compression::Gzip(level) => gzip_onto(plain, level, out)?,
    }
    if checksum {
        let computed = crc32(&out[payload_at..]).to_le_bytes();
        out[checksum_at..payload_at].copy_from_slice(&computed);
    }
    Ok(())
}

/// The bytes in a value, of which there may be at most `bytes_max`.
///
/// Memory grows with what is decompressed, or is taken for a length that the payload can really
/// hold; never more than `bytes_max` of it.
pub fn unwrap(value: &[u8], bytes_max: usize) -> Result<Cow<'_, [u8]>> {
    let Some((&format, rest)) = value.split_first() else { return Ok(Cow::Borrowed(&[])) };
    if format & 0b111 != 0 {
        return Err(corrupt("three zero bits at the end of its first byte", hex(format)));
    }
    let payload = match format >> 3 & 0b11 {
        0 => rest,
        1 => checked(rest)?,
        _ => return Err(corrupt("no checksum or a CRC-32", hex(format))),
    };
    match format >> 5 {
        0 => bounded(payload.len(), bytes_max).map(|()| Cow::Borrowed(payload)),
        1 => {
            let len = snappy_len(payload)?;
            bounded(len, bytes_max)?;
            let mut plain = zeroed(len)?;
            snappy_unpack(payload, &mut plain)?;
            Ok(Cow::Owned(plain))
        }
        2 => gunzip(payload, bytes_max).map(Cow::Owned),
        4 => unpack_lz4(payload, bytes_max),
        5 => Err(Error::unsupported("an image (JPEG) in a DVID value")),
        _ => Err(corrupt("a known compression", hex(format))),
    }
}

/// The payload after its checksum.
fn checked(rest: &[u8]) -> Result<&[u8]> {
    let Some((stored, payload)) = rest.split_first_chunk::<4>() else {
        return Err(corrupt("a CRC-32", format!("{} bytes", rest.len())));
    };
    let (stored, computed) = (u32::from_le_bytes(*stored), crc32(payload));
    if stored != computed {
        return Err(corrupt(format!("CRC-32 {stored:08x}"), format!("{computed:08x}")));
    }
    Ok(payload)
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

fn unpack_lz4(payload: &[u8], bytes_max: usize) -> Result<Cow<'_, [u8]>> {
    if let Some((&[0, 0, 0, 0], rest)) = payload.split_first_chunk::<4>() {
        // Written by a DVID of old, which did not compress in spite of the format.
        bounded(rest.len(), bytes_max)?;
        return Ok(Cow::Borrowed(rest));
    }
    let (len, _) = lz4_len(payload)?;
    bounded(len, bytes_max)?;
    let mut plain = zeroed(len)?;
    lz4_unpack(payload, &mut plain)?;
    Ok(Cow::Owned(plain))
}

fn bounded(len: usize, bytes_max: usize) -> Result<()> {
    if len <= bytes_max {
        return Ok(());
    }
    Err(corrupt(format!("at most {bytes_max} bytes"), "more".to_owned()))
}

fn hex(byte: u8) -> String {
    format!("{byte:#04x}")
}

fn corrupt(expected: impl Into<String>, found: impl Into<String>) -> Error {
    Error::corrupt("DVID value", expected, found)
}
