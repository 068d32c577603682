//! The repositories of a server and their versions.

use std::collections::{BTreeMap, BTreeSet};

use chunkyard_store::dvid_http::DvidClient;
use chunkyard_store::{Error, Noun, Result};
use serde::Deserialize;

use super::info::{corrupt, nullable};

/// The most bytes of a description. A server lists every version with its log.
const DOCUMENT_BYTES_MAX: usize = 256 << 20;

/// A repository of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Repo {
    /// The UUID of its first version, by which it is known.
    #[serde(rename = "Root", default)]
    pub root: String,
    /// Its name.
    #[serde(rename = "Alias", default)]
    pub alias: String,
    #[serde(rename = "DAG", default)]
    dag: Dag,
    /// Its data, by name.
    #[serde(rename = "DataInstances", default, deserialize_with = "nullable")]
    pub data: BTreeMap<String, Data>,
    /// Grows with every change of its data.
    #[serde(rename = "MutationID", default, deserialize_with = "nullable")]
    pub mutation_id: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
struct Dag {
    #[serde(rename = "Nodes", default, deserialize_with = "nullable")]
    nodes: BTreeMap<String, Node>,
}

/// A version.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Node {
    /// Its UUID.
    #[serde(rename = "UUID")]
    pub uuid: String,
    /// Its number in the keys of the store.
    #[serde(rename = "VersionID")]
    pub version_id: u64,
    /// The numbers of the versions that it was made from; the first counts for the mapping.
    #[serde(rename = "Parents", default, deserialize_with = "nullable")]
    pub parents: Vec<u64>,
    /// The numbers of the versions that were made from it.
    #[serde(rename = "Children", default, deserialize_with = "nullable")]
    pub children: Vec<u64>,
    /// Whether it can no longer change.
    #[serde(rename = "Locked", default, deserialize_with = "nullable")]
    pub locked: bool,
    /// The branch; empty for the first one.
    #[serde(rename = "Branch", default, deserialize_with = "nullable")]
    pub branch: String,
    /// What people wrote about it.
    #[serde(rename = "Note", default, deserialize_with = "nullable")]
    pub note: String,
    /// When it last changed, as text.
    #[serde(rename = "Updated", default, deserialize_with = "nullable")]
    pub updated: String,
}

/// A data instance.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Data {
    #[serde(rename = "Base")]
    base: DataBase,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct DataBase {
    #[serde(rename = "TypeName")]
    type_name: String,
    #[serde(rename = "DataUUID", default, deserialize_with = "nullable")]
    data_uuid: String,
}

impl Data {
    /// Its type, such as `labelmap`.
    pub fn type_name(&self) -> &str {
        &self.base.type_name
    }

    /// Its identity, whatever its name is.
    pub fn data_uuid(&self) -> &str {
        &self.base.data_uuid
    }
}

/// All repositories of a server, by the UUID of their first version.
pub async fn repos_info(client: &DvidClient) -> Result<BTreeMap<String, Repo>> {
    let url = client.url(&["api", "repos", "info"], "");
    parse_repos(&client.get(&url, None, DOCUMENT_BYTES_MAX).await?)
}

pub(super) fn parse_repos(bytes: &[u8]) -> Result<BTreeMap<String, Repo>> {
    let wrong = |error| corrupt("repositories", "their description", error);
    serde_json::from_slice(bytes).map_err(wrong)
}

/// The version that a user means, by a UUID, the beginning of one, or `UUID:branch`. The server decides which repository.
pub(super) async fn resolve(client: &DvidClient, version: &str) -> Result<(Repo, Node)> {
    let url = client.url(&["api", "repo", version, "info"], "");
    let bytes = client.get(&url, None, DOCUMENT_BYTES_MAX).await?;
    let repo: Repo = serde_json::from_slice(&bytes)
        .map_err(|error| corrupt("repository", "its description", error))?;
    let node = match version.split_once(':') {
        None => repo.version(version)?.clone(),
        Some((_, branch)) => {
            let url = client.url(&["api", "repo", &repo.root, "branch-versions", branch], "");
            let bytes = client.get(&url, None, DOCUMENT_BYTES_MAX).await?;
            // From the newest to the first.
            let uuids: Vec<String> = serde_json::from_slice(&bytes)
                .map_err(|error| corrupt("branch", "a list of versions", error))?;
            let missing = || Error::NotFound { what: Noun::Branch, name: branch.to_owned() };
            repo.version(uuids.first().ok_or_else(missing)?)?.clone()
        }
    };
    Ok((repo, node))
}

impl Repo {
    /// Its versions.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.dag.nodes.values()
    }

    /// The only version whose UUID begins so.
    pub fn version(&self, beginning: &str) -> Result<&Node> {
        let name = || beginning.to_owned();
        let mut found = self.nodes().filter(|node| node.uuid.starts_with(beginning));
        let first =
            found.next().ok_or_else(|| Error::NotFound { what: Noun::Version, name: name() })?;
        if found.next().is_some() {
            return Err(Error::invalid(format!("several versions begin with {beginning}")));
        }
        // It becomes a part of URLs. Servers that speak as DVID does need not count by 16.
        let sound = first.uuid.len() <= 64 && first.uuid.bytes().all(|c| c.is_ascii_alphanumeric());
        match sound && !first.uuid.is_empty() {
            true => Ok(first),
            false => Err(corrupt("version", "a UUID", &first.uuid)),
        }
    }

    /// Whether a version was joined from several, or was made from one that was.
    pub fn is_joined(&self, node: &Node) -> bool {
        let by_id: BTreeMap<u64, &Node> =
            self.nodes().map(|node| (node.version_id, node)).collect();
        let (mut ahead, mut seen) = (vec![node], BTreeSet::new());
        while let Some(node) = ahead.pop() {
            if node.parents.len() > 1 {
                return true;
            }
            if seen.insert(node.version_id) {
                ahead.extend(node.parents.iter().filter_map(|parent| by_id.get(parent).copied()));
            }
        }
        false
    }
}
