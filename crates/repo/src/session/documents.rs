//! Nodes by their documents, for callers that see the hierarchy as `zarr.json` files.
//!
//! In a store of keys a node may lie in a folder that has no document; in a repository the group
//! above a node always exists. So a session remembers which groups are only *implied*: made because
//! something lies below them, although no document was written. They stay without one until a
//! caller writes it, or until the commit, which makes them ordinary groups.

use std::collections::BTreeSet;
use std::sync::Arc;

use chunkyard_array::{ArraySpec, GroupSpec};
use chunkyard_format::{is_within, parent_path};
use chunkyard_store::{Error, Result};
use serde_json::Map;

use super::edit::make_parents;
use super::{Session, Work};
use crate::node::{Attributes, Node, NodeKind};
use crate::state::Snapshot;
use crate::tree::Tree;

/// The groups without a document at the start of a session: the root, if the repository has no
/// commit yet.
pub(super) fn implied_at_first(base: &Snapshot, tree: &Tree) -> BTreeSet<String> {
    let first = base.parent_snapshot_id.is_none() && base.change_base.is_none();
    let bare = tree.len() == 1 && tree.get("/").is_some_and(|root| is_bare(root));
    if first && bare { BTreeSet::from(["/".to_owned()]) } else { BTreeSet::new() }
}

fn is_bare(node: &Node) -> bool {
    let plain = matches!(&node.kind, NodeKind::Group { extra } if extra.is_empty());
    plain && matches!(&node.attributes, Attributes::Inline(map) if map.is_empty())
}

impl Work {
    /// Whether the session wrote the missing document of an existing group, which is a change
    /// although no node differs.
    pub(super) fn has_described(&self) -> bool {
        let before = implied_at_first(&self.base, &self.base_tree);
        before.iter().any(|path| !self.implied.contains(path))
    }

    /// Notes a write to a node: it and the groups above it exist on purpose.
    pub(super) fn describe(&mut self, path: &str) {
        self.implied.retain(|implied| !is_within(path, implied));
    }

    /// Removes nodes, and the groups above them that nothing implies any more.
    pub(super) fn remove_subtree(&mut self, path: &str) {
        let doomed: Vec<_> = self.tree.subtree(path).cloned().collect();
        let tree = Arc::make_mut(&mut self.tree);
        for node in doomed {
            tree.remove(&node.path);
            self.chunks.remove(&node.uid);
            self.tables.remove(&node.uid);
        }
        self.implied.retain(|implied| !is_within(implied, path));
        let mut above = parent_path(path);
        while let Some(group) = above.filter(|group| *group != "/" && self.implied.contains(*group))
        {
            if tree.children(group).next().is_some() {
                break;
            }
            tree.remove(group);
            self.implied.remove(group);
            above = parent_path(group);
        }
    }

    /// Removes a group's document. The group stays while something lies below it.
    fn strip(&mut self, path: &str) -> Result<()> {
        let tree = Arc::make_mut(&mut self.tree);
        let mut node = (**tree.require(path)?).clone();
        if !is_bare(&node) {
            node.kind = NodeKind::Group { extra: Map::new() };
            node.attributes = Attributes::Inline(Arc::default());
            tree.put(Arc::new(node));
        }
        self.implied.insert(path.to_owned());
        Ok(())
    }
}

impl Session {
    /// Whether the node at a path has a document.
    pub(crate) fn is_described(&self, path: &str) -> bool {
        let work = self.work();
        // Zarr knows no tables, so none of them has a document.
        let known = work.tree.get(path).is_some_and(|node| !node.is_table());
        known && !work.implied.contains(path)
    }

    /// Writes the document of an array at a normalised path; makes the array if there is none.
    pub(crate) async fn put_array(&self, path: &str, spec: ArraySpec) -> Result<()> {
        if path == "/" {
            return Err(Error::invalid("the root of a repository is a group; name the array"));
        }
        let attributes = spec.attributes().clone();
        if self.node(path).is_ok_and(|node| node.is_array()) {
            self.set_spec(path, spec).await?;
            return self.put_attributes(path, attributes, |_| Ok(()));
        }
        let kind = NodeKind::Array(spec.with_attributes(Map::new())?.into());
        self.put_node(path, kind, Attributes::Inline(Arc::new(attributes)))
    }

    /// Writes the document of a group at a normalised path; makes the group if there is none.
    pub(crate) async fn put_group(&self, path: &str, spec: &GroupSpec) -> Result<()> {
        let kind = NodeKind::Group { extra: spec.members() };
        if let Ok(node) = self.node(path)
            && node.is_array()
            && self.has_chunks(&node).await?
        {
            return Err(Error::invalid(format!(
                "{path} is an array with chunks; delete it before a group takes its place"
            )));
        }
        self.put_node(path, kind, Attributes::Inline(Arc::new(spec.attributes().clone())))
    }

    fn put_node(&self, path: &str, kind: NodeKind, attributes: Attributes) -> Result<()> {
        let mut work = self.require_editable()?;
        let work = &mut *work;
        let tree = Arc::make_mut(&mut work.tree);
        let new = Node { attributes, ..Node::new(tree.next_id(), path, kind, Map::new())? };
        match tree.get(path) {
            Some(old) if old.is_table() => {
                let what =
                    format!("{path} is a table; delete it before another node takes its place");
                return Err(Error::Invalid { what });
            }
            Some(old) if old.is_array() == new.is_array() => {
                let (kind, attributes) = (new.kind, new.attributes);
                tree.put(Arc::new(Node { kind, attributes, ..(**old).clone() }));
            }
            Some(old) => {
                if tree.children(path).next().is_some() {
                    return Err(Error::invalid(format!(
                        "{path} is a group that holds other nodes; delete it before an array takes \
                         its place"
                    )));
                }
                let uid = old.uid;
                work.chunks.remove(&uid);
                tree.take_id()?;
                tree.put(Arc::new(new));
            }
            None => {
                let mut missing = Vec::new();
                let mut above = parent_path(path);
                while let Some(group) = above.filter(|group| tree.get(group).is_none()) {
                    missing.push(group.to_owned());
                    above = parent_path(group);
                }
                make_parents(tree, path)?;
                let id = tree.take_id()?;
                tree.put(Arc::new(Node { id, ..new }));
                work.implied.extend(missing);
            }
        }
        work.implied.remove(path);
        Ok(())
    }

    /// Deletes the document of a node at a normalised path: an array goes with its chunks, a group
    /// that holds others stays without one.
    pub(crate) fn delete_document(&self, path: &str) -> Result<()> {
        let mut work = self.require_editable()?;
        let Some(node) = work.tree.get(path) else { return Ok(()) };
        let stays = !node.is_array() && (path == "/" || work.tree.children(path).next().is_some());
        if stays {
            return work.strip(path);
        }
        work.remove_subtree(path);
        Ok(())
    }

    /// Deletes a node at a normalised path and all below it; of the root, all that can be deleted.
    pub(crate) fn delete_below(&self, path: &str) -> Result<()> {
        let mut work = self.require_editable()?;
        if path != "/" {
            work.remove_subtree(path);
            return Ok(());
        }
        let doomed: Vec<_> = work.tree.children("/").map(|node| node.path.clone()).collect();
        for path in doomed {
            work.remove_subtree(&path);
        }
        work.strip("/")
    }
}
