//! Bringing back a state file: from a claim, or from the structure files.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use chunkyard_store::{Error, Noun, Result, Store, clock};
use futures::TryStreamExt;
use serde::Serialize;
use serde_json::Map;

use crate::history::Held;
use crate::parquet_file::Footer;
use crate::state::{
    FORMAT_VERSION, KNOWN_FEATURES, Reference, ReferenceKind, Snapshot, State, Status, Summary,
};
use crate::swap::{CLAIMS, StateFile, claim_generation};
use crate::{Config, Repository, id, structure};

/// Which state was published again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Republished {
    /// Its generation.
    pub generation: u64,
    /// Unreadable claims above it, now under `.tmp/`. Each is a commit or a change of references
    /// that the state has lost; the structure files may still exist.
    pub damaged_claims: u64,
}

/// What a rebuilt state holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Rebuilt {
    /// Snapshots that were found.
    pub snapshots: u64,
    /// Branches that were found, with their newest snapshot.
    pub branches: BTreeMap<String, String>,
    /// Structure files that could not be read, and why.
    pub unreadable: Vec<String>,
}

impl Repository {
    /// Publishes the highest sound claim again, after `state.json` was damaged. Damaged claims
    /// above it are set aside: what only they recorded is lost.
    pub async fn republish(store: &Store) -> Result<Republished> {
        let (generation, damaged_claims) = StateFile::new(store.clone()).republish().await?;
        Ok(Republished { generation, damaged_claims })
    }

    /// Builds a new state from the structure files, after the state was lost. Tags, properties and
    /// the configuration are not in those files and do not come back. Refused while a state can be
    /// read.
    pub async fn rebuild_state(store: &Store, default_branch: &str) -> Result<Rebuilt> {
        let state_file = StateFile::new(store.clone());
        if state_file.read().await.is_ok() {
            return Err(Error::AlreadyExists {
                what: Noun::ReadableState,
                name: store.url().into(),
            });
        }
        let mut rebuilt = Rebuilt::default();
        let found = read_structures(store, &mut rebuilt).await?;
        let snapshots = in_order(found.snapshots);
        rebuilt.snapshots = snapshots.len() as u64;
        let mut refs = BTreeMap::new();
        for (branch, snapshot_id) in newest_by_branch(&snapshots, &found.branches) {
            let kind = ReferenceKind::Branch;
            let reference = Reference { name: branch.clone(), snapshot_id, kind };
            rebuilt.branches.insert(branch.clone(), reference.snapshot_id.clone());
            refs.insert(branch, reference);
        }
        if !refs.contains_key(default_branch) {
            return Err(Error::NotFound {
                what: Noun::RecordedBranch,
                name: format!("{default_branch} (found: {:?})", refs.keys()),
            });
        }
        let Some(dataset_id) = found.dataset_id else {
            return Err(Error::NotFound { what: Noun::StructureFile, name: store.url().into() });
        };
        let listed: Vec<_> = store.backend().list(CLAIMS).await?.try_collect().await?;
        let highest = listed.iter().filter_map(|meta| claim_generation(&meta.path)).max();
        let now_ms = clock::now_ms();
        let write_id = id::fresh()?;
        let state = State {
            id: dataset_id,
            generation: highest.map_or(0, |claim| claim + 1),
            store_root: None,
            format_version: FORMAT_VERSION,
            required_features: KNOWN_FEATURES.iter().map(|name| (*name).to_owned()).collect(),
            recent_write_ids: vec![write_id.clone()],
            write_id,
            updated_at_ms: now_ms,
            swap: Some(state_file.protocol()?),
            default_branch: default_branch.to_owned(),
            refs,
            deleted_tags: Vec::new(),
            // Above any epoch a running session can remember, so that none trusts its files.
            gc_epoch: now_ms.unsigned_abs(),
            gc: None,
            status: Status::default(),
            config: Config::default(),
            properties: Map::new(),
            history: None,
            held: Held::default(),
            keeps_history: false,
            snapshots,
            unknown: Map::new(),
        };
        state.check("the rebuilt state")?;
        state_file.put_rebuilt(state).await?;
        Ok(rebuilt)
    }
}

#[derive(Default)]
struct Found {
    dataset_id: Option<String>,
    snapshots: HashMap<String, Snapshot>,
    branches: HashMap<String, String>,
}

