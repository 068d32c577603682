//! Chunks in the wrapper in which DVID stores its values.
//!
//! Specification: [`label_block::value`](super::label_block::value): a byte that says how the rest is compressed, which may
//! differ from chunk to chunk, and maybe a checksum. There is nothing to configure. Encoded chunks are gzip, as
//! DVID stores label blocks unless told otherwise. Compatible implementations: DVID.
//!
//! ```json
//! {"name": "chunkyard.dvid_value"}
//! ```

use std::borrow::Cow;

use zarrs::array::codec::api::{CodecRuntimePluginV3, register_codec_v3};
use zarrs::array::{
    ArrayBytesRaw, BytesRepresentation, CodecError, CodecMetadataOptions, CodecOptions,
};
use zarrs::metadata::Configuration;
use zarrs::plugin::ZarrVersion;

use super::bounded::decoded_max;
use super::label_block::value::{Compression, unwrap, wrap_onto};
use super::whole::{self, BytesCodec, Described, other};
use crate::Result;

/// The name of the codec.
pub const NAME: &str = "chunkyard.dvid_value";

/// How chunks are compressed that are encoded here.
const COMPRESSION: Compression = Compression::Gzip(6);

/// Makes `zarrs` know the codec.
pub(super) fn register() {
    register_codec_v3(CodecRuntimePluginV3::new(
        |name| name == NAME,
        |_| Ok(whole::of_bytes(DvidValue)),
    ));
}

/// Appends the value of some bytes.
pub(super) fn pack(plain: &[u8], out: &mut Vec<u8>) -> Result<()> {
    wrap_onto(plain, COMPRESSION, false, out)
}

#[derive(Debug)]
struct DvidValue;

impl Described for DvidValue {
    fn name(&self, _version: ZarrVersion) -> Option<Cow<'static, str>> {
        Some(NAME.into())
    }

    fn configuration(
        &self,
        _version: ZarrVersion,
        _options: &CodecMetadataOptions,
    ) -> Option<Configuration> {
        Some(Configuration::default())
    }
}

impl BytesCodec for DvidValue {
    fn encoded_size(&self, decoded_representation: &BytesRepresentation) -> BytesRepresentation {
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
