//! The chains that most arrays have, run without detours: elements as they lie in memory, maybe
//! compressed by zstd, maybe followed by a crc32c.

use std::cell::RefCell;
use std::io;

use zarrs::metadata::v3::MetadataV3;
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::{CParameter, compress_bound};

use crate::{DType, Error, Result};

const CRC_BYTES: usize = 4;

/// Types whose little-endian bytes are their memory on a little-endian machine, besides `r*`.
const PLAIN_TYPES: &[&str] = &[
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "numpy.datetime64",
    "numpy.timedelta64",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Zstd {
    level: i32,
    checksum: bool,
}

/// A chain `[bytes, zstd?, crc32c?]` whose elements need no conversion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fast {
    zstd: Option<Zstd>,
    crc32c: bool,
}

impl Fast {
    /// The chain, if it is one of these.
    pub(super) fn recognise(codecs: &[MetadataV3], dtype: &DType) -> Option<Self> {
        let (first, mut rest) = codecs.split_first()?;
        if cfg!(target_endian = "big") || !is_plain(first, dtype) {
            return None;
        }
        let mut fast = Self { zstd: None, crc32c: false };
        if let Some((codec, others)) = rest.split_first()
            && codec.name() == "zstd"
        {
            let configuration = codec.configuration()?;
            let level = configuration.get("level")?.as_i64()?;
            let checksum = configuration.get("checksum").is_some_and(|value| value == true);
            fast.zstd = Some(Zstd { level: i32::try_from(level).ok()?, checksum });
            rest = others;
        }
        if let Some((codec, others)) = rest.split_first()
            && codec.name() == "crc32c"
            && codec.configuration_is_none_or_empty()
        {
            fast.crc32c = true;
            rest = others;
        }
        rest.is_empty().then_some(fast)
    }

    /// The decoded chunk, where it lies in the encoded one as it is.
    pub(super) fn borrow<'a>(&self, encoded: &'a [u8]) -> Result<Option<&'a [u8]>> {
        if self.zstd.is_some() { Ok(None) } else { self.payload(encoded).map(Some) }
    }

    /// Decodes a chunk of exactly `out.len()` bytes.
    pub(super) fn decode_into(&self, encoded: &[u8], out: &mut [u8]) -> Result<()> {
        let payload = self.payload(encoded)?;
        if self.zstd.is_some() {
            return decompress_into(payload, out);
        }
        if payload.len() != out.len() {
            return Err(wrong_length(out.len(), payload.len()));
        }
        out.copy_from_slice(payload);
        Ok(())
    }

    /// Appends the encoded chunk to `out`.
    pub(super) fn encode_into(&self, decoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        match self.zstd {
            Some(zstd) => compress_onto(zstd, decoded, out)?,
            None => out.extend_from_slice(decoded),
        }
        if self.crc32c {
            let checksum = crc32c::crc32c(&out[start..]);
            out.extend_from_slice(&checksum.to_le_bytes());
        }
        Ok(())
    }

    /// What is under the checksum.
    fn payload<'a>(&self, encoded: &'a [u8]) -> Result<&'a [u8]> {
        if !self.crc32c {
            return Ok(encoded);
        }
        let Some((payload, stored)) = encoded.split_last_chunk::<CRC_BYTES>() else {
            let found = format!("{} bytes", encoded.len());
            return Err(Error::corrupt("chunk", "a crc32c at its end", found));
        };
        let (stored, computed) = (u32::from_le_bytes(*stored), crc32c::crc32c(payload));
        if stored != computed {
            let (expected, found) = (format!("crc32c {stored:08x}"), format!("{computed:08x}"));
            return Err(Error::corrupt("chunk", expected, found));
        }
        Ok(payload)
    }
}

/// Whether the first codec leaves the elements of this type as they are.
fn is_plain(codec: &MetadataV3, dtype: &DType) -> bool {
    let name = dtype.name();
    let raw = name.strip_prefix('r').is_some_and(|bits| bits.bytes().all(|b| b.is_ascii_digit()));
    if codec.name() != "bytes" || !(raw || PLAIN_TYPES.contains(&name)) {
        return false;
    }
    let endian = codec.configuration().and_then(|map| map.get("endian")?.as_str());
    raw || dtype.item_size() == Some(1) || endian == Some("little")
}

pub(super) fn wrong_length(expected: usize, found: usize) -> Error {
    Error::corrupt("chunk", format!("{expected} bytes when decoded"), format!("{found}"))
}

/// Decompresses zstd frames that hold exactly `out.len()` bytes. What the frames say of their size
/// is not believed: there is no room but `out`.
pub(super) fn decompress_into(frames: &[u8], out: &mut [u8]) -> Result<()> {
    let expected = out.len();
    let written = decompress(frames, out).map_err(|cause| {
        let expected = format!("zstd frames of {expected} bytes");
        Error::corrupt("chunk", expected, cause.to_string()).because(cause)
    })?;
    if written == expected { Ok(()) } else { Err(wrong_length(expected, written)) }
}

/// Decompresses zstd frames into `out` and says how much of it they fill.
pub(super) fn decompress(frames: &[u8], out: &mut [u8]) -> io::Result<usize> {
    thread_local! {
        static CONTEXT: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
    }
    CONTEXT.with_borrow_mut(|slot| {
        let context = match slot {
            Some(context) => context,
            None => slot.insert(Decompressor::new()?),
        };
        context.decompress_to_buffer(frames, out)
    })
}

/// Appends a zstd frame to `out`, with the compression context of this thread.
fn compress_onto(zstd: Zstd, decoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
    thread_local! {
        static CONTEXT: RefCell<Option<(Zstd, Compressor<'static>)>> = const { RefCell::new(None) };
    }
    let refused = |cause: io::Error| Error::invalid("zstd cannot encode a chunk").because(cause);
    CONTEXT.with_borrow_mut(|slot| {
        if slot.as_ref().is_none_or(|(configured, _)| *configured != zstd) {
            let mut context = Compressor::new(zstd.level).map_err(refused)?;
            let checksum = CParameter::ChecksumFlag(zstd.checksum);
            context.set_parameter(checksum).map_err(refused)?;
            *slot = Some((zstd, context));
        }
        let Some((_, context)) = slot else { return Ok(()) };
        let start = out.len();
        out.reserve(compress_bound(decoded.len()));
        let mut end = io::Cursor::new(&mut *out);
        end.set_position(start as u64);
        context.compress_to_buffer(decoded, &mut end).map_err(refused)?;
        Ok(())
    })
}
