//! Checking any source: is every stored chunk there, and does it decode? Reads only.
//!
//! | level | checks |
//! |---|---|
//! | state, metadata | the metadata of all nodes, and that the codecs of all arrays are known |
//! | existence | where every stored chunk is: indices of shards in bounds, no byte in two chunks, no object without an array |
//! | bytes | every stored chunk, fetched and decoded |
//!
//! Chunks are checked in batches, some of them under way at once, so memory does not grow with the
//! source.

mod chunks;
mod objects;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use chunkyard_array::ChunkIndex;
use chunkyard_store::{Error, Result};
use futures::{StreamExt, TryStreamExt};
use serde::Serialize;

use self::chunks::check_array;
use self::objects::Objects;
use super::read::Reader;
use super::source::Source;
use crate::Meter;
use crate::{Finding, Level, Severity, Survey};

/// Findings of each severity that a report lists; all are counted.
pub const FINDINGS_MAX: usize = 100;

/// What was checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Checked {
    /// Groups.
    pub groups: u64,
    /// Arrays.
    pub arrays: u64,
    /// Stored chunks.
    pub chunks: u64,
    /// Objects that hold them.
    pub objects: u64,
    /// Encoded bytes that were decoded.
    pub bytes: u64,
    /// Chunks that decode and carry no checksum: whether they hold the bytes that were written is unknown.
    pub unchecked: u64,
    /// Meta files without a checksum, in formats whose meta files can have one.
    pub unchecked_files: u64,
}

/// The result of a check, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Everything that was checked is as it was written.
    Sound,
    /// Everything can be read, but some of it carries no checksum, so it cannot be checked.
    Readable,
    /// Something is lost or damaged.
    Damaged,
}

/// The result of a check of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// How deep the check looked.
    pub level: Level,
    /// The result in one word.
    pub verdict: Verdict,
    /// What is wrong, worst first; of each severity at most [`FINDINGS_MAX`].
    pub findings: Vec<Finding>,
    /// Errors, listed or not.
    pub errors: u64,
    /// What was checked.
    pub checked: Checked,
    /// Objects that belong to nothing.
    pub orphan_files: u64,
    /// Their bytes.
    pub orphan_bytes: u64,
}

impl Report {
    /// Whether nothing is lost.
    pub fn is_sound(&self) -> bool {
        self.errors == 0
    }

    fn add(&mut self, severity: Severity, file: String, what: String) -> Option<&mut Finding> {
        if severity == Severity::Error {
            self.errors += 1;
        }
        if self.findings.iter().filter(|found| found.severity == severity).count() >= FINDINGS_MAX {
            return None;
        }
        let (snapshots, array, chunk) = (Vec::new(), None, None);
        self.findings.push(Finding { severity, file, what, snapshots, array, chunk });
        self.findings.last_mut()
    }

    /// Turns damage into a finding. A store that does not answer, or cannot, is not damage: then the check itself
    /// fails.
    fn damaged(&mut self, array: &str, chunk: Option<ChunkIndex>, error: Error) -> Result<()> {
        let (file, what) = match error {
            Error::Store { .. } | Error::OutcomeUnknown { .. } | Error::Unsupported { .. } => {
                return Err(error);
            }
            Error::Corrupt { file, what, expected, found } => {
                (file, format!("{what}: expected {expected}, found {found}"))
            }
            Error::NotFound { name, .. } => (name, "the object is missing".to_owned()),
            other => (array.to_owned(), other.to_string()),
        };
        if let Some(finding) = self.add(Severity::Error, file, what) {
            finding.array = Some(array.to_owned());
            finding.chunk = chunk.map(|chunk| chunk.to_vec());
        }
        Ok(())
    }
}

/// Checks a source. Damage is in the report; an error means that the check itself could not be carried out.
pub async fn check(source: &Arc<dyn Source>, level: Level, meter: &Meter) -> Result<Report> {
    let mut report = Report {
        level,
        verdict: Verdict::Sound,
        findings: Vec::new(),
        errors: 0,
        checked: Checked::default(),
        orphan_files: 0,
        orphan_bytes: 0,
    };
    let dataset = source.dataset();
    report.checked.groups = dataset.groups().count() as u64;
    for loss in &dataset.losses {
        report.add(Severity::Note, loss.name.clone(), format!("not read: {}", loss.what));
    }
    for note in Survey::of(dataset).findings {
        report.add(note.severity, note.file, note.what);
    }
    let mut objects = Objects::default();
    for (path, _) in dataset.arrays() {
        report.checked.arrays += 1;
        let reader = match Reader::new(source, path) {
            Ok(reader) => Some(reader),
            Err(error) => {
                let what = format!("its chunks were not decoded: {error}");
                report.add(Severity::Note, path.to_owned(), what);
                None
            }
        };
        if level >= Level::Existence {
            let decode = reader.filter(|_| level >= Level::Bytes);
            check_array(source, path, decode, &mut objects, meter, &mut report).await?;
        }
    }
    objects.finish(&mut report);
    let mut more = source.inspect(level);
    while let Some(Finding { severity, file, what, array, chunk, .. }) = more.try_next().await? {
        if let Some(finding) = report.add(severity, file, what) {
            (finding.array, finding.chunk) = (array, chunk);
        }
    }
    drop(more);
    let unchecked = source.unchecked_files();
    report.checked.unchecked_files = unchecked.len() as u64;
    let more = unchecked.len().saturating_sub(1);
    if let Some(first) = unchecked.into_iter().next() {
        let what = "it carries no checksum, so it cannot be checked";
        let what = match more {
            0 => what.to_owned(),
            more => format!("{what}; {more} more meta files carry none either"),
        };
        report.add(Severity::Note, first, what);
    }
    if level >= Level::Existence {
        check_strays(&**source, &mut report).await?;
    }
    report.findings.sort_by(|a, b| order(a).cmp(&order(b)));
    let Checked { unchecked, unchecked_files, .. } = report.checked;
    report.verdict = match (report.errors, unchecked + unchecked_files) {
        (0, 0) => Verdict::Sound,
        (0, _) => Verdict::Readable,
        _ => Verdict::Damaged,
    };
    Ok(report)
}

/// Errors first, then by place: batches end in any order.
fn order(finding: &Finding) -> (bool, &Option<String>, &Option<Vec<u64>>, &str) {
    (finding.severity != Severity::Error, &finding.array, &finding.chunk, &finding.file)
}

async fn check_strays(source: &dyn Source, report: &mut Report) -> Result<()> {
    let mut strays = source.strays();
    while let Some(stray) = strays.next().await {
        let meta = match stray {
            Ok(meta) => meta,
            // Without a listing, stray objects stay unknown.
            Err(Error::Unsupported { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        report.orphan_files += 1;
        report.orphan_bytes += meta.size;
        report.add(Severity::Note, meta.path, "it belongs to no array".to_owned());
    }
    Ok(())
}
