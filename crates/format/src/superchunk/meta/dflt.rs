//! The fill value of a dataset: JSON on one side, the bytes of an element on the other.
//!
//! bcolz writes a scalar, BLZ a list of the row's shape. A struct is a list by field, bytes are a text
//! whose characters are the bytes, dates are 0. `null` or a missing value means zeros.

use chunkyard_array::{ByteOrder, is_filled};
use chunkyard_store::{Error, Result};
use half::f16;
use serde_json::{Number, Value};

use super::json::{SPECIAL, ascii_json, list};
use crate::superchunk::dtype::{Field, RowType, item_bytes};

/// Bytes of the longest fill value; the text of a type alone must not take gigabytes.
const DFLT_BYTES_MAX: u64 = 64 << 20;

/// The stored bytes that fill a row: one element where all are alike, else a whole row. `row_shape` is the
/// shape of a row, without the number of rows.
pub fn default_element(dflt: &Value, kind: &RowType, row_shape: &[u64]) -> Result<Vec<u8>> {
    let wrong = || {
        let spelled = dflt.as_str().and_then(chunkyard_array::hint_at_non_finite);
        let hint = spelled.unwrap_or_default();
        let what = format!("dflt {}: not a fill value of this type{hint}", ascii_json(dflt));
        Error::invalid(what)
    };
    let mut out = Vec::new();
    let one = item_bytes(kind);
    let listed = match (dflt, row_shape.first()) {
        // A list by field is one element, unless it is a list of such lists.
        (Value::Array(items), Some(&len)) => {
            let nested = items.first().is_some_and(Value::is_array);
            items.len() as u64 == len && (nested || matches!(kind, RowType::Plain { .. }))
        }
        _ => false,
    };
    let items = row_shape.iter().filter(|_| listed).fold(1u64, |all, &len| all.saturating_mul(len));
    let bytes = one.saturating_mul(items);
    if bytes > DFLT_BYTES_MAX {
        return Err(Error::unsupported(format!("a fill value of {bytes} bytes")));
    }
    let shape = if listed { row_shape } else { &[] };
    block(&mut out, dflt, kind, shape).ok_or_else(wrong)?;
    let first = usize::try_from(one).ok().and_then(|one| out.get(..one)).unwrap_or_default();
    if is_filled(&out, first) {
        out.truncate(first.len());
    }
    Ok(out)
}

/// The fill value for the stored bytes of one element.
pub fn default_value(element: &[u8], kind: &RowType) -> Result<Value> {
    let mut rest = element;
    let value = match element.len() as u64 == item_bytes(kind) {
        true => value_of(&mut rest, kind),
        false => None,
    };
    value.ok_or_else(|| {
        let (bytes, expected) = (element.len(), item_bytes(kind));
        Error::invalid(format!("a fill value of {bytes} bytes: expected a value of {expected}"))
    })
}

/// The JSON of a fill value. For floating-point types, values that JSON does not have are spelled as Python
/// spells them.
pub(super) fn dflt_json(dflt: &Value, kind: Option<&RowType>) -> String {
    match (dflt, kind) {
        (Value::String(text), Some(RowType::Plain { dtype, .. }))
            if SPECIAL.contains(&text.as_str())
                && dtype.to_numpy().is_some_and(|numpy| numpy.contains(['f', 'c'])) =>
        {
            text.clone()
        }
        (Value::Array(items), Some(RowType::Struct(fields))) if items.len() == fields.len() => {
            let each = items.iter().zip(fields);
            list(each.map(|(item, field)| dflt_json(item, Some(&field.kind))))
        }
        (Value::Array(items), kind) => list(items.iter().map(|item| dflt_json(item, kind))),
        (other, _) => ascii_json(other),
    }
}

