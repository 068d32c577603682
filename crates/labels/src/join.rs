//! Bringing two branches of edits together, by what they mean.
//!
//! Edits that touch common bodies belong together: they and their bodies are a *component*. A component that
//! one branch edited is taken from there. A component that both edited is a conflict, and the caller says
//! whose edits stay. Rows and voxels follow their body, so two branches can cut different supervoxels of one
//! block.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use arrow_array::RecordBatch;
use chunkyard_array::codec::label_block::encode;
use chunkyard_repo::{CommitOptions, Repository, Snapshot, State, Table, Version};
use chunkyard_store::{Conflict, ConflictKind, Error, Result};
use futures::TryStreamExt;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::blocks::{At, BLOCKS_AT_ONCE, voxels};
use crate::diff::{Changed, changed_rows};
use crate::labelmap::below;
use crate::layout::{self, array_name};
use crate::rows::{self, BlockKey, Body, HistoryRow, IndexRow, MappingRow, Mutation, Supervoxel};
use crate::{Author, Labelmap};

/// The property of a commit that says which edits it left out.
const PROPERTY: &str = "chunkyard_labels_merge";
/// How often a merge begins anew because the branch moved.
const ATTEMPTS: usize = 10;

/// Whose edits stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Those of the branch that is merged into.
    Ours,
    /// Those of the version that is merged.
    Theirs,
}

/// What to do about bodies that both edited.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolution {
    /// By body. A decision about one body counts for all that were edited together with it.
    pub bodies: BTreeMap<u64, Side>,
    /// For all others; a conflict if `None`.
    pub others: Option<Side>,
}

/// What a merge did.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Joined {
    /// The commit; `None` if there was nothing to merge.
    pub snapshot: Option<String>,
    /// Mutations that came over.
    pub taken: Vec<u64>,
    /// Mutations of theirs that were left out.
    pub left_out: Vec<u64>,
    /// Mutations of ours that were given up.
    pub given_up: Vec<u64>,
    /// Bodies that changed.
    pub bodies: Vec<u64>,
}

/// Brings the edits of a version into a branch, as one commit.
pub async fn merge_branch(
    repo: &Repository,
    branch: &str,
    theirs: &Version,
    path: &str,
    resolution: &Resolution,
    author: &Author,
) -> Result<Joined> {
    let mut attempt = 1;
    loop {
        match merge_once(repo, branch, theirs, path, resolution, author).await {
            // The branch moved before the commit: everything is compared again.
            Err(Error::Conflict { conflicts, .. })
                if attempt < ATTEMPTS && conflicts.iter().all(|c| c.kind != ConflictKind::Row) =>
            {
                attempt += 1;
            }
            other => return other,
        }
    }
}

