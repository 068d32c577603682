//! Edits: what people do to a segmentation, each one checked, logged and consistent in all tables.
//!
//! ```text
//!  Edit ──check──▶ Changes: rows and blocks, nothing written ──write──▶ session ──commit──▶ branch
//! ```
//!
//! Almost every edit gives supervoxels to other bodies; `reassign` works out what that does to all tables.
//! Splits also make new supervoxels out of voxels (`split`). `revert` undoes both, and `cut_again` the undoing
//! of a split. An edit that is refused has written nothing. `commit` makes the edits of a session visible, and does
//! them anew if another writer was faster.

mod changes;
mod commit;
mod cut_again;
mod ids;
mod reassign;
mod revert;
mod split;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use chunkyard_repo::KeyRange;
use chunkyard_store::{Error, Noun, Result, clock};
use futures::TryStreamExt;
use serde::{Deserialize, Serialize};

pub(crate) use self::changes::Changes;
pub(crate) use self::commit::Done;
pub use self::commit::commit_edits;
use crate::rows::{self, Kind, MappingRow, Mutation};
use crate::{Labelmap, Runs};

/// An edit. Ids that are `None` are chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "edit", rename_all = "kebab-case")]
pub enum Edit {
    /// Bodies become part of another.
    Merge {
        /// The body that stays.
        target: u64,
        /// The bodies that go into it.
        bodies: Vec<u64>,
    },
    /// Supervoxels leave a body and become one of their own.
    Cleave {
        /// The body they leave.
        body: u64,
        /// The supervoxels.
        supervoxels: Vec<u64>,
        /// The id of the new body.
        #[serde(default)]
        new_body: Option<u64>,
    },
    /// A supervoxel is cut in two; both stay in its body.
    SplitSupervoxel {
        /// The supervoxel.
        supervoxel: u64,
        /// The voxels to cut out; those that are of other supervoxels do not count.
        voxels: Runs,
        /// The id of what is cut out.
        #[serde(default)]
        part: Option<u64>,
        /// The id of what is left.
        #[serde(default)]
        rest: Option<u64>,
    },
    /// Voxels of a body become another body. Supervoxels that lie in both are cut in two.
    SplitBody {
        /// The body.
        body: u64,
        /// The voxels to cut out; those that are of other bodies do not count.
        voxels: Runs,
        /// The id of the new body.
        #[serde(default)]
        new_body: Option<u64>,
        /// Ids for supervoxels that are cut: the supervoxel, what is cut out, what is left.
        #[serde(default)]
        halves: Vec<(u64, u64, u64)>,
    },
    /// A body gets another id.
    Renumber {
        /// The id it has.
        body: u64,
        /// The id it gets.
        new_body: u64,
    },
    /// Supervoxels are given to bodies, which need not exist.
    Map {
        /// Pairs of supervoxel and body.
        mapping: Vec<(u64, u64)>,
    },
    /// An earlier mutation is undone.
    Revert {
        /// The mutation.
        mutation: u64,
    },
}

/// By whom an edit is made, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    /// By whom.
    #[serde(default)]
    pub user: String,
    /// Why.
    #[serde(default)]
    pub note: String,
}

impl Labelmap {
    /// Applies an edit to the session and returns the row that it adds to the log. If it is refused, the
    /// session is as it was.
    pub async fn apply(&self, edit: &Edit, author: &Author) -> Result<Mutation> {
        self.refuse_torn()?;
        let changes = self.work_out(edit).await?;
        let mutation = self.fresh_id(&BTreeSet::new()).await?;
        self.write_logged(edit, changes, author, (mutation, clock::now_ms())).await
    }

