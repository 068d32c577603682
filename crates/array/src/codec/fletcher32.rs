//! The Fletcher-32 checksum of HDF5, behind Zarr's `numcodecs.fletcher32`.
//!
//! `zarrs` 0.23 leaves out the last byte of data of odd length, so that every second compressed
//! chunk of HDF5 looks damaged to it. This codec takes its place. It computes the same as HDF5 and
//! numcodecs.

use std::borrow::Cow;

use zarrs::array::codec::Fletcher32Codec;
use zarrs::array::codec::api::{CodecRuntimePluginV3, register_codec_v3};
use zarrs::array::{
    ArrayBytesRaw, BytesRepresentation, BytesToBytesCodecTraits, CodecError, CodecMetadataOptions,
    CodecOptions, CodecTraits,
};
use zarrs::metadata::Configuration;
use zarrs::plugin::{ExtensionAliases, ExtensionName, ZarrVersion, ZarrVersion3};

use super::whole::{self, BytesCodec, Described};

const CHECKSUM_BYTES: usize = 4;

/// Words that can be added before a sum of sums leaves 32 bits.
const WORDS_AT_ONCE: usize = 360;

/// Makes `zarrs` use this codec.
pub(super) fn register() {
    register_codec_v3(CodecRuntimePluginV3::new(
        <Fletcher32Codec as ExtensionAliases<ZarrVersion3>>::matches_name,
        |_| Ok(whole::of_bytes(Fletcher32)),
    ));
}

#[derive(Debug)]
struct Fletcher32;

/// As `H5_checksum_fletcher32` computes it: of big-endian words, a last byte being a high half.
fn checksum(data: &[u8]) -> u32 {
    let fold = |sum: u32| (sum & 0xffff) + (sum >> 16);
    let (mut simple, mut double) = (0u32, 0u32);
    for words in data.chunks(2 * WORDS_AT_ONCE) {
        for word in words.chunks(2) {
            let (high, low) = match *word {
                [high, low] => (high, low),
                [high] => (high, 0),
                _ => continue,
            };
            simple += u32::from(u16::from_be_bytes([high, low]));
            double += simple;
        }
        (simple, double) = (fold(simple), fold(double));
    }
    fold(double) << 16 | fold(simple)
}

/// HDF5 before 1.6.3 swapped the bytes of each half on some machines; it still reads those files.
fn swapped(checksum: u32) -> u32 {
    checksum >> 8 & 0x00ff_00ff | (checksum & 0x00ff_00ff) << 8
}

impl Described for Fletcher32 {
    fn name(&self, version: ZarrVersion) -> Option<Cow<'static, str>> {
        Fletcher32Codec::new().name(version)
    }

    fn configuration(
        &self,
        version: ZarrVersion,
        options: &CodecMetadataOptions,
    ) -> Option<Configuration> {
        Fletcher32Codec::new().configuration(version, options)
    }
}

impl BytesCodec for Fletcher32 {
    fn encoded_size(&self, decoded_representation: &BytesRepresentation) -> BytesRepresentation {
        Fletcher32Codec::new().encoded_representation(decoded_representation)
    }

    fn encode<'a>(
        &self,
        decoded_value: ArrayBytesRaw<'a>,
        _options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        let stored = checksum(&decoded_value).to_le_bytes();
        let mut encoded = decoded_value.into_owned();
        encoded.extend_from_slice(&stored);
        Ok(Cow::Owned(encoded))
    }

    fn decode<'a>(
        &self,
        encoded_value: ArrayBytesRaw<'a>,
        _decoded_representation: &BytesRepresentation,
        options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        let Some((data, stored)) = encoded_value.split_last_chunk::<CHECKSUM_BYTES>() else {
            return Err(CodecError::Other("a chunk without room for its Fletcher-32".into()));
        };
        if options.validate_checksums() {
            let (stored, computed) = (u32::from_le_bytes(*stored), checksum(data));
            if stored != computed && stored != swapped(computed) {
                return Err(CodecError::InvalidChecksum);
            }
        }
        let len = data.len();
        Ok(match encoded_value {
            Cow::Borrowed(bytes) => Cow::Borrowed(bytes.get(..len).unwrap_or_default()),
            Cow::Owned(mut bytes) => {
                bytes.truncate(len);
                Cow::Owned(bytes)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{checksum, swapped};
    use crate::{ArraySpec, Codecs, Elements, ElementsBuf};

    #[test]
    fn checksums_are_those_of_numcodecs() {
        // numcodecs.Fletcher32().encode(data)[-4:]
        for (data, expected) in [
            (b"".to_vec(), 0),
            (b"abcd".to_vec(), 0x2629_c4c6),
            (b"abc".to_vec(), 0x25c5_c462),
            ((0..=254).collect::<Vec<u8>>(), 0x5476_bf40),
            (vec![0xff; 1501], 0xff00_ff00),
        ] {
            assert_eq!(checksum(&data), expected, "{data:02x?}");
        }
        assert_eq!(swapped(0x1122_3344), 0x2211_4433);
    }

    #[test]
    fn chunks_of_odd_length_round_trip_and_damage_is_seen() {
        let codecs = vec![json!({"name": "bytes"}), json!({"name": "numcodecs.fletcher32"})];
        let spec = ArraySpec::builder(&[5], &[5], "uint8").codecs(codecs).build().unwrap();
        let codecs = Codecs::new(&spec).unwrap();
        let mut encoded = codecs.encode(Elements::Fixed(b"odd 5")).unwrap();
        assert_eq!(encoded.len(), 9);
        assert_eq!(codecs.decode(&encoded).unwrap(), ElementsBuf::Fixed(b"odd 5".to_vec()));
        encoded[4] ^= 1;
        assert!(codecs.decode(&encoded).is_err(), "the last byte counts");
        assert!(codecs.decode(b"ab").is_err());
    }
}
