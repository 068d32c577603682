//! Footers: the content of a layer and where it lies, read piece by piece.
//!
//! ```text
//!  version 4, 5   Root 96 ─┬─ blocks       Vec of Block 56        0.9, 0.10 write 4; 0.11 to 0.14 write 5
//!                          ├─ arrays       Vec of Array 168 ──── chunks   Vec of Chunk 32 ── coord
//!                          ├─ attr_keys    Vec of String
//!                          ├─ attr_values  Vec of Value 24        lists and binary are new in 5
//!                          └─ overlay index, path of the base
//!  version 6      Root 72 ─┬─ blocks       the same               0.15
//!                          ├─ strings      Vec of String          keys, and the strings of values
//!                          ├─ values       Vec of Value 24        strings are numbers of strings
//!                          └─ arrays       Vec of Array 256       with statistics
//! ```
//!
//! No function reads more of a footer than it is asked for. [`root`] finds the tables; the other functions
//! read elements of them by number. [`validate`] reads everything, and [`render`] writes version 4, byte
//! for byte as 0.9 does.
//!
//! Verified with files written by 0.9.0 (every variant of every type of version 4), 0.11.0, 0.12.0 and
//! 0.14.0 (version 5, every sort of attribute) and 0.15.0 (version 6, every sort of attribute, with
//! statistics): `testdata/container`.

mod array;
mod attributes;
mod chunks;
mod render;
mod validate;
mod walk;

use std::ops::Range;

pub use self::array::{ArrayHead, RANK_MAX, array, array_name, array_names};
pub use self::attributes::{attribute_key, attribute_value, keys_len, values_len};
pub use self::chunks::{chunk_flat, chunks, find_chunk};
pub use self::render::{NewArray, NewFooter, render};
pub use self::validate::{FINDINGS_MAX, validate};
use chunkyard_store::Error;

use super::archive::{Record, STRING_LEN, Stop, Table, View, corrupt};
use crate::container::model::BlockMeta;

const ROOT_LEN: u64 = 96;
const ROOT_LEN_6: u64 = 72;
const BLOCK_LEN: u64 = 56;
const ARRAY_LEN: u64 = 168;
const ARRAY_LEN_6: u64 = 256;
const CHUNK_LEN: u64 = 32;
const DTYPE_LEN: u64 = 24;
const VALUE_LEN: u64 = 24;

/// How deep the types of lists may be nested; 0.9 has no limit, and no use for more.
const DEPTH_MAX: usize = 64;

/// The tables of a footer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Version of the footer: 4, 5 or 6.
    pub version: u32,
    /// Its blocks; see [`block`].
    pub blocks: Table,
    /// Its arrays; see [`array()`].
    pub arrays: Table,
    /// The number of the layer according to its writer; the name of the file counts. Zero in version 6.
    pub overlay_index: u32,
    /// Path of the base, as the writer of a sidecar knew it. Empty in version 6.
    pub base_file_hint: String,
    /// Keys of attributes; in version 6 the strings of values too.
    keys: Table,
    values: Table,
}

impl Root {
    /// Size of an array's entry.
    fn array_len(&self) -> u64 {
        if self.version == 6 { ARRAY_LEN_6 } else { ARRAY_LEN }
    }
}

/// Finds the tables. Versions other than 4, 5 and 6 are unsupported.
pub fn root(view: &dyn View) -> Result<Root, Stop> {
    let (version, at) = version(view)?;
    if version == 6 {
        let root = Record::read(view, at, ROOT_LEN_6)?;
        return Ok(Root {
            version,
            blocks: root.table(8, BLOCK_LEN)?,
            keys: root.table(24, STRING_LEN)?,
            values: root.table(40, VALUE_LEN)?,
            arrays: root.table(56, ARRAY_LEN_6)?,
            overlay_index: 0,
            base_file_hint: String::new(),
        });
    }
    let root = Record::read(view, at, ROOT_LEN)?;
    Ok(Root {
        version,
        blocks: root.table(8, BLOCK_LEN)?,
        arrays: root.table(24, ARRAY_LEN)?,
        keys: root.table(40, STRING_LEN)?,
        values: root.table(56, VALUE_LEN)?,
        overlay_index: root.u32(72)?,
        base_file_hint: root.string(80)?,
    })
}

