//! Undoing a mutation: its supervoxels go back to where they were.

use std::collections::{BTreeMap, BTreeSet};

use chunkyard_array::codec::label_block::Block;
use chunkyard_store::{Error, Result};

use super::changes::{Changes, Move};
use super::reassign::Sum;
use crate::Labelmap;
use crate::blocks::{At, BLOCKS_AT_ONCE};
use crate::rows::{
    self, BlockKey, HistoryRow, IndexRow, Kind, Mutation, Part, Parts, Supervoxel, insert,
};

/// Which mutation each mutation undid, as far as it was asked for; `None` if it undid none.
type Undone = BTreeMap<u64, Option<u64>>;

impl Labelmap {
    /// Refuses if a later mutation that still counts decided about one of the supervoxels: that one has to be
    /// undone first.
    pub(super) async fn revert(&self, mutation: u64) -> Result<Changes> {
        let logged = self.mutation(mutation).await?;
        let mut done = Vec::with_capacity(logged.supervoxels.len());
        let mut undone = Undone::default();
        for &supervoxel in &logged.supervoxels {
            done.push(self.last_decision(&logged, supervoxel, &mut undone).await?);
        }
        let mut changes = if done.iter().any(|row| row.origin != 0) {
            self.join(&done).await?
        } else if logged.kind == Kind::Revert
            && done.iter().any(|row| row.before == 0)
            && done.iter().any(|row| row.after == 0)
        {
            self.cut_again(mutation, &done).await?
        } else {
            self.move_back(&done).await?
        };
        changes.name(Kind::Revert, logged.body, mutation);
        Ok(changes)
    }

    /// What the mutation did to a supervoxel, if no later one decided about it since. A mutation and the one that
    /// undid it count for nothing together.
    async fn last_decision(
        &self,
        logged: &Mutation,
        supervoxel: u64,
        undone: &mut Undone,
    ) -> Result<HistoryRow> {
        let history: Vec<HistoryRow> = rows::scan(&self.history, &rows::of(supervoxel)).await?;
        let mut cancelled = BTreeMap::new();
        // Ids of mutations grow within a branch, but a merge of branches may interleave them.
        for row in history.into_iter().rev() {
            if let Some(by) = cancelled.get(&row.mutation) {
                if row.mutation == logged.mutation {
                    return Err(undone_already(logged, *by));
                }
            } else if row.mutation == logged.mutation {
                return Ok(row);
            } else if let Some(target) = self.undone_by(row.mutation, undone).await? {
                cancelled.insert(target, row.mutation);
            } else {
                return Err(overtaken(logged, supervoxel, row.mutation));
            }
        }
        Err(Error::Corrupt {
            file: self.path.clone(),
            what: format!("history of supervoxel {supervoxel}"),
            expected: format!("a row of mutation {}", logged.mutation),
            found: "none".to_owned(),
        })
    }

    /// The mutation that a mutation undid, if that is what it did.
    async fn undone_by(&self, mutation: u64, undone: &mut Undone) -> Result<Option<u64>> {
        if let Some(known) = undone.get(&mutation) {
            return Ok(*known);
        }
        let logged = self.mutation(mutation).await?;
        let target = (logged.kind == Kind::Revert).then_some(logged.other);
        undone.insert(mutation, target);
        Ok(target)
    }

    async fn move_back(&self, done: &[HistoryRow]) -> Result<Changes> {
        let moves: BTreeMap<u64, u64> =
            done.iter().map(|row| (row.supervoxel, row.before)).collect();
        self.reassign(&moves).await
    }

