//! Choosing a sharding for a scale.

use chunkyard_store::Result;

use super::info::Encoding;
use super::morton::Morton;
use super::sharding::{Hash, Packing, Sharding};

/// Chunks of a minishard at most, as a power of two: a reader of one chunk reads the whole index.
const PRESHIFT_BITS: u32 = 9;
/// Minishards of a shard, as a power of two.
const MINISHARD_BITS: u32 = 6;

impl Sharding {
    /// What we choose: shards of 32768 chunks in 64 minishards, or one shard if there are fewer chunks.
    pub fn for_grid(grid: [u64; 3], encoding: &Encoding) -> Result<Self> {
        let bits = Morton::new(grid)?.num_bits();
        Ok(Self::split(bits, bits.min(PRESHIFT_BITS + MINISHARD_BITS), encoding))
    }

    /// What TensorStore chooses for chunks of a shape if `wish` asks for shards; `None`: each chunk is a file.
    pub fn like_tensorstore(
        grid: [u64; 3],
        chunk: [u64; 3],
        wish: &ShardWish,
        encoding: &Encoding,
    ) -> Result<Option<Self>> {
        let morton = Morton::new(grid)?;
        let chunk_elements = chunk.iter().fold(1f64, |product, extent| product * *extent as f64);
        let wanted = wish.elements.map(|elements| {
            // The nearest power of two.
            (elements as f64 / chunk_elements).max(1.0).log2().round() as u32
        });
        let most = wanted.unwrap_or(if wish.shape == [None; 3] { 0 } else { u32::MAX });
        let cost = |within: u32| -> f64 {
            let cell = morton.cell(within);
            let axes = cell.iter().zip(grid).zip(chunk).zip(wish.shape);
            axes.filter_map(|(((cell, grid), chunk), wanted)| {
                let wanted = wanted.filter(|wanted| *wanted > 0)? as f64;
                let cell = (*cell).min(grid) as f64;
                Some((cell * (chunk as f64) - wanted).abs() / wanted)
            })
            .sum()
        };
        let mut best = (cost(0), 0);
        for within in 1..=morton.num_bits() {
            let cost = cost(within);
            if cost < best.0 || (cost == best.0 && within <= most) {
                best = (cost, within);
            }
        }
        let (_, within) = best;
        Ok((within > 0).then(|| Self::split(morton.num_bits(), within, encoding)))
    }

    /// A sharding of numbers of some bits, of which the lowest stay within a shard.
    pub(super) fn split(bits: u32, within: u32, encoding: &Encoding) -> Self {
        let preshift_bits = within.min(PRESHIFT_BITS);
        Self {
            hash: Hash::Identity,
            preshift_bits,
            minishard_bits: within - preshift_bits,
            shard_bits: bits - within,
            minishard_index_encoding: Packing::Gzip,
            data_encoding: match encoding {
                Encoding::Jpeg { .. } => Packing::Raw,
                _ => Packing::Gzip,
            },
        }
    }
}

/// How large shards should be, as TensorStore's `write_chunk` says it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ShardWish {
    /// Voxels of a shard along x, y and z, where they matter.
    pub shape: [Option<u64>; 3],
    /// Voxels of a shard.
    pub elements: Option<u64>,
}
