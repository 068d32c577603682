//! Walking one run in the order of its keys.

use std::collections::VecDeque;
use std::ops::{Bound, Range};
use std::sync::Arc;

use chunkyard_store::Result;

use super::fetch::{Files, Opened, Part};
use super::{Block, Keys, Rows};
use crate::node::Inventory;

/// An open file, and the rows of it that are still to be walked.
type Windows<I> = (Arc<Opened<I>>, VecDeque<Range<u64>>);

/// A place in a run. Holds one row group in memory at most.
#[derive(Debug)]
pub(crate) struct Cursor<R: Rows> {
    entries: VecDeque<Inventory>,
    /// What is left of the open file.
    windows: Option<Windows<R::Index>>,
    part: Option<Part<R::Block>>,
    block: usize,
    row: usize,
    end: usize,
    from: Vec<u8>,
    to: Bound<Vec<u8>>,
}

impl<R: Rows> Cursor<R> {
    /// Over the entries of a run.
    pub(crate) fn new(run: Vec<Inventory>, keys: Keys<'_>) -> Self {
        let entries = run.into_iter().filter(|entry| keys.meet(entry)).collect();
        Self {
            entries,
            windows: None,
            part: None,
            block: 0,
            row: 0,
            end: 0,
            from: keys.from.to_vec(),
            to: keys.to.map(<[u8]>::to_vec),
        }
    }

    /// Over rows that are in memory.
    pub(crate) fn over(part: Part<R::Block>, keys: Keys<'_>) -> Self {
        let mut cursor = Self::new(Vec::new(), keys);
        cursor.enter(part);
        cursor
    }

    /// Moves to a row, loading what comes next where the rows in memory end.
    pub(crate) async fn settle(&mut self, files: &Files<R>, kind: &R) -> Result<()> {
        while self.row >= self.end {
            if self.next_block() {
                continue;
            }
            self.part = None;
            if let Some((opened, windows)) = &mut self.windows {
                match windows.pop_front() {
                    Some(rows) => {
                        let part = files.window(kind, opened, rows).await?;
                        self.enter(part);
                    }
                    None => self.windows = None,
                }
                continue;
            }
            let Some(entry) = self.entries.pop_front() else { return Ok(()) };
            let keys = Keys { from: &self.from, to: self.to.as_ref().map(Vec::as_slice) };
            match files.windows(kind, &entry, keys).await? {
                Some((opened, windows)) => self.windows = Some((opened, windows.into())),
                None => {
                    let part = files.whole(kind, &entry).await?;
                    self.enter(part);
                }
            }
        }
        Ok(())
    }

    fn enter(&mut self, part: Part<R::Block>) {
        self.part = Some(part);
        (self.block, self.row, self.end) = (0, 0, 0);
        self.enter_block();
    }

    fn next_block(&mut self) -> bool {
        let more = self.part.as_ref().is_some_and(|p| p.pieces().nth(self.block + 1).is_some());
        if more {
            self.block += 1;
            self.enter_block();
        }
        more
    }

    /// Takes the rows of the current block that lie between the bounds.
    fn enter_block(&mut self) {
        let piece = self.part.as_ref().and_then(|part| part.pieces().nth(self.block));
        let Some((block, rows)) = piece else { return };
        let start = match self.from.is_empty() {
            true => rows.start,
            false => block.lower_bound(rows.clone(), &self.from),
        };
        let end = match &self.to {
            Bound::Unbounded => rows.end,
            Bound::Excluded(end) => block.lower_bound(rows, end),
            Bound::Included(last) => {
                let at = block.lower_bound(rows.clone(), last);
                if at < rows.end && block.key(at) == last { at + 1 } else { at }
            }
        };
        (self.row, self.end) = (start, end.max(start));
    }

    /// The current row and the end of its block.
    pub(crate) fn current(&self) -> Option<(&R::Block, Range<usize>)> {
        if self.row >= self.end {
            return None;
        }
        let (block, _) = self.part.as_ref()?.pieces().nth(self.block)?;
        Some((block, self.row..self.end))
    }

    /// The key of the current row.
    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.current().map(|(block, rows)| block.key(rows.start))
    }

    /// Goes on by some rows of the block.
    pub(crate) fn advance(&mut self, rows: usize) {
        self.row += rows;
    }
}
