//! Data types of version 2: NumPy's descriptions, and fill values of them.

use serde_json::{Value, json};

use super::super::builder::zero;
use super::wrong;
use crate::{ByteOrder, DType, Error, Result, fill_element};

/// What an element of an array is.
pub(super) struct Element {
    pub(super) dtype: DType,
    pub(super) order: ByteOrder,
}

/// Reads the `dtype` of an array; for Python objects the filters tell what they are.
pub(super) fn parse(json: &Value, filters: &[Value]) -> Result<Element> {
    let descr = match json {
        Value::String(descr) => descr.as_str(),
        Value::Array(_) => return Err(Error::unsupported(format!("structured data type {json}"))),
        other => return Err(wrong("dtype", other)),
    };
    let little =
        |json: Value| Ok(Element { dtype: DType::parse(&json)?, order: ByteOrder::Little });
    if descr == "|O" {
        let ids: Vec<_> = filters.iter().filter_map(|filter| filter.get("id")?.as_str()).collect();
        return match ids.first() {
            Some(&"vlen-utf8") => little(json!("string")),
            Some(&"vlen-bytes") => little(json!("bytes")),
            _ => Err(Error::unsupported(format!("data type '|O' with filters {ids:?}"))),
        };
    }
    // Zarr v3 has no type of bytes padded with zeros. Raw bits are the same bytes.
    if let Some(length) = descr.strip_prefix("|S") {
        let bits = length.parse().ok().and_then(|bytes: u64| bytes.checked_mul(8));
        let bits = bits.filter(|&bits| bits > 0);
        let bits = bits.ok_or_else(|| Error::unsupported(format!("NumPy data type '{descr}'")))?;
        return little(json!(format!("r{bits}")));
    }
    let (dtype, order) = DType::from_numpy(descr)?;
    Ok(Element { dtype, order })
}

impl Element {
    /// The data type, as it stands in the metadata of version 3.
    pub(super) fn metadata(&self) -> Value {
        let metadata = self.dtype.metadata();
        match metadata.configuration() {
            Some(configuration) if !configuration.is_empty() => {
                json!({"name": metadata.name(), "configuration": configuration})
            }
            _ => json!(metadata.name()),
        }
    }

    /// The fill value in the spelling of version 3. It is kept as it is where both agree.
    pub(super) fn fill_value(&self, found: &Value) -> Result<Value> {
        let name = self.dtype.name();
        let is_zero = found.as_f64() == Some(0.0);
        match found {
            Value::Null => zero(&self.dtype),
            Value::String(text) if name == "bytes" => Ok(json!(base64(text)?)),
            Value::String(text) if is_raw(name) => self.padded(base64(text)?),
            Value::Number(_) if name == "bool" && (is_zero || found == 1) => Ok(json!(!is_zero)),
            // The default of zarr-python 2, also for types that have no zero.
            Value::Number(_) if is_zero && self.has_no_numbers() => zero(&self.dtype),
            Value::Number(number) if name.starts_with("int") || name.starts_with("uint") => {
                Ok(number.as_f64().filter(|_| number.is_f64()).map_or(found.clone(), integral))
            }
            other => Ok(other.clone()),
        }
    }

    /// Bytes that fill an item, with zeros after them where they are fewer.
    fn padded(&self, mut bytes: Vec<u8>) -> Result<Value> {
        let size = self.dtype.item_size().unwrap_or(0);
        if bytes.len() > size {
            return Err(Error::invalid(format!(
                "a fill value of {} bytes for {size} bytes of {}",
                bytes.len(),
                self.dtype
            )));
        }
        // A size is a promise of the metadata; builders of zero know its bounds.
        let Value::Array(mut items) = zero(&self.dtype)? else { return Ok(json!(bytes)) };
        for (item, byte) in items.iter_mut().zip(bytes.drain(..)) {
            *item = json!(byte);
        }
        Ok(Value::Array(items))
    }

    fn has_no_numbers(&self) -> bool {
        let name = self.dtype.name();
        matches!(name, "string" | "bytes" | "fixed_length_utf32") || is_raw(name)
    }
}

/// Whether a type is one of raw bits, `r8` and so on.
fn is_raw(name: &str) -> bool {
    name.strip_prefix('r').is_some_and(|bits| bits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A float that is an integer, as one; Python does not always tell them apart.
fn integral(value: f64) -> Value {
    // Up to there, floats and integers are one to one.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT_MAX {
        json!(value as i64)
    } else {
        json!(value)
    }
}

fn base64(text: &str) -> Result<Vec<u8>> {
    // The fill values of this type are base64.
    let bytes = DType::parse(&json!("bytes"))?;
    fill_element(
        &bytes,
        &serde_json::from_value(json!(text))
            .map_err(|cause| Error::invalid(format!("fill value {text:?}")).because(cause))?,
    )
}
