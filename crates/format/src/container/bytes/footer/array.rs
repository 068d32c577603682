//! The description of an array in a footer, without its chunks.

use std::ops::Range;

use chunkyard_store::Error;

use super::super::archive::{Record, STRING_LEN, Stop, Table, View, corrupt, numbers, strings};
use super::super::stats_file;
use super::{CHUNK_LEN, DEPTH_MAX, DTYPE_LEN, Root};
use crate::container::model::{ArrayMeta, ArrayStats, DType, FillValue, IndexWidth};

/// The most dimensions of an array. The format has no limit, but every chunk repeats them.
pub const RANK_MAX: usize = 255;

/// An array, and where its chunks are.
#[derive(Debug, Clone, PartialEq)]
pub struct ArrayHead {
    /// Its description in this layer.
    pub meta: ArrayMeta,
    /// Its chunk table; see `chunks`.
    pub chunks: Table,
    /// Its statistics, which only version 6 keeps here.
    pub stats: Option<ArrayStats>,
}

/// The name of the array at a position of the array table.
pub fn array_name(view: &dyn View, root: &Root, position: u64) -> Result<String, Stop> {
    let at = root.arrays.item(position, root.array_len(), "array")?;
    Record::read(view, at, STRING_LEN)?.string(0)
}

/// The names of the arrays at these positions, and whether each is deleted; nothing else of them is
/// read. Names share no bytes, so that together they are no longer than the footer. Otherwise a
/// footer could make its reader keep far more bytes than the footer has.
pub fn array_names(
    view: &dyn View,
    root: &Root,
    range: Range<u64>,
) -> Result<Vec<(String, bool)>, Stop> {
    let len = root.array_len();
    let place = root.arrays.items(range.clone(), len, "arrays")?;
    let mut left = view.len();
    let mut names = Vec::new();
    for at in range.map(|position| root.arrays.item(position, len, "array")) {
        let record = Record::read(view, at?, len)?;
        let name = record.string(0)?;
        left = left.checked_sub(name.len() as u64).ok_or_else(|| {
            corrupt(place.start, "names that share no bytes", "more text than there are bytes")
        })?;
        names.push((name, deleted(root, &record)?));
    }
    Ok(names)
}

/// Whether an array is deleted; version 6 has no deleted arrays.
fn deleted(root: &Root, record: &Record<'_>) -> Result<bool, Stop> {
    if root.version == 6 { Ok(false) } else { record.bool(136) }
}

/// The array at a position of the array table.
pub fn array(view: &dyn View, root: &Root, position: u64) -> Result<ArrayHead, Stop> {
    let at = root.arrays.item(position, root.array_len(), "array")?;
    let record = Record::read(view, at, root.array_len())?;
    let shape = record.table(40, 4)?;
    let name = record.string(0)?;
    if shape.len > RANK_MAX as u64 {
        let what = format!("array {name:?} of {} dimensions, more than {RANK_MAX}", shape.len);
        return Err(Error::unsupported(what).into());
    }
    let (index_width, attributes, stats) = if root.version == 6 {
        let attributes = pairs(view, &record, 136, IndexWidth::U32)?;
        let stats = record.bool(152)?.then(|| stats_file::read(view, record.position(160)));
        (IndexWidth::U32, attributes, stats.transpose()?)
    } else {
        let width = match record.u8(144)? {
            0 => IndexWidth::U16,
            1 => IndexWidth::U32,
            2 => IndexWidth::U64,
            other => return Err(record.bad_tag(144, "the width of indices", other)),
        };
        (width, pairs(view, &record, 152, width)?, None)
    };
    let meta = ArrayMeta {
        name,
        dtype: dtype(view, &record, 16, 0)?,
        shape: numbers(view, &shape, u32::from_le_bytes)?,
        dimension_names: strings(view, &record.table(56, STRING_LEN)?)?,
        chunk_shape: numbers(view, &record.table(72, 4)?, u32::from_le_bytes)?,
        fill_value: fill_value(&record, 104)?,
        deleted: deleted(root, &record)?,
        attributes,
        index_width,
    };
    Ok(ArrayHead { meta, chunks: record.table(88, CHUNK_LEN)?, stats })
}

/// The pairs of indices in the `Vec` at an offset.
fn pairs(
    view: &dyn View,
    record: &Record<'_>,
    offset: usize,
    width: IndexWidth,
) -> Result<Vec<(u64, u64)>, Stop> {
    let table = |item| record.table(offset, item);
    match width {
        IndexWidth::U16 => numbers(view, &table(4)?, |[a, b, c, d]| {
            (u16::from_le_bytes([a, b]).into(), u16::from_le_bytes([c, d]).into())
        }),
        IndexWidth::U32 => numbers(view, &table(8)?, |[a, b, c, d, e, f, g, h]| {
            (u32::from_le_bytes([a, b, c, d]).into(), u32::from_le_bytes([e, f, g, h]).into())
        }),
        IndexWidth::U64 => numbers(view, &table(16)?, |pair: [u8; 16]| {
            let pair = u128::from_le_bytes(pair);
            // Both halves fit by construction.
            let half = |bits: u128| u64::try_from(bits & u128::from(u64::MAX)).unwrap_or_default();
            (half(pair), half(pair >> 64))
        }),
    }
}

fn dtype(view: &dyn View, record: &Record<'_>, offset: usize, depth: usize) -> Result<DType, Stop> {
    let child = || -> Result<Box<DType>, Stop> {
        let at = record.target(offset + 8)?;
        if depth + 1 >= DEPTH_MAX {
            return Err(corrupt(at, format!("lists nested less than {DEPTH_MAX} deep"), "more"));
        }
        Ok(Box::new(dtype(view, &Record::read(view, at, DTYPE_LEN)?, 0, depth + 1)?))
    };
    Ok(match record.u8(offset)? {
        0 => DType::Bool,
        1 => DType::Int8,
        2 => DType::Int16,
        3 => DType::Int32,
        4 => DType::Int64,
        5 => DType::UInt8,
        6 => DType::UInt16,
        7 => DType::UInt32,
        8 => DType::UInt64,
        9 => DType::Float32,
        10 => DType::Float64,
        11 => DType::String,
        12 => DType::Binary,
        13 => DType::FixedSizeList { child: child()?, size: record.u32(offset + 16)? },
        14 => DType::List { child: child()? },
        15 => DType::TimestampNs,
        other => return Err(record.bad_tag(offset, "a data type", other)),
    })
}

/// The `Option<FillValue>` at an offset.
fn fill_value(record: &Record<'_>, offset: usize) -> Result<Option<FillValue>, Stop> {
    if !record.bool(offset)? {
        return Ok(None);
    }
    let (tag, value) = (offset + 8, offset + 16);
    Ok(Some(match record.u8(tag)? {
        0 => FillValue::Bool(record.bool(tag + 1)?),
        1 => FillValue::Int(record.i64(value)?),
        2 => FillValue::UInt(record.u64(value)?),
        3 => FillValue::Float(record.f64(value)?),
        4 => FillValue::String(record.string(value)?),
        5 => FillValue::TimestampNs(record.i64(value)?),
        other => return Err(record.bad_tag(tag, "a fill value", other)),
    }))
}
