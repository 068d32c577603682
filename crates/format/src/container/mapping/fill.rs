//! Fill values.
//!
//! A container keeps a fill value apart from the type, and reads it as any number of that type:
//! `Int(-1)` in an array of UInt8 is 255, `Float(2.5)` in an array of Int32 is 2. A missing fill
//! value, or one that does not suit the type, means zero or empty. A string is the fill value of
//! strings and of bytes; 0.9 stores it but reads empty strings, we read the stored one.
//!
//! It also decides which elements are null, and that makes a further difference: with `UInt(0)` all
//! zeros of an array are null, without a fill value they are zeros. Zarr always has a fill value;
//! mostly it is zero by default and means nothing. So a fill value of zero is stored as none. A
//! stored fill value that would come back differently is kept in an attribute: `{"uint": 0}`.

use chunkyard_array::Attributes;
use chunkyard_store::{Error, Result};
use serde_json::{Value, json};

use crate::container::model::{DType, FillValue};

/// The attribute that keeps a fill value as it was stored.
pub(super) const FILL: &str = "_chunkyard_fill";

/// The bytes of an element that was never written.
pub(super) fn element(leaf: &DType, fill: Option<&FillValue>) -> Vec<u8> {
    use FillValue::{Bool, Float, Int, String, TimestampNs, UInt};
    macro_rules! number {
        ($type:ty) => {
            match fill {
                Some(UInt(value)) => (*value as $type).to_le_bytes().to_vec(),
                Some(Int(value)) => (*value as $type).to_le_bytes().to_vec(),
                Some(Float(value)) => (*value as $type).to_le_bytes().to_vec(),
                _ => <$type>::default().to_le_bytes().to_vec(),
            }
        };
    }
    let truth = u64::from(matches!(fill, Some(Bool(true))));
    let is_bool = matches!(fill, Some(Bool(_)));
    match leaf {
        DType::Bool => match fill {
            Some(Bool(value)) => vec![u8::from(*value)],
            Some(UInt(value)) => vec![u8::from(*value != 0)],
            Some(Int(value)) => vec![u8::from(*value != 0)],
            _ => vec![0],
        },
        DType::Int8 => number!(i8),
        DType::Int16 => number!(i16),
        DType::Int32 => number!(i32),
        DType::Int64 => number!(i64),
        // Only unsigned numbers take a boolean.
        DType::UInt8 | DType::UInt16 | DType::UInt32 | DType::UInt64 if is_bool => {
            element(leaf, Some(&UInt(truth)))
        }
        DType::UInt8 => number!(u8),
        DType::UInt16 => number!(u16),
        DType::UInt32 => number!(u32),
        DType::UInt64 => number!(u64),
        DType::Float32 => number!(f32),
        DType::Float64 => number!(f64),
        DType::TimestampNs => match fill {
            Some(TimestampNs(value) | Int(value)) => value.to_le_bytes().to_vec(),
            _ => vec![0; 8],
        },
        DType::String | DType::Binary => match fill {
            Some(String(text)) => text.as_bytes().to_vec(),
            _ => Vec::new(),
        },
        DType::FixedSizeList { .. } | DType::List { .. } => Vec::new(),
    }
}

/// The fill value to store for an element; `None` for zero.
pub(super) fn stored(leaf: &DType, element: &[u8]) -> Result<Option<FillValue>> {
    let is_zero = leaf.item_size().is_some() && element.iter().all(|&byte| byte == 0);
    if is_zero || element.is_empty() {
        return Ok(None);
    }
    let bits = element.iter().rev().fold(0u64, |bits, &byte| bits << 8 | u64::from(byte));
    let value = match leaf {
        DType::Bool => FillValue::Bool(true),
        DType::Int8 => FillValue::Int(i64::from(bits as i8)),
        DType::Int16 => FillValue::Int(i64::from(bits as i16)),
        DType::Int32 => FillValue::Int(i64::from(bits as i32)),
        DType::Int64 => FillValue::Int(bits as i64),
        DType::UInt8 | DType::UInt16 | DType::UInt32 | DType::UInt64 => FillValue::UInt(bits),
        DType::Float32 => FillValue::Float(f64::from(f32::from_bits(bits as u32))),
        DType::Float64 => FillValue::Float(f64::from_bits(bits)),
        DType::TimestampNs => FillValue::TimestampNs(bits as i64),
        DType::String | DType::Binary => match str::from_utf8(element) {
            Ok(text) => FillValue::String(text.to_owned()),
            Err(_) => return Err(unsayable("these bytes are no text")),
        },
        DType::FixedSizeList { .. } | DType::List { .. } => {
            return Err(unsayable("lists are empty where nothing was written"));
        }
    };
    if self::element(leaf, Some(&value)) != element {
        // A signalling NaN of 32 bits becomes a quiet one on the way through 64.
        return Err(unsayable("not all bits of this NaN are kept"));
    }
    Ok(Some(value))
}

/// The stored fill value as JSON, if [`stored`] would not return it.
pub(super) fn remark(leaf: &DType, fill: Option<&FillValue>, element: &[u8]) -> Option<Value> {
    let fill = fill?;
    let again = stored(leaf, element).ok().flatten();
    let same = match (&again, fill) {
        // A number that is rounded to the type means the same.
        (Some(FillValue::Float(_)), FillValue::Float(_)) => true,
        (again, fill) => again.as_ref() == Some(fill),
    };
    (!same).then(|| render(fill))
}

/// Takes the stored fill value out of the attributes, if it is still the fill value of the array.
pub(super) fn take(attributes: &mut Attributes, leaf: &DType, element: &[u8]) -> Option<FillValue> {
    let fill = parse(attributes.get(FILL)?)?;
    attributes.shift_remove(FILL);
    (self::element(leaf, Some(&fill)) == element).then_some(fill)
}

fn render(fill: &FillValue) -> Value {
    match fill {
        FillValue::Bool(value) => json!({"bool": value}),
        FillValue::Int(value) => json!({"int": value}),
        FillValue::UInt(value) => json!({"uint": value}),
        FillValue::Float(value) if value.is_finite() => json!({"float": value}),
        FillValue::Float(value) => json!({"float": format!("0x{:016x}", value.to_bits())}),
        FillValue::String(value) => json!({"string": value}),
        FillValue::TimestampNs(value) => json!({"timestamp_ns": value}),
    }
}

fn parse(json: &Value) -> Option<FillValue> {
    let mut members = json.as_object()?.iter();
    let ((key, value), None) = (members.next()?, members.next()) else { return None };
    Some(match (key.as_str(), value) {
        ("bool", value) => FillValue::Bool(value.as_bool()?),
        ("int", value) => FillValue::Int(value.as_i64()?),
        ("uint", value) => FillValue::UInt(value.as_u64()?),
        ("float", Value::String(bits)) => {
            let bits = u64::from_str_radix(bits.strip_prefix("0x")?, 16).ok()?;
            FillValue::Float(f64::from_bits(bits))
        }
        ("float", value) => FillValue::Float(value.as_f64()?),
        ("string", value) => FillValue::String(value.as_str()?.to_owned()),
        ("timestamp_ns", value) => FillValue::TimestampNs(value.as_i64()?),
        _ => return None,
    })
}

fn unsayable(why: &str) -> Error {
    Error::invalid(format!("a container cannot have this fill value: {why}"))
}
