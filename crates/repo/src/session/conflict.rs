//! What a rebase does about conflicts, and how a conflict about chunks is described.

use chunkyard_store::{Conflict, ConflictKind};
use serde::{Deserialize, Serialize};

use crate::coord::Coord;
use crate::node::Node;

/// What a rebase does about each kind of conflict. The default fails on all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rebase {
    /// Both wrote the same chunk, or the same row of a table.
    pub chunks: Resolve,
    /// Both changed the specification of an array.
    pub metadata: Resolve,
    /// Both changed the attributes of a node.
    pub attributes: Resolve,
    /// Merge attributes key by key where both changed different keys.
    pub merge_attribute_keys: bool,
}

/// Whose change stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resolve {
    /// Neither: the rebase fails and the session stays as it is.
    #[default]
    Fail,
    /// This session's change.
    Ours,
    /// The committed change.
    Theirs,
}

/// A conflict about chunks of an array.
pub(super) fn chunk_conflict(
    node: &Node,
    kind: ConflictKind,
    coords: &[&Coord],
    theirs: Vec<String>,
) -> Conflict {
    let rank = node.array().map_or(0, |spec| spec.shape().len());
    let decoded = coords.iter().take(Conflict::CHUNKS_MAX).filter_map(|c| c.decode(rank).ok());
    Conflict {
        path: node.path.clone(),
        kind,
        chunks: decoded.collect(),
        chunk_count: coords.len() as u64,
        keys: Vec::new(),
        theirs,
    }
}
