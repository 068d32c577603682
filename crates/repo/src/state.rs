//! The state file: the entry point of a repository and its only mutable object.
//!
//! This module knows its content: `parse`, `render`, the invariants, and pure questions about it
//! (what does this branch point at, what came before this snapshot). How one state replaces another
//! is [`super::swap`]'s business.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use chunkyard_store::{Error, Noun, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::config::{Compat, Config};
use super::history::{Held, History};
use super::id;

/// Name of the state file under the root.
pub(super) const STATE_FILE: &str = "state.json";
/// The layout this code writes and understands.
pub(super) const FORMAT_VERSION: u64 = 1;
/// Features a repository may require of its readers that we know.
pub(super) const KNOWN_FEATURES: &[&str] =
    &["delta-inventories", "removals", "snapshot-archive", "tables", "virtual", "wide-ints"];
/// How many write ids a state holds at least, and how many generations a claim outlives its state.
pub(super) const RECENT: usize = 64;

/// The largest counter or time: beyond it, JavaScript and others no longer count by one.
const COUNT_MAX: u64 = (1 << 53) - 1;

/// What the state file says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct State {
    /// Dataset identifier; never changes.
    pub id: String,
    /// Grows by one with every replacement.
    pub generation: u64,
    /// Where the data files live, when not beside the state file.
    #[serde(rename = "store_root", default, skip_serializing_if = "Option::is_none")]
    pub store_root: Option<String>,
    /// Version of the layout.
    #[serde(default = "format_version")]
    pub format_version: u64,
    /// What a reader must know to read this repository.
    #[serde(default)]
    pub required_features: Vec<String>,
    /// Fresh for every attempted replacement: tells a lost reply from a lost race.
    #[serde(default)]
    pub write_id: String,
    /// The write ids of the last generations, newest last. Older ones are in the history.
    #[serde(default)]
    pub recent_write_ids: Vec<String>,
    /// Wall clock of the writer.
    #[serde(default)]
    pub updated_at_ms: i64,
    /// Which protocol guards this root.
    #[serde(default)]
    pub swap: Option<SwapProtocol>,
    /// The branch used when a command names none.
    #[serde(default)]
    pub default_branch: String,
    /// Branches and tags.
    #[serde(default)]
    pub refs: BTreeMap<String, Reference>,
    /// Names of deleted tags, which may not be used again.
    #[serde(default)]
    pub deleted_tags: Vec<String>,
    /// Number of announced collections.
    #[serde(default)]
    pub gc_epoch: u64,
    /// The last announced collection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gc: Option<Collection>,
    /// Whether commits are accepted.
    #[serde(default)]
    pub status: Status,
    /// Persisted defaults.
    #[serde(default)]
    pub config: Config,
    /// User metadata of the whole dataset.
    #[serde(default)]
    pub properties: Map<String, Value>,
    /// Where older snapshots and write ids are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
    /// Which snapshots of the history are in memory.
    #[serde(skip)]
    pub(super) held: Held,
    /// Whether this state moves nothing into the history.
    #[serde(skip)]
    pub(super) keeps_history: bool,
    /// Live snapshots, oldest first: all, or only the ones in the state file.
    pub snapshots: Vec<Arc<Snapshot>>,
    /// Keys of later versions, kept as they are.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// One committed version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Snapshot {
    /// Its identifier.
    pub snapshot_id: String,
    /// The version it was built on; null for the first.
    #[serde(default)]
    pub parent_snapshot_id: Option<String>,
    /// When it was committed; always later than its parent.
    pub timestamp_ms: i64,
    /// Name of its structure file under `s/`.
    pub structure_file: String,
    /// Commit message.
    #[serde(default)]
    pub message: String,
    /// The manifest with exactly this commit's references; null when it set none.
    #[serde(default)]
    pub change_file: Option<String>,
    /// The snapshot the change file is relative to. Differs from the parent after expiry.
    #[serde(default)]
    pub change_base: Option<String>,
    /// Size of the change file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_size: Option<u64>,
    /// CRC-32C of the change file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_crc32c: Option<u32>,
    /// Size of the structure file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structure_size: Option<u64>,
    /// CRC-32C of the structure file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structure_crc32c: Option<u32>,
    /// Counts, for people and planning.
    #[serde(default)]
    pub summary: Summary,
    /// User metadata of the commit.
    #[serde(default)]
    pub properties: Map<String, Value>,
    /// Keys of later versions, kept as they are.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// What a commit did, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Summary {
    /// Nodes in the snapshot.
    pub nodes: u64,
    /// References set by the commit.
    pub refs_added: u64,
    /// References removed by the commit.
    pub refs_removed: u64,
    /// Bytes of chunks and metadata written for it.
    pub bytes_written: u64,
}

/// A branch or a tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Reference {
    /// Equal to its key in the map.
    pub name: String,
    /// The snapshot it names.
    pub snapshot_id: String,
    /// Which of the two it is.
    #[serde(rename = "type")]
    pub kind: ReferenceKind,
}

