//! Statistics: the smallest and largest element of each array, and how many are null.
//!
//! The rules are the same as in array-format 0.9, so that either program can trust the other's numbers.
//! An element is *null* when it equals the fill value or was never written. Without a fill value no
//! written element is null. Numbers compare as numbers, floating point by the total order of IEEE 754
//! (a NaN of positive sign is above infinity, −0 is below 0), strings and bytes by their bytes. Lists
//! have no statistics: all of their elements count as null.
//!
//! Computed while a chunk is written, and merged over the chunks of an array; merging is associative,
//! so chunks may come in any order. A chunk that replaces an older one cannot be merged: the smallest
//! element may have gone with the old one, and the array has to be read again.

mod arrays;
mod numbers;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use chunkyard_store::{Error, Result};

use self::numbers::{of_f32, of_f64, of_integers};
use super::model::{ArrayStats, DType, FillValue, StatValue};

/// Statistics of some chunks of an array.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChunkStats {
    /// The smallest element that is not null.
    pub min: Option<StatValue>,
    /// The largest one.
    pub max: Option<StatValue>,
    /// Elements that are not null.
    pub non_null: u64,
}

impl ChunkStats {
    /// Adds the statistics of other chunks of the same array.
    pub fn merge(&mut self, other: Self) {
        self.non_null = self.non_null.saturating_add(other.non_null);
        replace_if(&mut self.min, other.min, Ordering::is_lt);
        replace_if(&mut self.max, other.max, Ordering::is_gt);
    }

    /// The statistics of the array, once all of its chunks are merged.
    pub fn to_array_stats(&self, name: &str, shape: &[u32]) -> ArrayStats {
        let row_count = shape.iter().fold(1u64, |rows, &n| rows.saturating_mul(u64::from(n)));
        ArrayStats {
            name: name.to_owned(),
            min: self.min.clone(),
            max: self.max.clone(),
            null_count: row_count.saturating_sub(self.non_null),
            row_count,
        }
    }
}

/// The statistics of a chunk as it is stored, before its block is compressed.
pub fn of_chunk(dtype: &DType, fill: Option<&FillValue>, bytes: &[u8]) -> Result<ChunkStats> {
    let int = |value: i64| StatValue::Int(value);
    let uint = |value: u64| StatValue::UInt(value);
    let found = match dtype {
        DType::Bool => {
            // Only a boolean is the fill value of booleans here.
            let fill = match fill {
                Some(FillValue::Bool(value)) => Some(FillValue::UInt(u64::from(*value))),
                _ => None,
            };
            of_integers(u8::from_le_bytes, |found| uint(found.into()), fill.as_ref(), bytes)
        }
        DType::Int8 => of_integers(i8::from_le_bytes, |found| int(found.into()), fill, bytes),
        DType::Int16 => of_integers(i16::from_le_bytes, |found| int(found.into()), fill, bytes),
        DType::Int32 => of_integers(i32::from_le_bytes, |found| int(found.into()), fill, bytes),
        DType::Int64 => of_integers(i64::from_le_bytes, int, fill, bytes),
        DType::UInt8 => of_integers(u8::from_le_bytes, |found| uint(found.into()), fill, bytes),
        DType::UInt16 => of_integers(u16::from_le_bytes, |found| uint(found.into()), fill, bytes),
        DType::UInt32 => of_integers(u32::from_le_bytes, |found| uint(found.into()), fill, bytes),
        DType::UInt64 => of_integers(u64::from_le_bytes, uint, fill, bytes),
        DType::Float32 => of_f32(fill, bytes),
        DType::Float64 => of_f64(fill, bytes),
        DType::TimestampNs => {
            let fill = match fill {
                Some(FillValue::TimestampNs(value) | FillValue::Int(value)) => {
                    Some(FillValue::Int(*value))
                }
                _ => None,
            };
            of_integers(i64::from_le_bytes, StatValue::TimestampNs, fill.as_ref(), bytes)
        }
        DType::String | DType::Binary => of_variable(fill, bytes),
        DType::FixedSizeList { .. } | DType::List { .. } => Some(ChunkStats::default()),
    };
    found.ok_or_else(|| {
        let found = format!("{} bytes that are none", bytes.len());
        Error::Array(chunkyard_array::Error::corrupt("chunk", format!("{dtype:?} elements"), found))
    })
}

/// The statistics of strings or bytes after their offsets; `None` if the offsets are wrong.
fn of_variable(fill: Option<&FillValue>, bytes: &[u8]) -> Option<ChunkStats> {
    if bytes.is_empty() {
        return Some(ChunkStats::default());
    }
    let fill = match fill {
        Some(FillValue::String(text)) => Some(text.as_bytes()),
        _ => None,
    };
    let (offsets, payload) = split_offsets(bytes)?;
    let mut range: Option<(&[u8], &[u8])> = None;
    let mut non_null = 0;
    for pair in offsets.windows(2) {
        let [start, end] = pair else { continue };
        let [start, end] = [start, end].map(|offset| u32::from_le_bytes(*offset) as usize);
        let value = payload.get(start..end)?;
        if Some(value) != fill {
            non_null += 1;
            let (min, max) = range.unwrap_or((value, value));
            range = Some((min.min(value), max.max(value)));
        }
    }
    let (min, max) = range.map(|(min, max)| (min.to_vec(), max.to_vec())).unzip();
    Some(ChunkStats { min: min.map(StatValue::Bytes), max: max.map(StatValue::Bytes), non_null })
}

/// The offsets of a chunk of strings or bytes. The chunk does not say how many there are: the last
/// offset is the one that leads exactly to the end. At most one does, as offsets never fall.
fn split_offsets(bytes: &[u8]) -> Option<(&[[u8; 4]], &[u8])> {
    let (words, _) = bytes.as_chunks::<4>();
    let last = words.iter().enumerate().position(|(at, offset)| {
        let offset = u64::from(u32::from_le_bytes(*offset));
        4 * (at as u64 + 1) + offset == bytes.len() as u64
    })?;
    let offsets = words.get(..=last)?;
    Some((offsets, bytes.get(4 * offsets.len()..)?))
}

/// Takes `new` if `old` is empty, or if `new` compares to it as wanted.
fn replace_if(old: &mut Option<StatValue>, new: Option<StatValue>, wanted: fn(Ordering) -> bool) {
    let better = match (old.as_ref(), new.as_ref()) {
        (Some(old), Some(new)) => wanted(compare(new, old)),
        (None, Some(_)) => true,
        (_, None) => false,
    };
    if better {
        *old = new;
    }
}

/// The order of two values of one array, which have the same type.
pub(crate) fn compare(a: &StatValue, b: &StatValue) -> Ordering {
    match (a, b) {
        (StatValue::Int(a), StatValue::Int(b)) => a.cmp(b),
        (StatValue::TimestampNs(a), StatValue::TimestampNs(b)) => a.cmp(b),
        (StatValue::UInt(a), StatValue::UInt(b)) => a.cmp(b),
        (StatValue::Float(a), StatValue::Float(b)) => a.total_cmp(b),
        (StatValue::Bytes(a), StatValue::Bytes(b)) => a.cmp(b),
        _ => Ordering::Equal,
    }
}
