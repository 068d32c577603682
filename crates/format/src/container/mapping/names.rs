//! Names: the flat list of a container as a hierarchy.
//!
//! The name of an array is its path without the leading slash: `a/b/c`; an array at the root has the
//! empty name. A container has no groups. A group that has attributes, or no nodes below it, is kept as
//! a scalar of UInt8 that is never written, under its path and a slash: `a/b/`, the root as `/`. All
//! other groups follow from the names below them.
//!
//! Names are free in a container. A name that is not a path (`a//b`, `..`) or is too deep, and an array
//! within an array, is left out of the dataset as a loss; everything else can be read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chunkyard_store::{Error, Result};

use super::{Entry, array_of, entry_of, group_entry_of, group_of};
use crate::container::model::{ArrayMeta, DType};
use crate::{Dataset, Loss, Node, check_node_path};

/// The name of the array at a path.
pub fn name_of(path: &str) -> &str {
    path.strip_prefix('/').unwrap_or(path)
}

/// The name under which the group at a path is kept.
pub fn group_name(path: &str) -> String {
    format!("{}/", name_of(path))
}

/// The content of a container as a dataset.
pub fn dataset_of(entries: &[Entry]) -> Result<Dataset> {
    let mut dataset = Dataset::default();
    let mut arrays = BTreeMap::new();
    for entry in entries {
        let name = entry.meta.name.as_str();
        let is_root = name.is_empty();
        if let Some(path) = group_path(&entry.meta) {
            dataset.insert(path, Node::Group(group_of(entry)));
        } else if is_root && entries.len() > 1 {
            dataset.losses.push(loss("/", "an array without a name among others"));
        } else if !is_root && check_node_path(name).is_err() {
            let what = "its name is no path, is too long or leads too deep";
            dataset.losses.push(loss(&format!("/{name}"), what));
        } else {
            arrays.insert(format!("/{name}"), entry);
        }
    }
    for (path, entry) in &arrays {
        let within = above(path).find(|above| arrays.contains_key(*above));
        if let Some(within) = within {
            dataset.losses.push(loss(path, &format!("it is within {within}, which is an array")));
        } else if dataset.nodes.contains_key(path) {
            dataset.losses.push(loss(path, "there is a group of the same name"));
        } else {
            let array = array_of(entry).map_err(|cause| Error::for_array(path, cause))?;
            dataset.insert(path.as_str(), Node::Array(Arc::new(array)));
        }
    }
    // An empty container still has a root.
    if dataset.nodes.is_empty() {
        dataset.insert("/", Node::Group(chunkyard_array::GroupSpec::new(Default::default())));
    }
    Ok(dataset)
}

/// The arrays that a container must have to hold a dataset, in the order of their names.
pub fn entries_of(dataset: &Dataset) -> Result<Vec<Entry>> {
    let mut inhabited = BTreeSet::new();
    for path in dataset.nodes.keys() {
        check(path)?;
        for group in above(path) {
            if let Some(Node::Array(_)) = dataset.nodes.get(group) {
                let what = format!("{path} cannot be within {group}, which is an array");
                return Err(Error::invalid(what));
            }
            inhabited.insert(group);
        }
    }
    let mut entries = Vec::with_capacity(dataset.nodes.len());
    for (path, node) in &dataset.nodes {
        match node {
            Node::Array(array) => {
                let entry = entry_of(name_of(path), array);
                entries.push(entry.map_err(|cause| Error::for_array(path, cause))?);
            }
            Node::Group(group) => {
                let entry = group_entry_of(group_name(path), group)
                    .map_err(|cause| Error::for_array(path, cause))?;
                if !entry.attributes.is_empty() || !inhabited.contains(path.as_str()) {
                    entries.push(entry);
                }
            }
        }
    }
    entries.sort_by(|a, b| a.meta.name.cmp(&b.meta.name));
    Ok(entries)
}

/// Refuses a path that cannot be restored from its name.
fn check(path: &str) -> Result<()> {
    if path == "/" {
        return Ok(());
    }
    match path.strip_prefix('/') {
        Some(name) => check_node_path(name),
        None => Err(Error::invalid(format!("{path:?} is no absolute path"))),
    }
}

/// The path of the group that an entry stands for, if it is a group.
fn group_path(meta: &ArrayMeta) -> Option<String> {
    let name = meta.name.strip_suffix('/')?;
    let is_marker = meta.dtype == DType::UInt8 && meta.shape.is_empty();
    let is_path = name.is_empty() || check_node_path(name).is_ok();
    (is_marker && is_path).then(|| format!("/{name}"))
}

/// The paths of the groups around a node, from the inside, the root last.
fn above(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| parent_of(path)).skip(1)
}

fn parent_of(path: &str) -> Option<&str> {
    match path.rfind('/')? {
        0 if path == "/" => None,
        0 => Some("/"),
        at => path.get(..at),
    }
}

fn loss(name: &str, what: &str) -> Loss {
    Loss { name: name.to_owned(), what: what.to_owned() }
}
