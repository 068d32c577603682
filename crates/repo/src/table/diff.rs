//! The rows in which two versions of a table differ.
//!
//! Runs that both versions begin with hold the same rows in both and are not walked. The runs after them
//! are, side by side. A key that only one side has is looked up in the common runs, which tells what the
//! other side has.

use std::collections::VecDeque;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, UInt32Array};
use arrow_select::take::take_arrays;
use chunkyard_store::Result;
use serde::Serialize;

use super::block::{Block, batch_of, failed};
use super::gather;
use super::get::{lookup, same_row};
use super::key::KeyColumn;
use super::rows::{TableFiles, TableRows};
use super::scan::{Layers, Walk};
use crate::node::Inventory;
use crate::run::{self, Keys};

/// Keys compared at once.
const BATCH_ROWS: usize = 8192;

/// Rows that differ, in the order of their keys.
#[derive(Debug, Clone)]
pub struct RowChanges {
    /// The keys.
    pub keys: RecordBatch,
    /// Which keys have a row in the first version.
    pub was: BooleanArray,
    /// The rows of the first version, aligned to the keys; null where there is none.
    pub before: RecordBatch,
    /// Which keys have a row in the second version.
    pub is: BooleanArray,
    /// The rows of the second version, aligned to the keys; null where there is none.
    pub after: RecordBatch,
}

/// How many rows of a table differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RowCounts {
    /// The table.
    pub path: String,
    /// Keys only in the second version.
    pub added: u64,
    /// Keys in both, with different values.
    pub replaced: u64,
    /// Keys only in the first version.
    pub removed: u64,
}

/// A comparison under way.
pub(crate) struct RowDiff {
    files: TableFiles,
    kind: TableRows,
    common: Layers,
    sides: [Side; 2],
}

/// The runs of one version that the other does not begin with.
struct Side {
    walk: Walk,
    /// Rows that were read and not compared.
    ahead: VecDeque<(Block, usize)>,
    at_end: bool,
}

impl RowDiff {
    /// Compares the runs of one version with all that another consists of.
    pub(crate) fn new(
        files: &TableFiles,
        kind: TableRows,
        before: &[Inventory],
        after: &Layers,
    ) -> Self {
        let (old, new) = (run::runs(before), run::runs(&after.entries));
        let same = |(a, b): &(&Vec<Inventory>, &Vec<Inventory>)| {
            let key = |entry: &Inventory| (entry.file.clone(), entry.row, entry.rows);
            a.iter().map(key).eq(b.iter().map(key))
        };
        let common = old.iter().zip(&new).take_while(same).count();
        let layers =
            |runs: &[Vec<Inventory>]| Layers { entries: runs.concat(), memory: Vec::new() };
        let side = |layers: Layers| Side {
            walk: Walk::new(files, kind.clone(), &layers, Keys::ALL).with_removed(),
            ahead: VecDeque::new(),
            at_end: false,
        };
        Self {
            common: layers(old.get(..common).unwrap_or_default()),
            sides: [
                side(layers(old.get(common..).unwrap_or_default())),
                side(Layers {
                    memory: after.memory.clone(),
                    ..layers(new.get(common..).unwrap_or_default())
                }),
            ],
            files: files.clone(),
            kind,
        }
    }

