//! Structure files: all nodes of one snapshot, one row each, sorted by path.
//!
//! `docs/formats/repo.md` §3 lists the columns. The array document shown to Zarr is rebuilt from
//! the columns; whatever they cannot hold is kept verbatim in `extra_metadata`.

mod arrays;
mod document;
mod implied;
mod inventories;
mod read;
mod write;

#[cfg(test)]
mod tests;

pub(super) use read::parse;
pub(super) use write::{SnapshotLabel, render};
