//! Statistics by the rules of array-format 0.9, computed the slow way.

use std::cmp::Ordering;

use chunkyard_engine::format::container::model::{ArrayStats, DType, FillValue, StatValue};

use crate::model::Expected;

/// Of all chunks that were written. Elements that were not, or that equal the fill value, are null;
/// without a fill value, every element of a written chunk counts.
pub fn of(array: &Expected) -> ArrayStats {
    let (dtype, fill) = (&array.definition.dtype, array.definition.fill.as_ref());
    let written = array.chunks.iter().flat_map(|chunk| array.chunk_elements(chunk));
    let values: Vec<StatValue> = written
        .filter_map(|element| value(dtype, &element))
        .filter(|value| !fill.is_some_and(|fill| is_null(value, fill)))
        .collect();
    let rows = array.definition.len() as u64;
    ArrayStats {
        name: array.definition.name.clone(),
        min: values.iter().min_by(|a, b| order(a, b)).cloned(),
        max: values.iter().max_by(|a, b| order(a, b)).cloned(),
        null_count: rows - values.len() as u64,
        row_count: rows,
    }
}

/// An element in the form of statistics; `None` for lists, which have none.
fn value(dtype: &DType, element: &[u8]) -> Option<StatValue> {
    fn wide<const N: usize>(element: &[u8], sign: u8) -> Option<[u8; N]> {
        let mut bytes = [sign; N];
        bytes.get_mut(..element.len())?.copy_from_slice(element);
        Some(bytes)
    }
    let sign = if element.last().is_some_and(|byte| byte & 0x80 != 0) { 0xFF } else { 0 };
    Some(match dtype {
        DType::Int8 | DType::Int16 | DType::Int32 | DType::Int64 => {
            StatValue::Int(i64::from_le_bytes(wide(element, sign)?))
        }
        DType::Bool | DType::UInt8 | DType::UInt16 | DType::UInt32 | DType::UInt64 => {
            StatValue::UInt(u64::from_le_bytes(wide(element, 0)?))
        }
        DType::Float32 => StatValue::Float(f32::from_le_bytes(wide(element, 0)?).into()),
        DType::Float64 => StatValue::Float(f64::from_le_bytes(wide(element, 0)?)),
        DType::TimestampNs => StatValue::TimestampNs(i64::from_le_bytes(wide(element, sign)?)),
        DType::String | DType::Binary => StatValue::Bytes(element.to_vec()),
        DType::FixedSizeList { .. } | DType::List { .. } => return None,
    })
}

fn is_null(value: &StatValue, fill: &FillValue) -> bool {
    match (value, fill) {
        (StatValue::Int(value), FillValue::Int(fill))
        | (StatValue::TimestampNs(value), FillValue::TimestampNs(fill)) => value == fill,
        (StatValue::UInt(value), FillValue::UInt(fill)) => value == fill,
        (StatValue::UInt(value), FillValue::Bool(fill)) => *value == u64::from(*fill),
        (StatValue::Float(value), FillValue::Float(fill)) => {
            value == fill || value.is_nan() && fill.is_nan()
        }
        (StatValue::Bytes(value), FillValue::String(fill)) => value == fill.as_bytes(),
        _ => false,
    }
}

fn order(a: &StatValue, b: &StatValue) -> Ordering {
    match (a, b) {
        (StatValue::Int(a), StatValue::Int(b))
        | (StatValue::TimestampNs(a), StatValue::TimestampNs(b)) => a.cmp(b),
        (StatValue::UInt(a), StatValue::UInt(b)) => a.cmp(b),
        (StatValue::Float(a), StatValue::Float(b)) => a.total_cmp(b),
        (StatValue::Bytes(a), StatValue::Bytes(b)) => a.cmp(b),
        _ => Ordering::Equal,
    }
}
