//! Fill values: the bytes of one element, and painting memory with them.

use zarrs::array::FillValueMetadata;

use crate::{DType, Error, Result};

/// Items larger than this are taken for a mistake: a fill value needs their size in memory, on the
/// word of the metadata alone.
pub(crate) const ITEM_BYTES_MAX: usize = 1 << 20;

/// The bytes of the fill value of an array of type `dtype`, in native order.
///
/// For a type of variable length these are the bytes of one element, possibly none. Floating-point
/// values given as `"0x…"` are taken bit by bit, so the payload of a NaN is kept.
pub fn fill_element(dtype: &DType, metadata: &FillValueMetadata) -> Result<Vec<u8>> {
    if let Some(size) = dtype.item_size().filter(|&size| size > ITEM_BYTES_MAX) {
        return Err(Error::unsupported(format!("a data type of {size} bytes")));
    }
    let value = dtype.zarrs().fill_value_v3(metadata).map_err(|cause| {
        let found = serde_json::to_string(metadata).unwrap_or_default();
        Error::invalid(format!("fill value {found} is not a {}", dtype.name())).because(cause)
    })?;
    let bytes = value.as_ne_bytes().to_vec();
    match dtype.item_size() {
        Some(size) if size != bytes.len() && !dtype.is_optional() => Err(Error::invalid(format!(
            "the fill value of a {} has {} bytes, expected {size}",
            dtype.name(),
            bytes.len()
        ))),
        _ => Ok(bytes),
    }
}

/// Paints `target` with copies of `element`; a last piece that is too short gets its beginning.
///
/// One `memset` where all bytes are equal, else copies that double in length.
pub fn fill_slice(target: &mut [u8], element: &[u8]) {
    let Some((&first, rest)) = element.split_first() else { return };
    if rest.iter().all(|&byte| byte == first) {
        target.fill(first);
        return;
    }
    let mut done = element.len().min(target.len());
    target[..done].copy_from_slice(&element[..done]);
    while done < target.len() {
        let len = done.min(target.len() - done);
        target.copy_within(..len, done);
        done += len;
    }
}

/// Whether `bytes` is nothing but copies of `element`, compared bit by bit.
pub fn is_filled(bytes: &[u8], element: &[u8]) -> bool {
    // Bytes that begin with the element and equal themselves shifted by it repeat it throughout;
    // the comparison is one `memcmp`.
    match bytes.len().checked_sub(element.len()) {
        None => bytes.is_empty(),
        Some(_) if element.is_empty() => bytes.is_empty(),
        Some(shorter) => {
            bytes.len().is_multiple_of(element.len())
                && bytes.starts_with(element)
                && bytes[element.len()..] == bytes[..shorter]
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{fill_element, fill_slice, is_filled};
    use crate::{DType, Error};

    fn element(dtype: &str, fill: Value) -> Option<Vec<u8>> {
        let metadata = serde_json::from_value(fill).unwrap();
        fill_element(&DType::parse(&json!(dtype)).unwrap(), &metadata).ok()
    }

    #[test]
    fn the_payload_of_a_nan_is_kept() {
        for bits in [0x7fc0_0000u32, 0x7fc0_0001, 0x7f80_0001, 0xffff_ffff, 0xff80_0001] {
            let found = element("float32", json!(format!("0x{bits:08x}")));
            assert_eq!(found, Some(bits.to_le_bytes().to_vec()), "{bits:x}");
        }
        for bits in [0x7ff8_0000_0000_0001u64, 0x7ff0_0000_0000_0001, 0xfff8_dead_beef_0001] {
            let found = element("float64", json!(format!("0x{bits:016x}")));
            assert_eq!(found, Some(bits.to_le_bytes().to_vec()), "{bits:x}");
        }
        assert_eq!(element("float16", json!("0x7e01")), Some(vec![0x01, 0x7e]));
        let complex = element("complex64", json!(["0x7fc00001", "-Infinity"]));
        let expected = [0x7fc0_0001u32.to_le_bytes(), f32::NEG_INFINITY.to_le_bytes()].concat();
        assert_eq!(complex, Some(expected));
    }

    #[test]
    fn fill_values_of_every_kind_are_read() {
        assert_eq!(element("bool", json!(true)), Some(vec![1]));
        assert_eq!(element("int8", json!(-1)), Some(vec![0xff]));
        assert_eq!(element("uint64", json!(u64::MAX)), Some(vec![0xff; 8]));
        assert_eq!(element("float32", json!("NaN")), Some(0x7fc0_0000u32.to_le_bytes().to_vec()));
        assert_eq!(element("float64", json!(-0.0)), Some((-0.0f64).to_le_bytes().to_vec()));
        assert_eq!(element("r16", json!([1, 2])), Some(vec![1, 2]));
        assert_eq!(element("string", json!("né")), Some("né".as_bytes().to_vec()));
        assert_eq!(element("uint8", json!(256)), None);
        assert_eq!(element("uint8", json!("x")), None);
    }

    #[test]
    fn a_forged_item_size_allocates_nothing() {
        let configuration = json!({"length_bytes": 1u64 << 40});
        let huge = json!({"name": "fixed_length_utf32", "configuration": configuration});
        let fill = serde_json::from_value(json!("")).unwrap();
        let error = fill_element(&DType::parse(&huge).unwrap(), &fill).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    }

    #[test]
    fn painting_repeats_the_element_and_is_recognised() {
        for size in [1, 2, 3, 8] {
            let element: Vec<u8> = (1..=size).collect();
            for items in [0, 1, 2, 7, 1000] {
                let mut bytes = vec![0; items * usize::from(size)];
                fill_slice(&mut bytes, &element);
                assert_eq!(bytes, element.repeat(items));
                assert!(is_filled(&bytes, &element));
                if let Some(last) = bytes.last_mut() {
                    *last ^= 0x80;
                    assert!(!is_filled(&bytes, &element));
                }
            }
        }
        assert!(!is_filled(&[1, 2, 1], &[1, 2]), "not a whole number of elements");
        assert!(!is_filled(&[1], &[1, 2]));
        assert!(!is_filled(&[1], &[]));
    }
}
