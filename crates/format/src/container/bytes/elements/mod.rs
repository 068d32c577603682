//! Elements of a chunk that are lists, as a container encodes them.
//!
//! | type | encoding of N elements |
//! |---|---|
//! | of fixed size | one after the other, little-endian; a boolean is a byte |
//! | String, Binary | N + 1 offsets into what follows, `u32`; all bytes, end to end |
//! | List | N + 1 offsets *counted in children*, `u32`; the encoding of all children |
//! | FixedSizeList | the encoding of N · size children |
//!
//! array-format describes the last two and has no code for them; this is our reading of its text, in which every type
//! nests in every other. A chunk does not say how many elements it holds: its shape does.
//!
//! The model has no lists. A list of fixed size is a dimension of the array, and its chunks are the same bytes. Any
//! other list is an element of type `bytes`: [`list_chunk_to_offsets_bytes`] and [`list_chunk_from_offsets_bytes`]
//! convert the chunks.

mod json;
mod lists;
#[cfg(test)]
mod tests;
mod values;

pub use self::json::{element_of_json, json_of_element};
pub use self::lists::{list_chunk_from_offsets_bytes, list_chunk_to_offsets_bytes};
pub use self::values::Values;
use chunkyard_store::{Error, Result};

use crate::container::model::DType;

/// How deep types may nest: each level costs a nested call.
pub const DEPTH_MAX: usize = 16;

/// Decodes a whole chunk of `count` elements.
pub fn decode(dtype: &DType, count: u64, bytes: &[u8]) -> Result<Values> {
    decode_at(0, dtype, count, bytes)
}

fn decode_at(depth: usize, dtype: &DType, count: u64, bytes: &[u8]) -> Result<Values> {
    if depth > DEPTH_MAX {
        return Err(Error::unsupported(format!("lists within {DEPTH_MAX} others")));
    }
    match dtype {
        DType::String | DType::Binary => {
            let (offsets, payload) = split_offsets(count, bytes)?;
            if offsets.last() != Some(&(payload.len() as u64)) {
                return Err(corrupt("offsets that end where the chunk does", "others"));
            }
            if *dtype == DType::String && !is_text(&offsets, payload) {
                return Err(corrupt("strings in UTF-8", "other bytes"));
            }
            Ok(Values::Variable { offsets, bytes: payload.to_vec() })
        }
        DType::List { child } => {
            let (offsets, payload) = split_offsets(count, bytes)?;
            let children = offsets.last().copied().unwrap_or(0);
            let child = Box::new(decode_at(depth + 1, child, children, payload)?);
            Ok(Values::List { offsets, child })
        }
        DType::FixedSizeList { child, size } => {
            let children = count
                .checked_mul(u64::from(*size))
                .ok_or_else(|| corrupt("a number of children", format!("{count} times {size}")))?;
            let child = Box::new(decode_at(depth + 1, child, children, bytes)?);
            Ok(Values::FixedList { size: *size, child })
        }
        fixed => {
            let size = fixed.item_size().unwrap_or(0) as u64;
            if count.checked_mul(size) != Some(bytes.len() as u64) {
                let expected = format!("{count} elements of {size} bytes");
                return Err(corrupt(expected, format!("{} bytes", bytes.len())));
            }
            Ok(Values::Fixed(bytes.to_vec()))
        }
    }
}

/// Encodes a chunk. Refuses values that are not of the type, or whose offsets do not rise from the first child to the
/// last.
pub fn encode(dtype: &DType, values: &Values) -> Result<Vec<u8>> {
    let count = values.count(dtype);
    if !count.is_some_and(|count| values.holds(dtype, count)) {
        return Err(Error::invalid(format!("these values are no elements of {dtype:?}")));
    }
    let mut out = Vec::new();
    values.encode_part(dtype, 0, count.unwrap_or(0), &mut out)?;
    Ok(out)
}

/// The offsets of `count` elements, which must rise from 0, and the bytes after them.
fn split_offsets(count: u64, bytes: &[u8]) -> Result<(Vec<u64>, &[u8])> {
    let table = count.checked_add(1).and_then(|entries| entries.checked_mul(4));
    let table = table.and_then(|bytes| usize::try_from(bytes).ok());
    let Some((table, rest)) = table.and_then(|table| bytes.split_at_checked(table)) else {
        let expected = format!("offsets of {count} elements");
        return Err(corrupt(expected, format!("{} bytes", bytes.len())));
    };
    let (entries, _) = table.as_chunks::<4>();
    let offsets: Vec<u64> =
        entries.iter().map(|entry| u64::from(u32::from_le_bytes(*entry))).collect();
    if offsets.first() != Some(&0) || !offsets.is_sorted() {
        return Err(corrupt("offsets that rise from 0", "others"));
    }
    Ok((offsets, rest))
}

/// Whether each element is UTF-8.
fn is_text(offsets: &[u64], bytes: &[u8]) -> bool {
    let at_boundary =
        |text: &str, offset| usize::try_from(offset).is_ok_and(|at| text.is_char_boundary(at));
    str::from_utf8(bytes).is_ok_and(|text| offsets.iter().all(|&offset| at_boundary(text, offset)))
}

fn corrupt(expected: impl Into<String>, found: impl Into<String>) -> Error {
    chunkyard_array::Error::corrupt("chunk", expected, found).into()
}
