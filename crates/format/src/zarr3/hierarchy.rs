//! Which nodes there are.
//!
//! If the root has consolidated metadata, reading that one document is enough and nothing is listed.
//! Otherwise directories are walked from the root down. The walk stops at an array, so the number of
//! chunks does not matter.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::{ArraySpec, GroupSpec, non_finite, parse_v2_array, parse_v2_group};
use chunkyard_store::{Error, Kind, Noun, Result, Store};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Map, Value};

use super::{METADATA, prefix_of};
use crate::{ArrayNode, Dataset, Node, check_node_path};

/// Documents of version 2: group, array, attributes, and all of them in one.
pub(super) const V2_GROUP: &str = ".zgroup";
pub(super) const V2_ARRAY: &str = ".zarray";
const V2_ATTRIBUTES: &str = ".zattrs";
const V2_CONSOLIDATED: &str = ".zmetadata";

/// Whether a file of this name holds metadata, of either version.
pub(super) fn is_metadata(name: &str) -> bool {
    [METADATA, V2_GROUP, V2_ARRAY, V2_ATTRIBUTES, V2_CONSOLIDATED].contains(&name)
}

/// The member of a group of version 3 that repeats the metadata of all nodes below.
pub(super) const CONSOLIDATED: &str = "consolidated_metadata";

/// A hierarchy, and a checksum of the documents it was read from.
pub(super) struct Hierarchy {
    pub(super) dataset: Dataset,
    pub(super) checksum: u32,
}

/// Reads all metadata below the root of a store.
pub(super) async fn read(store: &Store) -> Result<Hierarchy> {
    let mut reading = Reading { store, dataset: Dataset::default(), checksum: 0 };
    reading.root().await?;
    Ok(Hierarchy { dataset: reading.dataset, checksum: reading.checksum })
}

struct Reading<'a> {
    store: &'a Store,
    dataset: Dataset,
    checksum: u32,
}

/// The documents of one node.
#[derive(Debug)]
enum Documents {
    V3(Bytes),
    V2Group { group: Bytes, attributes: Option<Bytes> },
    V2Array { array: Bytes, attributes: Option<Bytes> },
}

