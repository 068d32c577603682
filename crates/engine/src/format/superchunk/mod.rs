//! BLZ directories of Bloscpack files: arrays and tables cut into superchunks of Blosc chunks.
//!
//! ```text
//!  root/meta/{sizes,storage,attributes}   meta        how long, of what type, how compressed
//!  root/data/__1__.bin …                  names       which file is which superchunk
//!         └ header | metadata | offsets | chunk | digest | chunk | digest …     bloscpack
//! ```
//!
//! [`bloscpack`], [`dtype`], [`meta`], [`chunklen`] and [`names`] are pure functions of bytes and values.

pub mod bloscpack;
pub mod chunklen;
pub mod dtype;
#[cfg(test)]
mod golden;
pub mod meta;
pub mod names;

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
