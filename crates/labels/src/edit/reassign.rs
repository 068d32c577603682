//! Giving supervoxels to other bodies.

use std::collections::{BTreeMap, BTreeSet};

use chunkyard_store::{Error, Result};

use super::changes::{Changes, Move};
use crate::Labelmap;
use crate::rows::{BlockKey, Body, Bounds, IndexRow, Part, Parts, Supervoxel, insert};

/// A body that is counted from parts.
#[derive(Default)]
pub(super) struct Sum {
    supervoxels: BTreeSet<u64>,
    voxels: u64,
    bounds: Option<Bounds>,
}

impl Sum {
    pub(super) fn add(&mut self, part: &Part, at: [u32; 3], block: [u32; 3]) {
        self.supervoxels.insert(part.supervoxel);
        self.voxels += u64::from(part.voxels);
        let bounds = part.bounds(at, block);
        self.bounds = Some(self.bounds.map_or(bounds, |all| all.union(&bounds)));
    }

    /// The row of the body; `None` if nothing is left of it.
    pub(super) fn body(&self, body: u64) -> Option<Body> {
        (self.voxels > 0).then(|| Body {
            body,
            voxels: self.voxels,
            supervoxels: self.supervoxels.len() as u64,
            bounds: self.bounds.unwrap_or(Bounds::EMPTY),
            mutation: 0,
        })
    }
}

impl Labelmap {
    /// What it does to the tables when supervoxels go to other bodies. Reads the bodies they leave, and of
    /// the bodies they go to only the blocks concerned.
    pub(super) async fn reassign(&self, moves: &BTreeMap<u64, u64>) -> Result<Changes> {
        let ids: Vec<u64> = moves.keys().copied().collect();
        let known = self.find_supervoxels(&ids).await?;
        let owners = self.bodies_of(&ids).await?;
        let mut changes = Changes::default();
        let mut leaving: BTreeMap<u64, BTreeMap<u64, u64>> = BTreeMap::new();
        for (((&id, &target), known), owner) in moves.iter().zip(&known).zip(owners) {
            changes.mapping.insert(id, target);
            changes.history.insert(id, Move { before: owner, after: target, origin: 0 });
            let Some(known) = known.filter(|known| known.voxels > 0) else { continue };
            if known.body != owner {
                return Err(Error::Corrupt {
                    file: self.path.clone(),
                    what: format!("body of supervoxel {id}"),
                    expected: format!("{owner}, as the mapping says"),
                    found: known.body.to_string(),
                });
            }
            if owner != target {
                changes.supervoxels.insert(id, Supervoxel { body: target, ..known });
                leaving.entry(owner).or_default().insert(id, target);
            }
        }
        self.move_parts(&leaving, &mut changes).await?;
        Ok(changes)
    }

    /// Moves what supervoxels have in each block; `leaving` is supervoxel to new body, by old body.
    pub(super) async fn move_parts(
        &self,
        leaving: &BTreeMap<u64, BTreeMap<u64, u64>>,
        changes: &mut Changes,
    ) -> Result<()> {
        let block = self.layout.block;
        let mut remaining: BTreeMap<u64, Sum> = BTreeMap::new();
        let mut gained: BTreeMap<u64, Sum> = BTreeMap::new();
        let mut arriving: BTreeMap<BlockKey, Parts> = BTreeMap::new();
        for (&body, going) in leaving {
            let sum = remaining.entry(body).or_default();
            for IndexRow { key, parts } in self.index_of(body).await? {
                let mut staying = Parts::new();
                let count = parts.len();
                for part in parts {
                    match going.get(&part.supervoxel) {
                        None => {
                            sum.add(&part, key.1, block);
                            staying.push(part);
                        }
                        Some(&target) => {
                            gained.entry(target).or_default().add(&part, key.1, block);
                            arriving.entry((target, key.1)).or_default().push(part);
                        }
                    }
                }
                if staying.len() < count {
                    changes.index.insert(key, (!staying.is_empty()).then_some(staying));
                }
            }
        }
        self.arrive(arriving, changes).await?;
        self.recount(&remaining, &gained, changes).await
    }

    /// Lays arriving parts over the rows that are there.
    async fn arrive(
        &self,
        arriving: BTreeMap<BlockKey, Parts>,
        changes: &mut Changes,
    ) -> Result<()> {
        let keys: Vec<BlockKey> =
            arriving.keys().filter(|key| !changes.index.contains_key(*key)).copied().collect();
        let found = IndexRow::get(&self.index, &keys).await?;
        let mut stored: BTreeMap<BlockKey, Parts> =
            found.into_iter().flatten().map(|row| (row.key, row.parts)).collect();
        for (key, parts) in arriving {
            let mut row = match changes.index.remove(&key) {
                Some(changed) => changed.unwrap_or_default(),
                None => stored.remove(&key).unwrap_or_default(),
            };
            insert(&mut row, parts)?;
            changes.index.insert(key, Some(row));
        }
        Ok(())
    }

    async fn recount(
        &self,
        remaining: &BTreeMap<u64, Sum>,
        gained: &BTreeMap<u64, Sum>,
        changes: &mut Changes,
    ) -> Result<()> {
        let touched: BTreeSet<u64> = remaining.keys().chain(gained.keys()).copied().collect();
        let touched: Vec<u64> = touched.into_iter().collect();
        for (&body, row) in touched.iter().zip(self.find_bodies(&touched).await?) {
            let none = Body { body, voxels: 0, supervoxels: 0, bounds: Bounds::EMPTY, mutation: 0 };
            let row = match remaining.get(&body) {
                Some(sum) => sum.body(body),
                None => row,
            };
            let mut row = row.unwrap_or(none);
            if let Some(sum) = gained.get(&body) {
                // The row may have any number in it.
                row.voxels = row.voxels.saturating_add(sum.voxels);
                row.supervoxels = row.supervoxels.saturating_add(sum.supervoxels.len() as u64);
                row.bounds = row.bounds.union(&sum.bounds.unwrap_or(Bounds::EMPTY));
            }
            changes.bodies.insert(body, (row.supervoxels > 0).then_some(row));
        }
        Ok(())
    }
}
