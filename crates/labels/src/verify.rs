//! Counting all voxels anew and comparing every table with the result.

use std::collections::{BTreeMap, BTreeSet};

use chunkyard_array::codec::label_block::Block;
use chunkyard_format::Meter;
use chunkyard_repo::KeyRange;
use chunkyard_store::Result;
use futures::TryStreamExt;
use serde::Serialize;

use crate::blocks::{At, BLOCKS_AT_ONCE, vote, voxels};
use crate::import::{Recount, index_rows};
use crate::rows::{BlockKey, Body, IndexRow, Parts, Row, Supervoxel};
use crate::{Labelmap, Mapping};

/// Findings that are listed; more are counted.
const LISTED: usize = 100;

/// What a verification found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Verified {
    /// Blocks of full resolution that were counted.
    pub blocks: u64,
    /// Bodies that were compared.
    pub bodies: u64,
    /// Supervoxels that were compared, retired ones too.
    pub supervoxels: u64,
    /// What does not agree, at most a hundred of them.
    pub problems: Vec<String>,
    /// How many problems there are.
    pub problem_count: u64,
}

impl Verified {
    fn problem(&mut self, text: String) {
        self.problem_count += 1;
        if self.problems.len() < LISTED {
            self.problems.push(text);
        }
    }

    /// Whether everything agrees.
    pub fn is_sound(&self) -> bool {
        self.problem_count == 0
    }
}

impl Labelmap {
    /// Recounts index, bodies and supervoxels from the voxels, checks the mapping and all coarser scales
    /// against them, and lists what does not agree. Memory holds some blocks, and the mapping.
    pub async fn verify(&self, meter: &Meter) -> Result<Verified> {
        let mut found = Verified::default();
        let mapping = self.load_mapping().await?;
        let rows = self.verify_index(&mapping, &mut found, meter).await?;
        let stored = self.index.count(&KeyRange::All).await?;
        if stored != rows {
            found.problem(format!("the index has {stored} rows, and the voxels make {rows}"));
            self.name_rows_without_voxels(&mapping, &mut found).await?;
        }
        self.verify_bodies(&mut found).await?;
        self.verify_retired(&mapping, &mut found).await?;
        self.verify_scales(&mut found).await?;
        Ok(found)
    }

    /// Compares the index with the blocks, and says how many rows the blocks make.
    async fn verify_index(
        &self,
        mapping: &Mapping,
        found: &mut Verified,
        meter: &Meter,
    ) -> Result<u64> {
        let mut count = 0;
        let stored = self.stored_blocks(0).await?;
        meter.expect(stored.len() as u64);
        for some in stored.chunks(BLOCKS_AT_ONCE) {
            let mut expected: BTreeMap<BlockKey, Parts> = BTreeMap::new();
            for (at, block) in some.iter().zip(self.blocks(0, some).await?) {
                let Some(block) = block else { continue };
                found.blocks += 1;
                match index_rows(Block::parse(&block)?, *at, mapping) {
                    Ok(rows) => expected.extend(rows.into_iter().map(|row| (row.key, row.parts))),
                    Err(error) => found.problem(error.to_string()),
                }
            }
            count += expected.len() as u64;
            let keys: Vec<BlockKey> = expected.keys().copied().collect();
            let stored = IndexRow::get(&self.index, &keys).await?;
            for (((body, at), parts), row) in expected.iter().zip(stored) {
                if row.is_none_or(|row| row.parts != *parts) {
                    found.problem(format!(
                        "the index of body {body} in block {at:?} is not what its voxels make"
                    ));
                }
            }
            meter.advance(some.len() as u64);
        }
        Ok(count)
    }

    /// Names rows of the index that no voxels make.
    async fn name_rows_without_voxels(
        &self,
        mapping: &Mapping,
        found: &mut Verified,
    ) -> Result<()> {
        let limits = self.layout.blocks_at(0);
        let inside = |at: &At| at.iter().zip(limits).all(|(&at, limit)| u64::from(at) < limit);
        let mut batches = self.index.scan(&KeyRange::All, None)?;
        while let Some(batch) = batches.try_next().await? {
            for some in IndexRow::parse(&batch)?.chunks(BLOCKS_AT_ONCE) {
                let places: BTreeSet<At> =
                    some.iter().map(|row| row.key.1).filter(inside).collect();
                let places: Vec<At> = places.into_iter().collect();
                let mut made: BTreeSet<BlockKey> = BTreeSet::new();
                for (at, block) in places.iter().zip(self.blocks(0, &places).await?) {
                    let Some(block) = block else { continue };
                    // A block that the mapping contradicts was named before.
                    let rows = index_rows(Block::parse(&block)?, *at, mapping).unwrap_or_default();
                    made.extend(rows.into_iter().map(|row| row.key));
                }
                for IndexRow { key: (body, at), .. } in some {
                    if !made.contains(&(*body, *at)) {
                        found.problem(format!(
                            "the index has body {body} in block {at:?}, where it has no voxels"
                        ));
                    }
                }
            }
            if found.problems.len() >= LISTED {
                break;
            }
        }
        Ok(())
    }

