//! For tests with hostile bytes.

pub use super::properties::SegmentProperties;
pub use super::shard_index::Minishard;
use super::{Hash, Packing, Sharding};
pub use super::{Info, ShardGrid};

/// A sharding for a byte: with or without a hash, packed or not.
pub fn sharding(choice: u8) -> Sharding {
    let packing = if choice & 1 == 0 { Packing::Raw } else { Packing::Gzip };
    Sharding {
        hash: if choice & 2 == 0 { Hash::Identity } else { Hash::Murmur },
        preshift_bits: u32::from(choice >> 2 & 7),
        minishard_bits: u32::from(choice >> 5),
        shard_bits: 0,
        minishard_index_encoding: packing,
        data_encoding: packing,
    }
}
