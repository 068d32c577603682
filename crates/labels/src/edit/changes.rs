//! What an edit does to the tables and blocks, before any of it is written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use chunkyard_store::Result;

use super::Author;
use crate::Labelmap;
use crate::blocks::At;
use crate::rows::{
    self, BlockKey, Body, HistoryRow, IndexRow, Kind, MappingRow, Mutation, Parts, Supervoxel,
};

/// What an edit does to a supervoxel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Move {
    /// The body before; 0 if the supervoxel is made by the edit.
    pub(crate) before: u64,
    /// The body after; 0 if it is retired.
    pub(crate) after: u64,
    /// What it was cut from; 0 if it was not.
    pub(crate) origin: u64,
}

/// The rows and blocks that an edit sets and deletes.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) mapping: BTreeMap<u64, u64>,
    /// `None` deletes a row.
    pub(crate) index: BTreeMap<BlockKey, Option<Parts>>,
    /// `None` deletes a row.
    pub(crate) bodies: BTreeMap<u64, Option<Body>>,
    pub(crate) supervoxels: BTreeMap<u64, Supervoxel>,
    pub(crate) history: BTreeMap<u64, Move>,
    /// Label blocks of full resolution.
    pub(crate) blocks: BTreeMap<At, Vec<u8>>,
    kind: Option<(Kind, u64, u64)>,
}

impl Changes {
    pub(crate) fn name(&mut self, kind: Kind, body: u64, other: u64) {
        self.kind = Some((kind, body, other));
    }

    /// The row of the log, which all rows of bodies then refer to.
    pub(crate) fn log(&mut self, mutation: u64, author: &Author, time_ms: i64) -> Mutation {
        for body in self.bodies.values_mut().flatten() {
            body.mutation = mutation;
        }
        let (kind, body, other) = self.kind.unwrap_or((Kind::Map, 0, 0));
        let mut bodies: BTreeSet<u64> = self.bodies.keys().copied().collect();
        bodies.extend(self.history.values().flat_map(|moved| [moved.before, moved.after]));
        bodies.remove(&0);
        Mutation {
            mutation,
            kind,
            body,
            other,
            bodies: bodies.into_iter().collect(),
            supervoxels: self.history.keys().copied().collect(),
            time_ms,
            user: author.user.clone(),
            note: author.note.clone(),
        }
    }
}

impl Labelmap {
    /// Writes an edit to the session.
    pub(super) async fn write(&self, changes: Changes, mutation: &Mutation) -> Result<()> {
        self.torn.store(true, Ordering::Relaxed);
        self.write_rows(&changes).await?;
        let history: Vec<HistoryRow> = changes
            .history
            .iter()
            .map(|(&supervoxel, &Move { before, after, origin })| HistoryRow {
                supervoxel,
                mutation: mutation.mutation,
                before,
                after,
                origin,
            })
            .collect();
        rows::upsert(&self.history, &history).await?;
        rows::upsert(&self.mutations, std::slice::from_ref(mutation)).await?;
        self.torn.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Writes everything but the log.
    pub(crate) async fn write_rows(&self, changes: &Changes) -> Result<()> {
        for (at, block) in &changes.blocks {
            self.put_block(0, *at, block).await?;
        }
        let blocks: Vec<At> = changes.blocks.keys().copied().collect();
        self.downsample_above(0, &blocks).await?;
        let mapping: Vec<MappingRow> = changes
            .mapping
            .iter()
            .map(|(&supervoxel, &body)| MappingRow { supervoxel, body })
            .collect();
        rows::upsert(&self.mapping, &mapping).await?;
        let (mut set, mut gone) = (Vec::new(), Vec::new());
        for (key, parts) in &changes.index {
            match parts {
                Some(parts) => set.push(IndexRow { key: *key, parts: parts.clone() }),
                None => gone.push(*key),
            }
        }
        rows::upsert(&self.index, &set).await?;
        IndexRow::delete(&self.index, &gone).await?;
        let set: Vec<Body> = changes.bodies.values().flatten().copied().collect();
        let gone: Vec<u64> =
            changes.bodies.iter().filter(|(_, row)| row.is_none()).map(|(body, _)| *body).collect();
        rows::upsert(&self.bodies, &set).await?;
        rows::delete(&self.bodies, &gone).await?;
        let set: Vec<Supervoxel> = changes.supervoxels.values().copied().collect();
        rows::upsert(&self.supervoxels, &set).await
    }
}
