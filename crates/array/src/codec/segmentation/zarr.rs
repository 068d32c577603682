//! The codec as `zarrs` knows it, for chains that have no short way here.

use std::any::Any;
use std::borrow::Cow;
use std::num::NonZeroU64;
use std::sync::Arc;

use zarrs::array::codec::api::{
    CodecRuntimePluginV3, PartialDecoderCapability, PartialEncoderCapability, register_codec_v3,
};
use zarrs::array::{
    ArrayBytes, ArrayBytesRaw, ArrayCodecTraits, ArrayToBytesCodecTraits, BytesRepresentation,
    Codec, CodecError, CodecMetadataOptions, CodecOptions, CodecTraits, DataType, FillValue,
    RecommendedConcurrency,
};
use zarrs::metadata::Configuration;
use zarrs::metadata::v3::MetadataV3;
use zarrs::plugin::{ExtensionName, ZarrVersion};

use super::{Layout, NAME};
use crate::codec::zeroed;
use crate::{DType, Error, Result};

/// Makes `zarrs` know the codec.
pub(in crate::codec) fn register() {
    register_codec_v3(CodecRuntimePluginV3::new(
        |name| name == NAME,
        |metadata| Ok(Codec::ArrayToBytes(Arc::new(Segmentation { metadata: metadata.clone() }))),
    ));
}

#[derive(Debug)]
struct Segmentation {
    metadata: MetadataV3,
}

impl Segmentation {
    fn layout(&self, shape: &[NonZeroU64], data_type: &DataType) -> Result<Layout, CodecError> {
        let shape: Vec<u64> = shape.iter().map(|extent| extent.get()).collect();
        let name = data_type.name_v3().unwrap_or_default();
        let dtype = DType::parse(&serde_json::json!(name)).map_err(other)?;
        match Layout::of(&self.metadata, &dtype, &shape) {
            Some(layout) => layout.map_err(other),
            None => Err(CodecError::Other(format!("{} is not {NAME}", self.metadata))),
        }
    }
}

impl ExtensionName for Segmentation {
    fn name(&self, _version: ZarrVersion) -> Option<Cow<'static, str>> {
        Some(NAME.into())
    }
}

impl CodecTraits for Segmentation {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn configuration(
        &self,
        _version: ZarrVersion,
        _options: &CodecMetadataOptions,
    ) -> Option<Configuration> {
        self.metadata.configuration().cloned()
    }

    fn partial_decoder_capability(&self) -> PartialDecoderCapability {
        PartialDecoderCapability { partial_read: false, partial_decode: false }
    }

    fn partial_encoder_capability(&self) -> PartialEncoderCapability {
        PartialEncoderCapability { partial_encode: false }
    }
}

impl ArrayCodecTraits for Segmentation {
    fn recommended_concurrency(
        &self,
        _shape: &[NonZeroU64],
        _data_type: &DataType,
    ) -> Result<RecommendedConcurrency, CodecError> {
        Ok(RecommendedConcurrency::new_maximum(1))
    }
}

impl ArrayToBytesCodecTraits for Segmentation {
    fn into_dyn(self: Arc<Self>) -> Arc<dyn ArrayToBytesCodecTraits> {
        self
    }

    fn encoded_representation(
        &self,
        shape: &[NonZeroU64],
        data_type: &DataType,
        _fill_value: &FillValue,
    ) -> Result<BytesRepresentation, CodecError> {
        let bytes_max = self.layout(shape, data_type)?.encoded_bytes_max().map_err(other)?;
        Ok(BytesRepresentation::BoundedSize(bytes_max as u64))
    }

    fn encode<'a>(
        &self,
        bytes: ArrayBytes<'a>,
        shape: &[NonZeroU64],
        data_type: &DataType,
        _fill_value: &FillValue,
        _options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        let layout = self.layout(shape, data_type)?;
        let mut decoded = bytes.into_fixed()?;
        if cfg!(target_endian = "big") {
            layout.to_little_endian(decoded.to_mut());
        }
        let mut out = Vec::new();
        layout.encode_onto(&decoded, &mut out).map_err(other)?;
        Ok(Cow::Owned(out))
    }

    fn decode<'a>(
        &self,
        bytes: ArrayBytesRaw<'a>,
        shape: &[NonZeroU64],
        data_type: &DataType,
        _fill_value: &FillValue,
        _options: &CodecOptions,
    ) -> Result<ArrayBytes<'a>, CodecError> {
        let layout = self.layout(shape, data_type)?;
        let voxels = shape.iter().try_fold(layout.item, |bytes, extent| {
            bytes.checked_mul(usize::try_from(extent.get()).ok()?)
        });
        let mut out = zeroed(voxels.unwrap_or(usize::MAX)).map_err(other)?;
        layout.decode_into(&bytes, &mut out).map_err(other)?;
        layout.to_little_endian(&mut out);
        Ok(ArrayBytes::new_flen(out))
    }
}

fn other(error: Error) -> CodecError {
    CodecError::Other(error.to_string())
}
