//! Compressed arrays and tables that grow: BLZ directories of Bloscpack files.
//!
//! ```text
//!  Blz ── append, resize (writer) ─▶ write_out ─▶ files that nobody counts yet ─┐
//!   │                       settle before the first row: lock or claim          │ flush: tail, meta/sizes
//!   ├─ trim, resize         meta/sizes first, then files go                     ▼
//!   ├─ writer ─▶ change     rows that are there, if `mutable`: journal, or the file anew
//!   ├─ reader ─▶ locate ─▶ files ─▶ roots       which file, where in it, in which store
//!   └─ directory            which layout is there, its columns
//!
//!  root/meta/{sizes,storage,attributes}   meta     how long, of what type, how compressed
//!  root/data/__1__.bin …                  names    which file is which superchunk
//!         └ header | metadata | offsets | chunk | digest | chunk | digest …     bloscpack
//! ```
//!
//! The bytes are described in `docs/formats/superchunk.md`, the protocol is argued for in
//! `docs/design/010-superchunk.md`. [`bloscpack`], [`dtype`], [`meta`], [`chunklen`] and [`names`] are pure
//! functions of bytes and values; everything that waits is in the files above.

mod attributes;
pub mod bloscpack;
mod change;
pub mod chunklen;
mod create;
mod directory;
pub mod dtype;
mod files;
mod flush;
#[cfg(test)]
mod golden;
mod handle;
mod journal;
mod locate;
pub mod meta;
mod model;
pub mod names;
mod relocate;
mod repair;
mod roots;
mod settle;
mod trim;
mod write_out;
mod writer;

pub use self::create::{BLOCK_BYTES, Compression, Creation, Wish};
pub use self::handle::{Blz, BlzOptions};
pub use self::model::{Column, Style};
pub use self::repair::{Repaired, SetAside};
use crate::error::Error;

/// Bytes of `file` that fail a check.
fn corrupt(file: &str, what: &str, expected: impl ToString, found: impl ToString) -> Error {
    Error::Corrupt {
        file: file.to_owned(),
        what: what.to_owned(),
        expected: expected.to_string(),
        found: found.to_string(),
    }
}