    /// The next rows that differ; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<RowChanges>> {
        loop {
            let mut pairs: Vec<[Option<(Block, usize)>; 2]> = Vec::new();
            while pairs.len() < BATCH_ROWS {
                match self.pair().await? {
                    Some(pair) => pairs.push(pair),
                    None => break,
                }
            }
            if pairs.is_empty() {
                return Ok(None);
            }
            if let Some(changes) = self.compare(&pairs).await? {
                return Ok(Some(changes));
            }
        }
    }

    /// Counts what differs; `None` if nothing does.
    pub(crate) async fn count(mut self, path: &str) -> Result<Option<RowCounts>> {
        let mut counts = RowCounts { path: path.to_owned(), added: 0, replaced: 0, removed: 0 };
        while let Some(changes) = self.next().await? {
            let rows = changes.keys.num_rows() as u64;
            let (was, is) = (changes.was.true_count() as u64, changes.is.true_count() as u64);
            counts.added += rows - was;
            counts.removed += rows - is;
            counts.replaced += (was + is).saturating_sub(rows);
        }
        let none = counts.added + counts.replaced + counts.removed == 0;
        Ok((!none).then_some(counts))
    }

    /// The least key that is left, with the row of each side that has one.
    async fn pair(&mut self) -> Result<Option<[Option<(Block, usize)>; 2]>> {
        for side in &mut self.sides {
            side.fill(&self.kind).await?;
        }
        let [old, new] = &mut self.sides;
        let key =
            |side: &Side| side.ahead.front().map(|(block, row)| block.keys().get(*row).to_vec());
        let (a, b) = (key(old), key(new));
        Ok(match (a, b) {
            (None, None) => None,
            (Some(_), None) => Some([old.ahead.pop_front(), None]),
            (None, Some(_)) => Some([None, new.ahead.pop_front()]),
            (Some(a), Some(b)) if a < b => Some([old.ahead.pop_front(), None]),
            (Some(a), Some(b)) if b < a => Some([None, new.ahead.pop_front()]),
            _ => Some([old.ahead.pop_front(), new.ahead.pop_front()]),
        })
    }

    async fn compare(&self, pairs: &[[Option<(Block, usize)>; 2]]) -> Result<Option<RowChanges>> {
        let key_of = |pair: &[Option<(Block, usize)>; 2]| pair.iter().flatten().next().cloned();
        let width = self.kind.spec.schema().fields().len();
        let key_rows: Vec<(Block, usize)> = pairs.iter().filter_map(key_of).collect();
        let keys: Vec<ArrayRef> = (0..self.kind.spec.key())
            .map(|at| column(&self.kind, &key_rows, at))
            .collect::<Result<_>>()?;
        // What the runs below say about keys that one side does not have.
        let below = if self.common.entries.is_empty()
            || pairs.iter().all(|p| p.iter().all(Option::is_some))
        {
            None
        } else {
            let encoded = KeyColumn::encode(&keys);
            Some(lookup(&self.files, &self.kind, &self.common, &encoded).await?)
        };
        let whole: Vec<Vec<ArrayRef>> = (0..2)
            .map(|side| {
                let rows: Vec<(Block, usize)> = pairs
                    .iter()
                    .filter_map(|pair| pair[side].clone().or_else(|| key_of(pair)))
                    .collect();
                (0..width).map(|at| column(&self.kind, &rows, at)).collect()
            })
            .collect::<Result<_>>()?;
        // Of each side and key: the columns that have the row, or none.
        let row = |side: usize, at: usize| -> Option<(&[ArrayRef], usize)> {
            match (&pairs[at][side], &below) {
                (Some((block, row)), _) => {
                    (!block.is_removed(*row)).then_some((whole[side].as_slice(), at))
                }
                (None, Some(below)) => below.found[at].then_some((below.columns.as_slice(), at)),
                (None, None) => None,
            }
        };
        let mut differ: Vec<u32> = Vec::new();
        for at in 0..pairs.len() {
            let same = match (row(0, at), row(1, at)) {
                (None, None) => true,
                (Some((a, _)), Some((b, _))) => same_row(a, at, b, at),
                _ => false,
            };
            if !same {
                differ.push(at as u32);
            }
        }
        if differ.is_empty() {
            return Ok(None);
        }
        let picked = UInt32Array::from(differ.clone());
        let rows = differ.len();
        let keys = take_arrays(&keys, &picked, None).map_err(failed)?;
        let mut halves = Vec::with_capacity(2);
        for side in 0..2 {
            let sources: Vec<_> = differ.iter().map(|at| row(side, *at as usize)).collect();
            let has: BooleanArray = sources.iter().map(|source| Some(source.is_some())).collect();
            let column = |at: usize| {
                let rows: Vec<_> = sources
                    .iter()
                    .map(|source| source.map(|(columns, row)| (&columns[at], row)))
                    .collect();
                gather::rows(self.kind.spec.schema().field(at).data_type(), &rows)
            };
            let columns = (0..width).map(column).collect::<Result<_>>()?;
            halves.push((has, batch_of(&super::nullable(&self.kind.spec), columns, rows)?));
        }
        let keys = batch_of(&self.kind.spec.key_schema(), keys, rows)?;
        let mut halves = halves.into_iter();
        let (Some((was, before)), Some((is, after))) = (halves.next(), halves.next()) else {
            return Ok(None);
        };
        Ok(Some(RowChanges { keys, was, before, is, after }))
    }
}

impl Side {
    async fn fill(&mut self, kind: &TableRows) -> Result<()> {
        while self.ahead.is_empty() && !self.at_end {
            match self.walk.next().await? {
                None => self.at_end = true,
                Some(merged) => {
                    let block = Block::in_order(&kind.spec, merged.columns, merged.removed);
                    self.ahead.extend((0..merged.rows).map(|row| (block.clone(), row)));
                }
            }
        }
        Ok(())
    }
}

/// One column of rows, which exist.
fn column(kind: &TableRows, rows: &[(Block, usize)], at: usize) -> Result<ArrayRef> {
    let mut last: Option<&Block> = None;
    let mut sources = Vec::with_capacity(rows.len());
    for (block, row) in rows {
        let block = last.filter(|last| last.is(block)).unwrap_or(block);
        last = Some(block);
        sources.push(Some((&block.columns()[at], *row)));
    }
    gather::rows(kind.spec.schema().field(at).data_type(), &sources)
}
