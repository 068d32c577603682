//! A chunk of lists as a chunk of `bytes`, and back.
//!
//! An element of the model is the encoding of the children of a list. Children of fixed size follow
//! one after the other and nothing else; children of variable size come after their number, a
//! little-endian `u32`. The chunk has the layout of the codec `chunkyard.offsets`. With children of
//! fixed size only the offsets change: they count bytes in place of children.

use chunkyard_store::{Error, Result};

use super::{Values, corrupt, decode, split_offsets};
use crate::container::model::DType;

/// Turns a container's chunk of `count` lists of `child` into the model's chunk.
pub fn list_chunk_to_offsets_bytes(child: &DType, count: u64, chunk: &[u8]) -> Result<Vec<u8>> {
    if let Some(size) = self_evident(child) {
        let (offsets, children) = split_offsets(count, chunk)?;
        let offsets: Option<Vec<u64>> =
            offsets.into_iter().map(|offset| offset.checked_mul(size)).collect();
        let offsets = offsets.filter(|offsets| offsets.last() == Some(&(children.len() as u64)));
        let offsets = offsets.ok_or_else(|| {
            let found = format!("{} bytes of them", children.len());
            corrupt(format!("children of {size} bytes"), found)
        })?;
        return join(&offsets, children);
    }
    let dtype = DType::List { child: Box::new(child.clone()) };
    let Values::List { offsets, child: children } = decode(&dtype, count, chunk)? else {
        return Err(corrupt("lists", "something else"));
    };
    let (mut ends, mut bytes) = (vec![0], Vec::new());
    for pair in offsets.windows(2) {
        let &[start, end] = pair else { continue };
        // Offsets have 32 bits, and so do their differences.
        bytes.extend_from_slice(&(end.saturating_sub(start) as u32).to_le_bytes());
        children.encode_part(child, start, end, &mut bytes)?;
        ends.push(bytes.len() as u64);
    }
    join(&ends, &bytes)
}

/// Turns the model's chunk into the container's.
pub fn list_chunk_from_offsets_bytes(child: &DType, count: u64, chunk: &[u8]) -> Result<Vec<u8>> {
    let (ends, bytes) = split_offsets(count, chunk)?;
    if ends.last() != Some(&(bytes.len() as u64)) {
        return Err(corrupt("offsets that end where the chunk does", "others"));
    }
    if let Some(size) = self_evident(child) {
        if ends.iter().any(|end| !end.is_multiple_of(size)) {
            return Err(corrupt(format!("lists of elements of {size} bytes"), "other lengths"));
        }
        let offsets: Vec<u64> = ends.iter().filter_map(|end| end.checked_div(size)).collect();
        return join(&offsets, bytes);
    }
    let (mut offsets, mut all) = (vec![0], Values::none_of(child));
    let mut total = 0u64;
    for pair in ends.windows(2) {
        let range = match pair {
            &[start, end] => usize::try_from(start).ok().zip(usize::try_from(end).ok()),
            _ => None,
        };
        let element = range.and_then(|(start, end)| bytes.get(start..end));
        let Some((number, children)) = element.and_then(<[u8]>::split_first_chunk::<4>) else {
            return Err(corrupt("the number of children", "too few bytes for it"));
        };
        let number = u64::from(u32::from_le_bytes(*number));
        all.append(decode(child, number, children)?)?;
        total = total.saturating_add(number);
        offsets.push(total);
    }
    let dtype = DType::List { child: Box::new(child.clone()) };
    super::encode(&dtype, &Values::List { offsets, child: Box::new(all) })
}

/// Bytes of a child, where the length of a list tells how many children it has.
fn self_evident(child: &DType) -> Option<u64> {
    child.item_size().filter(|&size| size > 0).map(|size| size as u64)
}

/// Offsets, followed by the bytes that they lead into.
fn join(offsets: &[u64], bytes: &[u8]) -> Result<Vec<u8>> {
    if offsets.last().is_some_and(|&last| u32::try_from(last).is_err()) {
        return Err(Error::invalid(format!(
            "a chunk of {} bytes of lists is too large for its offsets, which end at {}",
            bytes.len(),
            u32::MAX
        )));
    }
    let table = offsets.iter().flat_map(|&offset| (offset as u32).to_le_bytes());
    Ok(table.chain(bytes.iter().copied()).collect())
}
