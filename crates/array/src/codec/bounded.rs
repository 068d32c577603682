//! Decompressors that stop where the chunk must end.
//!
//! `zarrs` sizes its output by what the compressed bytes claim, or lets it grow. A forged header
//! leads to an allocation that aborts the process; a small bomb takes all of memory. Here each
//! decompressor of `zarrs` is wrapped: it encodes as before, and decodes no further than the size
//! that the metadata allows. Blosc is [our own](super::blosc) both ways. The wrappers are
//! registered with `zarrs` once per process, so that they also act inside shards.

use std::borrow::Cow;
use std::io::{self, Read};
use std::sync::{Arc, Once};

use zarrs::array::codec::api::{CodecRuntimePluginV3, register_codec_v3};
use zarrs::array::codec::{BloscCodec, Bz2Codec, GzipCodec, ZlibCodec, ZstdCodec};
use zarrs::array::{
    ArrayBytesRaw, BytesRepresentation, BytesToBytesCodecTraits, Codec, CodecError,
    CodecMetadataOptions, CodecOptions, CodecTraitsV3,
};
use zarrs::metadata::Configuration;
use zarrs::metadata::v3::MetadataV3;
use zarrs::plugin::{ExtensionAliases, PluginCreateError, ZarrVersion, ZarrVersion3};

use super::whole::{self, BytesCodec, Described};
use super::{blosc, zstd as frames};

/// Limit for a chunk of strings or the like, whose size is not in the metadata.
const VARIABLE_BYTES_MAX: u64 = 2 << 30;

#[derive(Clone, Copy, Debug)]
enum BoundedCodec {
    Blosc(blosc::Params),
    Bz2,
    Gzip,
    Zlib,
    Zstd,
}

/// Makes `zarrs` use the wrappers of this module.
pub(super) fn register() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        wrap::<BloscCodec>(blosc_kind);
        wrap::<Bz2Codec>(|_| Ok(BoundedCodec::Bz2));
        wrap::<GzipCodec>(|_| Ok(BoundedCodec::Gzip));
        wrap::<ZlibCodec>(|_| Ok(BoundedCodec::Zlib));
        wrap::<ZstdCodec>(|_| Ok(BoundedCodec::Zstd));
        super::dvid_value::register();
        super::fletcher32::register();
        super::label_block::zarr::register();
        super::lz4::register();
        super::offsets::register();
        super::pcodec::register();
        super::picture::register();
        super::segmentation::register();
        super::vlen::register();
    });
}

fn wrap<C: ExtensionAliases<ZarrVersion3> + CodecTraitsV3 + 'static>(
    kind: fn(&MetadataV3) -> Result<BoundedCodec, PluginCreateError>,
) {
    register_codec_v3(CodecRuntimePluginV3::new(C::matches_name, move |metadata| match C::create(
        metadata,
    )? {
        Codec::BytesToBytes(inner) => Ok(whole::of_bytes(Bounded { kind: kind(metadata)?, inner })),
        other => Ok(other),
    }));
}

fn blosc_kind(metadata: &MetadataV3) -> Result<BoundedCodec, PluginCreateError> {
    let unknown = || PluginCreateError::Other(format!("{metadata} is no blosc codec"));
    blosc::recognise(metadata).map(BoundedCodec::Blosc).ok_or_else(unknown)
}

/// A compression codec of `zarrs` with a bound on what it decodes to.
#[derive(Debug)]
struct Bounded {
    kind: BoundedCodec,
    inner: Arc<dyn BytesToBytesCodecTraits>,
}

impl Bounded {
    fn decompress(&self, encoded: &[u8], bytes_max: u64, exact: bool) -> io::Result<Vec<u8>> {
        match self.kind {
            BoundedCodec::Bz2 => read_bounded(bzip2::read::BzDecoder::new(encoded), bytes_max),
            BoundedCodec::Gzip => read_bounded(flate2::read::GzDecoder::new(encoded), bytes_max),
            BoundedCodec::Zlib => read_bounded(flate2::read::ZlibDecoder::new(encoded), bytes_max),
            BoundedCodec::Zstd if exact => {
                let len = usize::try_from(bytes_max).map_err(io::Error::other)?;
                let mut out = super::scratch::zeroed(len).map_err(io::Error::other)?;
                let written = frames::decompress(encoded, &mut out)?;
                out.truncate(written);
                Ok(out)
            }
            BoundedCodec::Zstd => read_bounded(zstd::Decoder::new(encoded)?, bytes_max),
            BoundedCodec::Blosc(_) => decode_blosc(encoded, bytes_max),
        }
    }
}

/// The most bytes that a codec may decode to, and whether it must be exactly that many.
pub(super) fn decoded_max(representation: &BytesRepresentation) -> (u64, bool) {
    match *representation {
        BytesRepresentation::FixedSize(size) => (size, true),
        // The bound of a compressor inside this one is an estimate that other writers may exceed a
        // little.
        BytesRepresentation::BoundedSize(size) => {
            (size.saturating_add(size / 2).saturating_add(1 << 16), false)
        }
        BytesRepresentation::UnboundedSize => (VARIABLE_BYTES_MAX, false),
    }
}

/// Reads to the end, or fails as soon as there is more than `bytes_max`.
fn read_bounded(reader: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    reader.take(bytes_max.saturating_add(1)).read_to_end(&mut out)?;
    if out.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("decompresses to more than {bytes_max} bytes")));
    }
    Ok(out)
}

fn decode_blosc(encoded: &[u8], bytes_max: u64) -> io::Result<Vec<u8>> {
    let buffer = blosc::check(encoded).map_err(io::Error::other)?;
    let len = blosc::Header::parse(buffer).map_err(io::Error::other)?.decoded_bytes;
    if len > bytes_max {
        let what = format!("a blosc buffer of {len} bytes where at most {bytes_max} can be");
        return Err(io::Error::other(what));
    }
    let len = usize::try_from(len).map_err(io::Error::other)?;
    let mut out = super::scratch::zeroed(len).map_err(io::Error::other)?;
    blosc::decode_into(buffer, &mut out).map_err(io::Error::other)?;
    Ok(out)
}

impl Described for Bounded {
    fn name(&self, version: ZarrVersion) -> Option<Cow<'static, str>> {
        self.inner.name(version)
    }

    fn configuration(
        &self,
        version: ZarrVersion,
        options: &CodecMetadataOptions,
    ) -> Option<Configuration> {
        self.inner.configuration(version, options)
    }
}

impl BytesCodec for Bounded {
    fn encoded_size(&self, decoded_representation: &BytesRepresentation) -> BytesRepresentation {
        self.inner.encoded_representation(decoded_representation)
    }

    fn encode<'a>(
        &self,
        decoded_value: ArrayBytesRaw<'a>,
        options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        let BoundedCodec::Blosc(params) = self.kind else {
            return self.inner.encode(decoded_value, options);
        };
        let mut out = Vec::new();
        blosc::encode_onto(&params, &decoded_value, &mut out)
            .map_err(|error| CodecError::Other(error.to_string()))?;
        Ok(Cow::Owned(out))
    }

    fn decode<'a>(
        &self,
        encoded_value: ArrayBytesRaw<'a>,
        decoded_representation: &BytesRepresentation,
        _options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        let (bytes_max, exact) = decoded_max(decoded_representation);
        let decoded = self.decompress(&encoded_value, bytes_max, exact)?;
        Ok(Cow::Owned(decoded))
    }
}
