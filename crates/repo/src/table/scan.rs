//! Walking the rows of a table in the order of its key, the newest row of each key.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_select::filter::filter;
use chunkyard_store::Result;

use super::block::{Block, failed};
use super::gather;
use super::rows::{TableFiles, TableRows};
use crate::node::{Inventory, Node};
use crate::run::{self, Block as _, Cursor, Keys, Part};

/// Rows of a merged batch. A stretch of one run is not cut below its row group.
const BATCH_ROWS: usize = 8192;

/// What a table consists of: runs in files, and newer ones in memory, each oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layers {
    pub(crate) entries: Vec<Inventory>,
    pub(crate) memory: Vec<Arc<Block>>,
}

impl Layers {
    /// A table as it was committed.
    pub(crate) fn of(node: &Node) -> Self {
        Self { entries: node.inventories.clone(), memory: Vec::new() }
    }
}

/// Rows in the order of their keys.
#[derive(Debug)]
pub(crate) struct Merged {
    /// The columns that the walk wants.
    pub(crate) columns: Vec<ArrayRef>,
    /// Which of the rows are deletions, if any is.
    pub(crate) removed: Option<BooleanBuffer>,
    pub(crate) rows: usize,
}

/// A walk over all layers of a table.
#[derive(Debug)]
pub(crate) struct Walk {
    files: TableFiles,
    kind: TableRows,
    cursors: Vec<Cursor<TableRows>>,
    keeps_removed: bool,
}

impl Walk {
    /// Over the rows between two keys; deletions are left out.
    pub(crate) fn new(
        files: &TableFiles,
        kind: TableRows,
        layers: &Layers,
        keys: Keys<'_>,
    ) -> Self {
        let runs = run::runs(&layers.entries);
        let mut cursors: Vec<_> = runs.into_iter().map(|run| Cursor::new(run, keys)).collect();
        for block in &layers.memory {
            let rows = 0..block.len() as u64;
            let blocks = Arc::new(vec![(**block).clone()]);
            cursors.push(Cursor::over(Part { blocks, rows }, keys));
        }
        Self { files: files.clone(), kind, cursors, keeps_removed: false }
    }

    /// With deletions among the rows.
    pub(crate) fn with_removed(mut self) -> Self {
        self.keeps_removed = true;
        self
    }

    /// The next rows, at least one; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Merged>> {
        loop {
            let stretches = self.gather().await?;
            if stretches.is_empty() {
                return Ok(None);
            }
            let merged = self.merge(&stretches)?;
            if merged.rows > 0 {
                return Ok(Some(merged));
            }
        }
    }

    /// The next rows as stretches of blocks, in order.
    async fn gather(&mut self) -> Result<Vec<(Block, Range<usize>)>> {
        let mut stretches: Vec<(Block, Range<usize>)> = Vec::new();
        let mut rows = 0;
        while rows < BATCH_ROWS {
            for cursor in &mut self.cursors {
                cursor.settle(&self.files, &self.kind).await?;
            }
            self.cursors.retain(|cursor| cursor.current().is_some());
            let Some((winner, second)) = least(&self.cursors) else { break };
            let Some((block, open)) = self.cursors[winner].current() else { break };
            // A single run is handed on as it is; where runs meet, the batch stays small.
            let open = match self.cursors.len() {
                1 => open,
                _ => open.start..open.end.min(open.start + (BATCH_ROWS - rows)),
            };
            let count = match second.and_then(|second| self.cursors[second].key()) {
                None => open.len(),
                Some(limit) => gallop(block, open.clone(), limit).max(1),
            };
            let stretch = open.start..open.start + count;
            let key = block.keys().clone();
            let first = key.get(stretch.start);
            match stretches.last_mut() {
                Some((last, range)) if last.is(block) && range.end == stretch.start => {
                    range.end = stretch.end;
                }
                _ => stretches.push((block.clone(), stretch.clone())),
            }
            rows += count;
            for (at, cursor) in self.cursors.iter_mut().enumerate() {
                if at == winner {
                    cursor.advance(count);
                } else if cursor.key() == Some(first) {
                    // An older row of the same key.
                    cursor.advance(1);
                }
            }
        }
        Ok(stretches)
    }

    fn merge(&self, stretches: &[(Block, Range<usize>)]) -> Result<Merged> {
        let rows = stretches.iter().map(|(_, range)| range.len()).sum();
        let wanted = self.kind.wanted();
        let mut columns = Vec::with_capacity(wanted.len());
        for at in wanted {
            columns.push(self.column(*at, stretches)?);
        }
        let mut removed = None;
        if stretches.iter().any(|(block, _)| block.removed().is_some()) {
            let mut bits = BooleanBufferBuilder::new(rows);
            for (block, range) in stretches {
                match block.removed() {
                    Some(marks) => bits.append_buffer(&marks.slice(range.start, range.len())),
                    None => bits.append_n(range.len(), false),
                }
            }
            removed = Some(bits.finish());
        }
        match removed.take_if(|_| !self.keeps_removed) {
            Some(marks) if marks.count_set_bits() > 0 => {
                let live = BooleanArray::new(!&marks, None);
                let kept = |column: &ArrayRef| filter(column, &live).map_err(failed);
                let columns = columns.iter().map(kept).collect::<Result<_>>()?;
                Ok(Merged { columns, removed: None, rows: live.true_count() })
            }
            _ => Ok(Merged { columns, removed, rows }),
        }
    }

    fn column(&self, at: usize, stretches: &[(Block, Range<usize>)]) -> Result<ArrayRef> {
        // Copies of a block share its columns, so the first copy stands for all.
        let mut blocks: Vec<&Block> = Vec::new();
        let mut parts = Vec::with_capacity(stretches.len());
        for (block, range) in stretches {
            let known = blocks.iter().rev().find(|known| known.is(block)).copied();
            let block = known.unwrap_or_else(|| {
                blocks.push(block);
                block
            });
            parts.push((&block.columns()[self.kind.place(block, at)], range.clone()));
        }
        gather::stretches(&parts)
    }
}

/// The cursor with the least key, the newest of equals, and the one that comes after it.
fn least(cursors: &[Cursor<TableRows>]) -> Option<(usize, Option<usize>)> {
    let mut best: Option<(usize, &[u8])> = None;
    let mut second: Option<(usize, &[u8])> = None;
    for (at, cursor) in cursors.iter().enumerate() {
        let Some(key) = cursor.key() else { continue };
        // `<=`: cursors go from oldest to newest.
        if best.is_none_or(|(_, least)| key <= least) {
            second = best;
            best = Some((at, key));
        } else if second.is_none_or(|(_, next)| key < next) {
            second = Some((at, key));
        }
    }
    best.map(|(at, _)| (at, second.map(|(at, _)| at)))
}

/// How many of `rows` have keys below `limit`. Doubles its steps, since runs often alternate.
fn gallop(block: &Block, rows: Range<usize>, limit: &[u8]) -> usize {
    let mut step = 1;
    while rows.start + step < rows.end && block.key(rows.start + step) < limit {
        step *= 2;
    }
    let known = rows.start + step / 2;
    let end = rows.end.min(rows.start + step + 1);
    block.lower_bound(known.min(end)..end, limit) - rows.start
}
