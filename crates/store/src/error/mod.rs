//! What can go wrong, sorted by what the caller does about it.
//!
//! Each variant exists because some caller acts differently on it; [`Error::kind`] is the coarse
//! view that each surface (exit code, HTTP status, Python exception) maps once. Messages are for
//! people and are not part of the interface.

mod noun;

use std::error::Error as StdError;

pub use self::noun::Noun;
use crate::conflict::Conflict;

/// The cause of an [`Error`], whatever library it came from.
pub type Source = Box<dyn StdError + Send + Sync + 'static>;

/// The result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Any failure of the engine.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller's argument makes no sense.
    #[error("{what}")]
    Invalid {
        /// The argument and why it is refused.
        what: String,
    },

    /// Something named by the caller, or by data, is not there.
    #[error("{what} not found: {name}")]
    NotFound {
        /// What kind of thing.
        what: Noun,
        /// Its name.
        name: String,
    },

    /// Something to be created exists already.
    #[error("{what} exists already: {name}")]
    AlreadyExists {
        /// What kind of thing.
        what: Noun,
        /// Its name.
        name: String,
    },

    /// Another writer was faster, and the two changes exclude each other.
    #[error("conflict: {message}{}", listed(conflicts))]
    Conflict {
        /// What collided with what.
        message: String,
        /// The nodes and chunks concerned, if any.
        conflicts: Vec<Conflict>,
    },

    /// The snapshot a writer built on has been expired since.
    #[error("snapshot {id}, on which this session is based, has expired; start a new session")]
    BaseExpired {
        /// The snapshot's id.
        id: String,
    },

    /// A garbage collection took a file of a writer that was too slow.
    #[error("{file}, written by this session, has been collected; write again in a new session")]
    SessionCollected {
        /// The file.
        file: String,
    },

    /// Strict draft mode has no room for a value.
    #[error("{field} = {value} does not fit the type the draft gives this field")]
    ValueDoesNotFit {
        /// The field.
        field: &'static str,
        /// The value.
        value: u64,
    },

    /// The array model refused.
    #[error(transparent)]
    Array(#[from] chunkyard_array::Error),

    /// Bytes fail a check.
    #[error("{file} is corrupt: {what}: expected {expected}, found {found}")]
    Corrupt {
        /// The object that holds the bytes.
        file: String,
        /// What was checked.
        what: String,
        /// What the check wanted.
        expected: String,
        /// What the bytes say.
        found: String,
    },

    /// Legal, but not implemented here.
    #[error("not supported: {what}")]
    Unsupported {
        /// The operation or feature.
        what: String,
    },

    /// The snapshot existed and has been expired since.
    #[error("snapshot {id} has expired")]
    SnapshotExpired {
        /// The snapshot's id.
        id: String,
    },

    /// A file that a repository points into is no longer the one it pointed into.
    #[error("{url} has changed since it was linked: expected {expected}, found {found}")]
    VirtualSourceChanged {
        /// The file.
        url: String,
        /// The state recorded when it was linked.
        expected: String,
        /// Its state now.
        found: String,
    },

    /// The store did not say how it ended: the change may have happened, or may yet happen. Only the
    /// same operation again, or looking later, can tell.
    #[error("outcome unknown: {what}: the store did not confirm it, and it may still happen")]
    OutcomeUnknown {
        /// The operation.
        what: String,
        /// What went wrong.
        source: Source,
    },

    /// Network, permission or disk.
    #[error("cannot {op} {path}")]
    Store {
        /// The operation, as a verb.
        op: &'static str,
        /// The path or URL it was applied to.
        path: String,
        /// What the system or the service said.
        source: Source,
    },
}

/// The coarse sort of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The caller's argument.
    Invalid,
    /// A name that is not there.
    NotFound,
    /// A lost race.
    Conflict,
    /// Bytes that fail a check.
    Corrupt,
    /// Legal, but not implemented here.
    Unsupported,
    /// Network, permission, disk.
    Store,
}

/// One line per conflict.
fn listed(conflicts: &[Conflict]) -> String {
    conflicts.iter().map(|conflict| format!("\n  {conflict}")).collect()
}

impl Error {
    /// The coarse sort of this error, on which surfaces decide.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid { .. } => ErrorKind::Invalid,
            Self::NotFound { .. } | Self::SnapshotExpired { .. } => ErrorKind::NotFound,
            Self::AlreadyExists { .. }
            | Self::Conflict { .. }
            | Self::BaseExpired { .. }
            | Self::SessionCollected { .. } => ErrorKind::Conflict,
            Self::Array(error) => match error {
                chunkyard_array::Error::Corrupt { .. } => ErrorKind::Corrupt,
                chunkyard_array::Error::Unsupported { .. } => ErrorKind::Unsupported,
                chunkyard_array::Error::OutOfMemory { .. } => ErrorKind::Store,
                _ => ErrorKind::Invalid,
            },
            Self::Corrupt { .. } | Self::VirtualSourceChanged { .. } => ErrorKind::Corrupt,
            Self::Unsupported { .. } | Self::ValueDoesNotFit { .. } => ErrorKind::Unsupported,
            Self::OutcomeUnknown { .. } | Self::Store { .. } => ErrorKind::Store,
        }
    }

    /// An [`Error::Invalid`].
    pub fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid { what: what.into() }
    }

    /// An [`Error::Unsupported`].
    pub fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported { what: what.into() }
    }

    /// Says which array an argument was refused for, or what of it is not supported.
    pub fn for_array(path: &str, error: Self) -> Self {
        match error {
            Self::Invalid { what } => Self::Invalid { what: format!("{path}: {what}") },
            Self::Unsupported { what } => Self::Unsupported { what: format!("{path}: {what}") },
            Self::Array(chunkyard_array::Error::Invalid { what, source }) => {
                let what = format!("{path}: {what}");
                Self::Array(chunkyard_array::Error::Invalid { what, source })
            }
            Self::Array(chunkyard_array::Error::Unsupported { what, source }) => {
                let what = format!("{path}: {what}");
                Self::Array(chunkyard_array::Error::Unsupported { what, source })
            }
            other => other,
        }
    }

    /// An [`Error::Store`].
    pub fn store(op: &'static str, path: impl Into<String>, source: impl Into<Source>) -> Self {
        Self::Store { op, path: path.into(), source: source.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expired_snapshot_is_not_found_and_a_changed_source_is_corrupt() {
        assert_eq!(Error::SnapshotExpired { id: "a".into() }.kind(), ErrorKind::NotFound);
        let changed = Error::VirtualSourceChanged {
            url: "s3://b/k".into(),
            expected: "1".into(),
            found: "2".into(),
        };
        assert_eq!(changed.kind(), ErrorKind::Corrupt);
    }

    #[test]
    fn the_cause_is_kept_as_a_source() {
        let error = Error::store("read", "a/b", std::io::Error::other("disk on fire"));
        assert_eq!(error.to_string(), "cannot read a/b");
        assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("disk on fire"));
    }
}
