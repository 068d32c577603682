//! Fill values: the bytes of one element, and painting memory with them.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use half::{bf16, f16};
use serde_json::Value;
use zarrs::array::FillValueMetadata;

use crate::dtype::TERMINATED;
use crate::spec::typed_value;
use crate::{DType, Error, Result, non_finite};

/// Larger items count as a mistake: a fill value takes their size in memory, and only the metadata
/// vouches for it.
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
        let hint = metadata.as_str().and_then(hint_at_non_finite);
        let hint = hint.filter(|_| float_width(dtype).is_some()).unwrap_or_default();
        Error::invalid(format!("fill value {found} is not a {}{hint}", dtype.name())).because(cause)
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

/// A hint for a text that means a number JSON does not have: Python, C and shells print it
/// differently from what Zarr and BLZ accept.
pub fn hint_at_non_finite(text: &str) -> Option<String> {
    let lower = text.trim().to_ascii_lowercase();
    let (sign, name) = match lower.strip_prefix('-') {
        Some(name) => ("-", name),
        None => ("", lower.strip_prefix('+').unwrap_or(&lower)),
    };
    let spelled = match name {
        "inf" | "infinity" => format!("{sign}Infinity"),
        "nan" => "NaN".to_owned(),
        _ => return None,
    };
    Some(format!("; a floating-point type takes {spelled}, spelled so"))
}

/// The fill value of a new array: like [`fill_element`], but refuses a number that the type cannot
/// hold. Existing metadata may have such a number, which all readers take for infinity.
pub(crate) fn new_fill_element(dtype: &DType, metadata: &FillValueMetadata) -> Result<Vec<u8>> {
    let element = fill_element(dtype, metadata)?;
    let Some(width) = float_width(dtype) else { return Ok(element) };
    let parts = match metadata {
        FillValueMetadata::Array(parts) => parts.as_slice(),
        other => std::slice::from_ref(other),
    };
    for (part, bytes) in parts.iter().zip(element.chunks_exact(width)) {
        if matches!(part, FillValueMetadata::Number(_)) && is_infinite(dtype, bytes) {
            return Err(Error::invalid(format!(
                "fill value {part} does not fit a {}, where it would be infinite",
                dtype.name()
            )));
        }
    }
    Ok(element)
}

/// The fill value that a user typed, as it stands in the metadata of an array: JSON, a number that is
/// not finite as Python writes it, or plain text. Types of text and of bytes with an end take any text.
///
/// ```
/// # use chunkyard_array::{DType, parse_fill};
/// let (bytes, _) = DType::from_numpy("|S5")?;
/// assert_eq!(parse_fill(&bytes, "abc")?, "YWJj");
/// assert!(parse_fill(&bytes, "abcdef").is_err());
/// # Ok::<(), chunkyard_array::Error>(())
/// ```
pub fn parse_fill(dtype: &DType, typed: &str) -> Result<Value> {
    let json = non_finite::parse(typed.as_bytes()).map(non_finite::spelled).ok();
    let is_text = json.as_ref().is_some_and(Value::is_string) && typed.starts_with('"');
    let text = || match &json {
        Some(Value::String(text)) if is_text => text.clone(),
        _ => typed.to_owned(),
    };
    let value = match dtype.name() {
        "string" | "fixed_length_utf32" => Value::from(text()),
        TERMINATED => Value::from(BASE64_STANDARD.encode(text())),
        _ => json.clone().unwrap_or_else(|| Value::from(typed)),
    };
    let refused = |cause: Error| {
        let fits = dtype.item_size().filter(|_| dtype.name() == TERMINATED);
        match fits.filter(|&size| text().len() > size) {
            Some(size) => Error::invalid(format!(
                "fill value {typed:?} has {} bytes, an element {size}",
                text().len()
            )),
            None => cause,
        }
    };
    let metadata = serde_json::from_value(typed_value(&value))
        .map_err(|cause| Error::invalid(format!("fill value {value}")).because(cause))?;
    new_fill_element(dtype, &metadata).map_err(refused)?;
    Ok(value)
}

/// Bytes of a floating-point number; a complex one has two of them.
fn float_width(dtype: &DType) -> Option<usize> {
    match dtype.name() {
        "float16" | "bfloat16" => Some(2),
        "float32" | "complex64" => Some(4),
        "float64" | "complex128" => Some(8),
        _ => None,
    }
}

