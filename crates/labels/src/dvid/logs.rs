//! Mutation logs along a line of versions: what they do to the mapping, and which mutations they are.

use std::collections::{BTreeMap, BTreeSet};

use chunkyard_format::dvid::{DvidStore, Instance, Repo};
use chunkyard_store::Result;

use crate::dvid_log::{Record, Records, Replay};
use crate::rows::{HistoryRow, Kind, Mutation};
use crate::{Mapping, MappingBuilder};

/// Rows of a mapping by supervoxel.
pub(super) type Rows = BTreeMap<u64, u64>;

/// The mapping of a labelmap at a version, from the mutation logs of its first parents.
///
/// Without logs every supervoxel is a body of its own.
pub async fn mapping_at(
    store: &DvidStore,
    repo: &Repo,
    instance: &Instance,
    version: u32,
) -> Result<Mapping> {
    let mut line = repo.dag.ancestry(version);
    line.reverse();
    let mut rows = Rows::new();
    for log in read_logs(store, repo, instance, &line).await? {
        rows.extend(log.replay.mapping);
    }
    let mut builder = MappingBuilder::with_capacity(rows.len());
    let (keys, bodies): (Vec<u64>, Vec<u64>) = rows.into_iter().unzip();
    builder.extend(&keys, &bodies);
    builder.finish()
}

/// The log of one version.
pub(super) struct Log {
    pub(super) replay: Replay,
    pub(super) records: Vec<Record>,
    pub(super) caution: Option<String>,
}

/// The logs of versions, in the order asked; versions without a log have none.
pub(super) async fn read_logs(
    store: &DvidStore,
    repo: &Repo,
    instance: &Instance,
    versions: &[u32],
) -> Result<Vec<Log>> {
    let mut logs = Vec::new();
    for node in versions.iter().filter_map(|id| repo.dag.get(*id)) {
        let Some(bytes) = store.log(instance, &node.uuid).await? else { continue };
        let file = format!("mutation log of {}", node.uuid);
        let replay = Replay::of(&file, &bytes)?;
        let records = Records::new(&file, &bytes).collect::<Result<Vec<_>>>()?;
        let caution =
            replay.torn_at.map(|at| format!("{file}: torn at byte {at}; the rest is missing"));
        logs.push(Log { replay, records, caution });
    }
    Ok(logs)
}

/// What is known of a mutation besides the log: when, and by whom.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    pub(super) time_ms: i64,
    pub(super) user: String,
}

/// Turns the records of logs into rows of the tables of mutations and history. `rows` is the mapping before them, and
/// after them when this returns.
pub(super) fn mutations(
    records: &[Record],
    rows: &mut Rows,
    known: &BTreeMap<u64, Known>,
) -> (Vec<Mutation>, Vec<HistoryRow>) {
    let mut groups: BTreeMap<u64, Vec<&Record>> = BTreeMap::new();
    for record in records {
        if let Some(id) = id_of(record) {
            groups.entry(id).or_default().push(record);
        }
    }
    let (mut mutations, mut history) = (Vec::new(), Vec::new());
    // Numbers of mutations grow with time.
    for (id, records) in groups {
        let (mutation, rows) = one(id, &records, rows, known.get(&id).cloned().unwrap_or_default());
        mutations.push(mutation);
        history.extend(rows);
    }
    (mutations, history)
}

fn id_of(record: &Record) -> Option<u64> {
    match record {
        Record::Split { mutation, .. }
        | Record::Merge { mutation, .. }
        | Record::Mapping { mutation, .. }
        | Record::SupervoxelSplit { mutation, .. }
        | Record::Cleave { mutation, .. }
        | Record::Renumber { mutation, .. } => Some(*mutation),
        Record::Other { .. } => None,
    }
}

fn one(id: u64, records: &[&Record], rows: &mut Rows, known: Known) -> (Mutation, Vec<HistoryRow>) {
    let (mut kind, mut body, mut other) = (Kind::Map, 0, 0);
    let mut bodies = BTreeSet::new();
    let mut moved: BTreeMap<u64, u64> = BTreeMap::new();
    let mut origins: BTreeMap<u64, u64> = BTreeMap::new();
    let mut retired = BTreeSet::new();
    for record in records {
        match record {
            Record::Mapping { body, supervoxels, .. } => {
                moved.extend(supervoxels.iter().map(|supervoxel| (*supervoxel, *body)));
            }
            Record::Merge { target, merged, .. } => {
                (kind, body) = (Kind::Merge, *target);
                bodies.insert(*target);
                bodies.extend(merged);
            }
            Record::Cleave { body: from, new_body, supervoxels, .. } => {
                (kind, body, other) = (Kind::Cleave, *from, *new_body);
                bodies.extend([*from, *new_body]);
                moved.extend(supervoxels.iter().map(|supervoxel| (*supervoxel, *new_body)));
                retired.insert(*new_body);
            }
            Record::SupervoxelSplit { supervoxel, part, rest, .. } => {
                kind = Kind::SplitSupervoxel;
                body = rows.get(supervoxel).copied().unwrap_or(*supervoxel);
                moved.insert(*supervoxel, 0);
                origins.extend([(*part, *supervoxel), (*rest, *supervoxel)]);
            }
            Record::Split { body: from, new_body, supervoxels, .. } => {
                (kind, body, other) = (Kind::SplitBody, *from, *new_body);
                bodies.extend([*from, *new_body]);
                for (supervoxel, (part, rest)) in supervoxels {
                    moved.insert(*supervoxel, 0);
                    origins.extend([(*part, *supervoxel), (*rest, *supervoxel)]);
                }
            }
            Record::Renumber { body: from, new_body, .. } => {
                (kind, body, other) = (Kind::Renumber, *from, *new_body);
                bodies.extend([*from, *new_body]);
                retired.insert(*new_body);
            }
            Record::Other { .. } => {}
        }
    }
    // The ids of new bodies are no supervoxels, unless the log says so.
    retired.retain(|id| !moved.contains_key(id));
    let mut history = Vec::with_capacity(moved.len());
    for (&supervoxel, &after) in &moved {
        let origin = origins.get(&supervoxel).copied().unwrap_or_default();
        let before = match origin {
            0 => rows.get(&supervoxel).copied().unwrap_or(supervoxel),
            _ => 0,
        };
        bodies.extend([before, after]);
        if before != after {
            history.push(HistoryRow { supervoxel, mutation: id, before, after, origin });
        }
    }
    bodies.insert(body);
    bodies.remove(&0);
    let supervoxels = moved.keys().copied().collect();
    rows.extend(moved);
    rows.extend(retired.into_iter().map(|id| (id, 0)));
    let mutation = Mutation {
        mutation: id,
        kind,
        body,
        other,
        bodies: bodies.into_iter().collect(),
        supervoxels,
        time_ms: known.time_ms,
        user: known.user,
        note: String::new(),
    };
    (mutation, history)
}
