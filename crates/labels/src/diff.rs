//! Two versions compared body by body.
//!
//! The tables of a version are runs that versions share, so the cost follows what differs and not what is
//! there.

use std::collections::{BTreeMap, BTreeSet};

use chunkyard_repo::{Repository, Version};
use chunkyard_store::Result;
use futures::TryStreamExt;
use serde::Serialize;

use crate::labelmap::below;
use crate::layout;
use crate::rows::{Body, IndexRow, Kind, Mutation, Row};

/// A body that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct BodyChange {
    /// The body; of a renamed one its id in the second version.
    pub body: u64,
    /// Voxels in the first version.
    pub voxels_before: u64,
    /// Voxels in the second version.
    pub voxels_after: u64,
    /// The last mutation that changed it; 0 if it is gone.
    pub mutation: u64,
    /// The id in the first version, of a renamed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<u64>,
}

/// What differs between two versions of a labelmap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LabelDiff {
    /// Bodies only in the second.
    pub appeared: Vec<BodyChange>,
    /// Bodies only in the first.
    pub vanished: Vec<BodyChange>,
    /// Bodies with more voxels in the second.
    pub grown: Vec<BodyChange>,
    /// Bodies with fewer voxels in the second.
    pub shrunk: Vec<BodyChange>,
    /// Bodies of the same size that were edited.
    pub changed: Vec<BodyChange>,
    /// Bodies with another id.
    pub renamed: Vec<BodyChange>,
    /// Body and position along z, y, x of each block in which a body differs: what has to be done again for
    /// the bodies above.
    pub blocks: Vec<(u64, [u32; 3])>,
    /// Mutations that are in the second and not in the first, oldest first.
    pub mutations: Vec<Mutation>,
}

impl LabelDiff {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A row before and after, by its key.
pub(crate) type Changed<R> = Vec<(Option<R>, Option<R>)>;

/// The rows of a table of a labelmap in which two versions differ, in the order of their keys.
pub(crate) async fn changed_rows<R: Row>(
    repo: &Repository,
    from: &Version,
    to: &Version,
    path: &str,
    table: &str,
) -> Result<Changed<R>> {
    let mut batches = repo.diff_table(from, to, &below(path, table)).await?;
    let mut rows = Vec::new();
    while let Some(changes) = batches.try_next().await? {
        for at in 0..changes.was.len() {
            let row = |there: bool, batch: &arrow_array::RecordBatch| match there {
                true => Ok(R::parse(&batch.slice(at, 1))?.pop()),
                false => Ok(None),
            };
            let before = row(changes.was.value(at), &changes.before)?;
            let after: Result<Option<R>> = row(changes.is.value(at), &changes.after);
            rows.push((before, after?));
        }
    }
    Ok(rows)
}

/// Compares two versions of a labelmap.
pub async fn diff(
    repo: &Repository,
    from: &Version,
    to: &Version,
    path: &str,
) -> Result<LabelDiff> {
    let mut diff = LabelDiff::default();
    let mutations: Changed<Mutation> =
        changed_rows(repo, from, to, path, layout::MUTATIONS).await?;
    diff.mutations = mutations.into_iter().filter_map(|(_, after)| after).collect();
    for (before, after) in changed_rows::<Body>(repo, from, to, path, layout::BODIES).await? {
        let (voxels_before, voxels_after) =
            (before.map_or(0, |body| body.voxels), after.map_or(0, |body| body.voxels));
        let Some(known) = after.or(before) else { continue };
        let mutation = after.map_or(0, |body| body.mutation);
        let change =
            BodyChange { body: known.body, voxels_before, voxels_after, mutation, was: None };
        match (before, after) {
            (None, _) => diff.appeared.push(change),
            (_, None) => diff.vanished.push(change),
            _ if voxels_after > voxels_before => diff.grown.push(change),
            _ if voxels_after < voxels_before => diff.shrunk.push(change),
            _ => diff.changed.push(change),
        }
    }
    find_renamed(&mut diff);
    let blocks: Changed<IndexRow> = changed_rows(repo, from, to, path, layout::INDEX).await?;
    let key =
        |(before, after): (Option<IndexRow>, Option<IndexRow>)| after.or(before).map(|row| row.key);
    diff.blocks = blocks.into_iter().filter_map(key).collect();
    Ok(diff)
}

/// Turns a body that vanished and one that appeared into one that was renamed, where mutations say so and
/// neither was edited otherwise.
fn find_renamed(diff: &mut LabelDiff) {
    let mut names: BTreeMap<u64, u64> = BTreeMap::new();
    for mutation in diff.mutations.iter().filter(|mutation| mutation.kind == Kind::Renumber) {
        let first = names.remove(&mutation.body).unwrap_or(mutation.body);
        names.insert(mutation.other, first);
    }
    let vanished: BTreeMap<u64, u64> =
        diff.vanished.iter().map(|body| (body.body, body.voxels_before)).collect();
    let mut gone = BTreeSet::new();
    for body in std::mem::take(&mut diff.appeared) {
        let was = names.get(&body.body).filter(|was| vanished.get(was) == Some(&body.voxels_after));
        match was {
            Some(&was) => {
                gone.insert(was);
                let voxels_before = body.voxels_after;
                diff.renamed.push(BodyChange { was: Some(was), voxels_before, ..body });
            }
            None => diff.appeared.push(body),
        }
    }
    diff.vanished.retain(|body| !gone.contains(&body.body));
}
