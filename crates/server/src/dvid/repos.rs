//! Repositories and their versions, in the words of DVID.
//!
//! A version of DVID is locked once it is committed, and the one that is edited is a child without children. So each
//! snapshot is a locked version here, and each branch an open one that continues its newest snapshot, with the name of
//! the branch for its UUID. A tag is a locked version with a name.

use std::collections::{BTreeMap, HashMap, HashSet};

use axum::extract::{Path, State as Shared};
use axum::response::Response;
use chunkyard_engine::format::dvid::Repo;
use chunkyard_engine::repo::{ReferenceKind, Repository, State as RepositoryState, Version};
use chunkyard_engine::store::clock;
use chunkyard_engine::{Error, Noun, Result};
use serde_json::{Map, Value, json};

use super::address::{Address, Holder, data_name, labelmaps};
use super::answer;
use super::info::describe;
use super::meant::Meant;
use super::segmentation::Segmentation;
use super::served::{Served, served};
use crate::State;
use crate::http::Failure;

/// Snapshots that are listed at most, the newest ones.
const SNAPSHOTS_MAX: usize = 10_000;
/// Branches whose labelmaps are looked for.
const BRANCHES_MAX: usize = 64;

/// `GET /api/repos/info`.
pub(super) async fn get_repos(Shared(state): Shared<State>) -> Result<Response, Failure> {
    let mut repos = Map::new();
    for place in state.places().names() {
        // One place that cannot be opened does not hide the others.
        match describe_place(&state, place).await {
            Ok(found) => {
                for (root, repo) in found {
                    let key = if repos.contains_key(&root) { place.to_owned() } else { root };
                    repos.insert(key, repo);
                }
            }
            Err(error) => tracing::warn!(
                place,
                error = crate::error::message(&error),
                "a place cannot be listed"
            ),
        }
    }
    Ok(answer::json(Value::Object(repos).to_string()))
}

/// `GET /api/repo/UUID/info`.
pub(super) async fn get_repo(
    Shared(state): Shared<State>,
    Path(uuid): Path<String>,
) -> Result<Response, Failure> {
    let node = Node::find(&state, &uuid).await?;
    let found = describe_place(&state, &node.place).await?;
    let repo = found.into_iter().find(|(root, _)| *root == node.root);
    Ok(answer::json(repo.map(|(_, repo)| repo).unwrap_or_default().to_string()))
}

/// `GET /api/repo/UUID/branch-versions/NAME`: the versions of a branch, newest first.
pub(super) async fn get_branch_versions(
    Shared(state): Shared<State>,
    Path((uuid, name)): Path<(String, String)>,
) -> Result<Response, Failure> {
    let node = Node::find(&state, &uuid).await?;
    let within = format!("{}:{name}", node.place);
    let tip = Node::find(&state, &within).await?;
    let line: Vec<String> = match served(&state, &tip.place).await? {
        Some(Served::Repository(repository)) => {
            let known = repository.state().await?;
            let older = known.ancestry(&tip.version).map(|snapshot| snapshot.snapshot_id.clone());
            tip.branch.iter().cloned().chain(older).collect()
        }
        Some(Served::Store(store, _)) => {
            let repo = store.repos().iter().find(|repo| repo.root == tip.root);
            let version =
                repo.and_then(|repo| Some((repo, repo.dag.find(Some(&tip.version)).ok()?)));
            let line = version.map(|(repo, id)| {
                let nodes = repo.dag.ancestry(id).into_iter().filter_map(|id| repo.dag.get(id));
                nodes.map(|node| node.uuid.clone()).collect()
            });
            line.unwrap_or_default()
        }
        None => Vec::new(),
    };
    Ok(answer::json(json!(line).to_string()))
}

/// `GET /api/node/UUID/commit` and `status`.
pub(super) async fn get_status(
    Shared(state): Shared<State>,
    Path(uuid): Path<String>,
) -> Result<Response, Failure> {
    let node = Node::find(&state, &uuid).await?;
    Ok(answer::json(format!("{{\"Locked\":{}}}", node.branch.is_none())))
}

/// `GET /api/node/UUID/note`.
pub(super) async fn get_note(
    Shared(state): Shared<State>,
    Path(uuid): Path<String>,
) -> Result<Response, Failure> {
    let node = Node::find(&state, &uuid).await?;
    Ok(answer::json(json!({ "note": node.note }).to_string()))
}

/// `GET /api/server/info`.
pub(super) async fn get_server() -> Response {
    let version = env!("CARGO_PKG_VERSION");
    let about = json!({
        "Server": "chunkyard",
        "Chunkyard Version": version,
        "DVID Version": format!("chunkyard {version}"),
        "Datastore Version": version,
        "Cores": std::thread::available_parallelism().map_or(1, usize::from),
    });
    answer::json(about.to_string())
}

/// `GET /api/server/types`.
pub(super) async fn get_types() -> Response {
    answer::json(
        json!({ "labelmap": "github.com/janelia-flyem/dvid/datatype/labelmap" }).to_string(),
    )
}