/// An array of elements: a list of its shape, or one value for all.
fn block(out: &mut Vec<u8>, value: &Value, kind: &RowType, shape: &[u64]) -> Option<()> {
    match (shape.split_first(), value) {
        (None, value) => element(out, value, kind),
        (Some(_), _) if shape.contains(&0) => Some(()),
        (Some((&len, inner)), Value::Array(items)) if items.len() as u64 == len => {
            items.iter().try_for_each(|item| block(out, item, kind, inner))
        }
        (Some(_), Value::Array(_)) => None,
        (Some(_), value) => {
            let mut one = Vec::new();
            element(&mut one, value, kind)?;
            let times = shape.iter().try_fold(1u64, |all, &len| all.checked_mul(len))?;
            out.extend(one.repeat(usize::try_from(times).ok()?));
            Some(())
        }
    }
}

fn element(out: &mut Vec<u8>, value: &Value, kind: &RowType) -> Option<()> {
    match kind {
        RowType::Plain { dtype, order } => {
            let numpy = dtype.to_numpy()?;
            let (letter, bytes) = (numpy.chars().nth(1)?, dtype.item_size()?);
            let mut plain = plain_bytes(value, letter, bytes)?;
            if *order == ByteOrder::Big {
                plain.chunks_mut(unit(letter, bytes)).for_each(<[u8]>::reverse);
            }
            out.extend(plain);
            Some(())
        }
        RowType::Struct(fields) => match value {
            Value::Array(items) if items.len() == fields.len() => items
                .iter()
                .zip(fields)
                .try_for_each(|(item, field)| block(out, item, &field.kind, &field.shape)),
            value if value.is_null() || value.as_f64() == Some(0.0) => fields
                .iter()
                .try_for_each(|Field { kind, shape, .. }| block(out, &Value::Null, kind, shape)),
            _ => None,
        },
    }
}

/// Bytes of the unit with a byte order: a part of a complex number, a character, a number.
fn unit(letter: char, bytes: usize) -> usize {
    match letter {
        'c' => bytes / 2,
        'U' => 4,
        _ => bytes,
    }
    .max(1)
}

/// One value of the type with this letter, little-endian.
fn plain_bytes(value: &Value, letter: char, bytes: usize) -> Option<Vec<u8>> {
    let mut out = match (letter, value) {
        (_, Value::Null) => Vec::new(),
        ('b', value) => vec![u8::from(value.as_bool().or(value.as_f64().map(|n| n != 0.0))?)],
        ('M' | 'm', Value::String(text)) if text == "NaT" => i64::MIN.to_le_bytes().to_vec(),
        ('i' | 'M' | 'm', value) => {
            let number = whole(value)?;
            let most = i128::MAX >> (128 - 8 * bytes as u32);
            let fits = (-most - 1..=most).contains(&number);
            fits.then(|| number.to_le_bytes().to_vec())?
        }
        ('u', value) => {
            let number = u128::try_from(whole(value)?).ok()?;
            (number <= u128::MAX >> (128 - 8 * bytes as u32))
                .then(|| number.to_le_bytes().to_vec())?
        }
        ('f', value) => float_bytes(float(value)?, bytes)?,
        ('c', Value::Array(parts)) => match parts.as_slice() {
            [re, im] => [re, im]
                .into_iter()
                .map(|part| float_bytes(float(part)?, bytes / 2))
                .collect::<Option<Vec<_>>>()?
                .concat(),
            _ => return None,
        },
        ('c', value) => float_bytes(float(value)?, bytes / 2)?,
        ('S' | 'V', Value::String(text)) => {
            text.chars().map(|c| u8::try_from(c).ok()).collect::<Option<_>>()?
        }
        ('U', Value::String(text)) => {
            text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect()
        }
        _ => return None,
    };
    if matches!(letter, 'S' | 'V' | 'U') && out.len() > bytes {
        return None;
    }
    out.resize(bytes, 0);
    Some(out)
}

/// A whole number, also one that is written with a decimal point or as a truth value.
fn whole(value: &Value) -> Option<i128> {
    let integer = value.as_i64().map(i128::from).or(value.as_u64().map(i128::from));
    let truth = value.as_bool().map(i128::from);
    // Beyond 2^53 a number with a decimal point may have been rounded.
    let exact = |number: &f64| number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0;
    integer.or(truth).or_else(|| value.as_f64().filter(exact).map(|number| number as i128))
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) if text == "NaN" => Some(f64::NAN),
        Value::String(text) if text == "Infinity" => Some(f64::INFINITY),
        Value::String(text) if text == "-Infinity" => Some(f64::NEG_INFINITY),
        Value::Bool(truth) => Some(f64::from(u8::from(*truth))),
        value => value.as_f64(),
    }
}