    /// Puts the halves of supervoxels together again, and moves whole supervoxels back.
    async fn join(&self, done: &[HistoryRow]) -> Result<Changes> {
        let origins: BTreeMap<u64, u64> = done
            .iter()
            .filter(|row| row.origin != 0)
            .map(|row| (row.supervoxel, row.origin))
            .collect();
        let owners: BTreeMap<u64, u64> = done
            .iter()
            .filter(|row| row.before != 0)
            .map(|row| (row.supervoxel, row.before))
            .collect();
        let mut changes = Changes::default();
        let mut made: BTreeMap<BlockKey, Parts> = BTreeMap::new();
        let mut blocks: BTreeSet<At> = BTreeSet::new();
        for body in touched(done) {
            for IndexRow { key, parts } in self.index_of(body).await? {
                changes.index.insert(key, None);
                for part in parts {
                    if origins.contains_key(&part.supervoxel) {
                        blocks.insert(key.1);
                    } else {
                        let body = owners.get(&part.supervoxel).copied().unwrap_or(body);
                        insert(made.entry((body, key.1)).or_default(), [part])?;
                    }
                }
            }
        }
        let blocks: Vec<At> = blocks.into_iter().collect();
        for some in blocks.chunks(BLOCKS_AT_ONCE) {
            for (at, block) in some.iter().zip(self.blocks(0, some).await?) {
                let Some(block) = block else { continue };
                let mut joined = Vec::new();
                let label = |id: u64| origins.get(&id).copied().unwrap_or(id);
                Block::parse(&block)?.relabel_onto(label, &mut joined)?;
                for extent in Block::parse(&joined)?.extents() {
                    if let Some(owner) = owners.get(&extent.label)
                        && origins.values().any(|origin| *origin == extent.label)
                    {
                        insert(made.entry((*owner, *at)).or_default(), [Part::new(&extent)])?;
                    }
                }
                changes.blocks.insert(*at, joined);
            }
        }
        self.settle(done, made, &mut changes);
        Ok(changes)
    }

    /// All rows of the bodies that were touched, from what their blocks have.
    pub(super) fn settle(
        &self,
        done: &[HistoryRow],
        made: BTreeMap<BlockKey, Parts>,
        changes: &mut Changes,
    ) {
        let mut sums: BTreeMap<u64, Sum> = BTreeMap::new();
        for ((body, at), parts) in &made {
            let sum = sums.entry(*body).or_default();
            parts.iter().for_each(|part| sum.add(part, *at, self.layout.block));
        }
        for body in touched(done) {
            changes.bodies.insert(body, sums.get(&body).and_then(|sum| sum.body(body)));
        }
        self.restore_supervoxels(done, &made, changes);
        changes.index.extend(made.into_iter().map(|(key, parts)| (key, Some(parts))));
    }

    fn restore_supervoxels(
        &self,
        done: &[HistoryRow],
        made: &BTreeMap<BlockKey, Parts>,
        changes: &mut Changes,
    ) {
        for row in done {
            let moved = Move { before: row.after, after: row.before, origin: 0 };
            changes.history.insert(row.supervoxel, moved);
            changes.mapping.insert(row.supervoxel, row.before);
            let mut back = Supervoxel::retired(row.supervoxel);
            back.body = row.before;
            changes.supervoxels.insert(row.supervoxel, back);
        }
        for ((_, at), parts) in made {
            for part in parts {
                if let Some(row) = changes.supervoxels.get_mut(&part.supervoxel) {
                    row.voxels += u64::from(part.voxels);
                    row.bounds = row.bounds.union(&part.bounds(*at, self.layout.block));
                }
            }
        }
    }
}

/// The bodies that a mutation took supervoxels from, or gave them to.
pub(super) fn touched(done: &[HistoryRow]) -> BTreeSet<u64> {
    done.iter().flat_map(|row| [row.before, row.after]).filter(|body| *body != 0).collect()
}

fn undone_already(logged: &Mutation, by: u64) -> Error {
    conflict(format!("mutation {} was undone already, by mutation {by}", logged.mutation))
}

fn overtaken(logged: &Mutation, supervoxel: u64, by: u64) -> Error {
    conflict(format!(
        "mutation {} cannot be undone: supervoxel {supervoxel} was changed again by mutation {by}; undo that one \
         first",
        logged.mutation
    ))
}

fn conflict(message: String) -> Error {
    Error::Conflict { message, conflicts: Vec::new() }
}
