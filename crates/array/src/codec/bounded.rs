//! Decompressors that stop where the chunk must end.
//!
//! `zarrs` sizes its output by what the compressed bytes say of themselves, or lets it grow. From a
//! forged header follows an allocation that aborts the process; from a small bomb, all of memory.
//! Here each decompressor of `zarrs` is wrapped: it encodes as before, and decodes no further than
//! the size that the metadata allows. The wrappers are registered with `zarrs` once per process, so
//! that they also act inside shards.

use std::any::Any;
use std::borrow::Cow;
use std::io::{self, Read};
use std::sync::{Arc, Once};

use zarrs::array::codec::api::{
    CodecRuntimePluginV3, PartialDecoderCapability, PartialEncoderCapability, register_codec_v3,
};
use zarrs::array::codec::{BloscCodec, Bz2Codec, GzipCodec, ZlibCodec, ZstdCodec};
use zarrs::array::{
    ArrayBytesRaw, BytesRepresentation, BytesToBytesCodecTraits, Codec, CodecError,
    CodecMetadataOptions, CodecOptions, CodecTraits, CodecTraitsV3, RecommendedConcurrency,
};
use zarrs::metadata::Configuration;
use zarrs::metadata::v3::MetadataV3;
use zarrs::plugin::{
    ExtensionAliases, ExtensionName, PluginCreateError, ZarrVersion, ZarrVersion3,
};

use super::zstd as frames;

/// Limit for a chunk of strings or the like, whose size no metadata tells.
const VARIABLE_BYTES_MAX: u64 = 2 << 30;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Blosc,
    Bz2,
    Gzip,
    Zlib,
    Zstd,
}

/// Makes `zarrs` use the wrappers of this module.
pub(super) fn register() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        wrap::<BloscCodec>(Kind::Blosc);
        wrap::<Bz2Codec>(Kind::Bz2);
        wrap::<GzipCodec>(Kind::Gzip);
        wrap::<ZlibCodec>(Kind::Zlib);
        wrap::<ZstdCodec>(Kind::Zstd);
        super::fletcher32::register();
        super::lz4::register();
        super::offsets::register();
        super::pcodec::register();
    });
}

fn wrap<C: ExtensionAliases<ZarrVersion3> + CodecTraitsV3 + 'static>(kind: Kind) {
    register_codec_v3(CodecRuntimePluginV3::new(C::matches_name, move |metadata| {
        if matches!(kind, Kind::Blosc) {
            check_blosc(metadata)?;
        }
        match C::create(metadata)? {
            Codec::BytesToBytes(inner) => {
                Ok(Codec::BytesToBytes(Arc::new(Bounded { kind, inner })))
            }
            other => Ok(other),
        }
    }));
}

/// c-blosc keeps sizes in an `int` and divides by what is left of them: 2³² is zero there.
fn check_blosc(metadata: &MetadataV3) -> Result<(), PluginCreateError> {
    for key in ["typesize", "blocksize"] {
        let size = metadata.configuration().and_then(|map| map.get(key)?.as_u64());
        if size.is_some_and(|size| i32::try_from(size).is_err()) {
            let message = format!("{key} of blosc is too large");
            return Err(PluginCreateError::Other(message));
        }
    }
    Ok(())
}

/// A compression codec of `zarrs` with a bound on what it decodes to.
#[derive(Debug)]
struct Bounded {
    kind: Kind,
    inner: Arc<dyn BytesToBytesCodecTraits>,
}

impl Bounded {
    fn decompress(&self, encoded: &[u8], bytes_max: u64, exact: bool) -> io::Result<Vec<u8>> {
        match self.kind {
            Kind::Bz2 => read_bounded(bzip2::read::BzDecoder::new(encoded), bytes_max),
            Kind::Gzip => read_bounded(flate2::read::GzDecoder::new(encoded), bytes_max),
            Kind::Zlib => read_bounded(flate2::read::ZlibDecoder::new(encoded), bytes_max),
            Kind::Zstd if exact => {
                let len = usize::try_from(bytes_max).map_err(io::Error::other)?;
                let mut out = super::scratch::zeroed(len).map_err(io::Error::other)?;
                let written = frames::decompress(encoded, &mut out)?;
                out.truncate(written);
                Ok(out)
            }
            Kind::Zstd => read_bounded(zstd::Decoder::new(encoded)?, bytes_max),
            Kind::Blosc => Err(io::Error::other("blosc is decoded by zarrs")),
        }
    }
}

/// The most bytes that a codec may decode to, and whether it must be exactly so many.
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

/// Decoded length according to a Blosc header (bytes 4 to 8, little-endian).
fn blosc_len(encoded: &[u8]) -> Option<u64> {
    let bytes = encoded.get(4..8)?.first_chunk::<4>()?;
    Some(u64::from(u32::from_le_bytes(*bytes)))
}

impl ExtensionName for Bounded {
    fn name(&self, version: ZarrVersion) -> Option<Cow<'static, str>> {
        self.inner.name(version)
    }
}

impl CodecTraits for Bounded {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn configuration(
        &self,
        version: ZarrVersion,
        options: &CodecMetadataOptions,
    ) -> Option<Configuration> {
        self.inner.configuration(version, options)
    }

    fn partial_decoder_capability(&self) -> PartialDecoderCapability {
        PartialDecoderCapability { partial_read: false, partial_decode: false }
    }

    fn partial_encoder_capability(&self) -> PartialEncoderCapability {
        PartialEncoderCapability { partial_encode: false }
    }
}

impl BytesToBytesCodecTraits for Bounded {
    fn into_dyn(self: Arc<Self>) -> Arc<dyn BytesToBytesCodecTraits> {
        self
    }

    fn recommended_concurrency(
        &self,
        decoded_representation: &BytesRepresentation,
    ) -> Result<RecommendedConcurrency, CodecError> {
        self.inner.recommended_concurrency(decoded_representation)
    }

    fn encoded_representation(
        &self,
        decoded_representation: &BytesRepresentation,
    ) -> BytesRepresentation {
        self.inner.encoded_representation(decoded_representation)
    }

    fn encode<'a>(
        &self,
        decoded_value: ArrayBytesRaw<'a>,
        options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        self.inner.encode(decoded_value, options)
    }

    fn decode<'a>(
        &self,
        encoded_value: ArrayBytesRaw<'a>,
        decoded_representation: &BytesRepresentation,
        options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        let (bytes_max, exact) = decoded_max(decoded_representation);
        if matches!(self.kind, Kind::Blosc) {
            return match blosc_len(&encoded_value) {
                Some(len) if len <= bytes_max => {
                    self.inner.decode(encoded_value, decoded_representation, options)
                }
                Some(len) => Err(CodecError::Other(format!(
                    "a blosc buffer of {len} bytes where at most {bytes_max} can be"
                ))),
                None => Err(CodecError::Other("a blosc buffer without a header".into())),
            };
        }
        let decoded = self.decompress(&encoded_value, bytes_max, exact)?;
        Ok(Cow::Owned(decoded))
    }
}
