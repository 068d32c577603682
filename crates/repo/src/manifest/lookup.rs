//! Questions about an array's references: where are these chunks, and which chunks exist.

use chunkyard_store::Result;

use super::Payload;
use super::rows::{Manifests, References};
use crate::coord::{self, Coord};
use crate::node::{Inventory, Node};
use crate::run::{Cursor, Keys, runs};

impl Manifests {
    /// Finds the references of many chunks; the newest entry that knows a chunk decides.
    /// The answer has one element per coordinate: `None` when no entry knows it.
    pub(crate) async fn lookup(
        &self,
        node: &Node,
        coords: &[Coord],
    ) -> Result<Vec<Option<Payload>>> {
        let mut found: Vec<Option<Payload>> = vec![None; coords.len()];
        let mut open: Vec<usize> = (0..coords.len()).collect();
        open.sort_by(|&a, &b| coords[a].cmp(&coords[b]));
        let may_hold = |entry: &Inventory, at: usize| {
            let coord = coords[at].as_bytes();
            let index = coord::decode(coord, entry.extent.len()).ok();
            entry.may_hold(coord, index.as_deref())
        };
        let hit = |at: usize, block: &super::Block, row: usize| {
            found[at] = Some(block.payload(row)?);
            Ok(())
        };
        let kind = References::of(node);
        let key = |at: usize| coords[at].as_bytes();
        self.find_all(&kind, &node.inventories, open, key, may_hold, hit).await?;
        Ok(found)
    }
}

/// A merged walk over runs of one array, in order of coordinates; the newest run wins.
/// Holds one tile per run in memory.
#[derive(Debug)]
pub(crate) struct Scan {
    manifests: Manifests,
    references: References,
    cursors: Vec<Cursor<References>>,
}

impl Scan {
    /// Walks all references of a node, or the entries that meet the box `within` (chunk indices,
    /// half-open): a superset of the box.
    pub(crate) fn new(manifests: &Manifests, node: &Node, within: Option<&[(u64, u64)]>) -> Self {
        Self::over(manifests, node, runs(&node.inventories), within)
    }

    pub(super) fn over(
        manifests: &Manifests,
        node: &Node,
        runs: Vec<Vec<Inventory>>,
        within: Option<&[(u64, u64)]>,
    ) -> Self {
        let meets = |entry: &Inventory| {
            within.is_none_or(|within| {
                entry.extent.len() != within.len()
                    || entry.extent.iter().zip(within).all(|(a, b)| a.0 < b.1 && b.0 < a.1)
            })
        };
        let cursors = runs
            .into_iter()
            .map(|run| Cursor::new(run.into_iter().filter(meets).collect(), Keys::ALL));
        Self {
            manifests: manifests.clone(),
            references: References::of(node),
            cursors: cursors.collect(),
        }
    }

    /// The next reference (which may be a removal), or `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<(Vec<u8>, Payload)>> {
        let mut least: Option<usize> = None;
        for at in 0..self.cursors.len() {
            self.cursors[at].settle(&self.manifests, &self.references).await?;
            let Some(coord) = self.cursors[at].key() else { continue };
            // `<=`: cursors go from oldest to newest, and the newest of equals wins.
            let wins = least
                .and_then(|least| self.cursors[least].key())
                .is_none_or(|least| coord <= least);
            if wins {
                least = Some(at);
            }
        }
        let Some(winner) = least else { return Ok(None) };
        let Some((block, rows)) = self.cursors[winner].current() else { return Ok(None) };
        let (coord, payload) = (block.coord(rows.start).to_vec(), block.payload(rows.start)?);
        for cursor in &mut self.cursors {
            if cursor.key() == Some(&coord) {
                cursor.advance(1);
            }
        }
        Ok(Some((coord, payload)))
    }
}
