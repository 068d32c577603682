//! Writing to a dataset: adding rows, changing them, cutting them off, and the commit.

pub(crate) mod append;
mod attributes;
pub(crate) mod begin;
mod change;
pub(crate) mod chunk_files;
pub(crate) mod claim;
mod commit;
pub(crate) mod encode;
pub(crate) mod journal;
mod partial_chunk;
mod temporary;
mod trim;
