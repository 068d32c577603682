//! Data types of version 2: NumPy's descriptions, and their fill values.

use serde_json::{Value, json};

use super::super::builder::zero;
use super::wrong;
use crate::dtype::RAW;
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
    let (dtype, order) = DType::from_numpy(descr)?;
    if descr.starts_with("|V") {
        // zarr-python's name in version 3. It cannot open Zarr's own raw bits.
        let configuration = json!({"length_bytes": dtype.item_size()});
        return little(json!({"name": RAW, "configuration": configuration}));
    }
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
            Value::Number(_) if name == "bool" && (is_zero || found == 1) => Ok(json!(!is_zero)),
            // The default of zarr-python 2, also for types that have no zero.
            Value::Number(_) if is_zero && self.has_no_numbers() => zero(&self.dtype),
            Value::Number(number) if name.starts_with("int") || name.starts_with("uint") => {
                Ok(number.as_f64().filter(|_| number.is_f64()).map_or(found.clone(), integral))
            }
            other => Ok(other.clone()),
        }
    }

    fn has_no_numbers(&self) -> bool {
        const WITHOUT: [&str; 5] =
            ["string", "bytes", "fixed_length_utf32", "null_terminated_bytes", "raw_bytes"];
        WITHOUT.contains(&self.dtype.name())
    }
}

/// An integral float as an integer; Python does not always tell them apart.
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
