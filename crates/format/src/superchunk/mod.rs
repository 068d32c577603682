//! Compressed arrays and tables that grow: BLZ directories of Bloscpack files.
//!
//! ```text
//!  format.rs   BLZ among the formats                    handle.rs   Blz, an open dataset
//!  create/     a new dataset, and the words for one     model.rs    its columns, chunks and files
//!
//!  read/       meta files ─▶ data files ─▶ where a chunk is; what a check finds
//!  write/      lock or claim ─▶ rows ─▶ chunks ─▶ files that do not count yet ─▶ commit; changes, trim
//!  roots/      files that are kept elsewhere: moved there, found there, brought back
//!  filter/     which rows fulfil a condition
//!  repair/     everything that is whole, up to the first damage
//!  convert/    source and sink of the pipeline, and trees of several datasets
//!
//!  root/meta/{sizes,storage,attributes}   meta/      how long, of what type, how compressed
//!  root/data/__1__.bin …                  names.rs   which file is which superchunk
//!         └ header | metadata | offsets | chunk | digest | chunk | digest …     bloscpack/
//! ```
//!
//! `docs/formats/superchunk.md` describes the bytes, `docs/design/010-superchunk.md` argues for the protocol.
//! [`dtype`], [`meta`], [`chunklen`], [`names`] and the parsers in [`bloscpack`] are pure functions of bytes and
//! values.

pub mod bloscpack;
pub mod chunklen;
mod convert;
mod create;
pub mod dtype;
mod filter;
mod format;
#[cfg(test)]
mod golden;
mod handle;
pub mod meta;
mod model;
pub mod names;
mod read;
mod repair;
mod roots;
mod write;

pub use self::bloscpack::sink::BloscpackSink;
pub use self::bloscpack::source::BloscpackSource;
pub use self::convert::sink::BlzSink;
pub use self::convert::source::BlzSource;
pub use self::create::words::CreationWords as Wanted;
pub use self::create::{Compression, Creation, Wish};
pub use self::filter::Filter;
pub use self::format::BlzFormat;
pub use self::handle::{Blz, BlzOptions};
pub use self::model::{Column, Style};
pub use self::read::listing::FileInfo;
pub use self::repair::{Repaired, SetAside};
use chunkyard_store::Error;

/// Bytes of `file` that fail a check.
fn corrupt(file: &str, what: &str, expected: impl ToString, found: impl ToString) -> Error {
    Error::Corrupt {
        file: file.to_owned(),
        what: what.to_owned(),
        expected: expected.to_string(),
        found: found.to_string(),
    }
}
