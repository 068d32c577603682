//! The most common chains, run directly: elements as they lie in memory, or chunks of labels, maybe
//! compressed by zstd, gzip, blosc or lz4 or wrapped as DVID does, maybe followed by a crc32c.

use zarrs::metadata::v3::MetadataV3;

use super::blosc;
use super::gzip::{self, gunzip, gunzip_into, gzip_onto};
use super::label_block::value;
use super::labels::Labels;
use super::packed::{lz4_len, lz4_pack, lz4_unpack, zstd_bytes_max};
use super::scratch::with_scratch;
use super::zstd::{self, Zstd};
use super::{dvid_value, lz4, wrong_length};
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

#[derive(Clone, Copy, Debug)]
enum Compression {
    Blosc(blosc::Params),
    DvidValue,
    /// With its level.
    Gzip(u32),
    Lz4,
    Zstd(Zstd),
}

impl Compression {
    fn recognise(codec: &MetadataV3) -> Option<Self> {
        let zstd = || Zstd::recognise(codec).map(Self::Zstd);
        let blosc = || blosc::recognise(codec).map(Self::Blosc);
        let by_name = || match codec.name() {
            lz4::NAME => Some(Self::Lz4),
            dvid_value::NAME => Some(Self::DvidValue),
            _ => None,
        };
        let gzip = || gzip::recognise(codec).map(Self::Gzip);
        zstd().or_else(blosc).or_else(gzip).or_else(by_name)
    }
}

/// A chain `[bytes, zstd, blosc, gzip or lz4?, crc32c?]` whose elements need no conversion, or
/// `[chunkyard.label_block or compressed_segmentation, zstd, gzip, lz4 or chunkyard.dvid_value?, crc32c?]`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fast {
    /// How labels are encoded, if chunks are labels.
    labels: Option<Labels>,
    compression: Option<Compression>,
    crc32c: bool,
}

impl Fast {
    /// The chain, if it is one of these.
    pub(super) fn recognise(
        codecs: &[MetadataV3],
        dtype: &DType,
        chunk_shape: &[u64],
    ) -> Option<Self> {
        let (first, mut rest) = codecs.split_first()?;
        let labels = Labels::recognise(first, dtype, chunk_shape);
        if cfg!(target_endian = "big") || !(labels.is_some() || is_plain(first, dtype)) {
            return None;
        }
        let mut fast = Self { labels, compression: None, crc32c: false };
        if let Some((codec, others)) = rest.split_first() {
            fast.compression = Compression::recognise(codec);
            if fast.compression.is_some() {
                rest = others;
            }
        }
        if let Some((codec, others)) = rest.split_first()
            && codec.name() == "crc32c"
            && codec.configuration_is_none_or_empty()
        {
            fast.crc32c = true;
            rest = others;
        }
        // The size of a label block is not known before it is decompressed, and c-blosc's buffers are
        // decoded to a known size.
        let blosc = matches!(fast.compression, Some(Compression::Blosc(_)));
        (rest.is_empty() && !(fast.labels.is_some() && blosc)).then_some(fast)
    }

    /// Whether a chunk is its elements as they lie in memory.
    pub(super) fn is_plain(&self) -> bool {
        self.compression.is_none() && !self.crc32c && self.labels.is_none()
    }

