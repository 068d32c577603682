//! Compressed arrays and tables that grow: BLZ directories of Bloscpack files.
//!
//! A handle has two halves. Readers use what is *committed*: immutable, shared, replaced as a whole. One task at a
//! time owns what is being *written*, and shows its rows to readers of the same handle before they are committed.
//!
//! ```text
//!                  Blz, handle.rs
//!        ┌───────────────┴───────────────┐
//!  Committed, View  committed.rs      Writing  write/
//!        │                               │
//!  read/   meta files ─▶ data files      │  lock or claim ─▶ rows ─▶ chunks ─▶ files that do not count yet ─▶ commit
//!          ─▶ where a chunk is; checks   │  roots/   files that are kept elsewhere: moved there, found, brought back
//!  filter/ which rows fulfil a condition │  repair/  everything that is whole, up to the first damage
//!        └───────────────┬───────────────┘
//!             Access, access.rs          the store, and how files are laid out in it
//!
//!  create/     a new dataset, and the words for one         model.rs   columns, their chunks and files
//!  convert/    source and sink of the pipeline, and trees   format.rs  BLZ among the formats
//!
//!  root/meta/{sizes,storage,attributes}   meta/      how long, of what type, how compressed
//!  root/data/__1__.bin …                  names.rs   which file is which superchunk
//!         └ header | metadata | offsets | chunk | digest | chunk | digest …     bloscpack/
//! ```
//!
//! `docs/formats/superchunk.md` describes the bytes, `docs/design/010-superchunk.md` argues for the protocol.
//! [`dtype`], [`meta`], `chunklen`, [`names`] and the parsers in `bloscpack` are pure functions of bytes and
//! values.

mod access;
mod as_editor;
pub(crate) mod bloscpack;
mod chunklen;
mod committed;
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
mod protocol;
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
