//! The hierarchy of one snapshot, in memory: nodes by path, and where each identity is.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use chunkyard_format::{is_within, parent_path};
use chunkyard_store::{Error, Noun, Result, Uid};

use super::node::Node;

/// All nodes of a snapshot. Cloning shares the nodes.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    nodes: BTreeMap<String, Arc<Node>>,
    paths: HashMap<Uid, String>,
    next_id: u32,
}

impl Tree {
    /// A hierarchy with only a root group.
    pub fn with_root() -> Result<Self> {
        let mut tree = Self::default();
        let id = tree.take_id()?;
        tree.put(Arc::new(Node::group(id, "/")?));
        Ok(tree)
    }

    /// The node at a normalised path.
    pub fn get(&self, path: &str) -> Option<&Arc<Node>> {
        self.nodes.get(path)
    }

    /// The node at a normalised path, or `NotFound`.
    pub fn require(&self, path: &str) -> Result<&Arc<Node>> {
        self.get(path).ok_or_else(|| Error::NotFound { what: Noun::Node, name: path.to_owned() })
    }

    /// The node of that identity.
    pub fn by_uid(&self, uid: &Uid) -> Option<&Arc<Node>> {
        self.nodes.get(self.paths.get(uid)?)
    }

    /// All nodes, sorted by path.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.values()
    }

    /// A node and all below it, sorted by path.
    pub fn subtree<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a Arc<Node>> {
        // `/a.b` sorts between `/a` and `/a/b`, so the range is a superset.
        self.nodes
            .range::<str, _>((Bound::Included(path), Bound::Unbounded))
            .take_while(move |(candidate, _)| candidate.starts_with(path))
            .filter(move |(candidate, _)| is_within(candidate, path))
            .map(|(_, node)| node)
    }

    /// The direct children of a group, sorted by path.
    pub fn children<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a Arc<Node>> {
        self.subtree(path).filter(move |node| parent_path(&node.path) == Some(path))
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none; a sound tree has at least its root.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The next handle to give out.
    pub fn next_id(&self) -> u32 {
        self.next_id
    }

    /// Raises the next handle to the one a file records, which may exceed its nodes.
    pub fn reserve_ids(&mut self, next_id: u32) {
        self.next_id = self.next_id.max(next_id);
    }

    /// Takes a fresh handle.
    pub fn take_id(&mut self) -> Result<u32> {
        let id = self.next_id;
        self.next_id = id.checked_add(1).ok_or_else(|| Error::Unsupported {
            what: "more than 2^32 nodes in the lifetime of a repository".into(),
        })?;
        Ok(id)
    }

    /// Puts a node at its path, replacing another one, and forgets its old path.
    pub fn put(&mut self, node: Arc<Node>) {
        self.next_id = self.next_id.max(node.id.saturating_add(1));
        if let Some(old) = self.paths.insert(node.uid, node.path.clone())
            && old != node.path
        {
            self.nodes.remove(&old);
        }
        if let Some(old) = self.nodes.insert(node.path.clone(), node.clone())
            && old.uid != node.uid
        {
            self.paths.remove(&old.uid);
        }
    }

    /// Removes the node at a path, if there is one.
    pub fn remove(&mut self, path: &str) -> Option<Arc<Node>> {
        let node = self.nodes.remove(path)?;
        self.paths.remove(&node.uid);
        Some(node)
    }
}
