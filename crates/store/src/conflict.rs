//! Conflicts between the changes of a session and changes that other writers committed meanwhile:
//! what [`Error::Conflict`](crate::Error::Conflict) lists.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One thing that a session and another writer changed in ways that exclude each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// The node, where the session has it.
    pub path: String,
    /// What kind of conflict.
    pub kind: ConflictKind,
    /// The chunks concerned, at most [`Conflict::CHUNKS_MAX`] of them.
    pub chunks: Vec<Vec<u64>>,
    /// How many chunks or rows are concerned in all.
    pub chunk_count: u64,
    /// The keys of the rows concerned, as text, at most [`Conflict::CHUNKS_MAX`] of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// The other writers' commits, oldest first, where known.
    pub theirs: Vec<String>,
}

/// What excluded what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConflictKind {
    /// Both wrote or removed the same chunk.
    Chunk,
    /// Both set or deleted the same row of a table.
    Row,
    /// They changed a chunk that the session read.
    ReadChunk,
    /// Both changed the specification, or theirs no longer fits our chunks, or ours theirs.
    Metadata,
    /// Both changed the attributes.
    Attributes,
    /// They removed a node that the session changed.
    NodeRemoved,
    /// They moved a node that the session changed, or both moved it.
    NodeMoved,
    /// The session removed a node that they changed.
    RemovedNodeChanged,
    /// They added a node inside a group that the session removed or moved.
    AddedInside,
    /// Both put a node at the same path, or one put an array where the other needs a group.
    PathTaken,
}

impl Conflict {
    /// How many chunks a conflict lists.
    pub const CHUNKS_MAX: usize = 100;

    /// A conflict about a whole node.
    pub fn of_node(path: &str, kind: ConflictKind) -> Self {
        let path = path.to_owned();
        let (chunks, keys, theirs) = (Vec::new(), Vec::new(), Vec::new());
        Self { path, kind, chunks, chunk_count: 0, keys, theirs }
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path)?;
        f.write_str(match self.kind {
            ConflictKind::Chunk => "both changed chunks",
            ConflictKind::Row => "both changed rows",
            ConflictKind::ReadChunk => "they changed chunks that this session read:",
            ConflictKind::Metadata => "the array metadata changed in ways that do not fit together",
            ConflictKind::Attributes => "both changed the attributes",
            ConflictKind::NodeRemoved => "they removed it",
            ConflictKind::NodeMoved => "they moved it",
            ConflictKind::RemovedNodeChanged => "this session removed it, they changed it",
            ConflictKind::AddedInside => {
                "they added it inside a group this session removed or moved"
            }
            ConflictKind::PathTaken => "the path is taken",
        })?;
        const SHOWN: usize = 5;
        for (at, chunk) in self.chunks.iter().take(SHOWN).enumerate() {
            write!(f, "{}{chunk:?}", if at == 0 { " " } else { ", " })?;
        }
        for (at, key) in self.keys.iter().take(SHOWN).enumerate() {
            write!(f, "{}({key})", if at == 0 { " " } else { ", " })?;
        }
        let more = self
            .chunk_count
            .saturating_sub(SHOWN.min(self.chunks.len().max(self.keys.len())) as u64);
        if more > 0 {
            write!(f, " and {more} more")?;
        }
        match self.theirs.as_slice() {
            [] => Ok(()),
            [one] => write!(f, " (commit {one})"),
            many => write!(f, " (commits {})", many.join(", ")),
        }
    }
}
