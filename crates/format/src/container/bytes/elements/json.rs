//! Elements as JSON, for people and for files of text.
//!
//! | type | JSON |
//! |---|---|
//! | Bool, numbers | the same; `"NaN"`, `"Infinity"`, `"-Infinity"` |
//! | String | a string |
//! | Binary | a string in base64 |
//! | TimestampNs | a time such as `"2026-01-31T12:00:00.5Z"`, a date, `"NaT"`, or nanoseconds since 1970 |
//! | List, FixedSizeList | a list of its children |
//!
//! An element is in the form of the model: of fixed size, or bytes of any length. For lists see
//! [`list_chunk_to_offsets_bytes`](super::list_chunk_to_offsets_bytes).

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chunkyard_store::{Error, Result};
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::{Values, decode, encode};
use crate::container::model::DType;

/// Stands for no time.
const NO_TIME: &str = "NaT";

/// The bytes of an element that is given as JSON.
pub fn element_of_json(dtype: &DType, value: &Value) -> Result<Vec<u8>> {
    let refused = || {
        let text: String = value.to_string().chars().take(80).collect();
        Error::invalid(format!("{text} is no element of {dtype:?}"))
    };
    match dtype {
        DType::List { child } => {
            let children = value.as_array().ok_or_else(refused)?;
            let values = values_of(child, &children.iter().collect::<Vec<_>>())?;
            let mut bytes = match child.item_size().filter(|&size| size > 0) {
                Some(_) => Vec::new(),
                None => {
                    let count = u32::try_from(children.len()).map_err(|_| refused())?;
                    count.to_le_bytes().to_vec()
                }
            };
            bytes.extend(encode(child, &values)?);
            Ok(bytes)
        }
        DType::FixedSizeList { .. } => encode(dtype, &values_of(dtype, &[value])?),
        scalar => scalar_of(scalar, value).ok_or_else(refused),
    }
}

/// An element as JSON.
pub fn json_of_element(dtype: &DType, element: &[u8]) -> Result<Value> {
    let damaged = || super::corrupt(format!("an element of {dtype:?}"), "other bytes");
    match dtype {
        DType::List { child } => {
            let (count, children) = match child.item_size().filter(|&size| size > 0) {
                Some(size) => ((element.len() / size) as u64, element),
                // An element that was never written lacks even the number of children.
                None if element.is_empty() => return Ok(json!([])),
                None => {
                    let (count, rest) = element.split_first_chunk().ok_or_else(damaged)?;
                    (u64::from(u32::from_le_bytes(*count)), rest)
                }
            };
            let children = decode(child, count, children)?;
            Ok(Value::Array(json_of(child, &children, 0..count).ok_or_else(damaged)?))
        }
        DType::FixedSizeList { .. } => {
            let all = json_of(dtype, &decode(dtype, 1, element)?, 0..1);
            all.and_then(|mut all| all.pop()).ok_or_else(damaged)
        }
        scalar => json_of_scalar(scalar, element).ok_or_else(damaged),
    }
}

/// The children of a list, as values.
fn values_of(dtype: &DType, all: &[&Value]) -> Result<Values> {
    let refused = |value: &Value| {
        let text: String = value.to_string().chars().take(80).collect();
        Error::invalid(format!("{text} is no element of {dtype:?}"))
    };
    let children_of = |value: &&Value| -> Result<usize> {
        value.as_array().map(Vec::len).ok_or_else(|| refused(value))
    };
    let flat = || all.iter().filter_map(|value| value.as_array()).flatten().collect::<Vec<_>>();
    Ok(match dtype {
        DType::String | DType::Binary => {
            let (mut offsets, mut bytes) = (vec![0], Vec::new());
            for value in all {
                bytes.extend(scalar_of(dtype, value).ok_or_else(|| refused(value))?);
                offsets.push(bytes.len() as u64);
            }
            Values::Variable { offsets, bytes }
        }
        DType::List { child } => {
            let mut offsets = vec![0];
            let mut end = 0;
            for value in all {
                end += children_of(value)? as u64;
                offsets.push(end);
            }
            Values::List { offsets, child: Box::new(values_of(child, &flat())?) }
        }
        DType::FixedSizeList { child, size } => {
            for value in all {
                if children_of(value)? as u64 != u64::from(*size) {
                    return Err(refused(value));
                }
            }
            Values::FixedList { size: *size, child: Box::new(values_of(child, &flat())?) }
        }
        scalar => {
            let mut bytes = Vec::new();
            for value in all {
                bytes.extend(scalar_of(scalar, value).ok_or_else(|| refused(value))?);
            }
            Values::Fixed(bytes)
        }
    })
}