async fn merge_once(
    repo: &Repository,
    branch: &str,
    theirs: &Version,
    path: &str,
    resolution: &Resolution,
    author: &Author,
) -> Result<Joined> {
    let session = repo.writable_session(branch).await?;
    let state = repo.state().await?;
    let (ours, theirs) = (session.snapshot(), state.resolve(theirs)?.clone());
    let base = common_base(&state, &ours, &theirs)?;
    let map = Labelmap::open(&session, path).await?;
    let log = async |to: &Snapshot| -> Result<BTreeMap<u64, Mutation>> {
        let (from, to) = (version(&base), version(to));
        let rows: Changed<Mutation> =
            changed_rows(repo, &from, &to, &map.path, layout::MUTATIONS).await?;
        Ok(rows.into_iter().filter_map(|(_, row)| row).map(|row| (row.mutation, row)).collect())
    };
    let (mut our_log, mut their_log) = (log(&ours).await?, log(&theirs).await?);
    forget_shared(&mut our_log, &mut their_log, &map.path)?;
    let before = left_out_before(&state, &ours, &base);
    if their_log.keys().all(|id| before.contains(id)) {
        return Ok(Joined::default());
    }
    let twice = match map.at_version(&base).await? {
        Some(base) => made_twice(&base, &our_log, &their_log).await?,
        None => BTreeSet::new(),
    };
    let mut merge = Merge {
        repo,
        map: &map,
        ours: version(&ours),
        theirs: version(&theirs),
        sides: Sides::decide(&our_log, &their_log, &before, &twice, resolution, &map.path)?,
        bodies: BTreeSet::new(),
    };
    let mut joined = Joined::default();
    for (id, mutation) in &their_log {
        match merge.sides.of_mutation(mutation) {
            Side::Theirs => joined.taken.push(*id),
            Side::Ours => joined.left_out.push(*id),
        }
    }
    let gives_up = |mutation: &&Mutation| merge.sides.of_mutation(mutation) == Side::Theirs;
    joined.given_up = our_log.values().filter(gives_up).map(|mutation| mutation.mutation).collect();
    merge.blocks().await?;
    merge.tables().await?;
    merge.logs(&joined, &our_log, &their_log).await?;
    joined.bodies = merge.bodies.into_iter().collect();

    let note = json!({"theirs": theirs.snapshot_id, "left-out": joined.left_out});
    let message = match author.note.is_empty() {
        true => format!("merge edits of {} into {branch}", theirs.snapshot_id),
        false => author.note.clone(),
    };
    let options = CommitOptions {
        message,
        properties: Map::from_iter([(PROPERTY.to_owned(), note)]),
        // The note alone is worth a commit: it says which edits were decided against.
        allow_empty: true,
        ..CommitOptions::default()
    };
    joined.snapshot = Some(session.commit(options).await?.snapshot_id.clone());
    Ok(joined)
}

fn version(snapshot: &Snapshot) -> Version {
    Version::Snapshot(snapshot.snapshot_id.clone())
}

/// The newest version that both come from.
fn common_base(state: &State, ours: &Snapshot, theirs: &Snapshot) -> Result<Arc<Snapshot>> {
    let known: BTreeSet<&str> =
        state.ancestry(&ours.snapshot_id).map(|snapshot| snapshot.snapshot_id.as_str()).collect();
    let mut ancestry = state.ancestry(&theirs.snapshot_id);
    let base = ancestry.find(|snapshot| known.contains(snapshot.snapshot_id.as_str()));
    base.cloned().ok_or_else(|| {
        Error::invalid(format!(
            "{} and {} have no version in common, or it has expired",
            ours.snapshot_id, theirs.snapshot_id
        ))
    })
}

/// Forgets what an earlier merge brought over, which is on both sides.
fn forget_shared(
    ours: &mut BTreeMap<u64, Mutation>,
    theirs: &mut BTreeMap<u64, Mutation>,
    path: &str,
) -> Result<()> {
    for (id, mutation) in ours.iter() {
        if let Some(other) = theirs.get(id).filter(|other| *other != mutation) {
            let lines =
                format!("ours by {}, theirs by {}", with_bodies(mutation), with_bodies(other));
            let conflict = Conflict {
                keys: vec![id.to_string()],
                chunk_count: 1,
                theirs: vec![describe(other)],
                ..Conflict::of_node(&below(path, layout::MUTATIONS), ConflictKind::Row)
            };
            return Err(Error::Conflict {
                message: format!(
                    "the branches have different mutations with the id {id} ({lines}); make one of them again on \
                     a branch from before it"
                ),
                conflicts: vec![conflict],
            });
        }
    }
    theirs.retain(|id, _| ours.remove(id).is_none());
    Ok(())
}

/// Ids that both sides made: on each they stand for something else, so only one side can have them.
async fn made_twice(
    base: &Labelmap,
    ours: &BTreeMap<u64, Mutation>,
    theirs: &BTreeMap<u64, Mutation>,
) -> Result<BTreeSet<u64>> {
    let ids = |log: &BTreeMap<u64, Mutation>| -> BTreeSet<u64> {
        log.values().flat_map(ids_of).collect()
    };
    let both: Vec<u64> = ids(ours).intersection(&ids(theirs)).copied().collect();
    let known = base.known_ids(&both).await?;
    Ok(both.into_iter().filter(|id| !known.contains(id)).collect())
}