/// Branches move, tags do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReferenceKind {
    /// Moves with each commit.
    Branch,
    /// Never moves, and its name is never used again.
    Tag,
}

impl ReferenceKind {
    /// The word for messages.
    pub fn noun(self) -> Noun {
        match self {
            Self::Branch => Noun::Branch,
            Self::Tag => Noun::Tag,
        }
    }
}

/// How one state replaces another on this root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwapProtocol {
    /// A put conditioned on the version token that was read.
    ConditionalPut,
    /// An exclusively created claim file per generation.
    GenerationClaim,
}

/// An announced garbage collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Collection {
    /// The epoch it opened.
    pub epoch: u64,
    /// The list of files it deletes, under `gc/`; null once it is finished.
    pub list_file: Option<String>,
    /// Lists of this and earlier epochs that still exist, for committers to check against.
    #[serde(default)]
    pub lists: Vec<CollectionList>,
    /// When it was announced.
    pub time_ms: i64,
}

/// The deletion list of one epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CollectionList {
    /// The epoch that announced it.
    pub epoch: u64,
    /// Its name under `gc/`.
    pub file: String,
    /// CRC-32C of the file.
    pub crc32c: u32,
}

/// Whether the repository accepts commits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Status {
    /// `online` or `read-only`.
    #[serde(default)]
    pub mode: Mode,
    /// Why it is read-only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Whether commits are accepted, see the state file's `status`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Commits are accepted.
    #[default]
    Online,
    /// Commits are refused.
    ReadOnly,
}

fn format_version() -> u64 {
    FORMAT_VERSION
}

impl State {
    /// Parses and checks a state file; `file` names it in errors.
    pub fn parse(bytes: &[u8], file: &str) -> Result<Self> {
        let mut state: Self = serde_json::from_slice(bytes).map_err(|error| {
            corrupt(file, "content", "a state document (JSON)", &error.to_string())
        })?;
        if state.format_version > FORMAT_VERSION {
            return Err(Error::Unsupported {
                what: format!(
                    "{file} has format-version {}; this program knows {FORMAT_VERSION}",
                    state.format_version
                ),
            });
        }
        if let Some(name) =
            state.required_features.iter().find(|name| !KNOWN_FEATURES.contains(&name.as_str()))
        {
            return Err(Error::Unsupported {
                what: format!("{file} requires the feature {name:?}, which this program lacks"),
            });
        }
        state.conform(file)?;
        state.check(file)?;
        Ok(state)
    }

    /// The bytes to store.
    pub fn render(&self) -> Result<Vec<u8>> {
        let own = Self { snapshots: self.own_snapshots().to_vec(), ..self.clone() };
        serde_json::to_vec(&own).map_err(|error| Error::Invalid { what: error.to_string() })
    }

    /// The invariants every reader and writer relies on.
    pub fn check(&self, file: &str) -> Result<()> {
        self.check_numbers(file)?;
        let mut order = HashMap::with_capacity(self.snapshots.len());
        for (position, snapshot) in self.snapshots.iter().enumerate() {
            let id = &snapshot.snapshot_id;
            if order.insert(id.as_str(), position).is_some() {
                return Err(corrupt(file, "snapshots", "unique snapshot ids", &twice(id)));
            }
            for (what, name) in [
                ("structure-file", Some(&snapshot.structure_file)),
                ("change-file", snapshot.change_file.as_ref()),
            ] {
                if let Some(name) = name.filter(|name| !id::is_file_name(name)) {
                    return Err(corrupt(file, what, "a file name", &format!("{name:?}")));
                }
            }
        }
        for (position, snapshot) in self.snapshots.iter().enumerate() {
            if let Some(parent) = &snapshot.parent_snapshot_id {
                // Parents stand before their children, which also rules out cycles.
                match order.get(parent.as_str()) {
                    Some(&at) if at < position => {}
                    Some(_) => {
                        let found = format!("{} before its parent {parent}", snapshot.snapshot_id);
                        return Err(corrupt(file, "snapshots", "parents first", &found));
                    }
                    None if !self.is_complete() => {}
                    None => {
                        let found = format!("{parent}, parent of {}", snapshot.snapshot_id);
                        return Err(corrupt(file, "snapshots", "a listed parent", &found));
                    }
                }
            }
        }
        for (key, reference) in &self.refs {
            if *key != reference.name {
                let found = format!("{:?} under the key {key:?}", reference.name);
                return Err(corrupt(file, "refs", "equal key and name", &found));
            }
            if self.is_complete() && !order.contains_key(reference.snapshot_id.as_str()) {
                let found = format!("{key:?} names {}", reference.snapshot_id);
                return Err(corrupt(file, "refs", "a listed snapshot", &found));
            }
        }
        let lists = self.gc.iter().flat_map(|gc| &gc.lists).map(|list| &list.file);
        let pending = self.gc.iter().filter_map(|gc| gc.list_file.as_ref());
        if let Some(name) = lists.chain(pending).find(|name| !id::is_name(name)) {
            return Err(corrupt(file, "gc", "the name of a list", &format!("{name:?}")));
        }
        match self.refs.get(&self.default_branch) {
            Some(reference) if reference.kind == ReferenceKind::Branch => Ok(()),
            _ => {
                let expected = format!("the default branch {:?}", self.default_branch);
                Err(corrupt(file, "refs", &expected, "none"))
            }
        }
    }

