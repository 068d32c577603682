//! Walking a whole manifest without holding its rows: for those who look at everything.

use std::sync::Arc;

use bytes::Bytes;

use super::read::Block;
use crate::error::Result;
use crate::repo::columns::Columns;
use crate::repo::parquet_file::{Label, Tail};
use crate::repo::parquet_stream;

fn label(dataset_id: &str) -> Label<'_> {
    Label { format: "manifest", dataset_id, created_ms: 0 }
}

/// All rows of a manifest in memory, some thousands at a time.
pub(in crate::repo) fn stream_blocks(
    file: &Arc<str>,
    dataset_id: &str,
    bytes: &Bytes,
    tail: Option<Tail>,
) -> Result<impl Iterator<Item = Result<Block>>> {
    let batches = parquet_stream::stream(file, &label(dataset_id), bytes, tail, None)?;
    let (file, mut first_row) = (file.clone(), 0);
    Ok(batches.map(move |batch| {
        let block = Block::new(&file, first_row, &batch?)?;
        first_row += block.len() as u64;
        Ok(block)
    }))
}

/// Calls `each` with the chunk files under `c/` that a manifest names, each at least once. Decodes
/// no other column.
pub(in crate::repo) fn chunk_files(
    file: &Arc<str>,
    dataset_id: &str,
    bytes: &Bytes,
    tail: Option<Tail>,
    mut each: impl FnMut(&str),
) -> Result<()> {
    let only = ["chunk_file"];
    let mut last = String::new();
    for batch in parquet_stream::stream(file, &label(dataset_id), bytes, tail, Some(&only))? {
        let names = Columns::of_batch(file, &batch?).strings("chunk_file")?;
        for name in names.iter().flatten() {
            // Neighbours are mostly in the same file.
            if name != last {
                name.clone_into(&mut last);
                if !name.contains("://") {
                    each(name);
                }
            }
        }
    }
    Ok(())
}