/// A range of some values, as JSON; `None` if the values do not cover it.
fn json_of(dtype: &DType, values: &Values, range: std::ops::Range<u64>) -> Option<Vec<Value>> {
    let at = |offsets: &[u64], index: u64| offsets.get(usize::try_from(index).ok()?).copied();
    range
        .map(|index| match (values, dtype) {
            (Values::List { offsets, child }, DType::List { child: of }) => {
                let children = at(offsets, index)?..at(offsets, index + 1)?;
                json_of(of, child, children).map(Value::Array)
            }
            (Values::FixedList { size, child }, DType::FixedSizeList { child: of, .. }) => {
                let size = u64::from(*size);
                let start = index.checked_mul(size)?;
                json_of(of, child, start..start.checked_add(size)?).map(Value::Array)
            }
            (Values::Variable { offsets, bytes }, scalar) => {
                let start = usize::try_from(at(offsets, index)?).ok()?;
                let end = usize::try_from(at(offsets, index + 1)?).ok()?;
                json_of_scalar(scalar, bytes.get(start..end)?)
            }
            (Values::Fixed(bytes), scalar) => {
                let size = scalar.item_size()?;
                let start = usize::try_from(index).ok()?.checked_mul(size)?;
                json_of_scalar(scalar, bytes.get(start..start.checked_add(size)?)?)
            }
            _ => None,
        })
        .collect()
}

fn scalar_of(dtype: &DType, value: &Value) -> Option<Vec<u8>> {
    macro_rules! integer {
        ($type:ty) => {
            match value.as_i64() {
                Some(number) => <$type>::try_from(number).ok()?,
                None => <$type>::try_from(value.as_u64()?).ok()?,
            }
            .to_le_bytes()
            .to_vec()
        };
    }
    Some(match dtype {
        DType::Bool => vec![u8::from(value.as_bool()?)],
        DType::Int8 => integer!(i8),
        DType::Int16 => integer!(i16),
        DType::Int32 => integer!(i32),
        DType::Int64 => integer!(i64),
        DType::UInt8 => integer!(u8),
        DType::UInt16 => integer!(u16),
        DType::UInt32 => integer!(u32),
        DType::UInt64 => integer!(u64),
        DType::Float32 => {
            let (double, single) = (float_of(value)?, float_of(value)? as f32);
            (single.is_finite() || !double.is_finite()).then_some(single)?.to_le_bytes().to_vec()
        }
        DType::Float64 => float_of(value)?.to_le_bytes().to_vec(),
        DType::String => value.as_str()?.as_bytes().to_vec(),
        DType::Binary => BASE64_STANDARD.decode(value.as_str()?).ok()?,
        DType::TimestampNs => time_of(value)?.to_le_bytes().to_vec(),
        DType::FixedSizeList { .. } | DType::List { .. } => return None,
    })
}

