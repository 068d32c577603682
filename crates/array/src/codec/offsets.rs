//! Strings and bytes of any length behind a table of offsets.
//!
//! Specification: for N elements, N + 1 little-endian `u32`, where each element begins and where
//! the last one ends, counted from the end of the table; then the elements, end to end. The chunk
//! shape gives the number of elements. Compatible implementations: array-format lays out its chunks
//! of `String` and `Binary` this way (docs/formats/container.md), and so does Arrow with its 32-bit
//! offsets. Zarr has no codec for it; this one is registered with `zarrs` under a name of ours.
//!
//! ```json
//! {"name": "chunkyard.offsets"}
//! ```
//!
//! Unlike with `vlen-utf8`, the elements are in one piece and any of them is found without a walk.

use std::borrow::Cow;

use zarrs::array::codec::api::{CodecRuntimePluginV3, register_codec_v3};
use zarrs::array::{
    ArrayBytes, ArrayBytesOffsets, ArrayBytesRaw, BytesRepresentation, CodecError,
    CodecMetadataOptions, CodecOptions, DataTypeSize,
};
use zarrs::metadata::Configuration;
use zarrs::metadata::v3::MetadataV3;
use zarrs::plugin::ZarrVersion;

use super::whole::{self, ArrayCodec, Content, Described, other};
use crate::{DType, Error, Result};

/// The name of the codec that keeps strings and bytes behind a table of offsets.
pub const NAME: &str = "chunkyard.offsets";

/// Makes `zarrs` know the codec.
pub(super) fn register() {
    register_codec_v3(CodecRuntimePluginV3::new(
        |name| name == NAME,
        |_metadata| Ok(whole::of_elements(Offsets)),
    ));
}

/// Whether a chain is this codec and nothing else, so that [`encode`] and [`decode`] do all of it.
pub(super) fn is_all_of(codecs: &[MetadataV3], dtype: &DType) -> bool {
    matches!(codecs, [codec] if codec.name() == NAME) && dtype.item_size().is_none()
}

/// Elements behind their offsets, which must rise from 0 to the length of `bytes`.
pub(super) fn encode(
    bytes: &[u8],
    offsets: impl ExactSizeIterator<Item = u64>,
    out: &mut Vec<u8>,
) -> Result<()> {
    if u32::try_from(bytes.len()).is_err() {
        return Err(Error::invalid(format!(
            "a chunk of {} bytes of text is too large for {NAME}, whose offsets end at {}; \
             make the chunks smaller",
            bytes.len(),
            u32::MAX
        )));
    }
    let room = offsets.len().saturating_mul(4).saturating_add(bytes.len());
    out.try_reserve_exact(room)
        .map_err(|_| Error::OutOfMemory { what: "an encoded chunk".into(), bytes: room })?;
    // The last offset fits, and no other is larger.
    out.extend(offsets.flat_map(|offset| (offset as u32).to_le_bytes()));
    out.extend_from_slice(bytes);
    Ok(())
}

/// The elements of a chunk of `count`, end to end, and their offsets.
pub(super) fn decode(encoded: &[u8], count: u64, is_text: bool) -> Result<(&[u8], Vec<u64>)> {
    let table = count.checked_add(1).and_then(|entries| entries.checked_mul(4));
    let table = table.and_then(|bytes| usize::try_from(bytes).ok());
    let Some((table, payload)) = table.and_then(|bytes| encoded.split_at_checked(bytes)) else {
        return Err(corrupt(format!("offsets of {count} elements"), encoded.len()));
    };
    let (entries, _) = table.as_chunks::<4>();
    let offsets: Vec<u64> =
        entries.iter().map(|entry| u64::from(u32::from_le_bytes(*entry))).collect();
    let ends = (offsets.first(), offsets.last());
    if !offsets.is_sorted() || ends != (Some(&0), Some(&(payload.len() as u64))) {
        return Err(corrupt(
            format!("offsets that rise from 0 to {}", payload.len()),
            format!("{ends:?}"),
        ));
    }
    if is_text {
        let text = str::from_utf8(payload)
            .map_err(|cause| corrupt("strings in UTF-8", "other bytes").because(cause))?;
        if !offsets.iter().all(|&offset| text.is_char_boundary(offset as usize)) {
            return Err(corrupt("strings in UTF-8", "a character in two of them"));
        }
    }
    Ok((payload, offsets))
}

fn corrupt(expected: impl Into<String>, found: impl ToString) -> Error {
    Error::corrupt("chunk", expected, found.to_string())
}

#[derive(Debug)]
struct Offsets;

impl Described for Offsets {
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

impl ArrayCodec for Offsets {
    fn encoded_size(&self, content: Content<'_>) -> Result<BytesRepresentation, CodecError> {
        match content.data_type.size() {
            DataTypeSize::Variable if !content.data_type.is_optional() => {
                Ok(BytesRepresentation::UnboundedSize)
            }
            _ => Err(CodecError::UnsupportedDataType(content.data_type.clone(), NAME.to_owned())),
        }
    }

