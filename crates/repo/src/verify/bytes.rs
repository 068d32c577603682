//! The bytes of one chunk file.

use std::sync::Arc;

use bytes::Bytes;

use super::Report;
use super::users::Affected;
use crate::{pack, parquet_file};

/// A chunk in a chunk file, with an array that needs it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ByteRange {
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) crc32c: Option<u32>,
    pub(super) array: Arc<str>,
}

impl ByteRange {
    /// All but the array.
    pub(super) fn place(&self) -> (u64, u64, Option<u32>) {
        (self.offset, self.length, self.crc32c)
    }
}

/// Checks every referenced range, and every chunk in a pack's own index. The ranges are sorted.
pub(super) fn check_chunk_file(
    path: &str,
    bytes: &Bytes,
    ranges: &[ByteRange],
    affected: Affected<'_>,
    report: &mut Report,
) {
    let part = |offset: u64, length: u64| {
        let (start, end) = (offset as usize, offset.saturating_add(length) as usize);
        bytes.get(start..end)
    };
    for range in ranges {
        let (Some(crc), Some(chunk)) = (range.crc32c, part(range.offset, range.length)) else {
            continue;
        };
        let what = format!("the chunk at byte {}", range.offset);
        if let Err(error) = parquet_file::check_crc(path, &what, crc, chunk) {
            let finding = report.error(path, error.to_string(), affected);
            finding.array = Some(range.array.to_string());
        }
    }
    // A file that is one chunk from end to end is no pack and has no index.
    let size = bytes.len() as u64;
    if ranges.iter().any(|range| range.offset == 0 && range.length == size) {
        return;
    }
    match pack::parse_trailer(path, bytes) {
        Ok(Some(entries)) => {
            for entry in entries {
                if ranges.binary_search_by_key(&entry.offset, |range| range.offset).is_ok() {
                    continue;
                }
                let Some(chunk) = part(entry.offset, entry.length) else { continue };
                let what = format!("the dead chunk at byte {}", entry.offset);
                if let Err(error) = parquet_file::check_crc(path, &what, entry.crc32c, chunk) {
                    report.error(path, error.to_string(), affected);
                }
            }
        }
        // The draft has files of several chunks, but neither an index nor checksums.
        Ok(None) if ranges.iter().all(|range| range.crc32c.is_none()) => {}
        Ok(None) => {
            report.error(path, "the pack has no index at its end".into(), affected);
        }
        Err(error) => {
            report.error(path, error.to_string(), affected);
        }
    }
}
