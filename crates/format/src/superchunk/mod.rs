//! Compressed arrays and tables that grow: BLZ directories of Bloscpack files.
//!
//! ```text
//!  Blz ── append, resize (writer) ─▶ write_out ─▶ files that do not count yet ──┐
//!   │                       settle before the first row: lock or claim          │ flush: tail, meta/sizes
//!   ├─ trim, resize         meta/sizes first, then files go                     ▼
//!   ├─ matching ─▶ filter   which rows fulfil a condition
//!   ├─ writer ─▶ change     existing rows, if `mutable`: journal, or a new file
//!   ├─ relocate ─▶ copy_there     full files to another root; home brings them back
//!   ├─ reader ─▶ locate ─▶ files ─▶ roots       which file, where in it, in which store
//!   └─ directory            which layout it has, its columns
//!
//!  BlzFormat ─▶ source ── tree               one dataset, or a directory of several; inspect checks them
//!           └─▶ sink ─── draft, express      what a dataset becomes; pack_writer writes a file of chunks
//!                 └ bloscpack_sink          one file of all of them; bloscpack_file reads such a file
//!
//!  root/meta/{sizes,storage,attributes}   meta     how long, of what type, how compressed
//!  root/data/__1__.bin …                  names    which file is which superchunk
//!         └ header | metadata | offsets | chunk | digest | chunk | digest …     bloscpack
//! ```
//!
//! `docs/formats/superchunk.md` describes the bytes, `docs/design/010-superchunk.md` argues for the protocol.
//! [`bloscpack`], [`dtype`], [`meta`], [`chunklen`] and [`names`] are pure functions of bytes and values; all
//! asynchronous code is in the files above.

mod attributes;
pub mod bloscpack;
mod bloscpack_file;
mod bloscpack_sink;
mod change;
pub mod chunklen;
mod claim;
mod copy_there;
mod create;
mod directory;
mod draft;
pub mod dtype;
mod encoding;
mod express;
mod files;
mod filling;
mod filter;
mod flush;
mod format;
#[cfg(test)]
mod golden;
mod handle;
mod home;
mod inspect;
mod journal;
mod listing;
mod locate;
pub mod meta;
mod model;
pub mod names;
mod pack_writer;
mod relocate;
mod repair;
mod roots;
mod settle;
mod sink;
mod source;
mod sweep;
mod tree;
mod trim;
mod wanted;
mod write_out;
mod writer;

pub use self::bloscpack_file::BloscpackSource;
pub use self::bloscpack_sink::BloscpackSink;
pub use self::create::{Compression, Creation, Wish};
pub use self::filter::Filter;
pub use self::format::BlzFormat;
pub use self::handle::{Blz, BlzOptions};
pub use self::listing::FileInfo;
pub use self::model::{Column, Style};
pub use self::repair::{Repaired, SetAside};
pub use self::sink::BlzSink;
pub use self::source::BlzSource;
pub use self::wanted::Wanted;
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
