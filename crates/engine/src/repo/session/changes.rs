//! What a session changed in the hierarchy, by comparing it with its base.

use std::sync::Arc;

use crate::repo::node::Node;
use crate::repo::tree::Tree;

/// Differences of two trees, by identity.
#[derive(Debug, Default)]
pub(in crate::repo) struct NodeEdits {
    pub(in crate::repo) added: Vec<Arc<Node>>,
    pub(in crate::repo) removed: Vec<Arc<Node>>,
    /// Before and after; path, kind or attributes differ.
    pub(in crate::repo) changed: Vec<(Arc<Node>, Arc<Node>)>,
}

impl NodeEdits {
    pub(in crate::repo) fn between(before: &Tree, after: &Tree) -> Self {
        let mut edits = Self::default();
        for node in after.nodes() {
            match before.by_uid(&node.uid) {
                None => edits.added.push(node.clone()),
                Some(old) if Arc::ptr_eq(old, node) => {}
                Some(old) => {
                    let same = old.path == node.path
                        && old.kind == node.kind
                        && old.attributes == node.attributes;
                    if !same {
                        edits.changed.push((old.clone(), node.clone()));
                    }
                }
            }
        }
        let gone = before.nodes().filter(|node| after.by_uid(&node.uid).is_none());
        edits.removed.extend(gone.cloned());
        edits
    }

    pub(in crate::repo) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}
