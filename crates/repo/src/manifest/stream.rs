//! Walking a whole manifest without holding its rows: for callers that look at everything.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_store::Result;

use super::read::Block;
use crate::columns::Columns;
use crate::node::{Inventory, Node};
use crate::parquet_file::{Label, Tail};
use crate::parquet_stream;

fn label(dataset_id: &str) -> Label<'_> {
    Label { format: "manifest", dataset_id, created_ms: 0 }
}

/// All rows of a manifest in memory, some thousands at a time.
pub(crate) fn stream_blocks(
    file: &Arc<str>,
    dataset_id: &str,
    bytes: &Bytes,
    tail: Option<Tail>,
) -> Result<impl Iterator<Item = Result<Block>>> {
    let batches = parquet_stream::stream(file, &label(dataset_id), bytes, tail, None)?;
    let (file, mut first_row, is_bare) = (file.clone(), 0, batches.is_bare());
    Ok(batches.map(move |batch| {
        let mut block = Block::new(&file, first_row, &batch?)?;
        block.is_bare = is_bare;
        first_row += block.len() as u64;
        Ok(block)
    }))
}

/// Rows of a manifest that belong to an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Rows {
    /// The first of them.
    first: u64,
    /// Their number; unknown in files of the bare draft, where they end with the array's rows.
    count: Option<u64>,
    array_id: u32,
}

impl Rows {
    /// The rows of an entry of an array.
    pub(crate) fn of(entry: &Inventory, array: &Node) -> Self {
        Self { first: entry.row, count: entry.rows, array_id: array.id }
    }
}

/// Calls `each` with the chunk files under `c/` that these rows of a manifest name, each at least
/// once. Decodes no other column, unless it must to know where an array's rows end.
pub(crate) fn chunk_files(
    file: &Arc<str>,
    dataset_id: &str,
    bytes: &Bytes,
    tail: Option<Tail>,
    rows: impl IntoIterator<Item = Rows>,
    mut each: impl FnMut(&str),
) -> Result<()> {
    let mut wanted = RowWalk::new(rows.into_iter().collect());
    let only: &[&str] = match wanted.is_counted() {
        true => &["chunk_file"],
        false => &["array_id", "chunk_file"],
    };
    let mut last = String::new();
    let mut row = 0;
    for batch in parquet_stream::stream(file, &label(dataset_id), bytes, tail, Some(only))? {
        let batch = batch?;
        let columns = Columns::of_batch(file, &batch);
        let names = columns.strings("chunk_file")?;
        let ids = columns.uints("array_id")?;
        for (name, id) in names.iter().zip(ids.iter()) {
            let needed = wanted.contains(row, id);
            row += 1;
            // Neighbours are mostly in the same file.
            let Some(name) = name.filter(|name| needed && *name != last) else { continue };
            name.clone_into(&mut last);
            if !name.contains("://") {
                each(name);
            }
        }
    }
    Ok(())
}

/// Which rows are wanted, for a walk over all rows in order.
struct RowWalk {
    /// Ranges that begin at a later row, the next one last.
    ahead: Vec<Rows>,
    /// Ends of the ranges that have begun and have a count.
    end: u64,
    /// Arrays whose rows have begun and have no count.
    open: HashSet<u64>,
}

impl RowWalk {
    fn new(mut ahead: Vec<Rows>) -> Self {
        ahead.sort_unstable_by(|a, b| b.cmp(a));
        Self { ahead, end: 0, open: HashSet::new() }
    }

    fn is_counted(&self) -> bool {
        self.ahead.iter().all(|rows| rows.count.is_some())
    }

    fn contains(&mut self, row: u64, array_id: Option<u64>) -> bool {
        while let Some(begun) = self.ahead.pop_if(|rows| rows.first <= row) {
            match begun.count {
                Some(count) => self.end = self.end.max(begun.first.saturating_add(count)),
                None => drop(self.open.insert(begun.array_id.into())),
            }
        }
        self.open.retain(|id| array_id == Some(*id));
        row < self.end || !self.open.is_empty()
    }
}
