//! The types of rows, within the bounds of Bloscpack: their texts are [`numpy`]'s.

use chunkyard_array::numpy;
pub use chunkyard_array::numpy::{Field, RowType, item_bytes};
use chunkyard_store::{Error, Result};

/// Bytes of the largest row: a chunk holds at least one.
const ROW_BYTES_MAX: u64 = super::bloscpack::CHUNK_BYTES_MAX as u64;

/// The type that a text describes.
pub fn parse(text: &str) -> Result<RowType> {
    bounded(numpy::parse(text)?)
}

/// The type, if a chunk can hold a row of it.
pub fn bounded(kind: RowType) -> Result<RowType> {
    match item_bytes(&kind) {
        1..=ROW_BYTES_MAX => Ok(kind),
        bytes => Err(Error::unsupported(format!(
            "NumPy data type {}: rows of {bytes} bytes; 1 to {ROW_BYTES_MAX} are",
            render(&kind)?
        ))),
    }
}

/// The text for a type, as bcolz would write it.
pub fn render(kind: &RowType) -> Result<String> {
    Ok(numpy::render(kind)?)
}

/// The type size that BLZ and bcolz give to Blosc: bytes and characters are shuffled one by one, and so are
/// the bytes of elements that are too large for Blosc.
pub fn typesize(kind: &RowType) -> u8 {
    let numpy = match kind {
        RowType::Plain { dtype, .. } => dtype.to_numpy().unwrap_or_default(),
        RowType::Struct(_) => String::new(),
    };
    match numpy.as_bytes() {
        [_, b'S', ..] => 1,
        [_, b'U', ..] => 4,
        _ => u8::try_from(item_bytes(kind)).unwrap_or(1).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_values_have_the_type_size_that_bcolz_gives_them() {
        for (text, size) in [
            ("bool", 1),
            ("int32", 4),
            ("complex128", 16),
            ("datetime64[ns]", 8),
            (">f8", 8),
            ("|S3", 1),
            ("<U5", 4),
            ("|V16", 16),
            ("|V300", 1),
        ] {
            assert_eq!(typesize(&parse(text).unwrap()), size, "{text}");
        }
    }

    #[test]
    fn rows_too_large_for_blosc_have_type_size_1() {
        assert_eq!(typesize(&parse("[('a', '<f8', (31,)), ('b', 'V7')]").unwrap()), 255);
        assert_eq!(typesize(&parse("[('a', '<f8', (32,))]").unwrap()), 1);
    }

    #[test]
    fn rows_that_no_chunk_holds_are_unsupported() {
        for text in [
            "[('a', '<f8', (99999999999,))]",
            "[('a', [('b', '<f8', (99999999,))], (99999999999, 99999999999))]",
            "[('a', '<f8', (99999999999, 0))]",
        ] {
            let kind = parse(text).unwrap_err().kind();
            assert_eq!(kind, chunkyard_store::ErrorKind::Unsupported, "{text}");
        }
    }
}