/// All bodies and supervoxels that a mutation touched.
fn ids_of(mutation: &Mutation) -> impl Iterator<Item = u64> + '_ {
    mutation.bodies.iter().chain(&mutation.supervoxels).copied()
}

/// Mutations that merges since the base decided against.
fn left_out_before(state: &State, ours: &Snapshot, base: &Snapshot) -> BTreeSet<u64> {
    state
        .ancestry(&ours.snapshot_id)
        .take_while(|snapshot| snapshot.snapshot_id != base.snapshot_id)
        .filter_map(|snapshot| snapshot.properties.get(PROPERTY)?.get("left-out")?.as_array())
        .flatten()
        .filter_map(Value::as_u64)
        .collect()
}

/// Which side everything that was edited is taken from.
struct Sides {
    /// The side of each body that either side edited.
    bodies: HashMap<u64, Side>,
    /// The side of each supervoxel that either side edited.
    supervoxels: HashMap<u64, Side>,
}

impl Sides {
    /// An edit of theirs that an earlier merge left out counts as a decision of ours about its bodies. `twice` are
    /// ids that both sides made: edits that have one in common belong together, whatever their bodies are.
    fn decide(
        ours: &BTreeMap<u64, Mutation>,
        theirs: &BTreeMap<u64, Mutation>,
        left_out: &BTreeSet<u64>,
        twice: &BTreeSet<u64>,
        resolution: &Resolution,
        path: &str,
    ) -> Result<Self> {
        let mut groups = Groups::default();
        let mut makers: BTreeMap<u64, u64> = BTreeMap::new();
        for mutation in ours.values().chain(theirs.values()) {
            groups.join(&mutation.bodies);
            let Some(&body) = mutation.bodies.first() else { continue };
            for id in ids_of(mutation).filter(|id| twice.contains(id)) {
                groups.join(&[*makers.entry(id).or_insert(body), body]);
            }
        }
        let (settled, open): (Vec<&Mutation>, Vec<&Mutation>) =
            theirs.values().partition(|mutation| left_out.contains(&mutation.mutation));
        let our_last = last_by_group(ours.values().chain(settled), &mut groups);
        let their_last = last_by_group(open, &mut groups);
        let mut wished: BTreeMap<u64, (u64, Side)> = BTreeMap::new();
        for (&body, &side) in &resolution.bodies {
            let group = groups.of(body);
            match wished.insert(group, (body, side)) {
                Some((other, before)) if before != side => {
                    return Err(Error::invalid(format!(
                        "bodies {other} and {body} were edited together, so both come from one side"
                    )));
                }
                _ => {}
            }
        }
        let mut sides: BTreeMap<u64, Side> = BTreeMap::new();
        let mut conflicts = Vec::new();
        for &group in our_last.keys().chain(their_last.keys()) {
            let wish = wished.get(&group).map(|(_, side)| *side).or(resolution.others);
            let side = match (our_last.get(&group), their_last.get(&group)) {
                (Some(ours), Some(theirs)) if wish.is_none() => {
                    conflicts.push((group, ours.clone(), theirs.clone()));
                    continue;
                }
                (Some(_), Some(_)) => wish.unwrap_or(Side::Ours),
                (Some(_), None) => Side::Ours,
                _ => Side::Theirs,
            };
            sides.insert(group, side);
        }
        if !conflicts.is_empty() {
            conflicts.dedup_by_key(|(group, ..)| *group);
            return Err(conflict(&conflicts, twice, path));
        }
        let known: Vec<u64> = groups.parents.keys().copied().collect();
        let side = |body: u64, groups: &mut Groups| sides.get(&groups.of(body)).copied();
        let bodies =
            known.into_iter().filter_map(|body| Some((body, side(body, &mut groups)?))).collect();
        let mut decided = Self { bodies, supervoxels: HashMap::new() };
        for mutation in ours.values().chain(theirs.values()) {
            let side = decided.of_mutation(mutation);
            decided.supervoxels.extend(mutation.supervoxels.iter().map(|id| (*id, side)));
        }
        Ok(decided)
    }