/// The version of a footer, and where its root is.
///
/// A root is the last part of a footer and begins with the version, padded to eight bytes; but its length
/// depends on the version. Where version 6 has its number, version 4 has a pointer backwards, so that 6 is
/// never there; the other way round, any number may be.
fn version(view: &dyn View) -> Result<(u32, u64), Stop> {
    let len = view.len().min(ROOT_LEN);
    let Some(short_at) = view.len().checked_sub(ROOT_LEN_6) else {
        return Err(corrupt(0, format!("at least {ROOT_LEN_6} bytes of footer"), len.to_string()));
    };
    let long_at = view.len() - len;
    let end = Record::read(view, long_at, len)?;
    let short = end.u64((len - ROOT_LEN_6) as usize)?;
    let long = if len == ROOT_LEN { end.u64(0)? } else { 0 };
    match (long, short) {
        (_, 6) => Ok((6, short_at)),
        (4, _) => Ok((4, long_at)),
        (5, _) => Ok((5, long_at)),
        // Later versions may have their number where version 6 has it. All versions with the root of 4 are
        // known.
        (_, number @ 7..1000) => {
            let what = format!("a container with a footer of version {number}");
            Err(Error::unsupported(what).into())
        }
        (number @ 1..1000, _) if len == ROOT_LEN && is_root(&end) => {
            Err(corrupt(long_at, "a footer of version 4 or 5", format!("version {number}")))
        }
        (number @ 1..1000, _) => {
            let what = format!("a container with a footer of version {number}");
            Err(Error::unsupported(what).into())
        }
        _ => Err(corrupt(long_at, "a footer of version 4, 5 or 6", "the number of no version")),
    }
}

/// Whether a footer ends in the root of version 4 or 5, whatever its number says.
fn is_root(root: &Record<'_>) -> bool {
    let tables = [(8, BLOCK_LEN), (24, ARRAY_LEN), (40, STRING_LEN), (56, VALUE_LEN)];
    tables.into_iter().all(|(offset, item)| root.table(offset, item).is_ok())
}

/// The block at a position of the block table, which is not always its id.
pub fn block(view: &dyn View, root: &Root, position: u64) -> Result<BlockMeta, Stop> {
    let at = root.blocks.item(position, BLOCK_LEN, "block")?;
    read_block(&Record::read(view, at, BLOCK_LEN)?, 0)
}

/// The blocks at these positions.
pub fn blocks(view: &dyn View, root: &Root, range: Range<u64>) -> Result<Vec<BlockMeta>, Stop> {
    let count = range.end.saturating_sub(range.start);
    let place = root.blocks.items(range, BLOCK_LEN, "blocks")?;
    let record = Record::read(view, place.start, place.end - place.start)?;
    let mut left = view.len();
    let mut blocks = Vec::new();
    for (_, offset) in (0..count).zip((0..).step_by(BLOCK_LEN as usize)) {
        let block = read_block(&record, offset)?;
        // Names of codecs share no bytes either.
        let name = block.codec.as_ref().map_or(0, String::len) as u64;
        left = left.checked_sub(name).ok_or_else(|| {
            corrupt(place.start, "names that share no bytes", "more text than there are bytes")
        })?;
        blocks.push(block);
    }
    Ok(blocks)
}

fn read_block(record: &Record<'_>, offset: usize) -> Result<BlockMeta, Stop> {
    let codec = match record.u8(offset + 32)? {
        0 => None,
        1 => Some(record.string(offset + 40)?),
        other => return Err(record.bad_tag(offset + 32, "a codec", other)),
    };
    Ok(BlockMeta {
        id: record.u32(offset)?,
        file_offset: record.u64(offset + 8)?,
        compressed_size: record.u64(offset + 16)?,
        uncompressed_size: record.u64(offset + 24)?,
        codec,
    })
}

#[cfg(test)]
mod tests;