    fn encode<'a>(
        &self,
        bytes: ArrayBytes<'a>,
        content: Content<'_>,
        _options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        bytes.validate(content.elements(), content.data_type)?;
        let (bytes, offsets) = bytes.into_variable()?.into_parts();
        let mut out = Vec::new();
        encode(&bytes, offsets.iter().map(|&offset| offset as u64), &mut out).map_err(other)?;
        Ok(Cow::Owned(out))
    }

    fn decode<'a>(
        &self,
        bytes: ArrayBytesRaw<'a>,
        content: Content<'_>,
        _options: &CodecOptions,
    ) -> Result<ArrayBytes<'a>, CodecError> {
        // Text is checked for UTF-8 after the chain, for all codecs alike.
        let (payload, offsets) = decode(&bytes, content.elements(), false).map_err(other)?;
        let offsets: Vec<usize> = offsets.into_iter().map(|offset| offset as usize).collect();
        Ok(ArrayBytes::new_vlen(payload.to_vec(), ArrayBytesOffsets::new(offsets)?)?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{ArraySpec, Codecs, ElementsBuf, Error};

    /// Codecs of chunks of six elements: this one alone, and one more that does nothing.
    fn codecs(dtype: &str) -> [Codecs; 2] {
        let alone = vec![json!({"name": "chunkyard.offsets"})];
        let gzip = json!({"name": "gzip", "configuration": {"level": 0}});
        [alone.clone(), [alone, vec![gzip]].concat()].map(|codecs| {
            let spec = ArraySpec::builder(&[4, 3], &[2, 3], dtype).codecs(codecs).build();
            Codecs::new(&spec.unwrap()).unwrap()
        })
    }

    fn words(words: &[&[u8]]) -> ElementsBuf {
        let mut offsets = vec![0];
        offsets.extend(words.iter().scan(0, |end, word| {
            *end += word.len() as u64;
            Some(*end)
        }));
        ElementsBuf::Variable { bytes: words.concat(), offsets }
    }

    fn table(offsets: [u32; 7], payload: &[u8]) -> Vec<u8> {
        [&offsets.map(u32::to_le_bytes).concat(), payload].concat()
    }

    #[test]
    fn the_table_comes_first_and_the_text_in_one_piece() {
        let all = words(&[b"a", "é".as_bytes(), b"", b"", b"dd", b"e"]);
        for dtype in ["string", "bytes"] {
            let [alone, chain] = codecs(dtype);
            let encoded = alone.encode(all.as_ref()).unwrap();
            assert_eq!(encoded, table([0, 1, 3, 3, 3, 5, 6], "aédde".as_bytes()));
            assert_eq!(alone.decode(&encoded).unwrap(), all);
            alone.check(&encoded).unwrap();
            let longer = chain.encode(all.as_ref()).unwrap();
            assert_eq!(chain.decode(&longer).unwrap(), all);
        }
    }

    #[test]
    fn a_clipped_chunk_has_as_many_offsets_as_elements() {
        for codecs in codecs("string") {
            let clipped = codecs.with_chunk_shape(&[1, 2]).unwrap();
            let two = words(&[b"x", b"yz"]);
            let encoded = clipped.encode(two.as_ref()).unwrap();
            assert_eq!(clipped.decode(&encoded).unwrap(), two);
            assert!(clipped.encode(words(&[b"x"]).as_ref()).is_err(), "one is missing");
            assert!(codecs.decode(&encoded).is_err(), "it is no whole chunk");
        }
    }

    #[test]
    fn tables_that_lie_are_corrupt() {
        let lies = [
            vec![],
            vec![0; 27],
            table([0, 0, 0, 0, 0, 0, 1], b""),
            table([0, 0, 0, 0, 0, 0, 1], b"ab"),
            table([1, 1, 1, 1, 1, 1, 1], b"a"),
            table([0, 2, 1, 2, 2, 2, 2], b"ab"),
            table([0, u32::MAX, 2, 2, 2, 2, 2], b"ab"),
        ];
        for encoded in lies {
            let error = codecs("bytes")[0].decode(&encoded).unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }), "{encoded:?}: {error}");
        }
        let halves = [table([0, 1, 2, 2, 2, 2, 2], "é".as_bytes()), table([0; 7], b"")];
        let [alone, chain] = codecs("string");
        assert!(alone.decode(&halves[0]).is_err() && alone.decode(&halves[1]).is_ok());
        assert!(alone.decode(&table([0, 1, 1, 1, 1, 1, 1], b"\xff")).is_err());
        assert!(codecs("bytes")[0].decode(&halves[0]).is_ok());
        let encoded =
            codecs("bytes")[1].encode(words(&[b"\xff", b"", b"", b"", b"", b""]).as_ref());
        assert!(matches!(chain.decode(&encoded.unwrap()), Err(Error::Corrupt { .. })));
    }

    #[test]
    fn numbers_have_no_offsets() {
        let codecs = vec![json!({"name": "chunkyard.offsets"})];
        let spec = ArraySpec::builder(&[4], &[2], "int32").codecs(codecs).build().unwrap();
        assert!(matches!(Codecs::new(&spec), Err(Error::Unsupported { .. })));
    }
}
