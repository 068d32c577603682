//! Checking any source: is every stored chunk there, and does it decode? Reads only.
//!
//! | level | checks |
//! |---|---|
//! | state, metadata | the metadata of all nodes, and that the codecs of all arrays are known |
//! | existence | where every stored chunk is: indices of shards in bounds, nothing in two places at once, nothing that belongs to nothing |
//! | bytes | every stored chunk, fetched and decoded |
//!
//! Chunks are checked in batches, some of them under way at once, so memory does not grow with the
//! source.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::{ChunkIndex, Region};
use futures::{StreamExt, TryStreamExt, stream};
use rayon::prelude::*;
use serde::Serialize;

use super::read::{BATCHES, Reader, in_chunk};
use super::source::{ChunkStream, Source};
use crate::error::{Error, Result};
use crate::meter::Meter;
use crate::pipeline::cpu;
use crate::repo::{Finding, Level, Severity};
use crate::store::ChunkRef;

/// Findings of each severity that a report lists; all are counted.
pub const FINDINGS_MAX: usize = 100;

/// Encoded bytes that are fetched at once, unless a single chunk has more.
const FETCH_BYTES: u64 = 16 << 20;

/// Chunks that are located at once, where they are not decoded.
const LOCATED_AT_ONCE: usize = 1024;

/// Chunks of one object whose ranges are compared with one another.
const RANGES_MAX: usize = 4 << 20;

/// What was looked at.
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
}

/// What a check of a source found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// How deep it looked.
    pub level: Level,
    /// What is wrong, worst first; of each severity at most [`FINDINGS_MAX`].
    pub findings: Vec<Finding>,
    /// Errors, listed or not.
    pub errors: u64,
    /// What was looked at.
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

    /// Turns damage into a finding. A store that does not answer, or cannot, is none: then the
    /// check itself fails.
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

/// Checks a source. What is wrong is in the report; an error means that the check itself could not
/// be carried out.
pub async fn check(source: &Arc<dyn Source>, level: Level, meter: &Meter) -> Result<Report> {
    let mut report = Report {
        level,
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
    if level >= Level::Existence {
        check_strays(&**source, &mut report).await?;
    }
    report.findings.sort_by(|a, b| order(a).cmp(&order(b)));
    Ok(report)
}

/// Errors first, then by where they are: batches end in any order.
fn order(finding: &Finding) -> (bool, &Option<String>, &Option<Vec<u64>>, &str) {
    (finding.severity != Severity::Error, &finding.array, &finding.chunk, &finding.file)
}

/// A chunk and where it is, or what is wrong with that.
type Located = Result<(ChunkIndex, ChunkRef)>;

/// A chunk that was looked at, or what is wrong with it.
type Verdict = (Option<ChunkIndex>, Result<Seen>);

/// A chunk that is as it should be.
struct Seen {
    /// Its encoded bytes.
    bytes: u64,
    /// Whether it is an object of its own, which could not be told before it was fetched.
    is_object: bool,
}

impl Seen {
    fn new(reference: &ChunkRef, bytes: u64) -> Self {
        Self { bytes, is_object: matches!(reference, ChunkRef::Whole { .. }) }
    }
}

async fn check_array(
    source: &Arc<dyn Source>,
    path: &str,
    decode: Option<Reader>,
    objects: &mut Objects,
    meter: &Meter,
    report: &mut Report,
) -> Result<()> {
    let everything = Region::whole(source.dataset().array(path)?.spec.shape());
    let batch = decode.as_ref().map_or(LOCATED_AT_ONCE, Reader::batch_size);
    let mut checked = stored(&**source, path, &everything)
        .await?
        .inspect(|found| {
            if let Ok((_, reference)) = found {
                objects.see(reference);
                meter.expect(reference.len().unwrap_or(0));
            }
        })
        .chunks(batch)
        .map(|batch| check_batch(source, decode.as_ref(), batch))
        .buffer_unordered(BATCHES);
    while let Some(verdicts) = checked.next().await {
        for (chunk, verdict) in verdicts? {
            match verdict {
                Ok(seen) => {
                    report.checked.chunks += 1;
                    report.checked.objects += u64::from(seen.is_object);
                    report.checked.bytes += if decode.is_some() { seen.bytes } else { 0 };
                    meter.advance(seen.bytes);
                }
                Err(error) => report.damaged(path, chunk, error)?,
            }
        }
    }
    Ok(())
}

/// The stored chunks of an array: those that the source finds, or, where nothing can be listed, all
/// that there may be.
async fn stored<'a>(
    source: &'a dyn Source,
    path: &'a str,
    everything: &'a Region,
) -> Result<ChunkStream<'a>> {
    let mut found = source.chunks(path, everything).peekable();
    let unlisted = std::pin::Pin::new(&mut found).peek().await;
    if !matches!(unlisted, Some(Err(Error::Unsupported { .. }))) {
        return Ok(found.boxed());
    }
    let grid = source.dataset().array(path)?.grid()?;
    let all = stream::iter(grid.chunks_in(everything)).chunks(LOCATED_AT_ONCE);
    let located = all.then(move |indices| async move {
        let located = source.locate(path, &indices).await?;
        let stored = indices.into_iter().zip(located).filter_map(|(index, at)| Some((index, at?)));
        Ok::<_, Error>(stream::iter(stored.map(Ok).collect::<Vec<_>>()))
    });
    Ok(located.try_flatten().boxed())
}