    fn of_mutation(&self, mutation: &Mutation) -> Side {
        let side = mutation.bodies.first().and_then(|body| self.bodies.get(body));
        side.copied().unwrap_or(Side::Ours)
    }

    /// The side of a supervoxel, or of the id of a body, which no supervoxel has.
    fn of_supervoxel(&self, id: u64) -> Option<Side> {
        self.supervoxels.get(&id).or_else(|| self.bodies.get(&id)).copied()
    }
}

/// The last of some mutations, by the group of their bodies.
fn last_by_group<'a>(
    log: impl IntoIterator<Item = &'a Mutation>,
    groups: &mut Groups,
) -> BTreeMap<u64, Mutation> {
    let mut last: BTreeMap<u64, Mutation> = BTreeMap::new();
    for mutation in log {
        if let Some(body) = mutation.bodies.first() {
            last.insert(groups.of(*body), mutation.clone());
        }
    }
    last
}

fn describe(mutation: &Mutation) -> String {
    let by = match mutation.user.as_str() {
        "" => String::new(),
        user => format!(" by {user}"),
    };
    format!("{} {}{by}", mutation.kind.name(), mutation.mutation)
}

fn with_bodies(mutation: &Mutation) -> String {
    format!("{} of body {}", describe(mutation), listed(&mutation.bodies))
}

fn listed<'a>(ids: impl IntoIterator<Item = &'a u64>) -> String {
    ids.into_iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

fn conflict(conflicts: &[(u64, Mutation, Mutation)], twice: &BTreeSet<u64>, path: &str) -> Error {
    let row = |(_, ours, theirs): &(u64, Mutation, Mutation)| {
        let bodies =
            |mutation: &Mutation| -> BTreeSet<u64> { mutation.bodies.iter().copied().collect() };
        let (ours_of, theirs_of) = (bodies(ours), bodies(theirs));
        let mut both: BTreeSet<u64> = ours_of.intersection(&theirs_of).copied().collect();
        if both.is_empty() {
            both = ours_of.union(&theirs_of).copied().collect();
        }
        let ids: BTreeSet<u64> = ids_of(ours).filter(|id| twice.contains(id)).collect();
        let ids: Vec<u64> = ids_of(theirs).filter(|id| ids.contains(id)).collect();
        let made = match ids.is_empty() {
            true => String::new(),
            false => format!(", both of which made the id {}", listed(&ids)),
        };
        let (ours, theirs) = (describe(ours), describe(theirs));
        let line = format!("body {}: ours by {ours}, theirs by {theirs}{made}", listed(&both));
        (line, theirs, both.iter().map(u64::to_string).collect::<Vec<_>>())
    };
    let rows: Vec<_> = conflicts.iter().map(row).collect();
    let lines: Vec<&str> = rows.iter().take(10).map(|(line, ..)| line.as_str()).collect();
    let message = format!(
        "both branches edited the same bodies, or gave the same new id ({}); say for each body whose edits stay",
        lines.join("; ")
    );
    let conflicts = rows
        .into_iter()
        .map(|(_, theirs, keys)| Conflict {
            chunk_count: keys.len() as u64,
            keys,
            theirs: vec![theirs],
            ..Conflict::of_node(&below(path, layout::BODIES), ConflictKind::Row)
        })
        .collect();
    Error::Conflict { message, conflicts }
}

/// Bodies that were edited together: a forest in which a group is known by its root.
#[derive(Default)]
struct Groups {
    parents: HashMap<u64, u64>,
}

impl Groups {
    fn of(&mut self, body: u64) -> u64 {
        let mut root = body;
        while let Some(&parent) = self.parents.get(&root).filter(|parent| **parent != root) {
            root = parent;
        }
        let mut at = body;
        while at != root {
            at = self.parents.insert(at, root).unwrap_or(root);
        }
        root
    }

    fn join(&mut self, bodies: &[u64]) {
        let Some(&first) = bodies.first() else { return };
        let root = self.of(first);
        for &body in bodies {
            self.parents.entry(body).or_insert(body);
            let other = self.of(body);
            self.parents.insert(other, root);
        }
    }
}

/// A merge under way: reads both versions, writes to the session of ours.
struct Merge<'a> {
    repo: &'a Repository,
    map: &'a Labelmap,
    ours: Version,
    theirs: Version,
    sides: Sides,
    bodies: BTreeSet<u64>,
}

