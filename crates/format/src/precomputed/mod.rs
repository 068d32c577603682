//! Neuroglancer's precomputed volumes.
//!
//! Specification: neuroglancer, `src/datasource/precomputed/volume.md` and `sharded.md`; docs/formats/precomputed.md.
//! Compatible implementations: neuroglancer, TensorStore, cloud-volume.
//!
//! ```text
//!  info                     what the volume is, and its scales
//!  8_8_8/041f9.shard        a shard of a scale: an index, then chunks and the indices of minishards
//!  8_8_8/0-64_0-64_64-128   or a chunk, by its bounds
//! ```
//!
//! - `info` and `sharding` are the metadata; `choose` picks a sharding.
//! - `morton` numbers the chunks of a grid, `shard_grid` tells which of them share a shard.
//! - `shard_writer` writes a shard in one pass.

mod choose;
mod info;
mod json;
mod morton;
mod murmur;
mod shard_grid;
mod shard_writer;
mod sharding;
mod spool;
#[cfg(test)]
mod tests;

pub use self::choose::ShardWish;
pub use self::info::{Encoding, Info, Scale, VolumeKind, VoxelType};
pub use self::morton::{Morton, Walk};
pub use self::shard_grid::{ShardBoxes, ShardGrid};
pub use self::shard_writer::{ShardWriter, WrittenShard};
pub use self::sharding::{Hash, Packing, Sharding, Slot};
