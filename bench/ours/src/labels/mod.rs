//! Segmentations: label blocks alone, an import, the mapping in memory, edits and comparisons.

mod blocks;
mod codec;
mod diff;
mod import;
mod mapping;
mod merge;
mod volumes;
mod vote;

pub use codec::{codec, half};
pub use diff::diff;
pub use import::import;
pub use mapping::mapping;
pub use merge::merge;
pub use vote::half_by_voxels;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The group of every labelmap here.
const PATH: &str = "/seg";
