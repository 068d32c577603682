//! NumPy's descriptions of plain types: a byte order, a letter and a size.

use serde_json::{Value, json};

use crate::dtype::{RAW, TERMINATED};
use crate::{ByteOrder, DType, Error, Result};

/// Zarr name and NumPy description without the byte order, for types that have both.
const NUMPY_NAMES: &[(&str, &str)] = &[
    ("bool", "b1"),
    ("int8", "i1"),
    ("int16", "i2"),
    ("int32", "i4"),
    ("int64", "i8"),
    ("uint8", "u1"),
    ("uint16", "u2"),
    ("uint32", "u4"),
    ("uint64", "u8"),
    ("float16", "f2"),
    ("float32", "f4"),
    ("float64", "f8"),
    ("complex64", "c8"),
    ("complex128", "c16"),
];

impl DType {
    /// Reads a NumPy description such as `<f4`, `|u1`, `>M8[25s]`, `<U12`, `|S8` or `|V16`.
    ///
    /// The byte order is returned separately: in Zarr it belongs to the `bytes` codec, not to the
    /// type.
    pub fn from_numpy(descr: &str) -> Result<(Self, ByteOrder)> {
        let unsupported = || Error::unsupported(format!("NumPy data type '{descr}'"));
        let (order, kind) = match descr.split_at_checked(1) {
            Some(("<" | "|" | "=", kind)) => (ByteOrder::Little, kind),
            Some((">", kind)) => (ByteOrder::Big, kind),
            _ => (ByteOrder::Little, descr),
        };
        let json = if let Some((name, _)) = NUMPY_NAMES.iter().find(|(_, numpy)| *numpy == kind) {
            json!(name)
        } else if let Some(unit) = kind.strip_prefix("M8") {
            json!({"name": "numpy.datetime64", "configuration": numpy_unit(unit).ok_or_else(unsupported)?})
        } else if let Some(unit) = kind.strip_prefix("m8") {
            json!({"name": "numpy.timedelta64", "configuration": numpy_unit(unit).ok_or_else(unsupported)?})
        } else if let Some(bytes) = kind.strip_prefix('V') {
            json!(format!("r{}", scaled(bytes, 8).ok_or_else(unsupported)?))
        } else if let Some(bytes) = kind.strip_prefix('S') {
            let bytes = scaled(bytes, 1).ok_or_else(unsupported)?;
            json!({"name": TERMINATED, "configuration": {"length_bytes": bytes}})
        } else if let Some(characters) = kind.strip_prefix('U') {
            let bytes = scaled(characters, 4).ok_or_else(unsupported)?;
            json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": bytes}})
        } else {
            return Err(unsupported());
        };
        Ok((Self::parse(&json)?, order))
    }

    /// The little-endian NumPy description, for types that NumPy has.
    pub fn to_numpy(&self) -> Option<String> {
        let name = self.name();
        if let Some((_, numpy)) = NUMPY_NAMES.iter().find(|(zarr, _)| *zarr == name) {
            let order = if self.item_size() == Some(1) { '|' } else { '<' };
            return Some(format!("{order}{numpy}"));
        }
        let configuration = self.metadata().configuration();
        let number = |key: &str| configuration.and_then(|map| map.get(key)?.as_u64());
        match name {
            "numpy.datetime64" | "numpy.timedelta64" => {
                let kind = if name == "numpy.datetime64" { 'M' } else { 'm' };
                let unit = configuration.and_then(|map| map.get("unit")?.as_str())?;
                // NumPy spells micro in ASCII.
                let unit = if unit == "μs" { "us" } else { unit };
                match (unit, number("scale_factor")?) {
                    ("generic", _) => Some(format!("<{kind}8")),
                    (unit, 1) => Some(format!("<{kind}8[{unit}]")),
                    (unit, scale) => Some(format!("<{kind}8[{scale}{unit}]")),
                }
            }
            "fixed_length_utf32" => Some(format!("<U{}", number("length_bytes")? / 4)),
            TERMINATED => Some(format!("|S{}", number("length_bytes")?)),
            RAW => Some(format!("|V{}", number("length_bytes")?)),
            _ => {
                let bits: usize = name.strip_prefix('r')?.parse().ok()?;
                Some(format!("|V{}", bits / 8))
            }
        }
    }
}

/// Configuration of a NumPy time type from `[25s]`, `[ns]` or nothing.
fn numpy_unit(text: &str) -> Option<Value> {
    if text.is_empty() {
        return Some(json!({"unit": "generic", "scale_factor": 1}));
    }
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    let unit = inner.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = inner.strip_suffix(unit)?;
    let scale: u32 = if digits.is_empty() { 1 } else { digits.parse().ok()? };
    Some(json!({"unit": unit, "scale_factor": scale}))
}

/// A positive number times `factor`.
fn scaled(digits: &str, factor: u64) -> Option<u64> {
    let number: u64 = digits.parse().ok()?;
    number.checked_mul(factor).filter(|&product| product > 0)
}
