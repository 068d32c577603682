//! Rebasing changes of tables: rows are compared by key.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{ArrayRef, UInt64Array};
use arrow_select::take::take_arrays;
use chunkyard_store::{Conflict, ConflictKind, Error, Result, Uid};

use super::changes::NodeEdits;
use super::{Rebase, Resolve, Session};
use crate::node::Node;
use crate::run::{self, Keys};
use crate::table::{
    Block, KeyColumn, Layers, TableRows, TableSpec, Walk, filler, lookup, same_row, show,
};
use crate::tree::Tree;

/// What other writers did to tables of a session.
#[derive(Debug, Default)]
pub(super) struct TableMerge {
    pub(super) conflicts: Vec<Conflict>,
    /// Tables that the session removed and whose rows they changed.
    pub(super) changed: HashSet<Uid>,
    /// Their rows, where they are to win.
    pub(super) theirs: Vec<(Uid, String, Block)>,
}

/// Rows of ours that they changed too.
#[derive(Debug, Default)]
struct Both {
    keys: Vec<String>,
    count: u64,
    theirs: Vec<Block>,
}

impl Session {
    /// Compares our rows with what became of them in the new tip. All of ours are in the store.
    pub(super) async fn table_merge(
        &self,
        base: &Tree,
        ours: &Tree,
        theirs: &Tree,
        edits: &NodeEdits,
        policy: Rebase,
    ) -> Result<TableMerge> {
        let mut merge = TableMerge::default();
        for before in edits.removed.iter().filter(|node| node.is_table()) {
            let Some(their) = theirs.by_uid(&before.uid) else { continue };
            let mut diff = self.repo.row_diff(before, &before.inventories, &Layers::of(their))?;
            if diff.next().await?.is_some() {
                merge.changed.insert(before.uid);
            }
        }
        let tables = self.work().tables.clone();
        for (uid, changes) in tables.iter().filter(|(_, changes)| !changes.is_empty()) {
            let (Some(before), Some(our)) = (base.by_uid(uid), ours.by_uid(uid)) else {
                continue; // new in this session: no other writer can know it
            };
            let Some(their) = theirs.by_uid(uid) else {
                merge.conflicts.push(Conflict::of_node(&our.path, ConflictKind::NodeRemoved));
                continue;
            };
            if their.path != before.path {
                merge.conflicts.push(Conflict::of_node(&our.path, ConflictKind::NodeMoved));
            }
            if their.inventories == before.inventories || policy.chunks == Resolve::Ours {
                continue;
            }
            let layers = Layers { entries: changes.stored.clone(), memory: Vec::new() };
            let both = self.changed_by_both(our.table()?, &layers, before, their, policy).await?;
            if both.count > 0 && policy.chunks == Resolve::Fail {
                merge.conflicts.push(Conflict {
                    chunk_count: both.count,
                    keys: both.keys,
                    ..Conflict::of_node(&our.path, ConflictKind::Row)
                });
            }
            merge.theirs.extend(both.theirs.into_iter().map(|b| (*uid, our.path.clone(), b)));
        }
        Ok(merge)
    }

    async fn changed_by_both(
        &self,
        spec: &Arc<TableSpec>,
        ours: &Layers,
        before: &Node,
        their: &Node,
        policy: Rebase,
    ) -> Result<Both> {
        let files = self.repo.tables();
        let kind = TableRows::new(spec.clone());
        let mut both = Both::default();
        // A key that is in no run that only one of the versions has is the same in both.
        let (old, new) = (run::runs(&before.inventories), run::runs(&their.inventories));
        let common = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
        let rest = |runs: &[Vec<_>]| Layers {
            entries: runs.get(common..).unwrap_or_default().concat(),
            memory: Vec::new(),
        };
        let (old, new) = (rest(&old), rest(&new));
        let mut walk =
            Walk::new(files, TableRows::only(spec.clone(), &[]), ours, Keys::ALL).with_removed();
        while let Some(merged) = walk.next().await? {
            let keys = KeyColumn::encode(&merged.columns);
            let mut known = lookup(files, &kind, &new, &keys).await?.known;
            for (known, also) in
                known.iter_mut().zip(lookup(files, &kind, &old, &keys).await?.known)
            {
                *known |= also;
            }
            let places =
                known.iter().enumerate().filter(|(_, known)| **known).map(|(at, _)| at as u64);
            let places = UInt64Array::from_iter_values(places);
            if places.is_empty() {
                continue;
            }
            let columns = take_arrays(&merged.columns, &places, None).map_err(failed)?;
            let keys = KeyColumn::encode(&columns);
            let was = lookup(files, &kind, &Layers::of(before), &keys).await?;
            let is = lookup(files, &kind, &Layers::of(their), &keys).await?;
            for at in 0..keys.len() {
                let same = was.found[at] == is.found[at]
                    && (!is.found[at] || same_row(&was.columns, at, &is.columns, at));
                if same {
                    continue;
                }
                both.count += 1;
                if both.keys.len() < Conflict::CHUNKS_MAX {
                    both.keys.push(show(&columns, at));
                }
                if policy.chunks == Resolve::Theirs {
                    both.theirs.push(their_row(spec, &columns, &is.columns, at, is.found[at])?);
                }
            }
        }
        Ok(both)
    }

    /// Lays their rows over ours.
    pub(super) async fn take_theirs(&self, theirs: Vec<(Uid, String, Block)>) -> Result<()> {
        if theirs.is_empty() {
            return Ok(());
        }
        for (uid, _, block) in theirs {
            self.add_block(uid, block)?;
        }
        self.store_tables().await
    }
}

/// One row of theirs, or its deletion.
fn their_row(
    spec: &TableSpec,
    keys: &[ArrayRef],
    columns: &[ArrayRef],
    at: usize,
    found: bool,
) -> Result<Block> {
    if found {
        return Block::sorted(
            spec,
            columns.iter().map(|column| column.slice(at, 1)).collect(),
            false,
        );
    }
    let values = spec.schema().fields().iter().skip(spec.key()).map(|field| filler(field, 1));
    let columns = keys.iter().map(|column| column.slice(at, 1)).chain(values).collect();
    Block::sorted(spec, columns, true)
}

fn failed(error: arrow_schema::ArrowError) -> Error {
    Error::Invalid { what: format!("cannot compare rows of a table: {error}") }
}