fn json_of_scalar(dtype: &DType, element: &[u8]) -> Option<Value> {
    macro_rules! number {
        ($type:ty) => {
            <$type>::from_le_bytes(element.try_into().ok()?)
        };
    }
    Some(match dtype {
        DType::Bool => json!(*element.first()? != 0),
        DType::Int8 => json!(number!(i8)),
        DType::Int16 => json!(number!(i16)),
        DType::Int32 => json!(number!(i32)),
        DType::Int64 => json!(number!(i64)),
        DType::UInt8 => json!(number!(u8)),
        DType::UInt16 => json!(number!(u16)),
        DType::UInt32 => json!(number!(u32)),
        DType::UInt64 => json!(number!(u64)),
        // By the digits of the float itself, not of the double that it equals.
        DType::Float32 => match number!(f32) {
            single if single.is_finite() => serde_json::from_str(&format!("{single:?}")).ok()?,
            single => word(single.into()),
        },
        DType::Float64 => match number!(f64) {
            double if double.is_finite() => json!(double),
            double => word(double),
        },
        DType::String => json!(str::from_utf8(element).ok()?),
        DType::Binary => json!(BASE64_STANDARD.encode(element)),
        DType::TimestampNs => match number!(i64) {
            i64::MIN => json!(NO_TIME),
            count => match Timestamp::from_nanosecond(count.into()) {
                Ok(time) => json!(time.to_string()),
                Err(_) => json!(count),
            },
        },
        DType::FixedSizeList { .. } | DType::List { .. } => return None,
    })
}

/// A number that JSON does not have, as a word.
fn word(number: f64) -> Value {
    match number {
        f64::INFINITY => json!("Infinity"),
        f64::NEG_INFINITY => json!("-Infinity"),
        _ => json!("NaN"),
    }
}

fn float_of(value: &Value) -> Option<f64> {
    match value.as_str() {
        Some("Infinity") => Some(f64::INFINITY),
        Some("-Infinity") => Some(f64::NEG_INFINITY),
        Some("NaN") => Some(f64::NAN),
        Some(_) => None,
        None => value.as_f64(),
    }
}

/// Nanoseconds since 1970. A time without a zone is in UTC.
fn time_of(value: &Value) -> Option<i64> {
    let Some(text) = value.as_str() else { return value.as_i64() };
    if text == NO_TIME {
        return Some(i64::MIN);
    }
    let civil = || {
        let date = || text.parse::<Date>().ok().map(DateTime::from);
        let civil = text.parse::<DateTime>().ok().or_else(date)?;
        civil.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    };
    let time = text.parse::<Timestamp>().ok().or_else(civil)?;
    // The smallest number stands for no time.
    i64::try_from(time.as_nanosecond()).ok().filter(|&count| count != i64::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::mapping::parse_type;

    #[test]
    fn elements_of_every_type_come_back_from_json() {
        for (dtype, value) in [
            ("bool", json!(true)),
            ("int8", json!(-128)),
            ("uint64", json!(u64::MAX)),
            ("float32", json!(0.1)),
            ("float64", json!("-Infinity")),
            ("string", json!("zwölf")),
            ("bytes", json!("AP8=")),
            ("datetime64[ns]", json!("2026-01-31T12:00:00.123456789Z")),
            ("datetime64[ns]", json!("NaT")),
            ("list<int32>", json!([1, -2, 3])),
            ("list<int32>", json!([])),
            ("list<string>", json!(["a", "", "ccc"])),
            ("list<list<datetime64[ns]>>", json!([["1969-12-31T23:59:59Z"], []])),
            ("list<fixed<2,uint8>>", json!([[1, 2], [3, 4]])),
            ("fixed<2,list<bytes>>", json!([["AP8="], []])),
        ] {
            let dtype = parse_type(dtype).unwrap();
            let element = element_of_json(&dtype, &value).unwrap();
            assert_eq!(json_of_element(&dtype, &element).unwrap(), value, "{dtype:?}");
        }
    }

    #[test]
    fn a_value_of_another_type_is_refused() {
        for (dtype, value) in [
            ("int8", json!(128)),
            ("int8", json!(0.5)),
            ("uint8", json!(-1)),
            ("bool", json!(1)),
            ("float32", json!(1e300)),
            ("string", json!(5)),
            ("bytes", json!("no base64!")),
            ("datetime64[ns]", json!("yesterday")),
            ("list<int32>", json!([1, "2"])),
            ("list<fixed<2,uint8>>", json!([[1]])),
            ("list<string>", json!("a")),
        ] {
            let parsed = parse_type(dtype).unwrap();
            let error = element_of_json(&parsed, &value).unwrap_err();
            assert_eq!(error.kind(), chunkyard_store::ErrorKind::Invalid, "{dtype} {value}");
        }
        assert!(parse_type("list<int7>").is_err() && parse_type("list<").is_err());
    }
}