fn is_infinite(dtype: &DType, bytes: &[u8]) -> bool {
    match (dtype.name(), bytes) {
        ("bfloat16", &[a, b]) => bf16::from_le_bytes([a, b]).is_infinite(),
        (_, &[a, b]) => f16::from_le_bytes([a, b]).is_infinite(),
        (_, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]).is_infinite(),
        (_, bytes) => {
            <[u8; 8]>::try_from(bytes).is_ok_and(|all| f64::from_le_bytes(all).is_infinite())
        }
    }
}

/// Paints `target` with copies of `element`; a last piece that is too short gets the start of one.
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

/// Whether `bytes` consists of copies of `element`, compared bit by bit.
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

    use super::{fill_element, fill_slice, is_filled, parse_fill};
    use crate::{ArraySpec, DType, Error, non_finite};

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
    fn a_text_that_means_no_number_of_json_gets_a_hint() {
        for (text, spelled) in [
            ("inf", "takes Infinity,"),
            ("-INF", "takes -Infinity,"),
            ("+inf", "takes Infinity,"),
            ("nan", "takes NaN,"),
        ] {
            let metadata = serde_json::from_value(json!(text)).unwrap();
            let dtype = DType::parse(&json!("float64")).unwrap();
            let error = fill_element(&dtype, &metadata).unwrap_err().to_string();
            assert!(error.contains(spelled), "{error}");
        }
        assert_eq!(super::hint_at_non_finite("infinite"), None);
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
    fn a_number_that_the_type_does_not_hold_is_refused() {
        let refused = |dtype: &str, typed: &str| {
            let dtype = DType::parse(&json!(dtype)).unwrap();
            let new = ArraySpec::builder(&[4], &[2], json!(dtype.name()));
            let value = non_finite::parse(typed.as_bytes()).map(non_finite::spelled).unwrap();
            let by_value = new.fill_value(value).build().is_err();
            assert_eq!(parse_fill(&dtype, typed).is_err(), by_value, "{dtype} {typed}");
            by_value
        };
        for (dtype, fits, does_not) in [
            ("int8", "-128", "-129"),
            ("int8", "127", "128"),
            ("uint8", "255", "256"),
            ("uint8", "0", "-1"),
            ("int16", "-32768", "32768"),
            ("uint16", "65535", "65536"),
            ("int32", "-2147483648", "2147483648"),
            ("uint32", "4294967295", "4294967296"),
            ("int64", "-9223372036854775808", "9223372036854775808"),
            ("uint64", "18446744073709551615", "18446744073709551616"),
            ("int32", "1", "1.5"),
            ("int32", "1", "NaN"),
            ("int32", "1", "1e3"),
            ("bool", "true", "2"),
            ("float16", "65504", "65520"),
            ("float16", "-1e4", "-1e10"),
            ("float16", "Infinity", "1e400"),
            ("bfloat16", "3e38", "4e38"),
            ("float32", "3.4e38", "3.5e38"),
            ("float64", "1.7e308", "1E400"),
            ("float64", "100000000000000000000000", "\"x\""),
            ("complex64", "[1e38, NaN]", "[0, 1e39]"),
        ] {
            assert!(!refused(dtype, fits), "{dtype} {fits}");
            assert!(refused(dtype, does_not), "{dtype} {does_not}");
        }
        // In a file it means the same as to all readers.
        assert_eq!(element("float16", json!(1e10)), Some(vec![0x00, 0x7c]));
    }

    #[test]
    fn what_is_typed_says_how_it_is_meant() {
        let numpy = |descr: &str| DType::from_numpy(descr).unwrap().0;
        assert_eq!(parse_fill(&numpy("<f4"), "NaN").unwrap(), "NaN");
        assert_eq!(parse_fill(&numpy("<f4"), "-Infinity").unwrap(), "-Infinity");
        for word in ["inf", "-inf", "nan", "INF", "-infinity"] {
            let error = parse_fill(&numpy("<f8"), word).unwrap_err().to_string();
            assert!(error.contains("a floating-point type takes "), "{error}");
        }
        assert_eq!(parse_fill(&numpy("<U3"), "12").unwrap(), "12");
        assert_eq!(parse_fill(&numpy("<U3"), "\"a\"").unwrap(), "a");
        assert!(parse_fill(&numpy("<U3"), "abcd").is_err());
        assert_eq!(parse_fill(&numpy("|S3"), "NaN").unwrap(), "TmFO");
        let error = parse_fill(&numpy("|S3"), "four").unwrap_err().to_string();
        assert!(error.contains("4 bytes"), "{error}");
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
