//! Single elements as JSON: fill values, members of enumerations, attributes.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chunkyard_array::{ByteOrder, non_finite};
use half::{bf16, f16};
use serde_json::{Value, json};

use super::dtype::{ElementClass, ElementType};

impl ElementType {
    /// The JSON of one element, as Zarr writes fill values: values that JSON has no number for are
    /// strings, with all bits where `"NaN"` would not be exact. `None` if there are too few bytes.
    pub(super) fn value(&self, stored: &[u8]) -> Option<Value> {
        let stored = stored.get(..self.bytes)?;
        let mut bytes = stored.to_vec();
        if self.order == ByteOrder::Big {
            let parts = if self.is_complex() { 2 } else { 1 };
            bytes.chunks_mut((self.bytes / parts).max(1)).for_each(<[u8]>::reverse);
        }
        Some(match self.kind {
            ElementClass::Bool => json!(bytes.first()? != &0),
            ElementClass::Signed => json!(signed(&bytes)),
            ElementClass::Unsigned => json!(unsigned(&bytes)),
            ElementClass::Float16 => {
                let bits = u16::from_le_bytes(bytes.try_into().ok()?);
                special(f16::from_bits(bits).to_f64(), u64::from(bits), 0x7e00, 4)
            }
            ElementClass::BFloat16 => {
                let bits = u16::from_le_bytes(bytes.try_into().ok()?);
                special(bf16::from_bits(bits).to_f64(), u64::from(bits), 0x7fc0, 4)
            }
            ElementClass::Float32 => float32(&bytes)?,
            ElementClass::Float64 => float64(&bytes)?,
            ElementClass::Complex64 => {
                let (real, imaginary) = bytes.split_at_checked(4)?;
                json!([float32(real)?, float32(imaginary)?])
            }
            ElementClass::Complex128 => {
                let (real, imaginary) = bytes.split_at_checked(8)?;
                json!([float64(real)?, float64(imaginary)?])
            }
            ElementClass::Raw => json!(BASE64_STANDARD.encode(bytes)),
            ElementClass::Text => json!(""),
        })
    }

    /// The JSON of one element of an attribute, where a number that is not finite is a JSON number too.
    pub(super) fn number(&self, stored: &[u8]) -> Option<Value> {
        let as_number = |value: Value| match value {
            Value::String(text) => non_finite::number(match text.as_str() {
                "Infinity" => f64::INFINITY,
                "-Infinity" => f64::NEG_INFINITY,
                // All other strings are NaNs, and Python does not tell them apart.
                _ => f64::NAN,
            }),
            finite => finite,
        };
        let value = self.value(stored)?;
        Some(match (&self.kind, value) {
            (
                ElementClass::Float16
                | ElementClass::BFloat16
                | ElementClass::Float32
                | ElementClass::Float64,
                value,
            ) => as_number(value),
            (ElementClass::Complex64 | ElementClass::Complex128, Value::Array(parts)) => {
                parts.into_iter().map(as_number).collect()
            }
            (_, value) => value,
        })
    }

    /// The JSON of a `_FillValue`, which xarray expects in a spelling of its own: base64 of a float64
    /// for floating-point numbers, base64 of the bytes for bytes. `None` if it is not one element.
    pub(super) fn xarray_fill_value(&self, value: &Value) -> Option<Value> {
        let value = match value {
            Value::Array(values) if !self.is_complex() => match values.as_slice() {
                [value] => value,
                _ => return None,
            },
            value => value,
        };
        match self.kind {
            ElementClass::Float16
            | ElementClass::BFloat16
            | ElementClass::Float32
            | ElementClass::Float64 => spelled(value),
            ElementClass::Complex64 | ElementClass::Complex128 => {
                match value.as_array()?.as_slice() {
                    [real, imaginary] => Some(json!([spelled(real)?, spelled(imaginary)?])),
                    _ => None,
                }
            }
            ElementClass::Raw => Some(json!(BASE64_STANDARD.encode(value.as_str()?))),
            _ => Some(value.clone()),
        }
    }

