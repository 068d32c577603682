//! Checking a repository, at four levels. Reads only.
//!
//! | level | checks |
//! |---|---|
//! | state | the state file and the claims around it |
//! | metadata | every structure, attributes, manifest and table file of every snapshot, byte for byte |
//! | existence | every chunk file exists and is long enough; virtual sources are unchanged |
//! | bytes | every chunk and every pack, byte for byte |

mod bytes;
mod chunks;
mod manifest;
mod metadata;
mod state;
mod table;
mod users;

use chunkyard_format::{Finding, Level, Severity};
use chunkyard_store::{Error, Result};
use serde::Serialize;

use self::users::Affected;
use super::Repository;

/// What was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Checked {
    /// Snapshots.
    pub snapshots: u64,
    /// Metadata files.
    pub files: u64,
    /// Chunk references.
    pub references: u64,
    /// Chunk files.
    pub chunk_files: u64,
    /// Bytes whose checksum was compared.
    pub bytes: u64,
}

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// How deep it looked.
    pub level: Level,
    /// What is wrong, worst first.
    pub findings: Vec<Finding>,
    /// What was looked at.
    pub checked: Checked,
    /// Files that no snapshot needs; garbage collection removes them.
    pub orphan_files: u64,
    /// Their bytes.
    pub orphan_bytes: u64,
    /// Whether it already notes something outside the allowed places.
    #[serde(skip)]
    outside_noted: bool,
}

impl Report {
    /// Whether nothing is lost.
    pub fn is_sound(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity != Severity::Error)
    }

    fn error(&mut self, file: &str, what: String, affected: Affected<'_>) -> &mut Finding {
        self.findings.push(Finding {
            severity: Severity::Error,
            file: file.to_owned(),
            what,
            snapshots: affected.ids(),
            array: None,
            chunk: None,
        });
        let last = self.findings.len() - 1;
        &mut self.findings[last]
    }

    /// Turns the error of a check into a finding. A store that does not answer is no finding: then
    /// the verification itself fails.
    fn take<T>(
        &mut self,
        file: &str,
        affected: Affected<'_>,
        result: Result<T>,
    ) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error @ (Error::Store { .. } | Error::OutcomeUnknown { .. })) => Err(error),
            Err(Error::NotFound { .. }) => {
                self.error(file, "the file is missing".into(), affected);
                Ok(None)
            }
            Err(error) => {
                self.error(file, error.to_string(), affected);
                Ok(None)
            }
        }
    }
}

impl Repository {
    /// Checks the repository. What is wrong is in the report; an error means that the check itself
    /// could not be carried out.
    pub async fn verify(&self, level: Level) -> Result<Report> {
        let mut report = Report {
            level,
            findings: Vec::new(),
            checked: Checked::default(),
            orphan_files: 0,
            orphan_bytes: 0,
            outside_noted: false,
        };
        let Some(state) = self.verify_state(&mut report).await? else { return Ok(report) };
        if level >= Level::Metadata {
            let (manifests, files) = self.verify_metadata(&state, level, &mut report).await?;
            if level >= Level::Existence {
                self.verify_existence(&state, &files, &mut report).await?;
            }
            if level >= Level::Bytes {
                self.verify_bytes(&state, &manifests, &files, &mut report).await?;
            }
        }
        report.findings.sort_by_key(|finding| finding.severity != Severity::Error);
        Ok(report)
    }
}
