//! Where the chunks of a dataset lie in the file.
//!
//! HDF5 knows five indexes of chunks, data in one piece, and data inside the header; here they are one
//! table. Data in one piece is cut into slabs of rows, which are chunks that happen to be neighbours.

use bytes::Bytes;
use hdf5_reader::chunk_index::{
    ChunkEntry, collect_implicit_chunk_entries, collect_v2_chunk_entries_storage,
};
use hdf5_reader::btree_v1::{BTreeV1Key, collect_btree_v1_leaves_storage};
use hdf5_reader::error::{Error as ParserError, Result as ParserResult};
use hdf5_reader::extensible_array::collect_extensible_array_chunk_entries_storage;
use hdf5_reader::fixed_array::collect_fixed_array_chunk_entries_storage;
use hdf5_reader::messages::layout::ChunkIndexing;
use hdf5_reader::{Hdf5File, Storage};

/// A slab has at least this many bytes where the shape allows it …
const SLAB_BYTES_MIN: u64 = 1 << 20;
/// … and at most this many.
const SLAB_BYTES_MAX: u64 = 16 << 20;
/// A dataset in one piece that cannot be cut evenly is one chunk up to this size.
const WHOLE_BYTES_MAX: u64 = 1 << 30;
/// Slabs smaller than this are worse than one large chunk.
const SLAB_BYTES_TINY: u64 = 64 << 10;

/// Where the chunks of an array are.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Chunks {
    /// Nowhere: all elements are the fill value.
    Fill,
    /// There is one, and it is here.
    Inline(Bytes),
    /// All of them, back to back in the order of the grid.
    Slabs {
        /// Where the first begins.
        start: u64,
        /// Bytes of each.
        bytes: u64,
    },
    /// To be asked of an index in the file.
    Index(Index),
    /// Text, which lies in heaps and is collected when it is asked for.
    Text,
}

/// An index of chunks, and what is needed to read it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Index {
    pub(super) address: u64,
    /// `None` is the B-tree of version 1.
    pub(super) indexing: Option<ChunkIndexing>,
    pub(super) shape: Vec<u64>,
    /// The shape that the dataset may grow to, `u64::MAX` for no limit.
    pub(super) max_shape: Option<Vec<u64>>,
    pub(super) chunk_shape: Vec<u32>,
    pub(super) chunk_bytes: u64,
    pub(super) element_bytes: usize,
    pub(super) filters: usize,
}

/// One stored chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stored {
    /// Its number in the grid, last axis fastest.
    pub(super) chunk: u64,
    /// Its first byte in the file.
    pub(super) start: u64,
    /// How many there are.
    pub(super) bytes: u64,
}

impl Index {
    /// Reads the index. The error says why its chunks cannot be pointed to.
    pub(super) fn read(&self, file: &Hdf5File) -> Result<Vec<Stored>, String> {
        let entries = self.entries(file).map_err(|cause| format!("its chunk index: {cause}"))?;
        let file_bytes = file.storage().len();
        let base = file.superblock().base_address;
        let mut table = Vec::with_capacity(entries.len());
        for entry in &entries {
            let Some(chunk) = self.number(&entry.offsets)? else { continue };
            // A bit for each filter that was left out.
            let filters = (1u64 << self.filters.min(32)) - 1;
            if u64::from(entry.filter_mask) & filters != 0 {
                return Err(format!("the chunk at {:?} was stored without filters", entry.offsets));
            }
            let bytes = if self.filters == 0 { self.chunk_bytes } else { entry.size };
            let end = entry.address.checked_add(bytes);
            if end.is_none_or(|end| end > file_bytes) {
                return Err(format!(
                    "the chunk at {:?} lies beyond the end of the file",
                    entry.offsets
                ));
            }
            table.push(Stored { chunk, start: entry.address.saturating_add(base), bytes });
        }
        table.sort_unstable_by_key(|stored| stored.chunk);
        if table.windows(2).any(|pair| matches!(pair, [a, b] if a.chunk == b.chunk)) {
            return Err("its chunk index has a chunk twice".to_owned());
        }
        Ok(table)
    }

    /// The number of the chunk that begins at these elements; none where the dataset has shrunk
    /// since and left it behind.
    fn number(&self, offsets: &[u64]) -> Result<Option<u64>, String> {
        let wrong = || format!("its chunk index has a chunk at {offsets:?}");
        if offsets.len() != self.shape.len() {
            return Err(wrong());
        }
        let mut number = 0u64;
        for ((&offset, &chunk), &extent) in offsets.iter().zip(&self.chunk_shape).zip(&self.shape) {
            let chunk = u64::from(chunk);
            if chunk == 0 || !offset.is_multiple_of(chunk) {
                return Err(wrong());
            }
            if offset >= extent {
                return Ok(None);
            }
            let along = number.checked_mul(extent.div_ceil(chunk));
            number = along.and_then(|n| n.checked_add(offset / chunk)).ok_or_else(wrong)?;
        }
        Ok(Some(number))
    }

