mod choose;
mod info;
mod morton;
mod properties;
mod round_trip;
mod shard_grid;
mod shard_index;
mod shard_writer;
mod sharding;

use super::*;

/// A sharding without a hash, all of it gzip.
fn identity(preshift_bits: u32, minishard_bits: u32, shard_bits: u32) -> Sharding {
    Sharding {
        hash: Hash::Identity,
        preshift_bits,
        minishard_bits,
        shard_bits,
        minishard_index_encoding: Packing::Gzip,
        data_encoding: Packing::Gzip,
    }
}

/// Chunks of a scale of the male CNS at full resolution: 94088 × 78317 × 134576 voxels in chunks of 64.
const MALE_CNS: [u64; 3] = [1471, 1224, 2103];
