//! Values as text, in the cells of a CSV file.

use std::fmt::Write as _;

use chunkyard_engine::format::superchunk::Column;
use chunkyard_engine::format::superchunk::dtype::RowType;
use chunkyard_engine::format::superchunk::meta::{default_element, default_value};
use chunkyard_engine::{Error, Result};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::layout::little;
use super::title_of;

/// Most cells of one column in a row; a person cannot read more.
const CELLS_MAX: u64 = 4096;

/// How the elements of a column are written as text.
#[derive(Debug, Clone)]
pub(crate) struct Cells {
    /// Titles of its cells: one, or one for each element of a row.
    pub(crate) titles: Vec<String>,
    /// Bytes of an element.
    pub(crate) bytes: usize,
    /// Its type, little-endian.
    kind: RowType,
    sort: Sort,
}

#[derive(Debug, Clone, Copy)]
enum Sort {
    Signed,
    Unsigned,
    Single,
    Double,
    Truth,
    Text,
    /// A date in multiples of this many nanoseconds.
    Date(i128),
    /// Any other type that JSON can hold.
    Other,
}

impl Cells {
    /// For a column; an error if its values cannot be text.
    pub(crate) fn new(column: &Column) -> Result<Self> {
        let RowType::Plain { dtype, .. } = &column.row else {
            let title = title_of(column);
            return Err(Error::unsupported(format!("{title}, a struct, as text; use .npy")));
        };
        let numpy = dtype.to_numpy().unwrap_or_default();
        let bytes = dtype.item_size().unwrap_or(1);
        let sort = match (numpy.chars().nth(1), bytes) {
            (Some('i'), _) => Sort::Signed,
            (Some('u'), _) => Sort::Unsigned,
            (Some('f'), 4) => Sort::Single,
            (Some('f'), 8) => Sort::Double,
            (Some('b'), _) => Sort::Truth,
            (Some('S' | 'U'), _) => Sort::Text,
            (Some('M'), _) => unit_ns(&numpy).map_or(Sort::Signed, Sort::Date),
            (Some('m'), _) => Sort::Signed,
            _ => Sort::Other,
        };
        Ok(Self { titles: titles(column)?, bytes, kind: little(&column.row), sort })
    }

    /// Parses a text and appends the element to `out`.
    pub(crate) fn parse(&self, text: &str, out: &mut Vec<u8>) -> Option<()> {
        let trimmed = text.trim();
        match self.sort {
            Sort::Signed => {
                let number: i64 = trimmed.parse().ok()?;
                let unused = 64 - 8 * u32::try_from(self.bytes).ok()?;
                self.push(number.to_le_bytes(), (number << unused) >> unused == number, out)?;
            }
            Sort::Unsigned => {
                let number: u64 = trimmed.parse().ok()?;
                let unused = 64 - 8 * u32::try_from(self.bytes).ok()?;
                self.push(number.to_le_bytes(), (number << unused) >> unused == number, out)?;
            }
            Sort::Single => out.extend(trimmed.parse::<f32>().ok()?.to_le_bytes()),
            Sort::Double => out.extend(trimmed.parse::<f64>().ok()?.to_le_bytes()),
            Sort::Truth => match trimmed {
                "true" | "True" | "TRUE" | "1" => out.push(1),
                "false" | "False" | "FALSE" | "0" => out.push(0),
                _ => return None,
            },
            Sort::Date(unit_ns) => out.extend(date(trimmed, unit_ns)?.to_le_bytes()),
            Sort::Text => self.parse_value(&Value::from(text), out)?,
            Sort::Other => {
                let value = serde_json::from_str(trimmed).unwrap_or_else(|_| Value::from(trimmed));
                self.parse_value(&value, out)?;
            }
        }
        Some(())
    }

    /// Appends the first bytes of a number, if the number fits in them.
    fn push(&self, number: [u8; 8], fits: bool, out: &mut Vec<u8>) -> Option<()> {
        out.extend(number.get(..self.bytes).filter(|_| fits)?);
        Some(())
    }

    fn parse_value(&self, value: &Value, out: &mut Vec<u8>) -> Option<()> {
        out.extend(default_element(value, &self.kind, &[]).ok()?);
        Some(())
    }

