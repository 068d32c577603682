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
//! speed and keeps the value only for the next program that encodes.

use std::borrow::Cow;

use zarrs::array::codec::api::{CodecRuntimePluginV3, register_codec_v3};
use zarrs::array::{
    ArrayBytesRaw, BytesRepresentation, CodecError, CodecMetadataOptions, CodecOptions,
};
use zarrs::metadata::Configuration;
use zarrs::plugin::ZarrVersion;

use super::bounded::decoded_max;
use super::packed::{lz4_len, lz4_pack, lz4_unpack};
use super::scratch::zeroed;
use super::whole::{self, BytesCodec, Described, other};

pub(super) const NAME: &str = "numcodecs.lz4";

/// Makes `zarrs` know the codec.
pub(super) fn register() {
    register_codec_v3(CodecRuntimePluginV3::new(
        |name| name == NAME,
        |metadata| {
            let configuration = metadata.configuration().cloned().unwrap_or_default();
            Ok(whole::of_bytes(Lz4 { configuration }))
        },
    ));
}

#[derive(Debug)]
struct Lz4 {
    configuration: Configuration,
}

impl Described for Lz4 {
    fn name(&self, _version: ZarrVersion) -> Option<Cow<'static, str>> {
        Some(NAME.into())
    }

    fn configuration(
        &self,
        _version: ZarrVersion,
        _options: &CodecMetadataOptions,
    ) -> Option<Configuration> {
        Some(self.configuration.clone())
    }
}

impl BytesCodec for Lz4 {
    fn encoded_size(&self, decoded_representation: &BytesRepresentation) -> BytesRepresentation {
        // The largest possible LZ4 block for this many bytes; its length takes four more.
        let bound = |size: u64| (size + size / 255).checked_add(16 + 4);
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
        let mut out = Vec::new();
        lz4_pack(&decoded_value, &mut out).map_err(other)?;
        Ok(Cow::Owned(out))
    }

    fn decode<'a>(
        &self,
        encoded_value: ArrayBytesRaw<'a>,
        decoded_representation: &BytesRepresentation,
        _options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        let (length, _) = lz4_len(&encoded_value).map_err(other)?;
        let (bytes_max, _) = decoded_max(decoded_representation);
        if length as u64 > bytes_max {
            let found = format!("{length} bytes of lz4 where at most {bytes_max} can be");
            return Err(CodecError::Other(found));
        }
        let mut out = zeroed(length).map_err(other)?;
        lz4_unpack(&encoded_value, &mut out).map_err(other)?;
        Ok(Cow::Owned(out))
    }
}
