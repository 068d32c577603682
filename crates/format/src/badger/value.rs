//! From a record to the place of its value.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use chunkyard_store::{Check, ChunkRef, Error};

use super::damage::Skipped;
use super::log::{self, CRC_BYTES, HEAD_BYTES, META_BYTES};
use super::record::{Pointer, Record};
use super::wire::corrupt;

/// The largest entry that is read. Badger takes a transaction of up to 15 % of a memtable, which has 64 MiB unless the
/// writer wanted more; a longer entry could be a hole in a file, which takes no room there and much in memory.
const ENTRY_BYTES_MAX: u64 = 256 << 20;

/// A key and where its value is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The user's key.
    pub key: Vec<u8>,
    /// The time of the transaction that wrote it.
    pub version: u64,
    /// The value, or where it is. A value in a value log is checked when it is fetched, together with
    /// the key that is stored beside it. `None` if it is where no value can be, and is
    /// [left out](super::Badger::skipped): the key is there all the same, and hides what came before.
    pub value: Option<ChunkRef>,
    /// The length of the value in bytes; 0 if there is none.
    pub value_len: u64,
}

/// The value logs of a directory, with their sizes.
#[derive(Debug, Default)]
pub(super) struct ValueLogs {
    pub(super) files: HashMap<u32, (Arc<str>, u64)>,
}

/// A pointer that leads nowhere.
#[derive(Debug)]
pub(super) struct BadPointer {
    pub(super) error: Error,
    pub(super) part: Skipped,
    /// The key without its value.
    pub(super) entry: Entry,
}

/// The name of a value log.
pub(super) fn name(id: u32) -> String {
    format!("{id:06}.vlog")
}

impl ValueLogs {
    /// Where the value of a live record is.
    pub(super) fn locate(
        &self,
        user: Vec<u8>,
        version: u64,
        record: Record,
    ) -> Result<Entry, Box<BadPointer>> {
        let Some(pointer) = record.pointer() else {
            // A block is much larger than a value in it, and would stay in memory with it.
            let value = ChunkRef::Inline(bytes::Bytes::copy_from_slice(&record.value));
            let value_len = record.value.len() as u64;
            return Ok(Entry { key: user, version, value: Some(value), value_len });
        };
        let stored = [&user[..], &(!version).to_be_bytes()].concat();
        let found = match pointer {
            None => Err(("a pointer of 12 bytes".to_owned(), format!("{}", record.value.len()))),
            Some(pointer) => self.follow(&stored, pointer, record.expires_at),
        };
        match found {
            Ok((value, value_len)) => {
                Ok(Entry { key: user, version, value: Some(value), value_len })
            }
            Err((expected, found)) => {
                let file = name(pointer.map_or(0, |pointer| pointer.log));
                let bytes = pointer.map(entry_range);
                let at = bytes.as_ref().map_or(0, |bytes| bytes.start);
                let hex: String = user.iter().map(|byte| format!("{byte:02x}")).collect();
                let what = format!("the entry at offset {at} that the key {hex} points to");
                let error = corrupt(&file, what, expected, found);
                let end_key = Some([&user, &[0][..]].concat());
                let first_key = Some(user.clone());
                let part = Skipped { bytes, first_key, end_key, ..Skipped::file(&file) };
                let entry = Entry { key: user, version, value: None, value_len: 0 };
                Err(Box::new(BadPointer { error, part, entry }))
            }
        }
    }

    /// The value that a pointer leads to; otherwise what was expected and found.
    fn follow(
        &self,
        stored: &[u8],
        pointer: Pointer,
        expires_at: u64,
    ) -> Result<(ChunkRef, u64), (String, String)> {
        let Some((path, size)) = self.files.get(&pointer.log) else {
            return Err(("a value log".to_owned(), "no such file".to_owned()));
        };
        let entry = entry_range(pointer);
        if entry.start < HEAD_BYTES || entry.end > *size {
            let expected = format!("within bytes {HEAD_BYTES}..{size}");
            return Err((expected, format!("bytes {}..{}", entry.start, entry.end)));
        }
        if entry.end - entry.start > ENTRY_BYTES_MAX {
            let expected = format!("at most {ENTRY_BYTES_MAX} bytes");
            return Err((expected, format!("{}", pointer.len)));
        }
        let key_len = stored.len() as u64;
        let Some(value_len) = log::value_len(u64::from(pointer.len), key_len, expires_at) else {
            let expected = format!("an entry with a key of {key_len} bytes");
            return Err((expected, format!("one of {} bytes in all", pointer.len)));
        };
        let head = log::known_head(stored, value_len, expires_at);
        let end = entry.end - CRC_BYTES;
        // Cannot overflow: all of it fits the length of the pointer.
        let known = head.len() as u32;
        let check =
            Check::Entry { before: known + META_BYTES as u32, known, head: crc32c::crc32c(&head) };
        let range = end - value_len..end;
        let value = ChunkRef::Object { path: path.clone(), range, guard: None, check: Some(check) };
        Ok((value, value_len))
    }
}

fn entry_range(pointer: Pointer) -> Range<u64> {
    let start = u64::from(pointer.offset);
    start..start + u64::from(pointer.len)
}