    /// The decoded chunk, if the encoded one stores it uncompressed.
    pub(super) fn borrow<'a>(&self, encoded: &'a [u8]) -> Result<Option<&'a [u8]>> {
        if self.labels.is_some() {
            return Ok(None);
        }
        let payload = self.payload(encoded)?;
        match self.compression {
            None => Ok(Some(payload)),
            Some(Compression::Blosc(_)) => blosc::borrow(blosc::check(payload)?),
            Some(_) => Ok(None),
        }
    }

    /// Decodes a chunk of exactly `out.len()` bytes.
    pub(super) fn decode_into(&self, encoded: &[u8], out: &mut [u8]) -> Result<()> {
        let payload = self.payload(encoded)?;
        if let Some(labels) = self.labels {
            return self.decode_labels(&labels, payload, out);
        }
        match self.compression {
            Some(Compression::Zstd(_)) => zstd::decompress_into(payload, out),
            Some(Compression::Blosc(_)) => blosc::decode_into(blosc::check(payload)?, out),
            Some(Compression::Gzip(_)) => gunzip_into(payload, out),
            Some(Compression::Lz4) => lz4_unpack(payload, out),
            Some(Compression::DvidValue) => {
                let plain = value::unwrap(payload, out.len())?;
                if plain.len() != out.len() {
                    return Err(wrong_length(out.len(), plain.len()));
                }
                out.copy_from_slice(&plain);
                Ok(())
            }
            None if payload.len() != out.len() => Err(wrong_length(out.len(), payload.len())),
            None => {
                out.copy_from_slice(payload);
                Ok(())
            }
        }
    }

    /// Decodes a label block that may be compressed.
    fn decode_labels(&self, labels: &Labels, payload: &[u8], out: &mut [u8]) -> Result<()> {
        self.with_block(labels, payload, |block| labels.decode_into(block, out))
    }

    /// The label block that a chunk is, not decoded any further, if chunks are label blocks.
    pub(super) fn label_block(&self, encoded: &[u8]) -> Option<Result<Vec<u8>>> {
        let labels = self.labels?;
        let unpack = |payload| self.with_block(&labels, payload, |block| labels.block_of(block));
        Some(self.payload(encoded).and_then(unpack))
    }

    /// Appends the chunk that a label block is to `out`, if chunks are label blocks.
    pub(super) fn encode_label_block(&self, block: &[u8], out: &mut Vec<u8>) -> Option<Result<()>> {
        let labels = self.labels?;
        Some(labels.chunk_of(block).and_then(|chunk| self.compress_onto(&chunk, out)))
    }

    /// Hands on a label block that may be compressed.
    fn with_block<T>(
        &self,
        labels: &Labels,
        payload: &[u8],
        work: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        let block_max = labels.encoded_bytes_max()?;
        match self.compression {
            Some(Compression::Zstd(_)) => {
                let room = zstd_bytes_max(payload).min(block_max);
                with_scratch(room, |scratch| {
                    let written = zstd::decompress(payload, scratch).map_err(|cause| {
                        let expected = format!("zstd frames of at most {room} bytes");
                        Error::corrupt("chunk", expected, cause.to_string()).because(cause)
                    })?;
                    work(scratch.get(..written).unwrap_or_default())
                })
            }
            Some(Compression::Lz4) => {
                let (len, _) = lz4_len(payload)?;
                if len > block_max {
                    let expected = format!("a label block of at most {block_max} bytes");
                    return Err(Error::corrupt("chunk", expected, format!("{len}")));
                }
                with_scratch(len, |scratch| {
                    lz4_unpack(payload, scratch)?;
                    work(scratch)
                })
            }
            Some(Compression::DvidValue) => work(&value::unwrap(payload, block_max)?),
            Some(Compression::Gzip(_)) => work(&gunzip(payload, block_max)?),
            _ => work(payload),
        }
    }

    /// Like [`Fast::decode_into`], with several threads where a chunk is made of many blocks.
    pub(super) fn decode_into_together(&self, encoded: &[u8], out: &mut [u8]) -> Result<()> {
        match self.compression {
            Some(Compression::Blosc(_)) => {
                blosc::decode_into_together(blosc::check(self.payload(encoded)?)?, out)
            }
            _ => self.decode_into(encoded, out),
        }
    }

    /// Decodes at least the blocks that `wanted` names, given how many bytes a block has. The rest
    /// of `out` is unspecified.
    pub(super) fn decode_some(
        &self,
        encoded: &[u8],
        out: &mut [u8],
        wanted: impl FnOnce(usize) -> Result<Vec<usize>>,
    ) -> Result<()> {
        match self.compression {
            Some(Compression::Blosc(_)) => {
                blosc::decode_some(blosc::check(self.payload(encoded)?)?, out, wanted)
            }
            _ => self.decode_into(encoded, out),
        }
    }

    /// Appends the encoded chunk to `out`.
    pub(super) fn encode_into(&self, decoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let Some(labels) = self.labels else { return self.compress_onto(decoded, out) };
        let mut block = Vec::new();
        labels.encode_onto(decoded, &mut block)?;
        self.compress_onto(&block, out)
    }

    fn compress_onto(&self, decoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        match self.compression {
            Some(Compression::Zstd(zstd)) => zstd.compress_onto(decoded, out)?,
            Some(Compression::Blosc(params)) => blosc::encode_onto(&params, decoded, out)?,
            Some(Compression::Gzip(level)) => gzip_onto(decoded, level, out)?,
            Some(Compression::Lz4) => lz4_pack(decoded, out)?,
            Some(Compression::DvidValue) => dvid_value::pack(decoded, out)?,
            None => out.extend_from_slice(decoded),
        }
        if self.crc32c {
            let checksum = crc32c::crc32c(&out[start..]);
            out.extend_from_slice(&checksum.to_le_bytes());
        }
        Ok(())
    }

    /// The bytes that the checksum covers.
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
    let raw = name.strip_prefix('r').is_some_and(|bits| bits.bytes().all(|b| b.is_ascii_digit()))
        || matches!(name, "null_terminated_bytes" | "raw_bytes");
    if codec.name() != "bytes" || !(raw || PLAIN_TYPES.contains(&name)) {
        return false;
    }
    let endian = codec.configuration().and_then(|map| map.get("endian")?.as_str());
    raw || dtype.item_size() == Some(1) || endian == Some("little")
}
