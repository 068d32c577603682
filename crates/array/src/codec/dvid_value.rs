//! Chunks in the wrapper in which DVID stores its values.
//!
//! Specification: [`label_block::value`](super::label_block::value): a byte that says how the rest is compressed, which may
//! differ from chunk to chunk, and maybe a checksum. There is nothing to configure. Encoded chunks are gzip, as
//! DVID stores label blocks unless told otherwise. Compatible implementations: DVID.
//!
//! ```json
//! {"name": "chunkyard.dvid_value"}
//! ```

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

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
use super::label_block::value::{Compression, unwrap, wrap_onto};
use crate::Result;

/// The name of the codec.
pub const NAME: &str = "chunkyard.dvid_value";

/// How chunks are compressed that are encoded here.
const COMPRESSION: Compression = Compression::Gzip(6);

/// Makes `zarrs` know the codec.
pub(super) fn register() {
    register_codec_v3(CodecRuntimePluginV3::new(
        |name| name == NAME,
        |_| Ok(Codec::BytesToBytes(Arc::new(DvidValue))),
    ));
}

/// Appends the value of some bytes.
pub(super) fn pack(plain: &[u8], out: &mut Vec<u8>) -> Result<()> {
    wrap_onto(plain, COMPRESSION, false, out)
}

#[derive(Debug)]
struct DvidValue;

impl ExtensionName for DvidValue {
    fn name(&self, _version: ZarrVersion) -> Option<Cow<'static, str>> {
        Some(NAME.into())
    }
}

impl CodecTraits for DvidValue {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn configuration(
        &self,
        _version: ZarrVersion,
        _options: &CodecMetadataOptions,
    ) -> Option<Configuration> {
        Some(Configuration::default())
    }

    fn partial_decoder_capability(&self) -> PartialDecoderCapability {
        PartialDecoderCapability { partial_read: false, partial_decode: false }
    }

    fn partial_encoder_capability(&self) -> PartialEncoderCapability {
        PartialEncoderCapability { partial_encode: false }
    }
}

impl BytesToBytesCodecTraits for DvidValue {
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
        // A value may be compressed badly, and other writers choose the compression.
        match decoded_representation.size().and_then(|size| size.checked_add(size / 2 + 1024)) {
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
        pack(&decoded_value, &mut out).map_err(other)?;
        Ok(Cow::Owned(out))
    }

    fn decode<'a>(
        &self,
        encoded_value: ArrayBytesRaw<'a>,
        decoded_representation: &BytesRepresentation,
        _options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        let (bytes_max, _) = decoded_max(decoded_representation);
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let plain = unwrap(&encoded_value, bytes_max).map_err(other)?;
        Ok(Cow::Owned(plain.into_owned()))
    }
}

fn other(error: impl std::fmt::Display) -> CodecError {
    CodecError::Other(error.to_string())
}
