//! `pcodec` that stops where the chunk must end.
//!
//! A run of equal numbers takes no bits in this format: twenty bytes stand for 16 million numbers,
//! and a file may hold any number of such runs. `zarrs` decodes all of them before it returns. So
//! the numbers are counted first, in memory for as many as the chunk has.

use std::any::Any;
use std::borrow::Cow;
use std::num::NonZeroU64;
use std::sync::Arc;

use pco::data_types::{Number, NumberType};
use pco::standalone::{FileDecompressor, simple_decompress_into};
use zarrs::array::codec::PcodecCodec;
use zarrs::array::codec::api::{
    CodecRuntimePluginV3, PartialDecoderCapability, PartialEncoderCapability, register_codec_v3,
};
use zarrs::array::{
    ArrayBytes, ArrayBytesRaw, ArrayCodecTraits, ArrayToBytesCodecTraits, BytesRepresentation,
    Codec, CodecError, CodecMetadataOptions, CodecOptions, CodecTraits, CodecTraitsV3, DataType,
    FillValue, RecommendedConcurrency,
};
use zarrs::metadata::Configuration;
use zarrs::plugin::{ExtensionAliases, ExtensionName, ZarrVersion, ZarrVersion3};

/// Makes `zarrs` use the wrapper of this module.
pub(super) fn register() {
    let matches = <PcodecCodec as ExtensionAliases<ZarrVersion3>>::matches_name;
    register_codec_v3(CodecRuntimePluginV3::new(matches, |metadata| {
        match PcodecCodec::create(metadata)? {
            Codec::ArrayToBytes(inner) => Ok(Codec::ArrayToBytes(Arc::new(Bounded(inner)))),
            other => Ok(other),
        }
    }));
}

/// The codec of `zarrs`, with a bound on what it decodes to.
#[derive(Debug)]
struct Bounded(Arc<dyn ArrayToBytesCodecTraits>);

/// Fails where the encoded numbers are more than `count_max`.
fn check_count(encoded: &[u8], count_max: usize) -> Result<(), CodecError> {
    let (file, rest) = FileDecompressor::new(encoded).map_err(unsound)?;
    // The library makes room by this hint, for up to 4 GiB.
    if file.n_hint() > count_max {
        let found = format!("a hint of {} numbers where at most {count_max} can be", file.n_hint());
        return Err(CodecError::Other(found));
    }
    match file.peek_number_type_or_termination(rest).map_err(unsound)? {
        None => Ok(()),
        Some(NumberType::F16) => count::<half::f16>(encoded, count_max),
        Some(NumberType::F32) => count::<f32>(encoded, count_max),
        Some(NumberType::F64) => count::<f64>(encoded, count_max),
        Some(NumberType::I16) => count::<i16>(encoded, count_max),
        Some(NumberType::I32) => count::<i32>(encoded, count_max),
        Some(NumberType::I64) => count::<i64>(encoded, count_max),
        Some(NumberType::U16) => count::<u16>(encoded, count_max),
        Some(NumberType::U32) => count::<u32>(encoded, count_max),
        Some(NumberType::U64) => count::<u64>(encoded, count_max),
        Some(other) => Err(CodecError::Other(format!("numbers of type {other:?}"))),
    }
}

fn count<T: Number>(encoded: &[u8], count_max: usize) -> Result<(), CodecError> {
    let mut numbers = Vec::new();
    numbers.try_reserve_exact(count_max).map_err(|error| CodecError::Other(error.to_string()))?;
    numbers.resize(count_max, T::default());
    if simple_decompress_into(encoded, &mut numbers).map_err(unsound)?.finished {
        return Ok(());
    }
    Err(CodecError::Other(format!("more than {count_max} numbers")))
}

fn unsound(error: pco::errors::PcoError) -> CodecError {
    CodecError::Other(error.to_string())
}

impl ExtensionName for Bounded {
    fn name(&self, version: ZarrVersion) -> Option<Cow<'static, str>> {
        self.0.name(version)
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
        self.0.configuration(version, options)
    }

    fn partial_decoder_capability(&self) -> PartialDecoderCapability {
        PartialDecoderCapability { partial_read: false, partial_decode: false }
    }

    fn partial_encoder_capability(&self) -> PartialEncoderCapability {
        PartialEncoderCapability { partial_encode: false }
    }
}

impl ArrayCodecTraits for Bounded {
    fn recommended_concurrency(
        &self,
        shape: &[NonZeroU64],
        data_type: &DataType,
    ) -> Result<RecommendedConcurrency, CodecError> {
        self.0.recommended_concurrency(shape, data_type)
    }
}

impl ArrayToBytesCodecTraits for Bounded {
    fn into_dyn(self: Arc<Self>) -> Arc<dyn ArrayToBytesCodecTraits> {
        self
    }

    fn encoded_representation(
        &self,
        shape: &[NonZeroU64],
        data_type: &DataType,
        fill_value: &FillValue,
    ) -> Result<BytesRepresentation, CodecError> {
        self.0.encoded_representation(shape, data_type, fill_value)
    }

    fn encode<'a>(
        &self,
        bytes: ArrayBytes<'a>,
        shape: &[NonZeroU64],
        data_type: &DataType,
        fill_value: &FillValue,
        options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        self.0.encode(bytes, shape, data_type, fill_value, options)
    }

    fn decode<'a>(
        &self,
        bytes: ArrayBytesRaw<'a>,
        shape: &[NonZeroU64],
        data_type: &DataType,
        fill_value: &FillValue,
        options: &CodecOptions,
    ) -> Result<ArrayBytes<'a>, CodecError> {
        let elements = shape.iter().fold(1u64, |count, n| count.saturating_mul(n.get()));
        // A complex number is two numbers.
        let count_max = usize::try_from(elements.saturating_mul(2)).unwrap_or(usize::MAX);
        check_count(&bytes, count_max)?;
        self.0.decode(bytes, shape, data_type, fill_value, options)
    }
}

#[cfg(test)]
mod tests {
    use pco::standalone::FileCompressor;
    use serde_json::json;

    use crate::{ArraySpec, Codecs, Error};

    #[test]
    fn a_run_of_a_million_equal_numbers_is_refused_by_a_small_chunk() {
        let codecs = |shape: &[u64]| {
            let spec = ArraySpec::builder(shape, shape, "uint64");
            let spec = spec.codecs(vec![json!({"name": "numcodecs.pcodec"})]).build().unwrap();
            Codecs::new(&spec).unwrap()
        };
        let bomb = runs(1 << 20, 1 << 20);
        assert!(bomb.len() < 1000, "{} bytes", bomb.len());
        assert!(codecs(&[1 << 20]).decode(&bomb).is_ok());
        for (hint, complaint) in [(1 << 20, "a hint of 1048576"), (0, "more than 16")] {
            let error = codecs(&[8]).decode(&runs(1 << 20, hint)).unwrap_err();
            let Error::Corrupt { found, .. } = &error else { panic!("{error:?}") };
            assert!(found.contains(complaint), "{found}");
        }
    }

    /// `count` equal numbers in a file that promises `hint` of them.
    fn runs(count: usize, hint: usize) -> Vec<u8> {
        let file = FileCompressor::default().with_n_hint(hint);
        let mut bytes = Vec::new();
        file.write_header(&mut bytes).unwrap();
        let mut chunk = file.chunk_compressor(&vec![7u64; count], &Default::default()).unwrap();
        chunk.write(&mut bytes).unwrap();
        file.write_footer(&mut bytes).unwrap();
        bytes
    }
}
