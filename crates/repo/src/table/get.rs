//! Looking rows up by key.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, UInt64Array};
use arrow_select::concat::concat;
use arrow_select::take::take;
use chunkyard_store::Result;

use super::block::{Block, failed};
use super::gather;
use super::key::KeyColumn;
use super::rows::{TableFiles, TableRows};
use super::scan::Layers;
use crate::node::Inventory;
use crate::run::Block as _;

/// Keys looked up before their rows are gathered: it bounds the pages that are held.
const KEYS_AT_ONCE: usize = 4096;

/// Rows aligned to the keys asked for.
pub(crate) struct Hits {
    /// All columns of the table, null where there is no row.
    pub(crate) columns: Vec<ArrayRef>,
    /// Whether there is a row.
    pub(crate) found: Vec<bool>,
    /// Whether any layer knows the key, if only as deleted.
    pub(crate) known: Vec<bool>,
}

/// Finds the newest row of each key.
pub(crate) async fn lookup(
    files: &TableFiles,
    kind: &TableRows,
    layers: &Layers,
    keys: &KeyColumn,
) -> Result<Hits> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    if !order.is_sorted_by(|a, b| keys.get(*a) <= keys.get(*b)) {
        order.sort_by(|a, b| keys.get(*a).cmp(keys.get(*b)));
    }
    let (mut found, mut known) = (vec![false; keys.len()], vec![false; keys.len()]);
    let width = kind.spec.schema().fields().len();
    let mut pieces: Vec<Vec<ArrayRef>> = vec![Vec::new(); width];
    for open in order.chunks(KEYS_AT_ONCE) {
        let hits = lookup_some(files, kind, layers, keys, open).await?;
        for (&at, hit) in open.iter().zip(&hits) {
            known[at] = hit.is_some();
            found[at] = hit.as_ref().is_some_and(|(block, row)| !block.is_removed(*row));
        }
        for (at, pieces) in pieces.iter_mut().enumerate() {
            pieces.push(gather(kind, at, &hits)?);
        }
    }
    // Back from the order of the keys to the order of the question.
    let mut places = vec![0u64; keys.len()];
    order.iter().enumerate().for_each(|(place, at)| places[*at] = place as u64);
    let places = UInt64Array::from(places);
    let mut columns = Vec::with_capacity(width);
    for (at, pieces) in pieces.iter().enumerate() {
        let pieces: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
        let column = match pieces.as_slice() {
            [] => arrow_array::new_empty_array(kind.spec.schema().field(at).data_type()),
            pieces => concat(pieces).map_err(failed)?,
        };
        columns.push(take(&column, &places, None).map_err(failed)?);
    }
    Ok(Hits { columns, found, known })
}

type Hit = Option<(Block, usize)>;

async fn lookup_some(
    files: &TableFiles,
    kind: &TableRows,
    layers: &Layers,
    keys: &KeyColumn,
    numbers: &[usize],
) -> Result<Vec<Hit>> {
    let mut hits: Vec<Hit> = vec![None; numbers.len()];
    let key = |at: usize| keys.get(numbers[at]);
    let mut open: Vec<usize> = (0..numbers.len()).collect();
    for block in layers.memory.iter().rev() {
        open.retain(|&at| match block.find(0..block.len(), key(at)) {
            Some(row) => {
                hits[at] = Some(((**block).clone(), row));
                false
            }
            None => true,
        });
    }
    let may_hold = |entry: &Inventory, at: usize| entry.may_hold(key(at), None);
    let hit = |at: usize, block: &Block, row: usize| {
        hits[at] = Some((block.clone(), row));
        Ok(())
    };
    files.find_all(kind, &layers.entries, open, key, may_hold, hit).await?;
    Ok(hits)
}

/// One column of hits; null where there is none, or where it is a deletion.
fn gather(kind: &TableRows, at: usize, hits: &[Hit]) -> Result<ArrayRef> {
    // Copies of a block share its columns; neighbours share a page.
    let mut last: Option<&Block> = None;
    let mut rows = Vec::with_capacity(hits.len());
    for hit in hits {
        let live = hit.as_ref().filter(|(block, row)| !block.is_removed(*row));
        rows.push(live.map(|(block, row)| {
            let block = last.filter(|last| last.is(block)).unwrap_or(block);
            last = Some(block);
            (&block.columns()[kind.place(block, at)], *row)
        }));
    }
    gather::rows(kind.spec.schema().field(at).data_type(), &rows)
}

/// Whether two rows are equal in all columns.
pub(crate) fn same_row(a: &[ArrayRef], at: usize, b: &[ArrayRef], other: usize) -> bool {
    let equal = |(a, b): (&ArrayRef, &ArrayRef)| {
        Arc::ptr_eq(a, b) && at == other || a.slice(at, 1).to_data() == b.slice(other, 1).to_data()
    };
    a.len() == b.len() && a.iter().zip(b).all(equal)
}
