//! The chunk index of a dataset, as one table.
//!
//! HDF5 knows six ways to find a chunk. The parser reads them; this module puts their answers in one
//! order and checks them against the grid and the file, because references are made from them.

use std::collections::HashMap;

use hdf5_reader::Hdf5File;
use hdf5_reader::btree_v1::{BTreeV1Key, collect_btree_v1_leaves_storage};
use hdf5_reader::chunk_index::{
    ChunkEntry, collect_implicit_chunk_entries, collect_v2_chunk_entries_storage,
};
use hdf5_reader::error::{Error as ParserError, Result as ParserResult};
use hdf5_reader::extensible_array::collect_extensible_array_chunk_entries_storage;
use hdf5_reader::fixed_array::collect_fixed_array_chunk_entries_storage;
use hdf5_reader::messages::layout::ChunkIndexing;
use hdf5_reader::storage::Storage;

/// The most chunks of a dataset without an index, whose chunks lie in order.
const IMPLICIT_MAX: u64 = 1 << 24;

/// One stored chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stored {
    /// Its number in the grid, last axis fastest.
    pub(super) chunk: u64,
    /// Its first byte in the file.
    pub(super) start: u64,
    /// Its length in bytes.
    pub(super) bytes: u64,
}

/// The stored chunks of a dataset, in the order of the grid.
///
/// A filter that makes a chunk no smaller is left out for that chunk, and the index says so. Zarr has
/// one chain of codecs for all chunks: it is the chain of most chunks, and the other chunks are odd.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Table {
    /// The filters that most chunks leave out, a bit for each.
    pub(super) skipped: u32,
    /// The chunks that leave out exactly those.
    pub(super) regular: Vec<Stored>,
    /// The others, with the filters that they leave out.
    pub(super) odd: Vec<(Stored, u32)>,
}

impl Table {
    fn of(chunks: Vec<(Stored, u32)>) -> Self {
        let mut counts = HashMap::<u32, usize>::new();
        for (_, skipped) in &chunks {
            *counts.entry(*skipped).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|&(skipped, count)| (count, !skipped));
        let skipped = most.map_or(0, |(skipped, _)| skipped);
        let (regular, odd) = chunks.into_iter().partition::<Vec<_>, _>(|chunk| chunk.1 == skipped);
        Self { skipped, regular: regular.into_iter().map(|(stored, _)| stored).collect(), odd }
    }

    /// The numbers of all chunks, in no order.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> + Send + '_ {
        let odd = self.odd.iter().map(|(stored, _)| stored.chunk);
        self.regular.iter().map(|stored| stored.chunk).chain(odd)
    }

    /// The chunk with this number in the grid, with the filters that it leaves out.
    pub(super) fn find(&self, chunk: u64) -> Option<(Stored, u32)> {
        match self.regular.binary_search_by_key(&chunk, |stored| stored.chunk) {
            Ok(at) => self.regular.get(at).map(|stored| (*stored, self.skipped)),
            Err(_) => {
                let at = self.odd.binary_search_by_key(&chunk, |(stored, _)| stored.chunk).ok()?;
                self.odd.get(at).copied()
            }
        }
    }
}

/// An index of chunks, and the facts needed to read it.
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
    /// How many filters a chunk goes through …
    pub(super) filters: usize,
    /// … unless it is at the edge and edge chunks go through none.
    pub(super) unfiltered_edges: bool,
}

