//! `pcodec` that stops where the chunk must end.
//!
//! A run of equal numbers takes no bits in this format: twenty bytes stand for 16 million numbers,
//! and a file may hold any number of such runs. `zarrs` decodes all of them before it returns. So
//! the numbers are counted first, in memory for as many as the chunk has.

use std::borrow::Cow;
use std::sync::Arc;

use pco::data_types::{Number, NumberType};
use pco::standalone::{FileDecompressor, simple_decompress_into};
use zarrs::array::codec::PcodecCodec;
use zarrs::array::codec::api::{CodecRuntimePluginV3, register_codec_v3};
use zarrs::array::{
    ArrayBytes, ArrayBytesRaw, ArrayToBytesCodecTraits, BytesRepresentation, Codec, CodecError,
    CodecMetadataOptions, CodecOptions, CodecTraitsV3,
};
use zarrs::metadata::Configuration;
use zarrs::plugin::{ExtensionAliases, ZarrVersion, ZarrVersion3};

use super::whole::{self, ArrayCodec, Content, Described};

/// Makes `zarrs` use the wrapper of this module.
pub(super) fn register() {
    let matches = <PcodecCodec as ExtensionAliases<ZarrVersion3>>::matches_name;
    register_codec_v3(CodecRuntimePluginV3::new(matches, |metadata| {
        match PcodecCodec::create(metadata)? {
            Codec::ArrayToBytes(inner) => Ok(whole::of_elements(Bounded(inner))),
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

impl Described for Bounded {
    fn name(&self, version: ZarrVersion) -> Option<Cow<'static, str>> {
        self.0.name(version)
    }

    fn configuration(
        &self,
        version: ZarrVersion,
        options: &CodecMetadataOptions,
    ) -> Option<Configuration> {
        self.0.configuration(version, options)
    }
}

impl ArrayCodec for Bounded {
    fn encoded_size(&self, content: Content<'_>) -> Result<BytesRepresentation, CodecError> {
        self.0.encoded_representation(content.shape, content.data_type, content.fill_value)
    }

    fn encode<'a>(
        &self,
        bytes: ArrayBytes<'a>,
        content: Content<'_>,
        options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        self.0.encode(bytes, content.shape, content.data_type, content.fill_value, options)
    }

    fn decode<'a>(
        &self,
        bytes: ArrayBytesRaw<'a>,
        content: Content<'_>,
        options: &CodecOptions,
    ) -> Result<ArrayBytes<'a>, CodecError> {
        // A complex number is two numbers.
        let count_max = usize::try_from(content.elements().saturating_mul(2)).unwrap_or(usize::MAX);
        check_count(&bytes, count_max)?;
        self.0.decode(bytes, content.shape, content.data_type, content.fill_value, options)
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
