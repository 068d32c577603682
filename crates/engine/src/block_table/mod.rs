//! Label blocks as a table that other programs query: one Parquet file per shard, a row per block.
//!
//! ```text
//!  shard_id  morton  part  parts  scale  x y z  labels  supervoxels  nbytes  raw_nbytes  codec  crc32c  bin1 … bin4
//! ```
//!
//! Databases bound the size of a cell, so a block goes into up to four cells of [126 KiB](CELL_BYTES), and on in further rows. Nothing is ever cut
//! off: a reader puts the cells together again and compares length and checksum. Rows are in the order of `(morton, part)`, which the
//! file says, so that a query by shard or position reads little. No dictionary is made of blocks, and they are not compressed again.

mod cells;
mod read;
mod schema;
mod write;

#[cfg(test)]
mod tests;

pub use cells::{
    CELL_BYTES, CELLS, PARTS_MAX, Part, ROW_BYTES, ROW_LABELS, cell, join, labels, parts,
};
pub use read::read;
pub use schema::schema;
pub use write::{Block, TableWriter, Written};
