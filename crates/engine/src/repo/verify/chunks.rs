//! Levels 2 and 3: chunk files exist and are long enough; then every byte of them.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use futures::TryStreamExt;

use super::metadata::{ByteRange, References};
use super::{Finding, Level, Report, Severity};
use crate::error::{Error, Result};
use crate::repo::maintain::DATA_DIRECTORIES;
use crate::repo::state::State;
use crate::repo::{Repository, Virtual, pack, parquet_file};
use crate::store::Guard;

impl Repository {
    pub(super) async fn verify_chunks(
        &self,
        state: &State,
        references: References,
        level: Level,
        report: &mut Report,
    ) -> Result<()> {
        let sizes = self.sizes(&references, report).await?;
        let meter = &self.inner.options.meter;
        if level >= Level::Bytes {
            let files = references.native.keys().filter_map(|file| sizes.get(&format!("c/{file}")));
            meter.expect(files.sum());
        }
        for (file, ranges) in &references.native {
            let path = format!("c/{file}");
            let snapshots = references.users.get(&path).cloned().unwrap_or_default();
            report.checked.chunk_files += 1;
            let Some(size) = sizes.get(&path) else {
                let finding = report.error(&path, "the file is missing".into(), &snapshots);
                finding.array = ranges.values().next().map(|array| array.to_string());
                continue;
            };
            for (range, array) in ranges {
                if range.offset + range.length > *size {
                    let what = format!(
                        "a chunk ends at byte {}, the file has {size}",
                        range.offset + range.length
                    );
                    let finding = report.error(&path, what, &snapshots);
                    finding.array = Some(array.to_string());
                }
            }
            if level >= Level::Bytes {
                let read = self.store().backend().get(&path).await;
                if let Some(object) = report.take(&path, &snapshots, read)? {
                    report.checked.bytes += object.bytes.len() as u64;
                    meter.advance(object.bytes.len() as u64);
                    check_chunk_file(&path, &object.bytes, ranges, &snapshots, report);
                }
            }
        }
        for remote in references.remote.values() {
            self.verify_remote(remote, state, report).await?;
        }
        Ok(())
    }

    /// Sizes of all files; counts those that nothing needs.
    async fn sizes(
        &self,
        references: &References,
        report: &mut Report,
    ) -> Result<BTreeMap<String, u64>> {
        let mut sizes = BTreeMap::new();
        for directory in DATA_DIRECTORIES {
            let mut listed = self.store().backend().list(directory).await?;
            while let Some(meta) = listed.try_next().await? {
                if !references.users.contains_key(&meta.path) {
                    report.orphan_files += 1;
                    report.orphan_bytes += meta.size;
                }
                sizes.insert(meta.path, meta.size);
            }
        }
        Ok(sizes)
    }

    /// A virtual source must be unchanged; where we may not look, that is worth a note.
    async fn verify_remote(
        &self,
        remote: &Virtual,
        state: &State,
        report: &mut Report,
    ) -> Result<()> {
        let none = BTreeSet::new();
        let (store, path) = match self.resolve_virtual(&remote.url, &state.config).await {
            Ok(resolved) => resolved,
            Err(Error::NotFound { .. }) => {
                report.error(&remote.url, "the virtual source is missing".into(), &none);
                return Ok(());
            }
            Err(error) => {
                report.findings.push(Finding {
                    severity: Severity::Note,
                    file: remote.url.to_string(),
                    what: format!("not checked: {error}"),
                    snapshots: Vec::new(),
                    array: None,
                    chunk: None,
                });
                return Ok(());
            }
        };
        let head = store.backend().head(&path).await;
        let Some(meta) = report.take(&remote.url, &none, head)? else { return Ok(()) };
        let guard = Guard {
            etag: remote.etag.clone(),
            not_newer_than_ms: remote.last_modified_ms.filter(|_| remote.etag.is_none()),
        };
        report.take(&remote.url, &none, guard.check(&remote.url, &meta))?;
        Ok(())
    }
}

/// Compares every referenced range, and every chunk a pack's own index names.
fn check_chunk_file(
    path: &str,
    bytes: &Bytes,
    ranges: &BTreeMap<ByteRange, std::sync::Arc<str>>,
    snapshots: &BTreeSet<String>,
    report: &mut Report,
) {
    let part = |offset: u64, length: u64| {
        let (start, end) = (offset as usize, offset.saturating_add(length) as usize);
        bytes.get(start..end)
    };
    for (range, array) in ranges {
        let (Some(crc), Some(chunk)) = (range.crc32c, part(range.offset, range.length)) else {
            continue;
        };
        let what = format!("the chunk at byte {}", range.offset);
        if let Err(error) = parquet_file::check_crc(path, &what, crc, chunk) {
            let finding = report.error(path, error.to_string(), snapshots);
            finding.array = Some(array.to_string());
        }
    }
    // A file that is one chunk from end to end is no pack and has no index.
    let whole = ranges.keys().any(|range| range.offset == 0 && range.length == bytes.len() as u64);
    match pack::parse_trailer(path, bytes) {
        _ if whole => {}
        Ok(Some(entries)) => {
            for entry in entries {
                let known = ranges.keys().any(|range| range.offset == entry.offset);
                let Some(chunk) = part(entry.offset, entry.length).filter(|_| !known) else {
                    continue;
                };
                let what = format!("the dead chunk at byte {}", entry.offset);
                if let Err(error) = parquet_file::check_crc(path, &what, entry.crc32c, chunk) {
                    report.error(path, error.to_string(), snapshots);
                }
            }
        }
        Ok(None) => {
            report.error(path, "the pack has no index at its end".into(), snapshots);
        }
        Err(error) => {
            report.error(path, error.to_string(), snapshots);
        }
    }
}
