//! LZ4 blocks as numcodecs writes them.
//!
//! Specification: numcodecs `lz4`, in Zarr v3 `numcodecs.lz4`: the length of the decoded bytes as a
//! little-endian `u32`, then one LZ4 block. Compatible implementations: numcodecs, and with it
//! zarr-python for both versions. `zarrs` has no such codec; this one is registered with it.
//!
//! ```json
//! {"name": "numcodecs.lz4", "configuration": {"acceleration": 1}}
//! ```
//!
//! The acceleration trades size for speed and is no part of the format; the encoder here has one
//! speed and takes note of it only for whoever encodes next.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};
use zarrs::array::codec::api::{
    CodecRuntimePluginV3, PartialDecoderCapability, PartialEncoderCapability, register_codec_v3,
};
use zarrs::array::{
    ArrayBytesRaw, BytesRepresentation, BytesToBytesCodecTraits, Codec, CodecError,
    CodecMetadataOptions, CodecOptions, CodecTraits, RecommendedConcurrency,
};
use zarrs::metadata::Configuration;
use zarrs::plugin::{ExtensionName, ZarrVersion};

use super::bounded::decoded_max;
use super::scratch::zeroed;

const NAME: &str = "numcodecs.lz4";

/// Bytes of the length before a block.
const LENGTH_BYTES: usize = 4;

/// The most that a byte of a block can stand for.
const EXPANSION_MAX: usize = 255;

/// Makes `zarrs` know the codec.
pub(super) fn register() {
    register_codec_v3(CodecRuntimePluginV3::new(
        |name| name == NAME,
        |metadata| {
            let configuration = metadata.configuration().cloned().unwrap_or_default();
            Ok(Codec::BytesToBytes(Arc::new(Lz4 { configuration })))
        },
    ));
}

#[derive(Debug)]
struct Lz4 {
    configuration: Configuration,
}

impl ExtensionName for Lz4 {
    fn name(&self, _version: ZarrVersion) -> Option<Cow<'static, str>> {
        Some(NAME.into())
    }
}

impl CodecTraits for Lz4 {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn configuration(
        &self,
        _version: ZarrVersion,
        _options: &CodecMetadataOptions,
    ) -> Option<Configuration> {
        Some(self.configuration.clone())
    }

    fn partial_decoder_capability(&self) -> PartialDecoderCapability {
        PartialDecoderCapability { partial_read: false, partial_decode: false }
    }

    fn partial_encoder_capability(&self) -> PartialEncoderCapability {
        PartialEncoderCapability { partial_encode: false }
    }
}

impl BytesToBytesCodecTraits for Lz4 {
    fn into_dyn(self: Arc<Self>) -> Arc<dyn BytesToBytesCodecTraits> {
        self
    }

    fn recommended_concurrency(
        &self,
        _decoded_representation: &BytesRepresentation,
    ) -> Result<RecommendedConcurrency, CodecError> {
        Ok(RecommendedConcurrency::new_maximum(1))
    }

    fn encoded_representation(
        &self,
        decoded_representation: &BytesRepresentation,
    ) -> BytesRepresentation {
        // An LZ4 block is at most so much larger than what it holds.
        let bound = |size: u64| (size + size / 255).checked_add(16 + LENGTH_BYTES as u64);
        match decoded_representation.size().and_then(bound) {
            Some(size) => BytesRepresentation::BoundedSize(size),
            None => BytesRepresentation::UnboundedSize,
        }
    }

    fn encode<'a>(
        &self,
        decoded_value: ArrayBytesRaw<'a>,
        _options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        let length = u32::try_from(decoded_value.len())
            .map_err(|_| CodecError::Other("lz4 takes at most 4 GiB".into()))?;
        let room = get_maximum_output_size(decoded_value.len());
        let mut out = zeroed(LENGTH_BYTES + room).map_err(other)?;
        let (prefix, block) = out.split_at_mut(LENGTH_BYTES);
        prefix.copy_from_slice(&length.to_le_bytes());
        let written = compress_into(&decoded_value, block).map_err(other)?;
        out.truncate(LENGTH_BYTES + written);
        Ok(Cow::Owned(out))
    }

    fn decode<'a>(
        &self,
        encoded_value: ArrayBytesRaw<'a>,
        decoded_representation: &BytesRepresentation,
        _options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        let Some((length, block)) = encoded_value.split_first_chunk::<LENGTH_BYTES>() else {
            return Err(CodecError::Other("an lz4 block without its length".into()));
        };
        let length = u32::from_le_bytes(*length) as usize;
        let (bytes_max, _) = decoded_max(decoded_representation);
        if length as u64 > bytes_max || length > block.len().saturating_mul(EXPANSION_MAX) {
            let found = format!("{length} bytes in an lz4 block of {}", block.len());
            return Err(CodecError::Other(found));
        }
        let mut out = zeroed(length).map_err(other)?;
        match decompress_into(block, &mut out).map_err(other)? {
            written if written == length => Ok(Cow::Owned(out)),
            written => Err(CodecError::Other(format!("{written} bytes in place of {length}"))),
        }
    }
}

fn other(error: impl std::fmt::Display) -> CodecError {
    CodecError::Other(error.to_string())
}
