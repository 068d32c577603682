//! Cutting supervoxels and bodies along voxels.

use std::collections::{BTreeMap, BTreeSet};

use chunkyard_array::codec::label_block::{Block, encode};
use chunkyard_store::{Error, Noun, Result};

use super::changes::{Changes, Move};
use super::reassign::Sum;
use crate::blocks::{At, BLOCKS_AT_ONCE, voxels};
use crate::rows::{Bounds, IndexRow, Kind, Part, Parts, Supervoxel};
use crate::runs::mask;
use crate::{Labelmap, Runs};

/// The ids of the two halves of a supervoxel.
#[derive(Debug, Clone, Copy)]
struct Halves {
    part: u64,
    rest: u64,
}

impl Labelmap {
    pub(super) async fn split_supervoxel(
        &self,
        supervoxel: u64,
        runs: &Runs,
        part: Option<u64>,
        rest: Option<u64>,
    ) -> Result<Changes> {
        runs.check(self.layout.shape)?;
        let known = self.find_supervoxels(&[supervoxel]).await?.pop().flatten();
        let known = match known {
            Some(known) if known.voxels > 0 => known,
            Some(_) => {
                return Err(Error::invalid(format!("supervoxel {supervoxel} is retired")));
            }
            None => {
                let name = supervoxel.to_string();
                return Err(Error::NotFound { what: Noun::Supervoxel, name });
            }
        };
        let index = self.index_of(known.body).await?;
        let inside = self.voxels_under(&index, runs).await?;
        let count = inside.get(&supervoxel).copied().unwrap_or(0);
        if count == 0 || count == known.voxels {
            return Err(Error::invalid(format!(
                "supervoxel {supervoxel} has {} voxels, {count} of them to be cut out; a split leaves some on \
                 both sides",
                known.voxels
            )));
        }
        let part = self.new_id(part, &BTreeSet::new()).await?;
        let rest = self.new_id(rest, &BTreeSet::from([part])).await?;
        let cuts = BTreeMap::from([(supervoxel, Halves { part, rest })]);
        let mut changes = Changes::default();
        self.cut(&index, runs, &cuts, &mut changes).await?;
        self.finish_cuts(known.body, &cuts, &mut changes).await?;
        changes.name(Kind::SplitSupervoxel, known.body, part);
        Ok(changes)
    }

    pub(super) async fn split_body(
        &self,
        body: u64,
        runs: &Runs,
        new_body: Option<u64>,
        halves: &[(u64, u64, u64)],
    ) -> Result<Changes> {
        runs.check(self.layout.shape)?;
        let found = self.body(body).await?;
        let index = self.index_of(body).await?;
        let inside = self.voxels_under(&index, runs).await?;
        let count: u64 = inside.values().sum();
        if count == 0 || count == found.voxels {
            return Err(Error::invalid(format!(
                "body {body} has {} voxels, {count} of them to be cut out; a split leaves some on both sides",
                found.voxels
            )));
        }
        let ids: Vec<u64> = inside.keys().copied().collect();
        let known = self.find_supervoxels(&ids).await?;
        let mut taken = BTreeSet::new();
        let new_body = self.new_id(new_body, &taken).await?;
        taken.insert(new_body);
        // A supervoxel that lies inside as a whole moves as it is: cutting it would leave one without voxels.
        let (mut whole, mut cuts) = (BTreeSet::new(), BTreeMap::new());
        for known in known.into_iter().flatten() {
            let id = known.supervoxel;
            if inside.get(&id) == Some(&known.voxels) {
                whole.insert(id);
                continue;
            }
            let wish = halves.iter().find(|(cut, ..)| *cut == id);
            let part = self.new_id(wish.map(|(_, part, _)| *part), &taken).await?;
            taken.insert(part);
            let rest = self.new_id(wish.map(|(.., rest)| *rest), &taken).await?;
            taken.insert(rest);
            cuts.insert(id, Halves { part, rest });
        }
        let mut changes = Changes::default();
        self.cut(&index, runs, &cuts, &mut changes).await?;
        self.finish_cuts(body, &cuts, &mut changes).await?;
        self.move_to_new_body(body, new_body, &whole, &cuts, &index, &mut changes).await?;
        changes.name(Kind::SplitBody, body, new_body);
        Ok(changes)
    }

    /// How many voxels under the runs each supervoxel of a body has.
    async fn voxels_under(&self, index: &[IndexRow], runs: &Runs) -> Result<BTreeMap<u64, u64>> {
        let by_block = runs.by_block(self.layout.block);
        let touched: Vec<&IndexRow> =
            index.iter().filter(|row| by_block.contains_key(&row.key.1)).collect();
        let mut counts = BTreeMap::new();
        for some in touched.chunks(BLOCKS_AT_ONCE) {
            let at: Vec<At> = some.iter().map(|row| row.key.1).collect();
            for (row, block) in some.iter().zip(self.blocks(0, &at).await?) {
                let own: BTreeSet<u64> = row.parts.iter().map(|part| part.supervoxel).collect();
                let decoded = voxels(block.as_deref(), self.layout.block_voxels())?;
                let mask = mask(by_block.get(&row.key.1), self.layout.block);
                for (label, _) in decoded.iter().zip(mask).filter(|(_, inside)| *inside) {
                    if own.contains(label) {
                        *counts.entry(*label).or_insert(0) += 1;
                    }
                }
            }
        }
        Ok(counts)
    }