/// `None` for a number that is too large for the type: it would become infinity, another fill value.
fn float_bytes(value: f64, bytes: usize) -> Option<Vec<u8>> {
    let held = |infinite: bool| (!infinite || value.is_infinite()).then_some(());
    match bytes {
        2 => {
            let half = f16::from_f64(value);
            held(half.is_infinite()).map(|()| half.to_le_bytes().to_vec())
        }
        4 => {
            let single = value as f32;
            held(single.is_infinite()).map(|()| single.to_le_bytes().to_vec())
        }
        8 => Some(value.to_le_bytes().to_vec()),
        _ => None,
    }
}

fn value_of(rest: &mut &[u8], kind: &RowType) -> Option<Value> {
    match kind {
        RowType::Plain { dtype, order } => {
            let numpy = dtype.to_numpy()?;
            let (letter, bytes) = (numpy.chars().nth(1)?, dtype.item_size()?);
            let (plain, after) = rest.split_at_checked(bytes)?;
            *rest = after;
            let mut plain = plain.to_vec();
            if *order == ByteOrder::Big {
                plain.chunks_mut(unit(letter, bytes)).for_each(<[u8]>::reverse);
            }
            plain_value(&plain, letter)
        }
        RowType::Struct(fields) => {
            let values = fields.iter().map(|field| block_of(rest, &field.kind, &field.shape));
            values.collect::<Option<_>>().map(Value::Array)
        }
    }
}

fn block_of(rest: &mut &[u8], kind: &RowType, shape: &[u64]) -> Option<Value> {
    match shape.split_first() {
        None => value_of(rest, kind),
        // There are no elements, so the other lengths may be anything.
        Some(_) if shape.contains(&0) => Some(Value::Array(Vec::new())),
        Some((&len, inner)) => {
            (0..len).map(|_| block_of(rest, kind, inner)).collect::<Option<_>>().map(Value::Array)
        }
    }
}

/// The value of these bytes, little-endian.
fn plain_value(bytes: &[u8], letter: char) -> Option<Value> {
    let part = |bytes: &[u8]| match *bytes {
        [a, b] => Some(f16::from_le_bytes([a, b]).to_f64()),
        [a, b, c, d] => Some(f64::from(f32::from_le_bytes([a, b, c, d]))),
        _ => bytes.try_into().ok().map(f64::from_le_bytes),
    };
    match letter {
        'b' => Some(Value::Bool(bytes.first()? != &0)),
        'i' | 'u' | 'M' | 'm' => {
            let negative = letter != 'u' && bytes.last()? & 0x80 != 0;
            let mut wide = [if negative { 0xff } else { 0 }; 8];
            wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
            Some(match letter {
                'u' => u64::from_le_bytes(wide).into(),
                _ => i64::from_le_bytes(wide).into(),
            })
        }
        'f' => Some(float_value(part(bytes)?)),
        'c' => {
            let (re, im) = bytes.split_at_checked(bytes.len() / 2)?;
            Some(Value::Array(vec![float_value(part(re)?), float_value(part(im)?)]))
        }
        'S' | 'V' => {
            let zeros = bytes.iter().rev().take_while(|&&byte| byte == 0).count();
            let kept = bytes.get(..bytes.len() - zeros)?;
            Some(kept.iter().map(|&byte| char::from(byte)).collect::<String>().into())
        }
        'U' => {
            let codes = bytes.as_chunks().0.iter().map(|&code| u32::from_le_bytes(code));
            let text: String = codes.map(char::from_u32).collect::<Option<_>>()?;
            Some(text.trim_end_matches('\0').into())
        }
        _ => None,
    }
}

fn float_value(value: f64) -> Value {
    match Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None if value.is_nan() => "NaN".into(),
        None if value > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}