impl Reading<'_> {
    async fn root(&mut self) -> Result<()> {
        let Some(documents) = documents(self.store, "/").await? else {
            return Err(Error::NotFound {
                what: Noun::Dataset,
                name: format!("{} has no Zarr metadata", self.store.url()),
            });
        };
        match &documents {
            Documents::V3(bytes) => {
                if let Some(nodes) = consolidated(bytes)? {
                    self.take("/", &documents)?;
                    return self.consolidated(nodes);
                }
            }
            Documents::V2Group { .. } => {
                if let Some(bytes) = optional(self.store, V2_CONSOLIDATED).await? {
                    return self.consolidated_v2(&bytes);
                }
            }
            Documents::V2Array { .. } => {}
        }
        let is_group = self.take("/", &documents)?;
        if !is_group {
            return Ok(());
        }
        if self.store.kind() == Kind::ReadOnly {
            return Err(Error::unsupported(format!(
                "finding what is in the group at {}: a web server cannot list it, and it has no \
                 consolidated metadata; open one of its arrays instead",
                self.store.url()
            )));
        }
        self.walk().await
    }

    /// Walks down level by level, all groups of a level at a time.
    async fn walk(&mut self) -> Result<()> {
        let mut level = vec!["/".to_owned()];
        while !level.is_empty() {
            let store = self.store;
            let requests = store.limits().requests.max(1);
            let children: Vec<Vec<String>> = stream::iter(level)
                .map(|path| async move { children(store, &path).await })
                .buffer_unordered(requests)
                .try_collect()
                .await?;
            let mut found: Vec<(String, Option<Documents>)> =
                stream::iter(children.into_iter().flatten())
                    .map(|path| async move {
                        let documents = documents(store, &path).await?;
                        Ok::<_, Error>((path, documents))
                    })
                    .buffer_unordered(requests)
                    .try_collect()
                    .await?;
            found.sort_by(|(a, _), (b, _)| a.cmp(b));
            level = Vec::new();
            for (path, documents) in found {
                let Some(documents) = documents else { continue };
                if self.take(&path, &documents)? {
                    level.push(path);
                }
            }
        }
        Ok(())
    }

    /// Adds a node; returns whether it is a group.
    fn take(&mut self, path: &str, documents: &Documents) -> Result<bool> {
        let node = match documents {
            Documents::V3(bytes) => parse_v3(bytes),
            Documents::V2Group { group, attributes } => {
                parse_v2_group(group, attributes.as_deref())
                    .map(|spec| Node::Group(without_consolidated(&spec)))
                    .map_err(Into::into)
            }
            Documents::V2Array { array, attributes } => {
                parse_v2_array(array, attributes.as_deref())
                    .map_err(Into::into)
                    .and_then(|spec| array_node(&spec))
            }
        };
        self.checksum =
            documents.parts().fold(self.checksum, |sum, part| crc32c::crc32c_append(sum, part));
        self.checksum = crc32c::crc32c_append(self.checksum, path.as_bytes());
        let node = node.map_err(|error| in_node(path, error))?;
        let is_group = matches!(node, Node::Group(_));
        self.dataset.insert(path, node);
        Ok(is_group)
    }

    fn consolidated(&mut self, nodes: Map<String, Value>) -> Result<()> {
        for (key, document) in nodes {
            let path = node_path(&key)?;
            let bytes = Bytes::from(document.to_string());
            self.take(&path, &Documents::V3(bytes))?;
        }
        Ok(())
    }

    /// `.zmetadata` maps the names of the documents to their content.
    fn consolidated_v2(&mut self, bytes: &[u8]) -> Result<()> {
        let document: Value = parse(V2_CONSOLIDATED, bytes)?;
        let Some(entries) = document.get("metadata").and_then(Value::as_object) else {
            return Err(not_metadata(V2_CONSOLIDATED, "a member \"metadata\"", "none"));
        };
        for (key, value) in entries {
            let (folder, name) = key.rsplit_once('/').unwrap_or(("", key));
            let path = node_path(folder)?;
            let beside = |name: &str| {
                let key = format!("{}{name}", prefix_of(&path));
                entries.get(&key).map(|value| Bytes::from(value.to_string()))
            };
            let content = Bytes::from(value.to_string());
            let attributes = beside(V2_ATTRIBUTES);
            let documents = match name {
                V2_GROUP => Documents::V2Group { group: content, attributes },
                V2_ARRAY => Documents::V2Array { array: content, attributes },
                _ => continue,
            };
            self.take(&path, &documents)?;
        }
        Ok(())
    }
}

impl Documents {
    fn parts(&self) -> impl Iterator<Item = &Bytes> {
        let (first, second) = match self {
            Self::V3(bytes) => (bytes, None),
            Self::V2Group { group: main, attributes }
            | Self::V2Array { array: main, attributes } => (main, attributes.as_ref()),
        };
        [first].into_iter().chain(second)
    }
}

/// The documents of the node at a path; `None` if there is no node.
async fn documents(store: &Store, path: &str) -> Result<Option<Documents>> {
    let prefix = prefix_of(path);
    let named = |name: &str| format!("{prefix}{name}");
    if let Some(bytes) = optional(store, &named(METADATA)).await? {
        return Ok(Some(Documents::V3(bytes)));
    }
    if let Some(array) = optional(store, &named(V2_ARRAY)).await? {
        let attributes = optional(store, &named(V2_ATTRIBUTES)).await?;
        return Ok(Some(Documents::V2Array { array, attributes }));
    }
    if let Some(group) = optional(store, &named(V2_GROUP)).await? {
        let attributes = optional(store, &named(V2_ATTRIBUTES)).await?;
        return Ok(Some(Documents::V2Group { group, attributes }));
    }
    Ok(None)
}