    /// Rewrites the blocks of supervoxels that are cut, and the index of their body.
    async fn cut(
        &self,
        index: &[IndexRow],
        runs: &Runs,
        cuts: &BTreeMap<u64, Halves>,
        changes: &mut Changes,
    ) -> Result<()> {
        let by_block = runs.by_block(self.layout.block);
        let is_cut = |row: &&IndexRow| row.parts.iter().any(|p| cuts.contains_key(&p.supervoxel));
        let touched: Vec<&IndexRow> = index.iter().filter(is_cut).collect();
        for some in touched.chunks(BLOCKS_AT_ONCE) {
            let at: Vec<At> = some.iter().map(|row| row.key.1).collect();
            for (row, block) in some.iter().zip(self.blocks(0, &at).await?) {
                let mut decoded = voxels(block.as_deref(), self.layout.block_voxels())?;
                let mask = mask(by_block.get(&row.key.1), self.layout.block);
                for (label, inside) in decoded.iter_mut().zip(mask) {
                    if let Some(halves) = cuts.get(label) {
                        *label = if inside { halves.part } else { halves.rest };
                    }
                }
                let mut encoded = Vec::new();
                encode(&decoded, self.layout.block_xyz(), &mut encoded)?;
                let halves: BTreeSet<u64> =
                    cuts.values().flat_map(|halves| [halves.part, halves.rest]).collect();
                let mut parts: Parts = row
                    .parts
                    .iter()
                    .filter(|part| !cuts.contains_key(&part.supervoxel))
                    .copied()
                    .collect();
                let made = Block::parse(&encoded)?.extents();
                parts.extend(made.iter().filter(|e| halves.contains(&e.label)).map(Part::new));
                parts.sort_unstable_by_key(|part| part.supervoxel);
                changes.index.insert(row.key, Some(parts));
                changes.blocks.insert(row.key.1, encoded);
            }
        }
        Ok(())
    }

    /// The rows of supervoxels, mapping and body after cuts.
    async fn finish_cuts(
        &self,
        body: u64,
        cuts: &BTreeMap<u64, Halves>,
        changes: &mut Changes,
    ) -> Result<()> {
        let mut made: BTreeMap<u64, Supervoxel> = BTreeMap::new();
        for Halves { part, rest } in cuts.values() {
            for supervoxel in [*part, *rest] {
                let bounds = Bounds::EMPTY;
                made.insert(supervoxel, Supervoxel { supervoxel, voxels: 0, body, bounds });
            }
        }
        for ((_, at), parts) in &changes.index {
            for part in parts.iter().flatten() {
                if let Some(row) = made.get_mut(&part.supervoxel) {
                    row.voxels += u64::from(part.voxels);
                    row.bounds = row.bounds.union(&part.bounds(*at, self.layout.block));
                }
            }
        }
        changes.supervoxels.extend(made);
        for (id, Halves { part, rest }) in cuts {
            for half in [*part, *rest] {
                changes.mapping.insert(half, body);
                changes.history.insert(half, Move { before: 0, after: body, origin: *id });
            }
            changes.mapping.insert(*id, 0);
            changes.history.insert(*id, Move { before: body, after: 0, origin: 0 });
            changes.supervoxels.insert(*id, Supervoxel::retired(*id));
        }
        let mut row = self.body(body).await?;
        row.supervoxels = row.supervoxels.saturating_add(cuts.len() as u64);
        changes.bodies.insert(body, Some(row));
        Ok(())
    }

    /// Moves whole supervoxels and the parts that were cut out to a new body.
    async fn move_to_new_body(
        &self,
        body: u64,
        new_body: u64,
        whole: &BTreeSet<u64>,
        cuts: &BTreeMap<u64, Halves>,
        index: &[IndexRow],
        changes: &mut Changes,
    ) -> Result<()> {
        let mut going = whole.clone();
        going.extend(cuts.values().map(|halves| halves.part));
        let ids: Vec<u64> = whole.iter().copied().collect();
        for known in self.find_supervoxels(&ids).await?.into_iter().flatten() {
            changes.supervoxels.insert(known.supervoxel, known);
            let moved = Move { before: body, after: new_body, origin: 0 };
            changes.history.insert(known.supervoxel, moved);
        }
        for id in &going {
            changes.mapping.insert(*id, new_body);
            if let Some(moved) = changes.history.get_mut(id) {
                moved.after = new_body;
            }
            if let Some(row) = changes.supervoxels.get_mut(id) {
                row.body = new_body;
            }
        }
        let (mut stays, mut leaves) = (Sum::default(), Sum::default());
        for IndexRow { key, parts } in index {
            let parts = match changes.index.remove(key) {
                Some(changed) => changed.unwrap_or_default(),
                None => parts.clone(),
            };
            let (mut out, mut kept) = (Parts::new(), Parts::new());
            for part in parts {
                match going.contains(&part.supervoxel) {
                    true => {
                        leaves.add(&part, key.1, self.layout.block);
                        out.push(part);
                    }
                    false => {
                        stays.add(&part, key.1, self.layout.block);
                        kept.push(part);
                    }
                }
            }
            if !out.is_empty() {
                changes.index.insert((new_body, key.1), Some(out));
            }
            changes.index.insert(*key, (!kept.is_empty()).then_some(kept));
        }
        changes.bodies.insert(body, stays.body(body));
        changes.bodies.insert(new_body, leaves.body(new_body));
        Ok(())
    }
}