/// Looks at some chunks. Without a reader it is enough that they are located.
async fn check_batch(
    source: &Arc<dyn Source>,
    reader: Option<&Reader>,
    batch: Vec<Located>,
) -> Result<Vec<Verdict>> {
    let (mut verdicts, mut wanted, mut bytes) = (Vec::with_capacity(batch.len()), Vec::new(), 0);
    for found in batch {
        let (index, reference) = match found {
            Ok(found) => found,
            Err(error) => {
                verdicts.push((None, Err(error)));
                continue;
            }
        };
        let length = reference.len().unwrap_or(0);
        let Some(reader) = reader else {
            verdicts.push((Some(index), Ok(Seen::new(&reference, length))));
            continue;
        };
        if bytes + length > FETCH_BYTES && !wanted.is_empty() {
            verdicts.extend(decode(source, reader, std::mem::take(&mut wanted)).await?);
            bytes = 0;
        }
        bytes += length;
        wanted.push((index, reference));
    }
    if let Some(reader) = reader {
        verdicts.extend(decode(source, reader, wanted).await?);
    }
    Ok(verdicts)
}

/// Fetches and decodes chunks.
async fn decode(
    source: &Arc<dyn Source>,
    reader: &Reader,
    chunks: Vec<(ChunkIndex, ChunkRef)>,
) -> Result<Vec<Verdict>> {
    let references: Vec<&ChunkRef> = chunks.iter().map(|(_, reference)| reference).collect();
    let fetched: Vec<Result<Option<Bytes>>> = match source.fetcher().fetch(&references).await {
        Ok(fetched) => fetched.into_iter().map(Ok).collect(),
        Err(error @ Error::Store { .. }) => return Err(error),
        // One of them is damaged: which?
        Err(_) => {
            let mut fetched = Vec::with_capacity(references.len());
            for reference in references {
                let one = source.fetcher().fetch(&[reference]).await;
                fetched.push(one.map(|mut bytes| bytes.pop().flatten()));
            }
            fetched
        }
    };
    let (path, codecs) = (reader.path().clone(), reader.codecs().clone());
    cpu(move || {
        let work = chunks.into_par_iter().zip(fetched);
        work.filter_map(|((index, reference), fetched)| {
            let checked = fetched.and_then(|bytes| {
                let Some(bytes) = bytes else { return Ok(None) };
                let (codecs, _) = codecs.of(&index)?;
                let decoded = codecs.check(&bytes).map_err(|error| in_chunk(&path, &index, error));
                decoded.map_err(|error| in_object(&reference, error))?;
                Ok(Some(Seen::new(&reference, bytes.len() as u64)))
            });
            Some((Some(index), checked.transpose()?))
        })
        .collect()
    })
    .await
}