impl Merge<'_> {
    async fn changed<R: rows::Row>(&self, table: &str) -> Result<Changed<R>> {
        changed_rows(self.repo, &self.ours, &self.theirs, &self.map.path, table).await
    }

    /// Whether something that differs is taken from theirs, given the side that edits say.
    fn takes(&self, what: &str, side: Option<Side>) -> Result<bool> {
        match side {
            Some(side) => Ok(side == Side::Theirs),
            None => Err(Error::invalid(format!(
                "the versions differ in {what}, which no edit since their common version explains; was one of \
                 them changed without an edit?"
            ))),
        }
    }

    /// The rows of a table to set, and the keys of those to delete, so that it has what is taken from theirs.
    /// `judge` names a row, and says which side it is taken from.
    async fn taken<R: rows::Row, K: Copy>(
        &self,
        table: &str,
        key: impl Fn(&R) -> K,
        judge: impl Fn(K) -> (String, Option<Side>),
    ) -> Result<(Vec<R>, Vec<K>)> {
        let (mut set, mut gone) = (Vec::new(), Vec::new());
        for (ours, theirs) in self.changed::<R>(table).await? {
            let Some(key) = theirs.as_ref().or(ours.as_ref()).map(&key) else { continue };
            let (what, side) = judge(key);
            if !self.takes(&what, side)? {
                continue;
            }
            match theirs {
                Some(row) => set.push(row),
                None => gone.push(key),
            }
        }
        Ok((set, gone))
    }

    /// Takes the rows of bodies, index, supervoxels and mapping.
    async fn tables(&mut self) -> Result<()> {
        let (map, sides) = (self.map, &self.sides);
        let side_of = |body: u64| sides.bodies.get(&body).copied();

        let judge = |id: u64| (format!("body {id}"), side_of(id));
        let (set, gone) = self.taken(layout::BODIES, |row: &Body| row.body, judge).await?;
        let taken: Vec<u64> = set.iter().map(|row| row.body).chain(gone.iter().copied()).collect();
        rows::upsert(&map.bodies, &set).await?;
        rows::delete(&map.bodies, &gone).await?;

        let judge = |key: BlockKey| (format!("the index of body {}", key.0), side_of(key.0));
        let (set, gone) = self.taken(layout::INDEX, |row: &IndexRow| row.key, judge).await?;
        rows::upsert(&map.index, &set).await?;
        IndexRow::delete(&map.index, &gone).await?;

        let judge = |id: u64| (format!("supervoxel {id}"), sides.of_supervoxel(id));
        let key = |row: &Supervoxel| row.supervoxel;
        let (set, gone) = self.taken(layout::SUPERVOXELS, key, judge).await?;
        rows::upsert(&map.supervoxels, &set).await?;
        rows::delete(&map.supervoxels, &gone).await?;

        let judge = |id: u64| (format!("the mapping of supervoxel {id}"), sides.of_supervoxel(id));
        let key = |row: &MappingRow| row.supervoxel;
        let (set, gone) = self.taken(layout::MAPPING, key, judge).await?;
        rows::upsert(&map.mapping, &set).await?;
        rows::delete(&map.mapping, &gone).await?;

        self.bodies.extend(taken);
        Ok(())
    }

    /// Takes the log of edits that come over, and forgets that of edits that are given up.
    async fn logs(
        &self,
        joined: &Joined,
        ours: &BTreeMap<u64, Mutation>,
        theirs: &BTreeMap<u64, Mutation>,
    ) -> Result<()> {
        let map = self.map;
        let taken: Vec<Mutation> =
            joined.taken.iter().filter_map(|id| theirs.get(id)).cloned().collect();
        rows::upsert(&map.mutations, &taken).await?;
        rows::delete(&map.mutations, &joined.given_up).await?;
        let rows: Changed<HistoryRow> = self.changed(layout::HISTORY).await?;
        let comes = |(_, row): &(Option<HistoryRow>, Option<HistoryRow>)| {
            row.filter(|row| joined.taken.contains(&row.mutation))
        };
        let set: Vec<HistoryRow> = rows.iter().filter_map(comes).collect();
        rows::upsert(&map.history, &set).await?;
        for mutation in joined.given_up.iter().filter_map(|id| ours.get(id)) {
            delete_history(&map.history, mutation).await?;
        }
        Ok(())
    }

    /// Takes voxels: of a block that both cut, each voxel from the side of its body.
    async fn blocks(&self) -> Result<()> {
        let map = self.map;
        let path = below(&map.path, &array_name(0));
        let changed = self.repo.diff_chunks(&self.ours, &self.theirs, &path).await?;
        let mut blocks: Vec<At> = Vec::new();
        for index in changed.added.iter().chain(&changed.replaced).chain(&changed.removed) {
            let at = <[u64; 3]>::try_from(index.as_slice()).unwrap_or_default();
            blocks.push(at.map(|at| u32::try_from(at).unwrap_or(u32::MAX)));
        }
        blocks.sort_unstable();
        let session = self.repo.readonly_session(&self.theirs).await?;
        let their_map = Labelmap::open(&session, &map.path).await?;
        let size = map.layout.block_voxels();
        let mut rewritten = Vec::new();
        for some in blocks.chunks(BLOCKS_AT_ONCE) {
            let (ours, theirs) = (map.blocks(0, some).await?, their_map.blocks(0, some).await?);
            for ((at, ours), theirs) in some.iter().zip(ours).zip(theirs) {
                let (mut ours, theirs) =
                    (voxels(ours.as_deref(), size)?, voxels(theirs.as_deref(), size)?);
                let sides = self.sides_of_voxels(*at, &ours, &theirs)?;
                let mut takes = false;
                for (our, their) in ours.iter_mut().zip(theirs) {
                    if *our != their && sides.get(&(*our, their)) == Some(&true) {
                        *our = their;
                        takes = true;
                    }
                }
                if takes {
                    let mut block = Vec::new();
                    encode(&ours, map.layout.block_xyz(), &mut block)?;
                    map.put_block(0, *at, &block).await?;
                    rewritten.push(*at);
                }
            }
        }
        map.downsample_above(0, &rewritten).await
    }

    /// For each pair of different labels at one voxel, whether theirs is taken.
    fn sides_of_voxels(
        &self,
        at: At,
        ours: &[u64],
        theirs: &[u64],
    ) -> Result<HashMap<(u64, u64), bool>> {
        let mut sides = HashMap::new();
        for (our, their) in ours.iter().copied().zip(theirs.iter().copied()) {
            if our == their || sides.contains_key(&(our, their)) {
                continue;
            }
            let side = self.sides.of_supervoxel(our).or_else(|| self.sides.of_supervoxel(their));
            let what = format!("voxels of block {at:?} (supervoxels {our} and {their})");
            sides.insert((our, their), self.takes(&what, side)?);
        }
        Ok(sides)
    }
}

async fn delete_history(history: &Table, mutation: &Mutation) -> Result<()> {
    for &supervoxel in &mutation.supervoxels {
        let mut rows = history.scan(
            &chunkyard_repo::KeyRange::only([supervoxel.into(), mutation.mutation.into()]),
            Some(&["supervoxel", "mutation"]),
        )?;
        let mut keys: Vec<RecordBatch> = Vec::new();
        while let Some(batch) = rows.try_next().await? {
            keys.push(batch);
        }
        for keys in keys {
            history.delete(keys).await?;
        }
    }
    Ok(())
}