    async fn work_out(&self, edit: &Edit) -> Result<Changes> {
        match edit {
            Edit::Merge { target, bodies } => self.merge(*target, bodies).await,
            Edit::Cleave { body, supervoxels, new_body } => {
                self.cleave(*body, supervoxels, *new_body).await
            }
            Edit::SplitSupervoxel { supervoxel, voxels, part, rest } => {
                self.split_supervoxel(*supervoxel, voxels, *part, *rest).await
            }
            Edit::SplitBody { body, voxels, new_body, halves } => {
                self.split_body(*body, voxels, *new_body, halves).await
            }
            Edit::Renumber { body, new_body } => self.renumber(*body, *new_body).await,
            Edit::Map { mapping } => self.map(mapping).await,
            Edit::Revert { mutation } => self.revert(*mutation).await,
        }
    }

    async fn merge(&self, target: u64, bodies: &[u64]) -> Result<Changes> {
        if bodies.is_empty() {
            return Err(Error::invalid(format!("nothing to merge into body {target}")));
        }
        self.body(target).await?;
        let mut moves = BTreeMap::new();
        for &body in bodies {
            if body == target {
                return Err(Error::invalid(format!("body {body} cannot be merged into itself")));
            }
            self.body(body).await?;
            let index = self.index_of(body).await?;
            let ids = index.iter().flat_map(|row| row.parts.iter().map(|part| part.supervoxel));
            moves.extend(ids.map(|id| (id, target)));
        }
        let mut changes = self.reassign(&moves).await?;
        changes.name(Kind::Merge, target, 0);
        Ok(changes)
    }

    async fn cleave(
        &self,
        body: u64,
        supervoxels: &[u64],
        new_body: Option<u64>,
    ) -> Result<Changes> {
        let found = self.body(body).await?;
        let wanted: BTreeSet<u64> = supervoxels.iter().copied().collect();
        if wanted.is_empty() {
            return Err(Error::invalid(format!("no supervoxels to cleave from body {body}")));
        }
        let ids: Vec<u64> = wanted.iter().copied().collect();
        let owners = self.bodies_of(&ids).await?;
        if let Some((id, owner)) = ids.iter().zip(&owners).find(|(_, owner)| **owner != body) {
            let owner = match owner {
                0 => "is retired".to_owned(),
                owner => format!("belongs to body {owner}"),
            };
            return Err(Error::invalid(format!(
                "supervoxel {id} cannot be cleaved from body {body}: it {owner}"
            )));
        }
        let known = self.find_supervoxels(&ids).await?;
        let leaving = known.iter().flatten().filter(|known| known.voxels > 0).count() as u64;
        if leaving == 0 {
            return Err(Error::invalid(format!(
                "body {body} has no voxels of the supervoxels to cleave"
            )));
        }
        if leaving == found.supervoxels {
            return Err(Error::invalid(format!(
                "all {leaving} supervoxels of body {body} would be cleaved; renumber it instead"
            )));
        }
        let new_body = self.new_id(new_body, &wanted).await?;
        let moves = ids.into_iter().map(|id| (id, new_body)).collect();
        let mut changes = self.reassign(&moves).await?;
        changes.mapping.insert(new_body, 0);
        changes.name(Kind::Cleave, body, new_body);
        Ok(changes)
    }

    async fn renumber(&self, body: u64, new_body: u64) -> Result<Changes> {
        self.body(body).await?;
        if new_body == 0 {
            return Err(Error::invalid("0 is no body; it is what lies between them"));
        }
        if self.find_bodies(&[new_body]).await?.pop().flatten().is_some() {
            let name = format!("{new_body}; merge body {body} into it instead");
            return Err(Error::AlreadyExists { what: Noun::Body, name });
        }
        let index = self.index_of(body).await?;
        let ids = index.iter().flat_map(|row| row.parts.iter().map(|part| part.supervoxel));
        let moves = ids.map(|id| (id, new_body)).collect();
        let known: Vec<Option<MappingRow>> = rows::get(&self.mapping, &[new_body]).await?;
        let mut changes = self.reassign(&moves).await?;
        if known.into_iter().flatten().next().is_none() {
            // The id is a body's now, and no supervoxel may take it for itself.
            changes.mapping.entry(new_body).or_insert(0);
        }
        changes.name(Kind::Renumber, body, new_body);
        Ok(changes)
    }

