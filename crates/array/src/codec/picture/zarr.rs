//! The codecs as `zarrs` knows them.

use std::borrow::Cow;

use zarrs::array::codec::api::{CodecRuntimePluginV3, register_codec_v3};
use zarrs::array::{
    ArrayBytes, ArrayBytesRaw, BytesRepresentation, CodecError, CodecMetadataOptions, CodecOptions,
};
use zarrs::metadata::Configuration;
use zarrs::metadata::v3::MetadataV3;
use zarrs::plugin::ZarrVersion;

use super::{JPEG, Layout, PNG};
use crate::DType;
use crate::codec::whole::{self, ArrayCodec, Content, Described, other};

/// Makes `zarrs` know the codecs.
pub(in crate::codec) fn register() {
    register_codec_v3(CodecRuntimePluginV3::new(
        |name| matches!(name, PNG | JPEG),
        |metadata| Ok(whole::of_elements(Picture { metadata: metadata.clone() })),
    ));
}

#[derive(Debug)]
struct Picture {
    metadata: MetadataV3,
}

impl Picture {
    fn layout(&self, content: Content<'_>) -> Result<Layout, CodecError> {
        let name = content.data_type.name_v3().unwrap_or_default();
        let dtype = DType::parse(&serde_json::json!(name)).map_err(other)?;
        match Layout::of(&self.metadata, &dtype, &content.shape()) {
            Some(layout) => layout.map_err(other),
            None => Err(CodecError::Other(format!("{} is no picture", self.metadata))),
        }
    }
}

impl Described for Picture {
    fn name(&self, _version: ZarrVersion) -> Option<Cow<'static, str>> {
        Some(self.metadata.name().to_owned().into())
    }

    fn configuration(
        &self,
        _version: ZarrVersion,
        _options: &CodecMetadataOptions,
    ) -> Option<Configuration> {
        self.metadata.configuration().cloned()
    }
}

impl ArrayCodec for Picture {
    fn encoded_size(&self, content: Content<'_>) -> Result<BytesRepresentation, CodecError> {
        let bytes_max = self.layout(content)?.encoded_bytes_max();
        Ok(BytesRepresentation::BoundedSize(bytes_max as u64))
    }

    fn encode<'a>(
        &self,
        bytes: ArrayBytes<'a>,
        content: Content<'_>,
        _options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        let layout = self.layout(content)?;
        let chunk = bytes.into_fixed()?;
        if Some(chunk.len()) != layout.bytes() {
            let found = format!("a chunk of {} bytes, which is no picture", chunk.len());
            return Err(CodecError::Other(found));
        }
        layout.encode(&chunk).map(Cow::Owned).map_err(other)
    }

    fn decode<'a>(
        &self,
        bytes: ArrayBytesRaw<'a>,
        content: Content<'_>,
        _options: &CodecOptions,
    ) -> Result<ArrayBytes<'a>, CodecError> {
        let chunk = self.layout(content)?.decode(&bytes).map_err(other)?;
        Ok(ArrayBytes::new_flen(chunk))
    }
}
