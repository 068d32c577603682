//! Reading a dataset: its meta files, its data files, where a chunk is in them.

pub(crate) mod directory;
pub(crate) mod files;
mod inspect;
pub(crate) mod listing;
pub(crate) mod locate;
