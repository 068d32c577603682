//! Keys and values of attributes: the dictionaries of a footer.

use chunkyard_store::Error;

use super::super::archive::{
    Record, STRING_LEN, Stop, Table, VEC_LEN, View, bytes, corrupt, numbers, strings,
};
use super::{Root, VALUE_LEN};
use crate::container::model::AttributeValue;

/// The most text of a list whose strings are given by number (version 6). There, a list can repeat a
/// long string for four bytes each time.
const TEXT_MAX: usize = 64 << 20;

/// How many keys there are.
pub fn keys_len(root: &Root) -> u64 {
    root.keys.len
}

/// How many values there are.
pub fn values_len(root: &Root) -> u64 {
    root.values.len
}

/// The key with that number.
pub fn attribute_key(view: &dyn View, root: &Root, index: u64) -> Result<String, Stop> {
    let at = root.keys.item(index, STRING_LEN, "attribute key")?;
    Record::read(view, at, STRING_LEN)?.string(0)
}

/// The value with that number.
pub fn attribute_value(view: &dyn View, root: &Root, index: u64) -> Result<AttributeValue, Stop> {
    let at = root.values.item(index, VALUE_LEN, "attribute value")?;
    let record = Record::read(view, at, VALUE_LEN)?;
    let tag = record.u8(0)?;
    if tag > 11 && root.version == 4 {
        return Err(record.bad_tag(0, "a value of version 4", tag));
    }
    if tag > 11 { list(view, root, &record, tag) } else { scalar(view, root, &record, tag) }
}

/// The numbers of the strings in a value of version 6; `None` if it is not text.
pub(super) fn string_numbers(
    view: &dyn View,
    root: &Root,
    index: u64,
) -> Result<Option<Vec<u32>>, Stop> {
    let at = root.values.item(index, VALUE_LEN, "attribute value")?;
    let record = Record::read(view, at, VALUE_LEN)?;
    match (root.version, record.u8(0)?) {
        (6, 11) => Ok(Some(vec![record.u32(4)?])),
        (6, 24) => numbers(view, &record.table(8, 4)?, u32::from_le_bytes).map(Some),
        _ => Ok(None),
    }
}

/// A single value, at the offset that equals its size.
fn scalar(
    view: &dyn View,
    root: &Root,
    record: &Record<'_>,
    tag: u8,
) -> Result<AttributeValue, Stop> {
    Ok(match tag {
        0 => AttributeValue::Bool(record.bool(1)?),
        1 => AttributeValue::Int8(record.u8(1)?.cast_signed()),
        2 => AttributeValue::Int16(record.u16(2)?.cast_signed()),
        3 => AttributeValue::Int32(record.u32(4)?.cast_signed()),
        4 => AttributeValue::Int64(record.i64(8)?),
        5 => AttributeValue::UInt8(record.u8(1)?),
        6 => AttributeValue::UInt16(record.u16(2)?),
        7 => AttributeValue::UInt32(record.u32(4)?),
        8 => AttributeValue::UInt64(record.u64(8)?),
        9 => AttributeValue::Float32(f32::from_bits(record.u32(4)?)),
        10 => AttributeValue::Float64(record.f64(8)?),
        11 if root.version == 6 => {
            AttributeValue::String(attribute_key(view, root, record.u32(4)?.into())?)
        }
        11 => AttributeValue::String(record.string(8)?),
        other => return Err(record.bad_tag(0, "an attribute value", other)),
    })
}

/// A list of values: a `Vec`, or a boxed slice, which has the same layout.
fn list(
    view: &dyn View,
    root: &Root,
    record: &Record<'_>,
    tag: u8,
) -> Result<AttributeValue, Stop> {
    let table = |item| record.table(8, item);
    Ok(match tag {
        12 => AttributeValue::Binary(record.blob(8)?),
        13 => AttributeValue::BoolList(bools(view, &table(1)?)?),
        14 => AttributeValue::Int8List(numbers(view, &table(1)?, i8::from_le_bytes)?),
        15 => AttributeValue::Int16List(numbers(view, &table(2)?, i16::from_le_bytes)?),
        16 => AttributeValue::Int32List(numbers(view, &table(4)?, i32::from_le_bytes)?),
        17 => AttributeValue::Int64List(numbers(view, &table(8)?, i64::from_le_bytes)?),
        18 => AttributeValue::UInt8List(record.blob(8)?),
        19 => AttributeValue::UInt16List(numbers(view, &table(2)?, u16::from_le_bytes)?),
        20 => AttributeValue::UInt32List(numbers(view, &table(4)?, u32::from_le_bytes)?),
        21 => AttributeValue::UInt64List(numbers(view, &table(8)?, u64::from_le_bytes)?),
        22 => AttributeValue::Float32List(numbers(view, &table(4)?, f32::from_le_bytes)?),
        23 => AttributeValue::Float64List(numbers(view, &table(8)?, f64::from_le_bytes)?),
        24 if root.version == 6 => AttributeValue::StringList(pooled(view, root, &table(4)?)?),
        24 => AttributeValue::StringList(strings(view, &table(STRING_LEN)?)?),
        25 => AttributeValue::BinaryList(blobs(view, &table(VEC_LEN)?)?),
        other => return Err(record.bad_tag(0, "an attribute value", other)),
    })
}

fn bools(view: &dyn View, table: &Table) -> Result<Vec<bool>, Stop> {
    let bytes = bytes(view, table.at, table.len)?;
    if let Some(other) = bytes.iter().find(|byte| **byte > 1) {
        return Err(corrupt(table.at, "a list of 0 and 1", other.to_string()));
    }
    Ok(bytes.iter().map(|byte| *byte == 1).collect())
}

/// The strings with these numbers.
fn pooled(view: &dyn View, root: &Root, table: &Table) -> Result<Vec<String>, Stop> {
    let mut text = 0;
    let mut list = Vec::new();
    for index in numbers(view, table, u32::from_le_bytes)? {
        let string = attribute_key(view, root, index.into())?;
        text += string.len();
        if text > TEXT_MAX {
            let what = format!("an attribute of more than {} MiB of text", TEXT_MAX >> 20);
            return Err(Error::unsupported(what).into());
        }
        list.push(string);
    }
    Ok(list)
}

/// All byte strings of a table; like strings, they share no bytes.
fn blobs(view: &dyn View, table: &Table) -> Result<Vec<Vec<u8>>, Stop> {
    let mut left = view.len();
    let record = Record::read(view, table.at, table.len.saturating_mul(VEC_LEN))?;
    let offsets = (0..).step_by(VEC_LEN as usize);
    let mut list = Vec::new();
    for (_, offset) in (0..table.len).zip(offsets) {
        let place = record.table(offset, 1)?;
        left = left.checked_sub(place.len).ok_or_else(|| {
            corrupt(table.at, "values that share no bytes", "more than there are bytes")
        })?;
        list.push(bytes(view, place.at, place.len)?.to_vec());
    }
    Ok(list)
}
