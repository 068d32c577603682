//! Regions of arrays: writing and reading the field and the segmentation, in a repository and in
//! plain Zarr.

mod opened;
mod plain;
mod read;
mod write;

pub use opened::{Opened, open};
pub use plain::{wishes as plain_wishes, write as write_plain};
pub use read::{read, read_chunk, read_cold, read_series};
pub use write::write;
