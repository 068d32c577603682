//! `MANIFEST`: which tables there are, as a log of creations and deletions.
//!
//! ```text
//!  "Bdgr" │ u16 of the application │ u16 version = 8
//!  u32 length │ u32 CRC-32C │ length bytes of protobuf │ …           big-endian
//! ```

use std::collections::BTreeMap;

use chunkyard_store::{Error, Result};
use prost::Message;

use super::wire::{be_u32, corrupt, take};

/// Its name.
pub(super) const FILE: &str = "MANIFEST";

const MAGIC: &[u8] = b"Bdgr";
const VERSION: u32 = 8;

/// Bytes before the first record.
const HEAD: usize = 8;

/// How much of a record that seems to be cut off is looked at. The first record of a manifest that was written anew
/// lists all tables.
const RECORD_BYTES_LOOKED_AT: usize = 16 << 20;

/// Badger numbers levels by a byte.
const LEVEL_MAX: u32 = 255;

/// Whether bytes begin like a manifest, of whatever version.
pub(super) fn is_manifest(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// How the blocks of a table are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// One Snappy block each.
    Snappy,
    /// One Zstandard frame each.
    Zstd,
}

/// A table that is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// The level that it belongs to.
    pub level: u32,
    /// How its blocks are compressed.
    pub compression: Compression,
}

/// The tables that are in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// By number.
    pub tables: BTreeMap<u64, Listed>,
    /// Where a record begins that is not all there.
    pub torn_at: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct Changes {
    #[prost(message, repeated, tag = "1")]
    changes: Vec<Change>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Change {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int32, tag = "2")]
    op: i32,
    #[prost(uint32, tag = "3")]
    level: u32,
    #[prost(uint64, tag = "4")]
    key_id: u64,
    #[prost(uint32, tag = "6")]
    compression: u32,
}

/// What the manifest of a directory says.
pub(super) fn parse(file: &str, bytes: &[u8]) -> Result<Manifest> {
    parse_with(file, bytes, true)
}

/// The same; `check` says whether records must have their checksum.
pub fn parse_with(file: &str, bytes: &[u8], check: bool) -> Result<Manifest> {
    let mut rest = bytes;
    let magic = take(&mut rest, MAGIC.len());
    let version = be_u32(&mut rest);
    let (Some(MAGIC), Some(version)) = (magic, version) else {
        let found = format!("{:02x?}", bytes.get(..HEAD.min(bytes.len())).unwrap_or_default());
        return Err(corrupt(file, "its first bytes", "\"Bdgr\" and a version", found));
    };
    // The upper half is free for the application since Badger 4.
    let version = version & 0xffff;
    match version {
        VERSION => {}
        1..VERSION => {
            let what = format!("{file} of version {version}: Badger 3 and 4 write {VERSION}");
            return Err(Error::unsupported(what));
        }
        // No Badger writes these, and a bit that flipped makes one of them.
        _ => {
            let expected = format!("{VERSION}, as Badger 3 and 4 write");
            return Err(corrupt(file, "its version", expected, version.to_string()));
        }
    }
    let mut encrypted = BTreeMap::new();
    let mut manifest = Manifest { tables: BTreeMap::new(), torn_at: None };
    while !rest.is_empty() {
        let at = (bytes.len() - rest.len()) as u64;
        let behind = rest;
        let Some((expected, record)) = record(&mut rest) else {
            check_torn(file, at, behind)?;
            manifest.torn_at = Some(at);
            break;
        };
        let found = crc32c::crc32c(record);
        if check && found != expected {
            let what = format!("checksum of the record at offset {at}");
            return Err(corrupt(file, what, format!("{expected:08x}"), format!("{found:08x}")));
        }
        let changes = Changes::decode(record).map_err(|error| {
            corrupt(file, format!("the record at offset {at}"), "protobuf", error.to_string())
        })?;
        for change in changes.changes {
            apply(file, at, change, &mut manifest.tables)?;
            encrypted.remove(&change.id);
            if change.key_id != 0 && change.op == 0 {
                encrypted.insert(change.id, change.key_id);
            }
        }
    }
    if let Some((id, key)) = encrypted.into_iter().next() {
        let what = format!("an encrypted Badger store ({file} gives table {id} the key {key})");
        return Err(Error::unsupported(what));
    }
    Ok(manifest)
}

/// Refuses a record that seems to be cut off because its length is damaged: its content is all there.
fn check_torn(file: &str, at: u64, mut rest: &[u8]) -> Result<()> {
    let (Some(length), Some(expected)) = (be_u32(&mut rest), be_u32(&mut rest)) else {
        return Ok(());
    };
    let mut sum = 0;
    for (byte, end) in rest.iter().zip(1..) {
        sum = crc32c::crc32c_append(sum, std::slice::from_ref(byte));
        if sum == expected {
            let what = format!("the length of the record at offset {at}");
            let expected = format!("{end}, as its checksum says");
            return Err(corrupt(file, what, expected, length.to_string()));
        }
        if end == RECORD_BYTES_LOOKED_AT {
            break;
        }
    }
    Ok(())
}

/// The next record with its checksum, if all of it is there.
fn record<'a>(rest: &mut &'a [u8]) -> Option<(u32, &'a [u8])> {
    let length = be_u32(rest)?;
    let expected = be_u32(rest)?;
    Some((expected, take(rest, usize::try_from(length).ok()?)?))
}

fn apply(file: &str, at: u64, change: Change, tables: &mut BTreeMap<u64, Listed>) -> Result<()> {
    let Change { id, op, level, compression, .. } = change;
    let what = || format!("table {id} in the record at offset {at}");
    match op {
        0 => {
            let compression = match compression {
                0 => Compression::None,
                1 => Compression::Snappy,
                2 => Compression::Zstd,
                other => {
                    let what = format!("compression {other} of table {id} in {file}");
                    return Err(Error::unsupported(what));
                }
            };
            if level > LEVEL_MAX {
                let expected = format!("a level up to {LEVEL_MAX}");
                return Err(corrupt(file, what(), expected, level.to_string()));
            }
            if tables.insert(id, Listed { level, compression }).is_some() {
                return Err(corrupt(file, what(), "a new table", "one that exists"));
            }
        }
        1 => {
            if tables.remove(&id).is_none() {
                return Err(corrupt(file, what(), "a table that exists", "its deletion alone"));
            }
        }
        other => {
            let found = format!("operation {other}");
            return Err(corrupt(file, what(), "its creation or deletion", found));
        }
    }
    Ok(())
}
