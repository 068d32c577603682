//! Elements that differ from each other and from every fill value in use.

use chunkyard_engine::format::container::model::{DType, FillValue};

use crate::script::Element;

/// So many elements of a type; another seed gives other elements.
pub fn of(dtype: &DType, count: usize, seed: u64) -> Vec<Element> {
    (0..count as u64)
        .map(|at| one(dtype, at.wrapping_mul(31).wrapping_add(seed * 1009 + 1)))
        .collect()
}

/// The element of a type that a number stands for.
fn one(dtype: &DType, number: u64) -> Element {
    let signed = (number as i64).wrapping_mul(if number.is_multiple_of(2) { 1 } else { -1 });
    match dtype {
        DType::Bool => vec![u8::from(number.is_multiple_of(3))],
        DType::Int8 => ((signed % 100) as i8).to_le_bytes().to_vec(),
        DType::Int16 => (signed as i16).to_le_bytes().to_vec(),
        DType::Int32 => (signed as i32).to_le_bytes().to_vec(),
        DType::Int64 => (signed << 33).to_le_bytes().to_vec(),
        DType::UInt8 => vec![(number % 200) as u8],
        DType::UInt16 => (number as u16).to_le_bytes().to_vec(),
        DType::UInt32 => (number as u32).to_le_bytes().to_vec(),
        DType::UInt64 => (number << 40 | number).to_le_bytes().to_vec(),
        DType::Float32 => (signed as f32 * 0.5).to_le_bytes().to_vec(),
        DType::Float64 => (signed as f64 * 0.1).to_le_bytes().to_vec(),
        DType::TimestampNs => (1_700_000_000_000_000_000 + signed).to_le_bytes().to_vec(),
        // Empty now and then, and not only ASCII.
        DType::String => {
            "zürich-東京".chars().cycle().take((number % 23) as usize).collect::<String>().into()
        }
        DType::Binary => (0..number % 19).map(|at| (at * 57 + number) as u8).collect(),
        DType::FixedSizeList { child, size } => {
            (0..u64::from(*size)).flat_map(|at| one(child, number + at)).collect()
        }
        DType::List { child } => (0..number % 4).flat_map(|at| one(child, number + at)).collect(),
    }
}

/// An element that was never written; `None` where no case uses such a fill value.
pub fn unwritten(dtype: &DType, fill: Option<&FillValue>) -> Option<Element> {
    Some(match (dtype, fill) {
        (_, None) => vec![0; dtype.item_size().unwrap_or(0)],
        (DType::Bool, Some(FillValue::Bool(value))) => vec![u8::from(*value)],
        (DType::Int8, Some(FillValue::Int(value))) => (*value as i8).to_le_bytes().to_vec(),
        (DType::Int16, Some(FillValue::Int(value))) => (*value as i16).to_le_bytes().to_vec(),
        (DType::Int32, Some(FillValue::Int(value))) => (*value as i32).to_le_bytes().to_vec(),
        (DType::Int64, Some(FillValue::Int(value)))
        | (DType::TimestampNs, Some(FillValue::TimestampNs(value))) => value.to_le_bytes().to_vec(),
        (DType::UInt8, Some(FillValue::UInt(value))) => (*value as u8).to_le_bytes().to_vec(),
        (DType::UInt16, Some(FillValue::UInt(value))) => (*value as u16).to_le_bytes().to_vec(),
        (DType::UInt32, Some(FillValue::UInt(value))) => (*value as u32).to_le_bytes().to_vec(),
        (DType::UInt64, Some(FillValue::UInt(value))) => value.to_le_bytes().to_vec(),
        (DType::Float32, Some(FillValue::Float(value))) => (*value as f32).to_le_bytes().to_vec(),
        (DType::Float64, Some(FillValue::Float(value))) => value.to_le_bytes().to_vec(),
        (DType::String, Some(FillValue::String(value))) => value.clone().into_bytes(),
        _ => return None,
    })
}

/// A chunk in the layout of array-format: numbers back to back; elements of variable length after
/// their offsets, which count children for a list.
pub fn chunk(dtype: &DType, elements: &[Element]) -> Vec<u8> {
    let unit = match dtype {
        DType::String | DType::Binary => 1,
        DType::List { child } => child.item_size().unwrap_or(1),
        _ => return elements.concat(),
    };
    let ends = elements.iter().scan(0, |end, element| {
        *end += (element.len() / unit) as u32;
        Some(*end)
    });
    let offsets = std::iter::once(0).chain(ends).flat_map(u32::to_le_bytes);
    offsets.chain(elements.concat()).collect()
}

/// Every type that array-format 0.9 can write through its API, Bool by an element type of our own.
pub fn plain_types() -> [DType; 14] {
    [
        DType::Bool,
        DType::Int8,
        DType::Int16,
        DType::Int32,
        DType::Int64,
        DType::UInt8,
        DType::UInt16,
        DType::UInt32,
        DType::UInt64,
        DType::Float32,
        DType::Float64,
        DType::String,
        DType::Binary,
        DType::TimestampNs,
    ]
}

/// Types that 0.9 names in footers but can write and read only as raw chunks.
pub fn list_types() -> [DType; 4] {
    let list = |child| DType::List { child: Box::new(child) };
    let fixed = |child, size| DType::FixedSizeList { child: Box::new(child), size };
    [
        list(DType::Int32),
        fixed(DType::Float32, 3),
        list(fixed(DType::UInt8, 2)),
        fixed(fixed(DType::Int16, 2), 2),
    ]
}
