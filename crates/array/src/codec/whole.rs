//! What `zarrs` asks of every codec, answered once for ours: chunks are encoded and decoded whole, by one thread.
//!
//! A codec of ours says its name, its configuration, and how bytes become other bytes ([`BytesCodec`]) or elements
//! become bytes ([`ArrayCodec`]). Parallelism is across chunks, so no codec asks for threads, and what
//! decodes less than a chunk ([`super::blosc`], [`super::shard`]) goes around `zarrs`.

use std::any::Any;
use std::borrow::Cow;
use std::fmt::{Debug, Display};
use std::num::NonZeroU64;
use std::sync::Arc;

use zarrs::array::codec::api::{PartialDecoderCapability, PartialEncoderCapability};
use zarrs::array::{
    ArrayBytes, ArrayBytesRaw, ArrayCodecTraits, ArrayToBytesCodecTraits, BytesRepresentation,
    BytesToBytesCodecTraits, Codec, CodecError, CodecMetadataOptions, CodecOptions, CodecTraits,
    DataType, FillValue, RecommendedConcurrency,
};
use zarrs::metadata::Configuration;
use zarrs::plugin::{ExtensionName, ZarrVersion};

/// What metadata says of a codec.
pub(super) trait Described: Debug + Send + Sync + 'static {
    fn name(&self, version: ZarrVersion) -> Option<Cow<'static, str>>;

    fn configuration(
        &self,
        version: ZarrVersion,
        options: &CodecMetadataOptions,
    ) -> Option<Configuration>;
}

/// Bytes become other bytes.
pub(super) trait BytesCodec: Described {
    fn encoded_size(&self, decoded: &BytesRepresentation) -> BytesRepresentation;

    fn encode<'a>(
        &self,
        decoded: ArrayBytesRaw<'a>,
        options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError>;

    /// `size` is what the metadata says of the decoded bytes.
    fn decode<'a>(
        &self,
        encoded: ArrayBytesRaw<'a>,
        size: &BytesRepresentation,
        options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError>;
}

/// What a chunk consists of when it is decoded.
#[derive(Clone, Copy)]
pub(super) struct Content<'a> {
    pub(super) shape: &'a [NonZeroU64],
    pub(super) data_type: &'a DataType,
    pub(super) fill_value: &'a FillValue,
}

impl Content<'_> {
    pub(super) fn shape(&self) -> Vec<u64> {
        self.shape.iter().map(|extent| extent.get()).collect()
    }

    pub(super) fn elements(&self) -> u64 {
        self.shape.iter().fold(1, |count, extent| count.saturating_mul(extent.get()))
    }
}

/// Elements become bytes.
pub(super) trait ArrayCodec: Described {
    fn encoded_size(&self, content: Content<'_>) -> Result<BytesRepresentation, CodecError>;

    fn encode<'a>(
        &self,
        decoded: ArrayBytes<'a>,
        content: Content<'_>,
        options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError>;

    fn decode<'a>(
        &self,
        encoded: ArrayBytesRaw<'a>,
        content: Content<'_>,
        options: &CodecOptions,
    ) -> Result<ArrayBytes<'a>, CodecError>;
}

/// The codec for a chain of `zarrs`.
pub(super) fn of_bytes(codec: impl BytesCodec) -> Codec {
    Codec::BytesToBytes(Arc::new(Whole(codec)))
}

/// The codec for a chain of `zarrs`.
pub(super) fn of_elements(codec: impl ArrayCodec) -> Codec {
    Codec::ArrayToBytes(Arc::new(Whole(codec)))
}

/// The error of a codec in the type of `zarrs`, which keeps its text alone.
pub(super) fn other(error: impl Display) -> CodecError {
    CodecError::Other(error.to_string())
}

#[derive(Debug)]
struct Whole<C>(C);

impl<C: Described> ExtensionName for Whole<C> {
    fn name(&self, version: ZarrVersion) -> Option<Cow<'static, str>> {
        self.0.name(version)
    }
}

impl<C: Described> CodecTraits for Whole<C> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn configuration(
        &self,
        version: ZarrVersion,
        options: &CodecMetadataOptions,
    ) -> Option<Configuration> {
        self.0.configuration(version, options)
    }

    fn partial_decoder_capability(&self) -> PartialDecoderCapability {
        PartialDecoderCapability { partial_read: false, partial_decode: false }
    }

    fn partial_encoder_capability(&self) -> PartialEncoderCapability {
        PartialEncoderCapability { partial_encode: false }
    }
}

impl<C: BytesCodec> BytesToBytesCodecTraits for Whole<C> {
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
        self.0.encoded_size(decoded_representation)
    }

    fn encode<'a>(
        &self,
        decoded_value: ArrayBytesRaw<'a>,
        options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        self.0.encode(decoded_value, options)
    }

    fn decode<'a>(
        &self,
        encoded_value: ArrayBytesRaw<'a>,
        decoded_representation: &BytesRepresentation,
        options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        self.0.decode(encoded_value, decoded_representation, options)
    }
}

impl<C: ArrayCodec> ArrayCodecTraits for Whole<C> {
    fn recommended_concurrency(
        &self,
        _shape: &[NonZeroU64],
        _data_type: &DataType,
    ) -> Result<RecommendedConcurrency, CodecError> {
        Ok(RecommendedConcurrency::new_maximum(1))
    }
}

impl<C: ArrayCodec> ArrayToBytesCodecTraits for Whole<C> {
    fn into_dyn(self: Arc<Self>) -> Arc<dyn ArrayToBytesCodecTraits> {
        self
    }

    fn encoded_representation(
        &self,
        shape: &[NonZeroU64],
        data_type: &DataType,
        fill_value: &FillValue,
    ) -> Result<BytesRepresentation, CodecError> {
        self.0.encoded_size(Content { shape, data_type, fill_value })
    }

    fn encode<'a>(
        &self,
        bytes: ArrayBytes<'a>,
        shape: &[NonZeroU64],
        data_type: &DataType,
        fill_value: &FillValue,
        options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        self.0.encode(bytes, Content { shape, data_type, fill_value }, options)
    }

    fn decode<'a>(
        &self,
        bytes: ArrayBytesRaw<'a>,
        shape: &[NonZeroU64],
        data_type: &DataType,
        fill_value: &FillValue,
        options: &CodecOptions,
    ) -> Result<ArrayBytes<'a>, CodecError> {
        self.0.decode(bytes, Content { shape, data_type, fill_value }, options)
    }
}
