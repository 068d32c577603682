//! The result of a verification: how deep it looked, and what is wrong.

use serde::Serialize;

/// How deep to look. Each level includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// The state file only.
    State,
    /// All metadata files.
    Metadata,
    /// That chunk files exist and are long enough.
    Existence,
    /// Every byte.
    Bytes,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Data is lost or unreadable.
    Error,
    /// Worth knowing, nothing is lost.
    Note,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Finding {
    /// How bad.
    pub severity: Severity,
    /// The file, relative to the root.
    pub file: String,
    /// What is wrong with it.
    pub what: String,
    /// The snapshots that need it.
    pub snapshots: Vec<String>,
    /// The array concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array: Option<String>,
    /// The chunk concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk: Option<Vec<u64>>,
}