    /// Writes an element as text.
    pub(crate) fn render(&self, element: &[u8], out: &mut String) {
        let written = match self.sort {
            Sort::Single => match element.try_into() {
                Ok(bytes) => write!(out, "{}", f32::from_le_bytes(bytes)),
                Err(_) => Ok(()),
            },
            Sort::Double => match element.try_into() {
                Ok(bytes) => write!(out, "{}", f64::from_le_bytes(bytes)),
                Err(_) => Ok(()),
            },
            Sort::Date(unit_ns) => match element.try_into() {
                Ok(bytes) => write!(out, "{}", date_text(i64::from_le_bytes(bytes), unit_ns)),
                Err(_) => Ok(()),
            },
            _ => match self.value(element) {
                Value::String(text) => out.write_str(&text),
                other => write!(out, "{other}"),
            },
        };
        // Writing to a String cannot fail.
        written.unwrap_or_default();
    }

    /// An element in JSON.
    pub(crate) fn value(&self, element: &[u8]) -> Value {
        match (self.sort, element.try_into()) {
            (Sort::Date(unit_ns), Ok(bytes)) => {
                date_text(i64::from_le_bytes(bytes), unit_ns).into()
            }
            _ => default_value(element, &self.kind).unwrap_or_default(),
        }
    }
}

/// `x`, or `x[0,0]`, `x[0,1]` and so on.
fn titles(column: &Column) -> Result<Vec<String>> {
    let title = title_of(column);
    let items = column.row_shape.iter().fold(1u64, |items, extent| items.saturating_mul(*extent));
    if items > CELLS_MAX {
        return Err(Error::unsupported(format!(
            "{title}: rows of {items} values as text, more than {CELLS_MAX}; use .npy"
        )));
    }
    if column.row_shape.is_empty() {
        return Ok(vec![title]);
    }
    let index = |item: u64| {
        let mut left = item;
        let mut parts: Vec<String> = Vec::new();
        for extent in column.row_shape.iter().rev() {
            parts.insert(0, (left % extent.max(&1)).to_string());
            left /= extent.max(&1);
        }
        format!("{title}[{}]", parts.join(","))
    };
    Ok((0..items).map(index).collect())
}

/// Nanoseconds of the unit of a date that is a whole number of them.
fn unit_ns(numpy: &str) -> Option<i128> {
    let (_, unit) = numpy.trim_end_matches(']').split_once('[')?;
    let digits = unit.bytes().take_while(u8::is_ascii_digit).count();
    let (count, unit) = unit.split_at_checked(digits)?;
    let count: i128 = if count.is_empty() { 1 } else { count.parse().ok()? };
    let ns: i128 = match unit {
        "W" => 7 * 86_400_000_000_000,
        "D" => 86_400_000_000_000,
        "h" => 3_600_000_000_000,
        "m" => 60_000_000_000,
        "s" => 1_000_000_000,
        "ms" => 1_000_000,
        "us" => 1000,
        "ns" => 1,
        _ => return None,
    };
    Some(count * ns)
}

/// The count of a date: RFC 3339, a date and time (UTC), a date, or the count itself.
fn date(text: &str, unit_ns: i128) -> Option<i64> {
    if text == "NaT" {
        return Some(i64::MIN);
    }
    if let Ok(count) = text.parse::<i64>() {
        return Some(count);
    }
    let time = text.parse::<Timestamp>().ok().or_else(|| {
        let civil = text
            .parse::<DateTime>()
            .ok()
            .or_else(|| text.parse::<jiff::civil::Date>().ok().map(DateTime::from))?;
        civil.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    })?;
    let ns = time.as_nanosecond();
    // A time between two counts has no value.
    (ns % unit_ns == 0).then(|| i64::try_from(ns / unit_ns).ok()).flatten()
}

fn date_text(count: i64, unit_ns: i128) -> String {
    if count == i64::MIN {
        return "NaT".to_owned();
    }
    match Timestamp::from_nanosecond(i128::from(count) * unit_ns) {
        Ok(time) => time.to_string(),
        Err(_) => count.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_date_is_read_back() {
        let second = unit_ns("<M8[s]").unwrap();
        for count in [0, -1, 1_769_860_805, i64::MIN] {
            assert_eq!(date(&date_text(count, second), second), Some(count), "{count}");
        }
        assert_eq!(date("2026-01-31", unit_ns("<M8[D]").unwrap()), Some(20484));
        assert_eq!(date("2026-01-31T00:00:01Z", unit_ns("<M8[D]").unwrap()), None);
        assert_eq!(unit_ns("<M8[25ms]"), Some(25_000_000));
        assert_eq!(unit_ns("<M8[M]"), None);
    }
}