/// An object, or `None` if it is missing.
async fn optional(store: &Store, path: &str) -> Result<Option<Bytes>> {
    match store.get(path).await {
        Ok(object) => Ok(Some(object.bytes)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The paths below a group that may be nodes.
async fn children(store: &Store, path: &str) -> Result<Vec<String>> {
    let prefix = prefix_of(path);
    let listed = store.list_dir(&prefix).await?;
    let names = listed.dirs.iter().filter_map(|dir| dir.trim_end_matches('/').rsplit('/').next());
    // Our own names that begin with a dot are work in progress.
    let nodes = names.filter(|name| !name.starts_with('.'));
    Ok(nodes.map(|name| format!("/{prefix}{name}")).collect())
}

fn parse_v3(bytes: &[u8]) -> Result<Node> {
    match is_array(METADATA, bytes)? {
        true => array_node(&ArraySpec::parse(bytes)?),
        false => Ok(Node::Group(without_consolidated(&GroupSpec::parse(bytes)?))),
    }
}

/// Whether a document of version 3, called `file`, describes an array; otherwise it describes a
/// group.
pub(super) fn is_array(file: &str, bytes: &[u8]) -> Result<bool> {
    let document: Value = parse(file, bytes)?;
    match document.get("node_type").and_then(Value::as_str) {
        Some("array") => Ok(true),
        Some("group") => Ok(false),
        other => Err(not_metadata(
            file,
            "a node_type \"array\" or \"group\"",
            &other.map_or("none".to_owned(), |name| format!("{name:?}")),
        )),
    }
}

fn array_node(spec: &ArraySpec) -> Result<Node> {
    Ok(Node::Array(Arc::new(ArrayNode::new(spec)?)))
}

/// Consolidated metadata describes the hierarchy in its old place, so it is not copied.
fn without_consolidated(group: &GroupSpec) -> GroupSpec {
    group.without_member(CONSOLIDATED)
}

/// The nodes that a root group of version 3 lists, if any.
fn consolidated(bytes: &[u8]) -> Result<Option<Map<String, Value>>> {
    let document: Value = parse(METADATA, bytes)?;
    let nodes = document.get(CONSOLIDATED).and_then(|member| member.get("metadata"));
    Ok(nodes.and_then(Value::as_object).cloned())
}

/// The path of a node that consolidated metadata names.
fn node_path(key: &str) -> Result<String> {
    let key = key.trim_matches('/');
    if key.is_empty() {
        return Ok("/".to_owned());
    }
    check_node_path(key)?;
    Ok(format!("/{key}"))
}

fn parse(file: &str, bytes: &[u8]) -> Result<Value> {
    non_finite::parse(bytes)
        .map_err(|error| not_metadata(file, "a JSON document", &error.to_string()))
}

fn not_metadata(file: &str, expected: &str, found: &str) -> Error {
    Error::Corrupt {
        file: file.to_owned(),
        what: "Zarr metadata".to_owned(),
        expected: expected.to_owned(),
        found: found.to_owned(),
    }
}

/// Names the node in an error about its metadata.
fn in_node(path: &str, error: Error) -> Error {
    match error {
        Error::Corrupt { file, what, expected, found } => {
            Error::Corrupt { file: format!("{}{file}", prefix_of(path)), what, expected, found }
        }
        Error::Array(chunkyard_array::Error::Unsupported { what, .. }) => {
            Error::unsupported(format!("{path}: {what}"))
        }
        Error::Array(error @ chunkyard_array::Error::Invalid { .. }) => Error::Corrupt {
            file: path.to_owned(),
            what: "Zarr metadata".to_owned(),
            expected: "a valid description of the node".to_owned(),
            found: chain(&error),
        },
        other => other,
    }
}

/// An error and what caused it, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