/// Names the object, which a user can look at, and not the chunk, which the finding names.
fn in_object(reference: &ChunkRef, error: Error) -> Error {
    let object = match reference {
        ChunkRef::Whole { path } | ChunkRef::Object { path, .. } => path,
        ChunkRef::Remote { url, .. } => url,
        ChunkRef::Inline(_) => return error,
    };
    match error {
        Error::Corrupt { what, expected, found, .. } => {
            Error::Corrupt { file: object.to_string(), what, expected, found }
        }
        other => Error::Corrupt {
            file: object.to_string(),
            what: "the chunk".to_owned(),
            expected: "one that decodes".to_owned(),
            found: other.to_string(),
        },
    }
}

async fn check_strays(source: &dyn Source, report: &mut Report) -> Result<()> {
    let mut strays = source.strays();
    while let Some(stray) = strays.next().await {
        let meta = match stray {
            Ok(meta) => meta,
            // What cannot be listed cannot be told.
            Err(Error::Unsupported { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        report.orphan_files += 1;
        report.orphan_bytes += meta.size;
        report.add(Severity::Note, meta.path, "it belongs to no array".to_owned());
    }
    Ok(())
}

/// The objects that chunks are in, of one array or of several, and whether two chunks share bytes of
/// one.
#[derive(Debug, Default)]
struct Objects {
    current: Option<Arc<str>>,
    ranges: Vec<Range<u64>>,
    count: u64,
    overlaps: Vec<(Arc<str>, Range<u64>, Range<u64>)>,
}

impl Objects {
    /// The next chunk of the source.
    fn see(&mut self, reference: &ChunkRef) {
        let (path, range) = match reference {
            ChunkRef::Object { path, range, .. } => (path, range),
            ChunkRef::Remote { url, range, .. } => (url, range),
            ChunkRef::Whole { .. } | ChunkRef::Inline(_) => return,
        };
        if self.current.as_ref() != Some(path) {
            self.compare();
            self.current = Some(path.clone());
            self.count += 1;
        }
        if self.ranges.len() < RANGES_MAX {
            self.ranges.push(range.clone());
        }
    }

    /// Compares the ranges in the object that was seen last. Several chunks that are one range are a
    /// saving, not damage; those that share a part of their bytes cannot all be right.
    fn compare(&mut self) {
        let mut ranges = std::mem::take(&mut self.ranges);
        ranges.retain(|range| !range.is_empty());
        ranges.sort_by_key(|range| (range.start, range.end));
        ranges.dedup();
        for pair in ranges.windows(2) {
            if let ([before, after], Some(path)) = (pair, &self.current)
                && after.start < before.end
            {
                self.overlaps.push((path.clone(), before.clone(), after.clone()));
            }
        }
    }

    fn finish(mut self, report: &mut Report) {
        self.compare();
        report.checked.objects += self.count;
        for (path, before, after) in self.overlaps {
            let what = format!(
                "two chunks share bytes: {}..{} and {}..{}",
                before.start, before.end, after.start, after.end
            );
            report.add(Severity::Error, path.to_string(), what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(path: &str, range: Range<u64>) -> ChunkRef {
        ChunkRef::Object { path: path.into(), range, guard: None, crc32c: None }
    }

    #[test]
    fn chunks_that_share_a_part_of_their_bytes_are_found_and_equal_ones_are_not() {
        let mut objects = Objects::default();
        for (path, range) in
            [("a", 0..10), ("a", 10..20), ("a", 0..10), ("b", 5..9), ("b", 8..12), ("c", 3..3)]
        {
            objects.see(&chunk(path, range));
        }
        objects.compare();
        assert_eq!(objects.count, 3);
        assert_eq!(objects.overlaps, [("b".into(), 5..9, 8..12)]);
    }
}