    fn entries(&self, file: &Hdf5File) -> ParserResult<Vec<ChunkEntry>> {
        let (storage, superblock) = (file.storage(), file.superblock());
        let (offset, length) = (superblock.offset_size, superblock.length_size);
        let rank = self.shape.len();
        // Both indexes below count chunks in the grid of the largest shape. An unlimited axis has
        // another index, so there is always such a shape.
        let largest = self.max_shape.as_deref().unwrap_or(&self.shape);
        match &self.indexing {
            None => self.tree(storage, offset, length),
            Some(ChunkIndexing::SingleChunk { filtered_size, filters }) => Ok(vec![ChunkEntry {
                address: self.address,
                size: *filtered_size,
                filter_mask: *filters,
                offsets: vec![0; rank],
            }]),
            Some(ChunkIndexing::Implicit) => collect_implicit_chunk_entries(
                self.address,
                largest,
                &self.chunk_shape,
                self.element_bytes,
                None,
                storage.len(),
            ),
            Some(ChunkIndexing::FixedArray { .. }) => collect_fixed_array_chunk_entries_storage(
                storage,
                self.address,
                offset,
                length,
                largest,
                &self.chunk_shape,
                None,
            ),
            Some(ChunkIndexing::ExtensibleArray { .. }) => {
                collect_extensible_array_chunk_entries_storage(
                    storage,
                    self.address,
                    offset,
                    length,
                    &self.shape,
                    self.max_shape.as_deref(),
                    &self.chunk_shape,
                    None,
                )
            }
            Some(ChunkIndexing::BTreeV2) => collect_v2_chunk_entries_storage(
                storage,
                self.address,
                offset,
                length,
                rank as u32,
                &self.chunk_shape,
                None,
            ),
        }
    }

    /// The B-tree of version 1, which most files have.
    fn tree(&self, storage: &dyn Storage, offset: u8, length: u8) -> ParserResult<Vec<ChunkEntry>> {
        let rank = self.shape.len();
        let leaves = collect_btree_v1_leaves_storage(
            storage,
            self.address,
            offset,
            length,
            Some(rank as u32),
            &self.chunk_shape,
            None,
        )?;
        let entry = |(key, address)| match key {
            BTreeV1Key::RawData { chunk_size, filter_mask, mut offsets } => {
                // The last is an offset into the element, always zero.
                offsets.truncate(rank);
                Ok(ChunkEntry { address, size: u64::from(chunk_size), filter_mask, offsets })
            }
            BTreeV1Key::Group { .. } => {
                Err(ParserError::InvalidData("a B-tree of groups where chunks should be".into()))
            }
        };
        leaves.into_iter().map(entry).collect()
    }
}

/// The shape of the slabs that a dataset in one piece is cut into: all of the last axes, some of one,
/// and one of those before it, such that the slabs are equal and none is padded.
pub(super) fn slab_shape(shape: &[u64], element_bytes: u64) -> Result<Vec<u64>, String> {
    let whole: Vec<u64> = shape.iter().map(|&extent| extent.max(1)).collect();
    let bytes_from = |axis: usize| {
        let extents = whole.get(axis..).unwrap_or_default();
        extents.iter().try_fold(element_bytes, |bytes, &extent| bytes.checked_mul(extent))
    };
    let total = bytes_from(0).ok_or("more bytes than can be counted")?;
    if total <= SLAB_BYTES_MAX {
        return Ok(whole);
    }
    // The first axis of which one step is small enough.
    for axis in 0..whole.len() {
        let step = bytes_from(axis + 1).unwrap_or(u64::MAX);
        if step > SLAB_BYTES_MAX {
            continue;
        }
        let extent = whole.get(axis).copied().unwrap_or(1);
        let steps = best_divisor(extent, step);
        if steps * step < SLAB_BYTES_TINY && total <= WHOLE_BYTES_MAX {
            return Ok(whole);
        }
        if steps * step < SLAB_BYTES_TINY {
            return Err(format!("{total} bytes in one piece that cannot be cut evenly"));
        }
        let slab = whole.iter().enumerate().map(|(at, &extent)| match at.cmp(&axis) {
            std::cmp::Ordering::Less => 1,
            std::cmp::Ordering::Equal => steps,
            std::cmp::Ordering::Greater => extent,
        });
        return Ok(slab.collect());
    }
    Ok(whole)
}

/// The smallest divisor of `extent` that makes slabs of at least the smallest size, or the largest
/// that does not exceed the largest.
fn best_divisor(extent: u64, step_bytes: u64) -> u64 {
    let (wanted, most) = (SLAB_BYTES_MIN.div_ceil(step_bytes.max(1)), SLAB_BYTES_MAX / step_bytes.max(1));
    let mut best = 1;
    for candidate in 1..=most.min(extent) {
        if extent.is_multiple_of(candidate) {
            best = candidate;
            if candidate >= wanted {
                break;
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_in_one_piece_is_cut_where_it_divides() {
        assert_eq!(slab_shape(&[10, 10], 8), Ok(vec![10, 10]));
        assert_eq!(slab_shape(&[], 8), Ok(vec![]));
        assert_eq!(slab_shape(&[0, 5], 8), Ok(vec![1, 5]));
        // 8 KiB rows: 128 of them are 1 MiB.
        assert_eq!(slab_shape(&[4096, 1024], 8), Ok(vec![128, 1024]));
        // Rows of 64 MiB are cut themselves.
        assert_eq!(slab_shape(&[3, 8192, 1024], 8), Ok(vec![1, 128, 1024]));
        // A prime number of rows of 100 KiB: one each.
        assert_eq!(slab_shape(&[10_007, 12_800], 8), Ok(vec![1, 12_800]));
        // A prime number of numbers: all in one, unless that is too many.
        assert_eq!(slab_shape(&[10_000_019], 8), Ok(vec![10_000_019]));
        assert!(slab_shape(&[1_000_000_007], 8).is_err());
        assert!(slab_shape(&[u64::MAX, u64::MAX], 8).is_err());
    }
}
