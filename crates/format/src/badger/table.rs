//! `NNNNNN.sst`: a sorted table, opened by its index.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_store::{Result, Store};

use super::index::{self, Index};
use super::key;
use super::manifest::{Compression, Listed};

/// How much of the end of a table is read first: mostly all of the index.
const TAIL_BYTES: u64 = 128 << 10;

/// A table whose blocks can be read.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) path: Arc<str>,
    pub(super) index: Index,
    pub(super) compression: Compression,
}

impl Table {
    /// Whether its keys come after those of another, as far as the indexes tell: the last block of the other may reach further,
    /// which a scan notices.
    pub(super) fn is_behind(&self, other: &Self) -> bool {
        let last = other.index.len().checked_sub(1).and_then(|at| other.index.first_key(at));
        let (Some(last), Some(first)) = (last, self.index.first_key(0)) else { return true };
        key::is_ascending(last, first)
    }
}

/// The name of a table.
pub(super) fn name(id: u64) -> String {
    format!("{id:06}.sst")
}

/// Reads the index of a table.
pub(super) async fn open(store: &Store, path: &str, listed: Listed, size: u64) -> Result<Table> {
    let start = size.saturating_sub(TAIL_BYTES);
    let tail = store.get_range(path, start..size).await?;
    let footer = index::footer(path, &tail, size)?;
    let end = footer.index.start;
    let cut = |from: u64| usize::try_from(from - start).unwrap_or(usize::MAX);
    let bytes = match end >= start {
        true => tail.slice(cut(end)..cut(footer.index.end)),
        false => store.get_range(path, footer.index.clone()).await?,
    };
    let index = index::read(path, &bytes, footer.checksum, end)?;
    Ok(Table { path: path.into(), index, compression: listed.compression })
}

/// Reads a table that is all in memory: how many entries it has. Checksums count only if `check`.
pub(super) fn count_entries(
    file: &str,
    bytes: &Bytes,
    compression: Compression,
    check: bool,
) -> Result<u64> {
    let size = bytes.len() as u64;
    let footer = index::footer(file, bytes, size)?;
    let cut = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    let stored = bytes.slice(cut(footer.index.start)..cut(footer.index.end));
    let end = footer.index.start;
    let index = match check {
        true => index::read(file, &stored, footer.checksum, end)?,
        false => index::parse(file, &stored, end)?,
    };
    let mut count = 0;
    for at in 0..index.len() {
        let Some(range) = index.block(at) else { break };
        let stored = bytes.slice(cut(range.start)..cut(range.end));
        let block = super::block::read(file, range.start, stored, compression, check)?;
        for entry in 0..block.len() {
            block.entry(entry)?;
            count += 1;
        }
    }
    Ok(count)
}
