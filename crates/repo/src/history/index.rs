//! The files of the history: `parse` and `render`.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_store::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::id;
use crate::parquet_file::{check_crc, corrupt};
use crate::state::Snapshot;

/// The files that hold the rest of a state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Index {
    pub(super) dataset_id: String,
    /// Runs of snapshots, oldest first.
    #[serde(default)]
    pub(super) snapshots: Vec<RunFile>,
    /// Runs of write ids, oldest first.
    #[serde(default)]
    pub(super) writes: Vec<RunFile>,
    /// Write ids that are not in a run yet.
    #[serde(default)]
    pub(super) newest_writes: Writes,
}

/// One file with consecutive entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct RunFile {
    /// Its name under `s/`.
    pub(super) file: String,
    /// The generation of its first write id; 0 for snapshots.
    #[serde(default)]
    pub(super) first: u64,
    pub(super) count: u64,
    pub(super) size: u64,
    pub(super) crc32c: u32,
}

/// The write ids of consecutive generations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Writes {
    /// Empty in an index, which names it once.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) dataset_id: String,
    /// The first generation.
    pub(super) first: u64,
    pub(super) ids: Vec<String>,
}

/// A file of snapshots.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Snapshots {
    pub(super) dataset_id: String,
    pub(super) snapshots: Vec<Arc<Snapshot>>,
}

impl Index {
    /// All files it names, relative to the root.
    pub(super) fn files(&self) -> impl Iterator<Item = String> {
        self.snapshots.iter().chain(&self.writes).map(|run| format!("s/{}", run.file))
    }

    /// How many snapshots its files hold. Saturates: numbers of a file are not to be trusted.
    pub(super) fn snapshot_count(&self) -> u64 {
        self.snapshots.iter().fold(0, |sum, run| sum.saturating_add(run.count))
    }

    /// Parses an index whose checksum was compared.
    pub(super) fn parse(path: &str, dataset_id: &str, bytes: &[u8]) -> Result<Self> {
        let index: Self = parse(path, bytes)?;
        check_dataset(path, dataset_id, &index.dataset_id)?;
        for run in index.snapshots.iter().chain(&index.writes) {
            if !id::is_file_name(&run.file) {
                return Err(corrupt(path, "file", "a file name", &format!("{:?}", run.file)));
            }
        }
        Ok(index)
    }
}

impl Writes {
    /// The id of a generation, if it is among these.
    pub(super) fn id_of(&self, generation: u64) -> Option<&str> {
        let at = usize::try_from(generation.checked_sub(self.first)?).ok()?;
        self.ids.get(at).map(String::as_str)
    }

    /// The generation after the last one.
    pub(super) fn end(&self) -> u64 {
        self.first.saturating_add(self.ids.len() as u64)
    }

    /// Parses a file whose checksum was compared.
    pub(super) fn parse(path: &str, dataset_id: &str, run: &RunFile, bytes: &[u8]) -> Result<Self> {
        let writes: Self = parse(path, bytes)?;
        check_dataset(path, dataset_id, &writes.dataset_id)?;
        check_count(path, run.count, writes.ids.len())?;
        if writes.first != run.first {
            let (expected, found) = (run.first.to_string(), writes.first.to_string());
            return Err(corrupt(path, "first generation", &expected, &found));
        }
        Ok(writes)
    }
}

impl Snapshots {
    /// Parses a file whose checksum was compared.
    pub(super) fn parse(path: &str, dataset_id: &str, run: &RunFile, bytes: &[u8]) -> Result<Self> {
        let file: Self = parse(path, bytes)?;
        check_dataset(path, dataset_id, &file.dataset_id)?;
        check_count(path, run.count, file.snapshots.len())?;
        Ok(file)
    }
}

impl RunFile {
    /// Compares a file with the size and checksum of its entry.
    pub(super) fn check(&self, path: &str, bytes: &Bytes) -> Result<()> {
        check(path, bytes, self.size, self.crc32c)
    }

    /// The entry of a file that is to be written.
    pub(super) fn of(file: String, first: u64, count: usize, bytes: &[u8]) -> Self {
        let (size, crc32c) = (bytes.len() as u64, crc32c::crc32c(bytes));
        Self { file, first, count: count as u64, size, crc32c }
    }
}

/// Compares a file with its size and checksum.
pub(super) fn check(path: &str, bytes: &Bytes, size: u64, crc32c: u32) -> Result<()> {
    let found = bytes.len() as u64;
    if size != found {
        return Err(corrupt(path, "file size", &size.to_string(), &found.to_string()));
    }
    check_crc(path, "the file", crc32c, bytes)
}

/// The bytes of a file.
pub(super) fn render(document: &impl Serialize) -> Result<Bytes> {
    let bytes = serde_json::to_vec(document);
    bytes.map(Bytes::from).map_err(|error| Error::Invalid { what: error.to_string() })
}

fn parse<T: for<'a> Deserialize<'a>>(path: &str, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| {
        corrupt(path, "content", "a document of the history (JSON)", &error.to_string())
    })
}

fn check_dataset(path: &str, expected: &str, found: &str) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(corrupt(path, "dataset-id", expected, found))
}

fn check_count(path: &str, expected: u64, found: usize) -> Result<()> {
    if expected == found as u64 {
        return Ok(());
    }
    Err(corrupt(path, "number of entries", &expected.to_string(), &found.to_string()))
}
