//! Defaults that travel with a repository, in the state file's `config`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Persisted defaults of a repository. Absent keys mean the default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Config {
    /// Encoded chunks up to this many bytes live in the manifest itself.
    pub inline_chunk_max: u64,
    /// Per array and commit, no more than this many bytes are stored inline.
    pub inline_total_max: u64,
    /// Attribute documents up to this many bytes live in the structure file.
    pub inline_attrs_max: u64,
    /// Chunks of at least this many bytes get a file of their own.
    pub own_file_min: u64,
    /// A pack is sealed when it reaches this many bytes.
    pub pack_bytes: u64,
    /// A commit merges no more than this many references; `optimise` does the rest.
    pub merge_budget: u64,
    /// Which types the metadata files use.
    pub compat: Compat,
    /// Named containers of virtual chunks: name to URL prefix (`vcc://<name>/…`).
    pub containers: BTreeMap<String, String>,
    /// Keys of later versions, kept as they are.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// The types written to structure and manifest files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compat {
    /// Wide integers and the additive columns.
    #[default]
    Wide,
    /// Exactly the draft's columns and integer widths, or an error that names the field.
    Draft,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            inline_chunk_max: 512,
            inline_total_max: 1 << 20,
            inline_attrs_max: 4 << 10,
            own_file_min: 1 << 20,
            pack_bytes: 16 << 20,
            merge_budget: 262_144,
            compat: Compat::Wide,
            containers: BTreeMap::new(),
            unknown: Map::new(),
        }
    }
}
