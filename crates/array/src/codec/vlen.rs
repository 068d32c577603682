//! Elements of variable length, each behind its length: `vlen-utf8`, `vlen-bytes`, `vlen-array` and
//! `zarrs.vlen_v2`.
//!
//! ```text
//!  u32 number of elements │ u32 length │ bytes │ u32 length │ bytes │ …      little-endian
//! ```
//!
//! `zarrs` slices by the lengths that it finds and panics if they are wrong. Here it only encodes,
//! and our own decoder checks the lengths. Bytes after the last element are ignored, as by all
//! readers.

use std::borrow::Cow;
use std::sync::Arc;

use zarrs::array::codec::api::{CodecRuntimePluginV3, register_codec_v3};
use zarrs::array::codec::{VlenArrayCodec, VlenBytesCodec, VlenUtf8Codec, VlenV2Codec};
use zarrs::array::{
    ArrayBytes, ArrayBytesOffsets, ArrayBytesRaw, ArrayToBytesCodecTraits, BytesRepresentation,
    Codec, CodecError, CodecMetadataOptions, CodecOptions, CodecTraitsV3,
};
use zarrs::metadata::Configuration;
use zarrs::plugin::{ExtensionAliases, ZarrVersion, ZarrVersion3};

use super::whole::{self, ArrayCodec, Content, Described};

/// Makes `zarrs` use the wrapper of this module.
pub(super) fn register() {
    wrap::<VlenArrayCodec>();
    wrap::<VlenBytesCodec>();
    wrap::<VlenUtf8Codec>();
    wrap::<VlenV2Codec>();
}

fn wrap<C: ExtensionAliases<ZarrVersion3> + CodecTraitsV3 + 'static>() {
    register_codec_v3(CodecRuntimePluginV3::new(C::matches_name, |metadata| {
        Ok(match C::create(metadata)? {
            Codec::ArrayToBytes(inner) => whole::of_elements(Checked { inner }),
            other => other,
        })
    }));
}

/// A codec of `zarrs` that believes no length.
#[derive(Debug)]
struct Checked {
    inner: Arc<dyn ArrayToBytesCodecTraits>,
}

/// The bytes of all elements, and where each begins and the last one ends.
fn decode(encoded: &[u8], count: u64) -> Result<(Vec<u8>, Vec<usize>), String> {
    let (found, mut rest) = number(encoded).ok_or("a chunk without a number of elements")?;
    if u64::from(found) != count {
        return Err(format!("{found} elements, expected {count}"));
    }
    // Each element has a length, so the count is checked against the bytes before memory is
    // reserved.
    if rest.len() as u64 / 4 < count {
        return Err(format!("{} bytes for the lengths of {count} elements", rest.len()));
    }
    let (mut bytes, mut offsets) = (Vec::with_capacity(rest.len()), vec![0]);
    for element in 0..count {
        let cut = || format!("a chunk that ends in element {element} of {count}");
        let (length, after) = number(rest).ok_or_else(cut)?;
        let (own, after) = after.split_at_checked(length as usize).ok_or_else(cut)?;
        bytes.extend_from_slice(own);
        offsets.push(bytes.len());
        rest = after;
    }
    Ok((bytes, offsets))
}

fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (first, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*first), rest))
}

impl Described for Checked {
    fn name(&self, version: ZarrVersion) -> Option<Cow<'static, str>> {
        self.inner.name(version)
    }

    fn configuration(
        &self,
        version: ZarrVersion,
        options: &CodecMetadataOptions,
    ) -> Option<Configuration> {
        self.inner.configuration(version, options)
    }
}

impl ArrayCodec for Checked {
    fn encoded_size(&self, content: Content<'_>) -> Result<BytesRepresentation, CodecError> {
        self.inner.encoded_representation(content.shape, content.data_type, content.fill_value)
    }

    fn encode<'a>(
        &self,
        bytes: ArrayBytes<'a>,
        content: Content<'_>,
        options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        self.inner.encode(bytes, content.shape, content.data_type, content.fill_value, options)
    }

    fn decode<'a>(
        &self,
        bytes: ArrayBytesRaw<'a>,
        content: Content<'_>,
        _options: &CodecOptions,
    ) -> Result<ArrayBytes<'a>, CodecError> {
        let (bytes, offsets) = decode(&bytes, content.elements()).map_err(CodecError::Other)?;
        Ok(ArrayBytes::new_vlen(bytes, ArrayBytesOffsets::new(offsets)?)?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::decode;
    use crate::{ArraySpec, Codecs, Elements, Error};

    fn chunk(lengths: &[(u32, &[u8])]) -> Vec<u8> {
        let mut chunk = (lengths.len() as u32).to_le_bytes().to_vec();
        for (length, bytes) in lengths {
            chunk.extend(length.to_le_bytes());
            chunk.extend_from_slice(bytes);
        }
        chunk
    }

    #[test]
    fn lengths_that_lie_are_errors() {
        let sound = chunk(&[(2, b"ab"), (0, b""), (1, b"c")]);
        assert_eq!(decode(&sound, 3), Ok((b"abc".to_vec(), vec![0, 2, 2, 3])));
        for (lying, count) in [
            (chunk(&[(3, b"ab")]), 1),
            (chunk(&[(u32::MAX, b"ab"), (0, b"")]), 2),
            (chunk(&[(2, b"ab")]), 2),
            (sound[..sound.len() - 1].to_vec(), 3),
            (vec![0xff; 4], u64::from(u32::MAX)),
            (vec![1], 1),
            (Vec::new(), 0),
        ] {
            assert!(decode(&lying, count).is_err(), "{lying:?}");
        }
    }

    #[test]
    fn a_lying_chunk_is_damage_and_no_panic_that_is_caught() {
        for (dtype, name) in
            [("string", "vlen-utf8"), ("bytes", "vlen-bytes"), ("string", "zarrs.vlen_v2")]
        {
            let codecs = vec![
                json!({"name": name}),
                json!({"name": "zstd", "configuration":
                {"level": 1, "checksum": false}}),
            ];
            let spec = ArraySpec::builder(&[2], &[2], dtype).codecs(codecs).build().unwrap();
            let codecs = Codecs::new(&spec).unwrap();
            let words = Elements::Variable { bytes: b"abc", offsets: &[0, 2, 3] };
            let sound = codecs.encode(words).unwrap();
            assert_eq!(codecs.decode(&sound).unwrap().as_ref(), words);
            let lying = zstd::encode_all(&chunk(&[(9, b"ab"), (1, b"c")])[..], 1).unwrap();
            let Err(Error::Corrupt { found, .. }) = codecs.decode(&lying) else { panic!("{name}") };
            assert!(found.contains("ends in element 0 of 2"), "{found}");
        }
    }
}
