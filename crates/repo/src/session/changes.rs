//! What a session changed in the hierarchy, by comparing it with its base.

use std::sync::Arc;

use crate::node::Node;
use crate::tree::Tree;

/// Differences of two trees, by identity.
#[derive(Debug, Default)]
pub(crate) struct NodeEdits {
    pub(crate) added: Vec<Arc<Node>>,
    pub(crate) removed: Vec<Arc<Node>>,
    /// Before and after; path, kind or attributes differ.
    pub(crate) changed: Vec<(Arc<Node>, Arc<Node>)>,
}

impl NodeEdits {
    pub(crate) fn between(before: &Tree, after: &Tree) -> Self {
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

    pub(crate) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}