    async fn map(&self, mapping: &[(u64, u64)]) -> Result<Changes> {
        let moves: BTreeMap<u64, u64> = mapping.iter().copied().collect();
        if moves.is_empty() {
            return Err(Error::invalid("an empty mapping"));
        }
        let retired: Vec<u64> =
            moves.iter().filter(|(_, body)| **body == 0).map(|(id, _)| *id).collect();
        let known = self.find_supervoxels(&retired).await?;
        if let Some(known) = known.iter().flatten().find(|known| known.voxels > 0) {
            return Err(Error::invalid(format!(
                "supervoxel {} has {} voxels, so it cannot be retired",
                known.supervoxel, known.voxels
            )));
        }
        if moves.contains_key(&0) {
            return Err(Error::invalid("0 is no supervoxel; it is what lies between them"));
        }
        // A retired id has no voxels that a body could get. Its row says so to every reader of blocks.
        let given: Vec<u64> =
            moves.iter().filter(|(_, body)| **body != 0).map(|(id, _)| *id).collect();
        let owners = self.bodies_of(&given).await?;
        if let Some((id, _)) = given.iter().zip(owners).find(|(_, owner)| *owner == 0) {
            return Err(Error::invalid(format!(
                "{id} is retired, so it cannot be given to a body; undo the edit that retired it instead"
            )));
        }
        let mut changes = self.reassign(&moves).await?;
        changes.name(Kind::Map, 0, 0);
        Ok(changes)
    }

    /// The id that was asked for, if it is free, or a new one.
    async fn new_id(&self, wanted: Option<u64>, taken: &BTreeSet<u64>) -> Result<u64> {
        match wanted {
            None => self.fresh_id(taken).await,
            Some(0) => Err(Error::invalid("0 is no body or supervoxel")),
            Some(id) if taken.contains(&id) || !self.known_ids(&[id]).await?.is_empty() => {
                Err(Error::invalid(format!(
                    "the id {id} is or was in use; a new body or supervoxel needs a new one"
                )))
            }
            Some(id) => Ok(id),
        }
    }

    /// An id that neither this nor another branch has, and greater than that of each mutation here.
    async fn fresh_id(&self, taken: &BTreeSet<u64>) -> Result<u64> {
        let mut last = self.last_mutation().await?;
        loop {
            let id = ids::after(last)?;
            let before = self.last_id.fetch_max(id, Ordering::Relaxed);
            last = before.max(id);
            if before < id && !taken.contains(&id) && self.known_ids(&[id]).await?.is_empty() {
                return Ok(id);
            }
        }
    }

    /// The greatest id of a mutation, or one that was handed out here; less if all are below an id of now.
    async fn last_mutation(&self) -> Result<u64> {
        let mut last = self.last_id.load(Ordering::Relaxed);
        let range = KeyRange::From(vec![ids::least().max(last).into()]);
        let mut batches = self.mutations.scan(&range, Some(&["mutation"]))?;
        while let Some(batch) = batches.try_next().await? {
            last = rows::u64s(&batch, "mutation")?.last().copied().unwrap_or(last);
        }
        Ok(last)
    }

    /// Which ids stand for something: a body, or a supervoxel that is there, was cut, or was mapped.
    pub(crate) async fn known_ids(&self, ids: &[u64]) -> Result<BTreeSet<u64>> {
        let mapped: Vec<Option<MappingRow>> = rows::get(&self.mapping, ids).await?;
        let mut known: BTreeSet<u64> = mapped.iter().flatten().map(|row| row.supervoxel).collect();
        let supervoxels = self.find_supervoxels(ids).await?;
        known.extend(supervoxels.iter().flatten().map(|row| row.supervoxel));
        known.extend(self.find_bodies(ids).await?.iter().flatten().map(|row| row.body));
        Ok(known)
    }
}