    /// Generations and times grow from here, so they must leave room.
    fn check_numbers(&self, file: &str) -> Result<()> {
        let expected = format!("at most {COUNT_MAX}");
        for (what, found) in [("generation", self.generation), ("gc-epoch", self.gc_epoch)] {
            if found > COUNT_MAX {
                return Err(corrupt(file, what, &expected, &found.to_string()));
            }
        }
        let late = |snapshot: &&Arc<Snapshot>| snapshot.timestamp_ms > COUNT_MAX as i64;
        match self.snapshots.iter().find(late) {
            Some(s) => Err(corrupt(file, "timestamp-ms", &expected, &s.timestamp_ms.to_string())),
            None => Ok(()),
        }
    }

    /// The snapshot of that id.
    pub fn snapshot(&self, id: &str) -> Option<&Arc<Snapshot>> {
        // The wanted one is nearly always among the newest.
        self.snapshots.iter().rev().find(|snapshot| snapshot.snapshot_id == id)
    }

    /// The snapshot of that id, or an error that says it is gone.
    pub fn require_snapshot(&self, id: &str) -> Result<&Arc<Snapshot>> {
        self.snapshot(id)
            .ok_or_else(|| Error::NotFound { what: Noun::Snapshot, name: id.to_owned() })
    }

    /// The reference of that kind and name.
    pub fn reference(&self, kind: ReferenceKind, name: &str) -> Result<&Reference> {
        self.refs
            .get(name)
            .filter(|reference| reference.kind == kind)
            .ok_or_else(|| Error::NotFound { what: kind.noun(), name: name.to_owned() })
    }

    /// The snapshot a branch points at.
    pub fn tip(&self, branch: &str) -> Result<&Arc<Snapshot>> {
        let reference = self.reference(ReferenceKind::Branch, branch)?;
        self.require_snapshot(&reference.snapshot_id)
    }

    /// A snapshot and all before it, newest first.
    pub fn ancestry(&self, id: &str) -> impl Iterator<Item = &Arc<Snapshot>> {
        let by_id: HashMap<&str, &Arc<Snapshot>> =
            self.snapshots.iter().map(|s| (s.snapshot_id.as_str(), s)).collect();
        let mut next = by_id.get(id).copied();
        std::iter::from_fn(move || {
            let current = next?;
            let parent = current.parent_snapshot_id.as_deref();
            next = parent.and_then(|parent| by_id.get(parent).copied());
            Some(current)
        })
    }

    /// All snapshots that some reference reaches.
    pub fn reachable(&self) -> HashSet<&str> {
        let mut seen = HashSet::new();
        for reference in self.refs.values() {
            for snapshot in self.ancestry(&reference.snapshot_id) {
                if !seen.insert(snapshot.snapshot_id.as_str()) {
                    break;
                }
            }
        }
        seen
    }

    /// A successor to change and swap in: next generation, fresh write id.
    pub fn successor(&self, now_ms: i64) -> Result<Self> {
        let mut next = Self { keeps_history: false, ..self.clone() };
        next.generation += 1;
        next.write_id = id::fresh()?;
        next.recent_write_ids.push(next.write_id.clone());
        next.updated_at_ms = now_ms;
        Ok(next)
    }

    /// Declares files with wide integers, from the first commit on that may write them: earlier
    /// files may be of the bare draft.
    pub(super) fn require_wide(&mut self) {
        if self.config.compat == Compat::Wide {
            self.require_feature("wide-ints");
        }
    }

    /// Adds a feature name in the same swap that first uses it.
    pub fn require_feature(&mut self, name: &str) {
        if !self.required_features.iter().any(|known| known == name) {
            self.required_features.push(name.to_owned());
        }
    }
}

/// Checks the name of a new branch or tag.
pub(super) fn check_reference_name(name: &str) -> Result<()> {
    let sound = (1..=255).contains(&name.len())
        && !name.chars().any(char::is_control)
        && !name.starts_with('/')
        && !name.ends_with('/')
        && name != "."
        && name != "..";
    if sound {
        return Ok(());
    }
    Err(Error::Invalid {
        what: format!(
            "reference name {name:?}: expected 1 to 255 bytes without control characters, \
             without `/` at either end, not `.` or `..`"
        ),
    })
}

pub(super) fn corrupt(file: &str, what: &str, expected: &str, found: &str) -> Error {
    Error::Corrupt {
        file: file.to_owned(),
        what: what.to_owned(),
        expected: expected.to_owned(),
        found: found.to_owned(),
    }
}

fn twice(id: &str) -> String {
    format!("{id} twice")
}
