//! Undoing the undoing of a split: supervoxels are cut as they were cut before.
//!
//! No table says which voxels a half had. The last version before the halves were joined does: where a voxel has
//! the joined id now, it gets the label that it had there. Nothing else has happened to those voxels since, or
//! the revert would have been refused.

use std::collections::{BTreeMap, BTreeSet};

use chunkyard_array::codec::label_block::{Block, encode};
use chunkyard_store::{Error, Result};

use super::changes::Changes;
use super::revert::touched;
use crate::Labelmap;
use crate::blocks::{At, BLOCKS_AT_ONCE, voxels};
use crate::line::Since;
use crate::rows::{BlockKey, HistoryRow, IndexRow, Part, Parts, insert};

impl Labelmap {
    /// Cuts what `mutation` joined, and moves whole supervoxels back.
    pub(super) async fn cut_again(&self, mutation: u64, done: &[HistoryRow]) -> Result<Changes> {
        // Half to body; the joined supervoxels; whole supervoxel to body.
        let halves: BTreeMap<u64, u64> = moves(done, |row| row.after == 0);
        let joined: BTreeSet<u64> =
            done.iter().filter(|row| row.before == 0).map(|row| row.supervoxel).collect();
        let whole: BTreeMap<u64, u64> = moves(done, |row| row.after != 0 && row.before != 0);
        let old = self.version_before(mutation, &halves).await?;
        let mut changes = Changes::default();
        let mut made: BTreeMap<BlockKey, Parts> = BTreeMap::new();
        let mut blocks: BTreeSet<At> = BTreeSet::new();
        for body in touched(done) {
            for IndexRow { key, parts } in self.index_of(body).await? {
                changes.index.insert(key, None);
                for part in parts {
                    if joined.contains(&part.supervoxel) {
                        blocks.insert(key.1);
                    } else {
                        let body = whole.get(&part.supervoxel).copied().unwrap_or(body);
                        insert(made.entry((body, key.1)).or_default(), [part])?;
                    }
                }
            }
        }
        let mut origins: BTreeMap<u64, u64> = BTreeMap::new();
        let blocks: Vec<At> = blocks.into_iter().collect();
        for some in blocks.chunks(BLOCKS_AT_ONCE) {
            let (now, before) = (self.blocks(0, some).await?, old.blocks(0, some).await?);
            for ((at, now), before) in some.iter().zip(now).zip(before) {
                let count = self.layout.block_voxels();
                let mut labels = voxels(now.as_deref(), count)?;
                for (label, was) in labels.iter_mut().zip(voxels(before.as_deref(), count)?) {
                    if !joined.contains(label) {
                        continue;
                    }
                    if !halves.contains_key(&was) {
                        return Err(self.strange_half(*at, *label, was));
                    }
                    origins.insert(was, *label);
                    *label = was;
                }
                let mut encoded = Vec::new();
                encode(&labels, self.layout.block_xyz(), &mut encoded)?;
                for extent in Block::parse(&encoded)?.extents() {
                    if let Some(body) = halves.get(&extent.label) {
                        insert(made.entry((*body, *at)).or_default(), [Part::new(&extent)])?;
                    }
                }
                changes.blocks.insert(*at, encoded);
            }
        }
        self.settle(done, made, &mut changes);
        for (half, origin) in origins {
            if let Some(moved) = changes.history.get_mut(&half) {
                moved.origin = origin;
            }
        }
        Ok(changes)
    }

    /// The last version of this line without a mutation, in which supervoxels have voxels.
    async fn version_before(&self, mutation: u64, halves: &BTreeMap<u64, u64>) -> Result<Self> {
        let Since { line, count } = self.since(mutation).await?;
        let lost = |why: &str| {
            Error::unsupported(format!(
                "undoing mutation {mutation}, which joined supervoxels: {why}; cut them again instead"
            ))
        };
        let Some(found) = line.get(count) else {
            return Err(lost("the version in which they were apart has expired"));
        };
        let old = self.at_version(found).await?.ok_or_else(|| lost("no version has them apart"))?;
        let ids: Vec<u64> = halves.keys().copied().collect();
        let known = old.find_supervoxels(&ids).await?;
        match known.iter().all(|known| known.is_some_and(|known| known.voxels > 0)) {
            true => Ok(old),
            false => {
                Err(lost("they were cut and joined in one commit, so no version has them apart"))
            }
        }
    }

    fn strange_half(&self, at: At, label: u64, was: u64) -> Error {
        Error::Corrupt {
            file: self.path.clone(),
            what: format!("a voxel of supervoxel {label} in block {at:?}"),
            expected: "one of its halves, before they were joined".into(),
            found: was.to_string(),
        }
    }
}

/// Supervoxels and where they go back to.
fn moves(done: &[HistoryRow], which: impl Fn(&&HistoryRow) -> bool) -> BTreeMap<u64, u64> {
    done.iter().filter(which).map(|row| (row.supervoxel, row.before)).collect()
}