    fn is_complex(&self) -> bool {
        matches!(self.kind, ElementClass::Complex64 | ElementClass::Complex128)
    }
}

fn unsigned(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

fn signed(bytes: &[u8]) -> i64 {
    let unused = 64_usize.saturating_sub(bytes.len() * 8) as u32;
    (unsigned(bytes) as i64).wrapping_shl(unused).wrapping_shr(unused)
}

fn float32(bytes: &[u8]) -> Option<Value> {
    let bits = u32::from_le_bytes(bytes.try_into().ok()?);
    Some(special(f64::from(f32::from_bits(bits)), u64::from(bits), 0x7fc0_0000, 8))
}

fn float64(bytes: &[u8]) -> Option<Value> {
    let bits = u64::from_le_bytes(bytes.try_into().ok()?);
    Some(special(f64::from_bits(bits), bits, 0x7ff8_0000_0000_0000, 16))
}

/// A number, or the string that stands for one, as base64 of a float64.
fn spelled(value: &Value) -> Option<Value> {
    let number = match value {
        Value::String(text) => match text.as_str() {
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            // All other strings are NaNs, and xarray does not tell them apart.
            _ => f64::NAN,
        },
        value => value.as_f64()?,
    };
    Some(json!(BASE64_STANDARD.encode(number.to_le_bytes())))
}

/// Zarr v3 §"Fill value": infinities and NaN are strings; any other NaN is written as its bits.
fn special(value: f64, bits: u64, quiet_nan: u64, digits: usize) -> Value {
    if value.is_finite() {
        json!(value)
    } else if value.is_infinite() {
        json!(if value > 0.0 { "Infinity" } else { "-Infinity" })
    } else if bits == quiet_nan {
        json!("NaN")
    } else {
        json!(format!("0x{bits:0digits$x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(kind: ElementClass, bytes: usize, order: ByteOrder) -> ElementType {
        ElementType { dtype: json!(null), kind, bytes, order, members: None }
    }

    #[test]
    fn numbers_are_read_in_both_orders() {
        let little = |kind, bytes: &[u8]| {
            element(kind, bytes.len(), ByteOrder::Little).value(bytes).unwrap()
        };
        let big =
            |kind, bytes: &[u8]| element(kind, bytes.len(), ByteOrder::Big).value(bytes).unwrap();
        assert_eq!(little(ElementClass::Signed, &[0xfe, 0xff]), json!(-2));
        assert_eq!(big(ElementClass::Signed, &[0xff, 0xfe]), json!(-2));
        assert_eq!(little(ElementClass::Signed, &i64::MIN.to_le_bytes()), json!(i64::MIN));
        assert_eq!(little(ElementClass::Unsigned, &[0xff; 8]), json!(u64::MAX));
        assert_eq!(big(ElementClass::Float32, &1.5f32.to_be_bytes()), json!(1.5));
        let complex = [1f32.to_be_bytes(), (-2f32).to_be_bytes()].concat();
        assert_eq!(big(ElementClass::Complex64, &complex), json!([1.0, -2.0]));
    }

    #[test]
    fn numbers_that_json_lacks_are_strings() {
        let half = |bits: u16| {
            element(ElementClass::Float16, 2, ByteOrder::Little).value(&bits.to_le_bytes())
        };
        assert_eq!(half(0x3c00), Some(json!(1.0)));
        assert_eq!(half(0x0001), Some(json!(2f64.powi(-24))));
        assert_eq!(half(0xfbff), Some(json!(-65504.0)));
        assert_eq!(half(0x7c00), Some(json!("Infinity")));
        assert_eq!(half(0x7e00), Some(json!("NaN")));
        assert_eq!(half(0xfe01), Some(json!("0xfe01")));
        let double = element(ElementClass::Float64, 8, ByteOrder::Little);
        assert_eq!(double.value(&f64::NEG_INFINITY.to_le_bytes()), Some(json!("-Infinity")));
        assert_eq!(double.value(&[1; 7]), None, "cut short");
    }
}
