//! The codec as `zarrs` knows it, for chains that have no short way here.

use std::borrow::Cow;

use zarrs::array::codec::api::{CodecRuntimePluginV3, register_codec_v3};
use zarrs::array::{
    ArrayBytes, ArrayBytesRaw, BytesRepresentation, CodecError, CodecMetadataOptions, CodecOptions,
};
use zarrs::metadata::Configuration;
use zarrs::metadata::v3::MetadataV3;
use zarrs::plugin::ZarrVersion;

use super::{Layout, NAME};
use crate::codec::whole::{self, ArrayCodec, Content, Described, other};
use crate::codec::zeroed;
use crate::{DType, Result};

/// Makes `zarrs` know the codec.
pub(in crate::codec) fn register() {
    register_codec_v3(CodecRuntimePluginV3::new(
        |name| name == NAME,
        |metadata| Ok(whole::of_elements(Segmentation { metadata: metadata.clone() })),
    ));
}

#[derive(Debug)]
struct Segmentation {
    metadata: MetadataV3,
}

impl Segmentation {
    fn layout(&self, content: Content<'_>) -> Result<Layout, CodecError> {
        let name = content.data_type.name_v3().unwrap_or_default();
        let dtype = DType::parse(&serde_json::json!(name)).map_err(other)?;
        match Layout::of(&self.metadata, &dtype, &content.shape()) {
            Some(layout) => layout.map_err(other),
            None => Err(CodecError::Other(format!("{} is not {NAME}", self.metadata))),
        }
    }
}

impl Described for Segmentation {
    fn name(&self, _version: ZarrVersion) -> Option<Cow<'static, str>> {
        Some(NAME.into())
    }

    fn configuration(
        &self,
        _version: ZarrVersion,
        _options: &CodecMetadataOptions,
    ) -> Option<Configuration> {
        self.metadata.configuration().cloned()
    }
}

impl ArrayCodec for Segmentation {
    fn encoded_size(&self, content: Content<'_>) -> Result<BytesRepresentation, CodecError> {
        let bytes_max = self.layout(content)?.encoded_bytes_max().map_err(other)?;
        Ok(BytesRepresentation::BoundedSize(bytes_max as u64))
    }

    fn encode<'a>(
        &self,
        bytes: ArrayBytes<'a>,
        content: Content<'_>,
        _options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        let layout = self.layout(content)?;
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
        content: Content<'_>,
        _options: &CodecOptions,
    ) -> Result<ArrayBytes<'a>, CodecError> {
        let layout = self.layout(content)?;
        let bytes_len = content.elements().saturating_mul(layout.item as u64);
        let mut out = zeroed(usize::try_from(bytes_len).unwrap_or(usize::MAX)).map_err(other)?;
        layout.decode_into(&bytes, &mut out).map_err(other)?;
        layout.to_little_endian(&mut out);
        Ok(ArrayBytes::new_flen(out))
    }
}