async fn read_structures(store: &Store, rebuilt: &mut Rebuilt) -> Result<Found> {
    let mut found = Found::default();
    let listed: Vec<_> = store.backend().list("s").await?.try_collect().await?;
    for meta in listed {
        if meta.path.ends_with(".json") {
            continue; // a file of the history; the structure files have the same facts
        }
        let bytes = store.backend().get(&meta.path).await?.bytes;
        let dataset_id = found.dataset_id.clone().unwrap_or_default();
        let parsed = match structure::parse(&meta.path, &dataset_id, &bytes) {
            // The first file tells which dataset this is.
            Err(Error::Corrupt { what, found: id, .. })
                if what == "dataset-id" && dataset_id.is_empty() =>
            {
                found.dataset_id = Some(id.clone());
                structure::parse(&meta.path, &id, &bytes)
            }
            other => other,
        };
        let (tree, footer) = match parsed {
            Ok(parsed) => parsed,
            Err(error) => {
                rebuilt.unreadable.push(error.to_string());
                continue;
            }
        };
        let Some(mut snapshot) = snapshot_of(&footer, &meta.path) else {
            rebuilt.unreadable.push(format!("{} does not say which snapshot it is", meta.path));
            continue;
        };
        snapshot.structure_size = Some(bytes.len() as u64);
        snapshot.structure_crc32c = Some(crc32c::crc32c(&bytes));
        snapshot.summary = Summary { nodes: tree.len() as u64, ..Summary::default() };
        if let Some(file) = &snapshot.change_file {
            match store.backend().get(&format!("i/{file}")).await {
                Ok(object) => {
                    snapshot.change_size = Some(object.bytes.len() as u64);
                    snapshot.change_crc32c = Some(crc32c::crc32c(&object.bytes));
                }
                Err(Error::NotFound { .. }) => snapshot.change_base = None,
                Err(error) => return Err(error),
            }
        }
        if let Some(branch) = footer.key_value("branch") {
            found.branches.insert(snapshot.snapshot_id.clone(), branch.to_owned());
        }
        found.snapshots.insert(snapshot.snapshot_id.clone(), snapshot);
    }
    Ok(found)
}

fn snapshot_of(footer: &Footer, path: &str) -> Option<Snapshot> {
    let text = |key: &str| footer.key_value(key).map(str::to_owned);
    let parent = text("parent-snapshot-id");
    Some(Snapshot {
        snapshot_id: text("snapshot-id")?,
        parent_snapshot_id: parent.clone(),
        timestamp_ms: text("timestamp-ms")?.parse().ok()?,
        structure_file: path.strip_prefix("s/")?.to_owned(),
        message: text("message").unwrap_or_default(),
        change_file: text("change-file"),
        change_base: parent,
        change_size: None,
        change_crc32c: None,
        structure_size: None,
        structure_crc32c: None,
        summary: Summary::default(),
        properties: Map::new(),
        unknown: Map::new(),
    })
}

/// Oldest first; a parent that was not found becomes none.
fn in_order(mut found: HashMap<String, Snapshot>) -> Vec<Arc<Snapshot>> {
    let known: HashSet<String> = found.keys().cloned().collect();
    for snapshot in found.values_mut() {
        if snapshot.parent_snapshot_id.as_ref().is_some_and(|parent| !known.contains(parent)) {
            snapshot.parent_snapshot_id = None;
        }
    }
    let mut snapshots: Vec<_> = found.into_values().map(Arc::new).collect();
    // Timestamps grow along every line of descent.
    snapshots
        .sort_by(|a, b| (a.timestamp_ms, &a.snapshot_id).cmp(&(b.timestamp_ms, &b.snapshot_id)));
    snapshots
}

/// The newest snapshot of each branch. A commit that was under way when the state was lost may be
/// among them: its writer never heard of success, but nothing shows that it failed.
fn newest_by_branch(
    snapshots: &[Arc<Snapshot>],
    branches: &HashMap<String, String>,
) -> BTreeMap<String, String> {
    let mut newest = BTreeMap::new();
    for snapshot in snapshots {
        if let Some(branch) = branches.get(&snapshot.snapshot_id) {
            newest.insert(branch.clone(), snapshot.snapshot_id.clone());
        }
    }
    newest
}
