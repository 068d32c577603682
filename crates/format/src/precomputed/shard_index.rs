//! The two indices of a shard: where the index of each minishard lies, and where chunks lie.

use std::ops::Range;

use chunkyard_array::codec::gunzip;
use chunkyard_store::{Error, Result};

use super::sharding::{INDEX_ENTRY_BYTES, Packing, Sharding};

/// Bytes of a chunk's row in the index of a minishard.
const ROW_BYTES: usize = 24;

/// Bytes of the index of a minishard at most: 11 million chunks.
const MINISHARD_INDEX_BYTES_MAX: usize = 256 << 20;

/// Where the index of a minishard lies in the object; `None` if the minishard is empty.
pub(super) fn minishard_range(
    path: &str,
    sharding: &Sharding,
    minishard: u64,
    entry: [u8; INDEX_ENTRY_BYTES as usize],
    object_bytes: u64,
) -> Result<Option<Range<u64>>> {
    let (start, end) = entry.split_at(size_of::<u64>());
    let number = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let (start, end) = (number(start), number(end));
    if start == end {
        return Ok(None);
    }
    let behind = sharding.index_bytes();
    let range = start.checked_add(behind).zip(end.checked_add(behind));
    match range.filter(|(start, end)| start < end && *end <= object_bytes) {
        Some((start, end)) => Ok(Some(start..end)),
        None => Err(Error::Corrupt {
            file: path.to_owned(),
            what: format!("index of minishard {minishard}"),
            expected: format!("a range behind byte {behind} of {object_bytes}"),
            found: format!("{start} to {end} behind it"),
        }),
    }
}

/// The chunks of a minishard, by their numbers.
#[derive(Debug)]
pub struct Minishard {
    /// Number, and where the chunk lies in the object, in ascending order of numbers.
    rows: Vec<(u64, Range<u64>)>,
}

impl Minishard {
    /// Reads the stored index of a minishard. Every range lies in the object.
    pub fn parse(
        path: &str,
        sharding: &Sharding,
        minishard: u64,
        stored: &[u8],
        object_bytes: u64,
    ) -> Result<Self> {
        let corrupt = |expected: &str, found: String| Error::Corrupt {
            file: path.to_owned(),
            what: format!("index of minishard {minishard}"),
            expected: expected.to_owned(),
            found,
        };
        let unpacked = match sharding.minishard_index_encoding {
            Packing::Raw => None,
            Packing::Gzip => Some(
                gunzip(stored, MINISHARD_INDEX_BYTES_MAX)
                    .map_err(|error| corrupt("a gzip stream", error.to_string()))?,
            ),
        };
        let bytes = unpacked.as_deref().unwrap_or(stored);
        let (words, odd) = bytes.as_chunks::<8>();
        if !odd.is_empty() || !bytes.len().is_multiple_of(ROW_BYTES) {
            return Err(corrupt("rows of 24 bytes", format!("{} bytes", bytes.len())));
        }
        let count = words.len() / 3;
        let (ids, places) = words.split_at(count);
        let (gaps, lengths) = places.split_at(count);
        let (mut id, mut end) = (0u64, sharding.index_bytes());
        let mut rows: Vec<(u64, Range<u64>)> = Vec::with_capacity(count);
        for ((step, gap), length) in ids.iter().zip(gaps).zip(lengths) {
            let [step, gap, length] = [step, gap, length].map(|word| u64::from_le_bytes(*word));
            let next = id.checked_add(step).filter(|_| rows.is_empty() || step > 0);
            let Some(next) = next else {
                return Err(corrupt("ascending numbers", format!("{step} after {id}")));
            };
            let slot = sharding.slot(next);
            if slot.minishard != minishard {
                let expected = "numbers of this minishard";
                return Err(corrupt(expected, format!("{next}, of {}", slot.minishard)));
            }
            let range =
                end.checked_add(gap).and_then(|start| Some(start..start.checked_add(length)?));
            let Some(range) = range.filter(|range| range.end <= object_bytes) else {
                let expected = format!("chunks in an object of {object_bytes} bytes");
                let found = format!("{length} bytes, {gap} behind {end}");
                return Err(corrupt(&expected, found));
            };
            (id, end) = (next, range.end);
            rows.push((id, range));
        }
        Ok(Self { rows })
    }

    /// Where a chunk lies; `None` if it is not stored.
    pub fn get(&self, id: u64) -> Option<Range<u64>> {
        let at = self.rows.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.rows.get(at).map(|(_, range)| range.clone())
    }

    /// All chunks.
    pub fn rows(&self) -> &[(u64, Range<u64>)] {
        &self.rows
    }

    /// Bytes in memory.
    pub(super) fn weight(&self) -> usize {
        self.rows.len() * size_of::<(u64, Range<u64>)>() + 128
    }
}
