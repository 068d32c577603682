//! Sorted runs: rows in Parquet files, sorted by a key of bytes, newer runs over older ones.
//!
//! Chunk manifests and tables are both made of them. A node names its runs in inventory entries,
//! oldest first; the newest run that knows a key decides. This module knows keys, entries, pages and
//! levels. What a row says is the business of a [`Rows`]: `manifest` and `table` each have one.
//!
//! [`Files`] fetches and caches, `lookup` finds keys, [`Cursor`] walks a run, `levels` keeps the
//! number of runs bounded.

mod cursor;
mod fetch;
pub(super) mod levels;
mod lookup;

use std::fmt::Debug;
use std::ops::{Bound, Range};
use std::sync::Arc;

use arrow_array::RecordBatch;
use chunkyard_store::Result;
use parquet::arrow::ProjectionMask;

pub(super) use cursor::Cursor;
pub(super) use fetch::{Files, Opened, Part, path_of, within_groups};

use super::node::Inventory;
use super::parquet_file::Footer;

/// How rows of one kind stand in a file.
pub(super) trait Rows: Clone + Debug + Send + Sync + 'static {
    /// Rows as they are decoded.
    type Block: Block + 'static;
    /// What makes a search for pages fast; built once for each file.
    type Index: Debug + Send + Sync + 'static;

    /// The key `format` of the files.
    const FORMAT: &'static str;

    /// Decodes rows of a file, of which the first has the number `first_row`.
    fn block(&self, file: &Arc<str>, first_row: u64, batch: &RecordBatch) -> Result<Self::Block>;

    /// Decodes all rows of a file.
    fn blocks(&self, footer: &Footer, batches: &[RecordBatch]) -> Result<Vec<Self::Block>> {
        let mut first_row = 0;
        batches
            .iter()
            .map(|batch| {
                let block = self.block(footer.file(), first_row, batch)?;
                first_row += block.len() as u64;
                Ok(block)
            })
            .collect()
    }

    /// Where the rows of an entry end that does not say how many it has.
    fn end(&self, blocks: &Arc<Vec<Self::Block>>, row: u64) -> u64;

    /// Prepares the search for pages.
    fn index(&self, footer: &Footer) -> Result<Self::Index>;

    /// Among the rows of an entry, the pages that can hold keys between two bounds.
    fn find(&self, opened: &Opened<Self::Index>, rows: Range<u64>, keys: Keys<'_>) -> Pages;

    /// The columns that a walk decodes.
    fn columns(&self, _footer: &Footer) -> ProjectionMask {
        ProjectionMask::all()
    }

    /// Memory that an index takes.
    fn weigh(index: &Self::Index) -> usize;
}

/// Consecutive rows of a run, decoded.
pub(super) trait Block: Debug + Send + Sync {
    /// Position of the first row in the file.
    fn first_row(&self) -> u64;
    /// How many there are.
    fn len(&self) -> usize;
    /// The key of a row.
    fn key(&self, at: usize) -> &[u8];
    /// Bytes held, for a cache.
    fn bytes_held(&self) -> usize;

    /// The first of `rows` whose key is not below `key`.
    fn lower_bound(&self, rows: Range<usize>, key: &[u8]) -> usize {
        rows.start + partition(rows.len(), |at| self.key(rows.start + at) < key)
    }

    /// Position of a key among `rows` of this block.
    fn find(&self, rows: Range<usize>, key: &[u8]) -> Option<usize> {
        let rows = rows.start..rows.end.min(self.len());
        let at = self.lower_bound(rows.clone(), key);
        (at < rows.end && self.key(at) == key).then_some(at)
    }
}

/// Keys between two bounds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keys<'a> {
    /// The first one.
    pub(super) from: &'a [u8],
    /// Where they end.
    pub(super) to: Bound<&'a [u8]>,
}

impl<'a> Keys<'a> {
    pub(super) const ALL: Keys<'static> = Keys { from: &[], to: Bound::Unbounded };

    /// One key.
    pub(super) fn only(key: &'a [u8]) -> Self {
        Self { from: key, to: Bound::Included(key) }
    }

    /// Whether some key of an entry can be among them.
    pub(super) fn meet(&self, entry: &Inventory) -> bool {
        let above = entry.coord_max.as_deref().is_none_or(|max| self.from <= max);
        above && entry.coord_min.as_deref().is_none_or(|min| !self.end_before(min))
    }

    /// Whether they all lie below `key`.
    pub(super) fn end_before(&self, key: &[u8]) -> bool {
        match self.to {
            Bound::Included(last) => last < key,
            Bound::Excluded(end) => end <= key,
            Bound::Unbounded => false,
        }
    }
}

/// Where keys can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pages {
    /// Nowhere in the entry.
    Absent,
    /// The file has no usable index; read the entry.
    Unknown,
    /// In these rows of the file.
    Found(Range<u64>),
}

/// The entries of a node grouped into runs, oldest first. The entries of a run are disjoint and in
/// the order of their keys.
pub(super) fn runs(inventories: &[Inventory]) -> Vec<Vec<Inventory>> {
    let mut runs: Vec<Vec<Inventory>> = Vec::new();
    for entry in inventories {
        match runs.last_mut() {
            Some(run) if entry.flags & Inventory::CONTINUES != 0 => run.push(entry.clone()),
            _ => runs.push(vec![entry.clone()]),
        }
    }
    runs
}

/// The first of `count` places for which `before` does not hold.
pub(super) fn partition(count: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}
