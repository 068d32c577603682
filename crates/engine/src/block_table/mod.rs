//! Label blocks as a table that other programs query: one Parquet file per shard, a row per block.
//!
//! ```text
//!  shard_id  morton  part  parts  scale  x y z  labels  supervoxels  nbytes  raw_nbytes  codec  crc32c  bin1 … bin4
//! ```
//!
//! Databases bound the size of a cell, so a block goes into up to four cells of [126 KiB](CELL_BYTES), and on in further rows. Nothing is ever cut
//! off: a reader puts the cells together again and compares length and checksum. Rows are in the order of `(morton, part)`, which the
//! file says, so that a query by shard or position reads little. No dictionary is made of blocks, and they are not compressed again.

/// What the metadata of a file says about label lists: `inside` of blocks as well, or `apart` from them.
const LABELS_KEY: &str = "chunkyard.labels";

mod cells;
mod format;
mod group;
#[cfg(test)]
mod read;
mod schema;
mod source;
mod write;

#[cfg(test)]
mod tests;

pub use cells::{
    CELL_BYTES, CELLS, PARTS_MAX, Part, ROW_BYTES, ROW_LABELS, cell, join, labels, parts,
};
pub use format::BlockTable;
pub use schema::schema;
pub use source::TableSource;
pub use write::{Block, TableWriter, Written};

#[cfg(test)]
use self::read::read;