    /// Compares bodies and supervoxels with the index.
    async fn verify_bodies(&self, found: &mut Verified) -> Result<()> {
        let mut recount = Recount::new(self.layout.block);
        let mut batches = self.index.scan(&KeyRange::All, None)?;
        let (mut bodies, mut at_end) = (0, false);
        while !at_end {
            match batches.try_next().await? {
                Some(batch) => IndexRow::parse(&batch)?.iter().for_each(|row| recount.add(row)),
                None => {
                    recount.finish_body();
                    at_end = true;
                }
            }
            let expected = std::mem::take(&mut recount.bodies);
            bodies += expected.len() as u64;
            let ids: Vec<u64> = expected.iter().map(|body| body.body).collect();
            for (body, stored) in expected.iter().zip(self.find_bodies(&ids).await?) {
                let stored = stored.map(|stored| Body { mutation: 0, ..stored });
                if stored != Some(*body) {
                    found.problem(format!(
                        "body {}: expected {body:?}, found {stored:?}",
                        body.body
                    ));
                }
            }
            let expected = std::mem::take(&mut recount.supervoxels);
            found.supervoxels += expected.len() as u64;
            let ids: Vec<u64> = expected.iter().map(|row| row.supervoxel).collect();
            for (row, stored) in expected.iter().zip(self.find_supervoxels(&ids).await?) {
                if stored != Some(*row) {
                    let id = row.supervoxel;
                    found.problem(format!("supervoxel {id}: expected {row:?}, found {stored:?}"));
                }
            }
        }
        let stored = self.count_of_bodies().await?;
        if stored != bodies {
            found.problem(format!("there are rows of {stored} bodies, and the index has {bodies}"));
        }
        found.bodies = bodies;
        Ok(())
    }

    /// Checks supervoxels without voxels, and that the mapping knows each body.
    async fn verify_retired(&self, mapping: &Mapping, found: &mut Verified) -> Result<()> {
        let mut batches = self.supervoxels.scan(&KeyRange::All, None)?;
        let mut live = 0;
        while let Some(batch) = batches.try_next().await? {
            for row in Supervoxel::parse(&batch)? {
                live += u64::from(row.voxels > 0);
                if row.voxels == 0 && row.body != 0 {
                    found.problem(format!(
                        "supervoxel {} has no voxels, but a body",
                        row.supervoxel
                    ));
                }
                if mapping.body(row.supervoxel) != row.body {
                    found.problem(format!(
                        "supervoxel {} belongs to body {}, and to {} in the mapping",
                        row.supervoxel,
                        row.body,
                        mapping.body(row.supervoxel)
                    ));
                }
            }
        }
        if live != found.supervoxels {
            found.problem(format!(
                "{live} supervoxels have voxels in their table, and {} in the index",
                found.supervoxels
            ));
        }
        Ok(())
    }

    /// Compares each coarser scale with the vote of the one below.
    async fn verify_scales(&self, found: &mut Verified) -> Result<()> {
        for scale in 1..self.layout.scales {
            let below = self.stored_blocks(scale - 1).await?;
            let mut parents: Vec<At> = below.iter().map(|at| at.map(|at| at / 2)).collect();
            parents.extend(self.stored_blocks(scale).await?);
            parents.sort_unstable();
            parents.dedup();
            for some in parents.chunks(BLOCKS_AT_ONCE / 8) {
                let stored = self.blocks(scale, some).await?;
                for (parent, stored) in some.iter().zip(stored) {
                    let children = self.children_of(scale, *parent).await?;
                    let made = vote(&children, self.layout.block_xyz())?;
                    let made = (!Block::parse(&made)?.is_zero()).then_some(made);
                    if !self.same_voxels(made.as_deref(), stored.as_deref())? {
                        found.problem(format!(
                            "block {parent:?} of scale {scale} is not the vote of scale {}",
                            scale - 1
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether two blocks have the same voxels. Other writers number the labels of a block in another order.
    fn same_voxels(&self, one: Option<&[u8]>, other: Option<&[u8]>) -> Result<bool> {
        let count = self.layout.block_voxels();
        Ok(one == other || voxels(one, count)? == voxels(other, count)?)
    }
}