impl Index {
    /// Reads the index. The error says why no reference to its chunks can be made.
    pub(super) fn read(&self, file: &Hdf5File) -> Result<Table, String> {
        // The parser lists implicit chunks before they can be counted.
        let counts = self.shape.iter().zip(&self.chunk_shape);
        let count = counts
            .map(|(&extent, &chunk)| extent.div_ceil(u64::from(chunk).max(1)))
            .try_fold(1u64, u64::checked_mul);
        if self.indexing == Some(ChunkIndexing::Implicit) && count.is_none_or(|n| n > IMPLICIT_MAX)
        {
            return Err(format!("more than {IMPLICIT_MAX} chunks without an index"));
        }
        let entries = self.entries(file).map_err(|cause| format!("its chunk index: {cause}"))?;
        let file_bytes = file.storage().len();
        let base = file.superblock().base_address;
        let mut table = Vec::with_capacity(entries.len());
        for entry in &entries {
            let Some(chunk) = self.number(&entry.offsets)? else { continue };
            let bytes = if self.filters == 0 { self.chunk_bytes } else { entry.size };
            // A single chunk whose filters were all left out has no size of its own.
            let bytes = if bytes == 0 { self.chunk_bytes } else { bytes };
            let end = entry.address.checked_add(bytes);
            if end.is_none_or(|end| end > file_bytes) {
                let at = &entry.offsets;
                return Err(format!("the chunk at {at:?} lies beyond the end of the file"));
            }
            let start = entry.address.saturating_add(base);
            table.push((Stored { chunk, start, bytes }, self.skipped(entry)));
        }
        table.sort_unstable_by_key(|(stored, _)| stored.chunk);
        if table.windows(2).any(|pair| matches!(pair, [a, b] if a.0.chunk == b.0.chunk)) {
            return Err("its chunk index has a chunk twice".to_owned());
        }
        Ok(Table::of(table))
    }

    /// The filters that were left out when the chunk was written, a bit for each.
    fn skipped(&self, entry: &ChunkEntry) -> u32 {
        let all = ((1u64 << self.filters.min(32)) - 1) as u32;
        let chunks = entry.offsets.iter().zip(&self.chunk_shape).zip(&self.shape);
        let mut ends = chunks.map(|((&at, &n), &extent)| (at.saturating_add(u64::from(n)), extent));
        if self.unfiltered_edges && ends.any(|(end, extent)| end > extent) {
            return all;
        }
        entry.filter_mask & all
    }

    /// The number of the chunk that begins at these elements; `None` for a chunk that the dataset lost
    /// by shrinking.
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
        // Both indexes below count chunks in the grid of the largest shape. A dataset with an
        // unlimited axis uses another index, so there is always a largest shape.
        let largest = self.max_shape.as_deref().unwrap_or(&self.shape);
        // The first and the last chunk of that grid that the dataset has now.
        let first = vec![0; rank];
        let extents = self.shape.iter().zip(&self.chunk_shape);
        let last: Option<Vec<u64>> = extents
            .map(|(&extent, &chunk)| extent.checked_sub(1)?.checked_div(u64::from(chunk)))
            .collect();
        let Some(last) = last else { return Ok(Vec::new()) };
        let present = Some((first.as_slice(), last.as_slice()));
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
                present,
                storage.len(),
            ),
            Some(ChunkIndexing::FixedArray { .. }) => collect_fixed_array_chunk_entries_storage(
                storage,
                self.address,
                offset,
                length,
                largest,
                &self.chunk_shape,
                // With bounds, the parser would allocate a list as long as the shape claims.
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
                // The last value is an offset into the element, always zero.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_array_has_the_filters_of_most_chunks() {
        let stored = |chunk| Stored { chunk, start: 10 * chunk, bytes: 10 };
        let table = Table::of(vec![(stored(0), 1), (stored(3), 0), (stored(4), 1)]);
        assert_eq!((table.skipped, table.regular.len(), table.odd.len()), (1, 2, 1));
        assert_eq!(table.find(3), Some((stored(3), 0)));
        assert_eq!(table.find(4), Some((stored(4), 1)));
        assert_eq!(table.find(2), None);
        let tie = Table::of(vec![(stored(0), 2), (stored(1), 0)]);
        assert_eq!(tie.skipped, 0, "as the file says, if it does not matter");
        assert_eq!(Table::of(Vec::new()), Table::default());
    }
}
