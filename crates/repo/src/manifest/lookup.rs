//! Questions about an array's references: where are these chunks, and which chunks exist.

use std::collections::VecDeque;

use chunkyard_store::Result;

use super::Payload;
use super::fetch::{Manifests, Part};
use super::read::Block;
use crate::coord::{self, Coord};
use crate::node::{Inventory, Node};

impl Manifests {
    /// Finds the references of many chunks; the newest entry that knows a chunk decides.
    /// The answer has one element per coordinate: `None` when no entry knows it.
    pub(crate) async fn lookup(
        &self,
        node: &Node,
        coords: &[Coord],
    ) -> Result<Vec<Option<Payload>>> {
        let mut found: Vec<Option<Payload>> = vec![None; coords.len()];
        // Sorted, so that neighbours share a page.
        let mut open: Vec<usize> = (0..coords.len()).collect();
        open.sort_by(|&a, &b| coords[a].cmp(&coords[b]));
        for entry in node.inventories.iter().rev() {
            if open.is_empty() {
                break;
            }
            let rank = entry.extent.len();
            let mut page: Option<Part> = None;
            let mut still_open = Vec::new();
            for &at in &open {
                let coord = coords[at].as_bytes();
                let index = coord::decode(coord, rank).ok();
                if !entry.may_hold(coord, index.as_deref()) {
                    still_open.push(at);
                    continue;
                }
                if !page.as_ref().is_some_and(|page| covers(page, coord)) {
                    page = self.page_for(entry, node.id, coord).await?;
                }
                match page.as_ref().map(|page| find(page, coord)).transpose()?.flatten() {
                    Some(payload) => found[at] = Some(payload),
                    None => still_open.push(at),
                }
            }
            open = still_open;
        }
        Ok(found)
    }
}

fn find(part: &Part, coord: &[u8]) -> Result<Option<Payload>> {
    for (block, rows) in part.pieces() {
        if let Some(at) = block.find(rows, coord) {
            return block.payload(at).map(Some);
        }
    }
    Ok(None)
}

fn covers(part: &Part, coord: &[u8]) -> bool {
    let first = part.pieces().next().map(|(block, rows)| block.coord(rows.start) <= coord);
    let last = part.pieces().last().map(|(block, rows)| block.coord(rows.end - 1) >= coord);
    first == Some(true) && last == Some(true)
}

/// The entries of a node grouped into runs, oldest first. The tiles of a run are disjoint and in
/// the order of their coordinates.
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

/// A merged walk over runs of one array, in order of coordinates; the newest run wins.
/// Holds one tile per run in memory.
#[derive(Debug)]
pub(crate) struct Scan {
    manifests: Manifests,
    array_id: u32,
    cursors: Vec<Cursor>,
}

#[derive(Debug)]
struct Cursor {
    tiles: VecDeque<Inventory>,
    part: Option<Part>,
    block: usize,
    row: usize,
    end: usize,
}

impl Scan {
    /// Walks all references of a node, or the entries that meet the box `within` (chunk indices,
    /// half-open): a superset of the box.
    pub(crate) fn new(manifests: &Manifests, node: &Node, within: Option<&[(u64, u64)]>) -> Self {
        Self::over(manifests, node.id, runs(&node.inventories), within)
    }

    pub(super) fn over(
        manifests: &Manifests,
        array_id: u32,
        runs: Vec<Vec<Inventory>>,
        within: Option<&[(u64, u64)]>,
    ) -> Self {
        let meets = |entry: &Inventory| {
            within.is_none_or(|within| {
                entry.extent.len() != within.len()
                    || entry.extent.iter().zip(within).all(|(a, b)| a.0 < b.1 && b.0 < a.1)
            })
        };
        let cursors = runs.into_iter().map(|run| Cursor {
            tiles: run.into_iter().filter(meets).collect(),
            part: None,
            block: 0,
            row: 0,
            end: 0,
        });
        Self { manifests: manifests.clone(), array_id, cursors: cursors.collect() }
    }

    /// The next reference (which may be a removal), or `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<(Vec<u8>, Payload)>> {
        let mut least: Option<usize> = None;
        for at in 0..self.cursors.len() {
            self.cursors[at].settle(&self.manifests, self.array_id).await?;
            let Some(coord) = self.cursors[at].coord() else { continue };
            // `<=`: cursors go from oldest to newest, and the newest of equals wins.
            let wins = least
                .and_then(|least| self.cursors[least].coord())
                .is_none_or(|least| coord <= least);
            if wins {
                least = Some(at);
            }
        }
        let Some(winner) = least else { return Ok(None) };
        let Some((block, row)) = self.cursors[winner].current() else { return Ok(None) };
        let (coord, payload) = (block.coord(row).to_vec(), block.payload(row)?);
        for cursor in &mut self.cursors {
            if cursor.coord() == Some(&coord) {
                cursor.row += 1;
            }
        }
        Ok(Some((coord, payload)))
    }
}

impl Cursor {
    /// Moves to a row, loading the next tile where one ends.
    async fn settle(&mut self, manifests: &Manifests, array_id: u32) -> Result<()> {
        while self.row >= self.end {
            let next = self.part.as_ref().and_then(|part| {
                let (_, rows) = part.pieces().nth(self.block + 1)?;
                Some(rows)
            });
            if let Some(rows) = next {
                (self.block, self.row, self.end) = (self.block + 1, rows.start, rows.end);
                continue;
            }
            let Some(tile) = self.tiles.pop_front() else {
                self.part = None;
                return Ok(());
            };
            let part = manifests.entry(&tile, array_id).await?;
            (self.block, self.row, self.end) = (0, 0, 0);
            if let Some((_, rows)) = part.pieces().next() {
                (self.row, self.end) = (rows.start, rows.end);
            }
            self.part = Some(part);
        }
        Ok(())
    }

    fn current(&self) -> Option<(&Block, usize)> {
        if self.row >= self.end {
            return None;
        }
        let (block, _) = self.part.as_ref()?.pieces().nth(self.block)?;
        Some((block, self.row))
    }

    fn coord(&self) -> Option<&[u8]> {
        self.current().map(|(block, row)| block.coord(row))
    }
}
