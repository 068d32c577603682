//! Rows of arrays and tables between datasets and files: `.npy`, CSV, or bytes without a header.
//!
//! ```text
//!  file ─▶ input ─▶ layout, or csv and cell ─▶ columns          append
//!  columns ─▶ layout, or cell ─▶ output ─▶ file                 get
//! ```
//!
//! A file has rows, a dataset has columns. Both directions go block by block, in bounded memory.

mod cell;
mod csv;
mod input;
mod layout;
mod output;

use chunkyard_engine::format::superchunk::{Column, names};

pub(crate) use self::input::{FileKind, Input};
pub(crate) use self::layout::row_type;
pub(crate) use self::output::Output;

/// Bytes of rows that move at a time, about.
pub(crate) const BLOCK_BYTES: u64 = 32 << 20;

/// The names of a column and of the fields around it, outermost first; empty if there is only one column.
pub(crate) fn names_of(column: &Column) -> Vec<String> {
    let dirs = column.path.split('/').filter(|dir| !dir.is_empty());
    dirs.map(|dir| names::parse_field_dir(dir).unwrap_or_else(|| dir.to_owned())).collect()
}

/// The title of a column in a file: `value` if it has no name.
pub(crate) fn title_of(column: &Column) -> String {
    match names_of(column) {
        names if names.is_empty() => "value".to_owned(),
        names => names.join("/"),
    }
}
