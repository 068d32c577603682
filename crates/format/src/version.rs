//! How a user names a version, in formats that keep versions.

use std::fmt;

use chunkyard_store::clock;
use serde::{Deserialize, Serialize};

/// Which older states of a dataset a format keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Versions {
    /// None: there is one state, the current one.
    One,
    /// Layers, known by their numbers, until they are merged.
    Layers,
    /// Commits, with branches, tags and messages.
    Commits,
}

/// How a user names a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Version {
    /// The tip of a branch.
    Branch(String),
    /// What a tag names.
    Tag(String),
    /// A snapshot, by its id or an unambiguous beginning of it.
    Snapshot(String),
    /// The newest version of a branch that is not younger than a time.
    AsOf {
        /// The branch.
        branch: String,
        /// Milliseconds since 1970.
        time_ms: i64,
    },
    /// The branch, tag or snapshot of that name, tried in this order.
    Named(String),
    /// The tip of the default branch.
    Default,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Branch(name) => write!(f, "branch {name}"),
            Self::Tag(name) => write!(f, "tag {name}"),
            Self::Snapshot(id) => write!(f, "snapshot {id}"),
            Self::AsOf { branch, time_ms } => {
                write!(f, "branch {branch} as of {}", clock::text(*time_ms))
            }
            Self::Named(name) => f.write_str(name),
            Self::Default => f.write_str("default branch"),
        }
    }
}

impl Version {
    /// The tip of a branch.
    pub fn branch(name: &str) -> Self {
        Self::Branch(name.to_owned())
    }
}
