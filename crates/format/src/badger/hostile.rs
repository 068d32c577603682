//! How tests and fuzzers reach the parsers, below their checksums.

use bytes::Bytes;
use chunkyard_store::Result;

pub use super::log::{LogEntry, Parsed, entry as log_entry};
pub use super::manifest::{Compression, Listed, Manifest, parse_with as parse_manifest};
use super::memtable::Replay;
use super::table;

/// How many entries a table has.
pub fn count_table_entries(file: &str, bytes: &Bytes, compression: Compression) -> Result<u64> {
    table::count_entries(file, bytes, compression, false)
}

/// What a memtable log says: its versions in order, and where it is torn. Read in pieces of a size.
#[expect(clippy::type_complexity, reason = "keys, versions and values of a test")]
pub fn replay(
    file: &str,
    entries: &[u8],
    piece: usize,
) -> Result<(Vec<(Vec<u8>, u64, Bytes)>, Option<u64>)> {
    let mut replay = Replay::new(file);
    let (mut from, mut to) = (0usize, 0usize);
    while !replay.is_done() {
        to = entries.len().min(to.saturating_add(piece.max(1)));
        let window = entries.get(from..to).unwrap_or_default();
        from += replay.feed(window, to == entries.len());
    }
    let (memtable, error) = replay.finish();
    if let Some(error) = error {
        return Err(error);
    }
    let entries = memtable.entries.into_iter();
    let entries = entries.map(|entry| (entry.user, entry.version, entry.record.value));
    Ok((entries.collect(), memtable.torn.map(|(at, _)| at)))
}