/// A version, without any data of it.
struct Node {
    place: String,
    root: String,
    version: String,
    branch: Option<String>,
    note: String,
}

impl Node {
    /// The version of a name.
    async fn find(state: &State, uuid: &str) -> Result<Self> {
        let meant = Meant::parse(uuid);
        let (mut found, mut failed) = (Vec::new(), None);
        for place in state.places().names() {
            match Self::in_place(state, place, meant).await {
                Ok(node) => found.extend(node),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if found.len() > 1 {
            let places: Vec<&str> = found.iter().map(|node| node.place.as_str()).collect();
            return Err(Error::invalid(format!(
                "{uuid} is a version of {}; write PLACE:{uuid}",
                places.join(" and ")
            )));
        }
        match (found.pop(), failed) {
            (Some(node), _) => Ok(node),
            (None, Some(error)) => Err(error),
            (None, None) => Err(Error::NotFound { what: Noun::Version, name: uuid.to_owned() }),
        }
    }

    async fn in_place(state: &State, place: &str, meant: Meant<'_>) -> Result<Option<Self>> {
        match served(state, place).await? {
            None => Ok(None),
            Some(Served::Repository(repository)) => {
                let Some(found) = meant.in_repository(place, &repository).await? else {
                    return Ok(None);
                };
                let known = repository.state().await?;
                let snapshot = found.session.snapshot();
                Ok(Some(Self {
                    place: place.to_owned(),
                    root: root_of(&known),
                    version: snapshot.snapshot_id.clone(),
                    // What is edited has no message yet.
                    note: if found.branch.is_some() {
                        String::new()
                    } else {
                        snapshot.message.clone()
                    },
                    branch: found.branch,
                }))
            }
            Some(Served::Store(store, _)) => {
                for repo in store.repos() {
                    let version = meant.in_dvid(place, repo)?;
                    if let Some(node) = version.and_then(|version| repo.dag.get(version)) {
                        return Ok(Some(Self {
                            place: place.to_owned(),
                            root: repo.root.clone(),
                            version: node.uuid.clone(),
                            branch: None,
                            note: node.note.clone(),
                        }));
                    }
                }
                Ok(None)
            }
        }
    }
}

/// The first version that is listed.
fn root_of(known: &RepositoryState) -> String {
    listed(known).first().map(|first| first.snapshot_id.clone()).unwrap_or_default()
}

fn listed(known: &RepositoryState) -> &[std::sync::Arc<chunkyard_engine::repo::Snapshot>] {
    let from = known.snapshots.len().saturating_sub(SNAPSHOTS_MAX);
    known.snapshots.get(from..).unwrap_or_default()
}

/// The repositories of a place, by their roots.
async fn describe_place(state: &State, place: &str) -> Result<Vec<(String, Value)>> {
    match served(state, place).await? {
        None => Ok(Vec::new()),
        Some(Served::Repository(repository)) => {
            let (root, repo) = describe_repository(state, place, &repository).await?;
            Ok(vec![(root, repo)])
        }
        Some(Served::Store(store, url)) => {
            let mut repos = Vec::new();
            for repo in store.repos() {
                let mut data = Map::new();
                let last = repo.dag.in_order().pop().and_then(|id| repo.dag.get(id));
                for instance in repo.instances.iter().filter(|instance| instance.is_labelmap()) {
                    let Some(node) = last else { continue };
                    let holder = Holder::Store {
                        store: store.clone(),
                        url: url.clone(),
                        instance: Box::new(instance.clone()),
                        version: node.id,
                    };
                    let address = Address {
                        place: place.to_owned(),
                        path: format!("/{}", instance.name),
                        version: node.uuid.clone(),
                        branch: None,
                        holder,
                    };
                    let seg = Segmentation::open(state, &address).await?;
                    data.insert(instance.name.clone(), describe(&address, &repo.root, seg.frame()));
                }
                repos.push((repo.root.clone(), describe_dvid(place, repo, data)));
            }
            Ok(repos)
        }
    }
}

fn describe_dvid(place: &str, repo: &Repo, data: Map<String, Value>) -> Value {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for node in repo.dag.versions() {
        node.parents.iter().for_each(|parent| children.entry(*parent).or_default().push(node.id));
    }
    let time = |ms: Option<i64>| ms.map(clock::text).unwrap_or_default();
    let node = |node: &chunkyard_engine::format::dvid::VersionNode| {
        let about = json!({
            "Branch": node.branch,
            "Note": node.note,
            "Log": [],
            "UUID": node.uuid,
            "VersionID": node.id,
            "Locked": true,
            "Parents": node.parents,
            "Children": children.get(&node.id).cloned().unwrap_or_default(),
            "Created": time(node.created_ms),
            "Updated": time(node.updated_ms),
        });
        (node.uuid.clone(), about)
    };
    let nodes: Map<String, Value> = repo.dag.versions().map(node).collect();
    let alias = if repo.alias.is_empty() { place } else { &repo.alias };
    json!({
        "Root": repo.root,
        "Alias": alias,
        "Description": "",
        "Log": [],
        "Properties": {},
        "DataInstances": data,
        "DAG": { "Root": repo.root, "Nodes": nodes },
    })
}

async fn describe_repository(
    state: &State,
    place: &str,
    repository: &Repository,
) -> Result<(String, Value)> {
    let known = repository.state().await?;
    let root = root_of(&known);
    let mut branches: Vec<&str> = known
        .refs
        .values()
        .filter(|reference| reference.kind == ReferenceKind::Branch)
        .map(|reference| reference.name.as_str())
        .collect();
    // What the default branch says counts.
    branches.sort_by_key(|name| (*name != known.default_branch, *name));
    let mut data = Map::new();
    let mut seen = HashSet::new();
    for branch in branches.iter().take(BRANCHES_MAX) {
        let tip = known.tip(branch)?.snapshot_id.clone();
        if !seen.insert(tip.clone()) {
            continue;
        }
        let session = repository.readonly_session(&Version::Snapshot(tip.clone())).await?;
        for path in labelmaps(state, place, &session).await?.iter() {
            let name = data_name(place, path);
            if data.contains_key(&name) {
                continue;
            }
            let address = Address {
                place: place.to_owned(),
                path: path.clone(),
                version: tip.clone(),
                branch: None,
                holder: Holder::Repository(session.clone()),
            };
            let seg = Segmentation::open(state, &address).await?;
            data.insert(name, describe(&address, &root, seg.frame()));
        }
    }
    let nodes = nodes(&known, &branches);
    let about = json!({
        "Root": root,
        "Alias": place,
        "Description": "",
        "Log": [],
        "Properties": {},
        "DataInstances": data,
        "DAG": { "Root": root, "Nodes": nodes },
        "Updated": clock::text(known.updated_at_ms),
    });
    Ok((root, about))
}

/// Snapshots, branches and tags as versions.
fn nodes(known: &RepositoryState, branches: &[&str]) -> Map<String, Value> {
    let snapshots = listed(known);
    let numbers: HashMap<&str, usize> = snapshots
        .iter()
        .enumerate()
        .map(|(at, snapshot)| (snapshot.snapshot_id.as_str(), at + 1))
        .collect();
    // A snapshot is of the first branch that comes from it; that of the default branch has no name in DVID.
    let mut owners: HashMap<&str, &str> = HashMap::new();
    for branch in branches {
        let Some(reference) = known.refs.get(*branch) else { continue };
        let name = if *branch == known.default_branch { "" } else { branch };
        let mut next = Some(reference.snapshot_id.as_str());
        let by_id = |id: &str| numbers.get(id).and_then(|number| snapshots.get(number - 1));
        while let Some(snapshot) = next.and_then(by_id) {
            if owners.contains_key(snapshot.snapshot_id.as_str()) {
                break;
            }
            owners.insert(&snapshot.snapshot_id, name);
            next = snapshot.parent_snapshot_id.as_deref();
        }
    }
    let mut children: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, snapshot) in snapshots.iter().enumerate() {
        let parent = snapshot.parent_snapshot_id.as_deref().and_then(|id| numbers.get(id));
        if let Some(parent) = parent {
            children.entry(*parent).or_default().push(at + 1);
        }
    }
    let mut named = Vec::new();
    for (at, reference) in known.refs.values().enumerate() {
        let Some(tip) = numbers.get(reference.snapshot_id.as_str()) else { continue };
        let id = snapshots.len() + 1 + at;
        children.entry(*tip).or_default().push(id);
        let is_branch = reference.kind == ReferenceKind::Branch;
        let is_default = is_branch && reference.name == known.default_branch;
        let time = snapshots.get(tip - 1).map_or(0, |snapshot| snapshot.timestamp_ms);
        let about = json!({
            "Branch": if is_default { "" } else { &reference.name },
            "Note": if is_branch { "" } else { "tag" },
            "Log": [],
            "UUID": reference.name,
            "VersionID": id,
            "Locked": !is_branch,
            "Parents": [tip],
            "Children": [],
            "Created": clock::text(time),
            "Updated": clock::text(time),
        });
        named.push((reference.name.clone(), about));
    }
    let committed = snapshots.iter().enumerate().map(|(at, snapshot)| {
        let parent = snapshot.parent_snapshot_id.as_deref().and_then(|id| numbers.get(id));
        let time = clock::text(snapshot.timestamp_ms);
        let about = json!({
            "Branch": owners.get(snapshot.snapshot_id.as_str()).copied().unwrap_or_default(),
            "Note": snapshot.message,
            "Log": [],
            "UUID": snapshot.snapshot_id,
            "VersionID": at + 1,
            "Locked": true,
            "Parents": parent.into_iter().collect::<Vec<_>>(),
            "Children": children.get(&(at + 1)).cloned().unwrap_or_default(),
            "Created": time,
            "Updated": time,
        });
        (snapshot.snapshot_id.clone(), about)
    });
    committed.chain(named).collect()
}
