//! Where things lie. Axes are x, y, z here, as in everything that Neuroglancer and DVID write; arrays have z, y, x.

use chunkyard_format::precomputed::{Scale, ShardBoxes, ShardGrid};
use chunkyard_store::{Error, Result};
use serde::{Deserialize, Serialize};

use super::blocks::BlockPlace;

/// An array of the source that is a scale of the segmentation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// Its path in the source.
    pub path: String,
    /// The coordinates of its first voxel.
    pub origin: [i64; 3],
    /// Its voxels.
    pub shape: [u64; 3],
    /// How many voxels of it become one, along each axis.
    pub factor: [u64; 3],
    /// Which axes of the array x, y and z are.
    #[serde(default = "zyx", skip_serializing_if = "is_zyx")]
    pub axes: [usize; 3],
}

/// The axes of an array that has z first and x last.
fn zyx() -> [usize; 3] {
    [2, 1, 0]
}

fn is_zyx(axes: &[usize; 3]) -> bool {
    *axes == zyx()
}

impl Level {
    /// Where its voxels begin and end after the decimation.
    pub(super) fn bounds(&self) -> ([i64; 3], [i64; 3]) {
        let bound = |axis: usize, more: u64| {
            let factor = i128::from(self.factor[axis].max(1));
            let at = i128::from(self.origin[axis]) + i128::from(more);
            // The first voxel at or behind a position.
            i64::try_from((at + factor - 1).div_euclid(factor)).unwrap_or(i64::MAX)
        };
        (
            std::array::from_fn(|axis| bound(axis, 0)),
            std::array::from_fn(|axis| bound(axis, self.shape[axis])),
        )
    }
}

/// The grid of an exported scale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    /// Voxels of a chunk.
    pub(super) chunk: [u64; 3],
    /// The first voxel.
    pub(super) offset: [i64; 3],
    /// Voxels of the scale.
    pub(super) size: [u64; 3],
}

impl Frame {
    pub(super) fn of(scale: &Scale) -> Self {
        Self { chunk: scale.chunk_size(), offset: scale.voxel_offset, size: scale.size }
    }

    /// The first voxel of a chunk.
    pub(super) fn voxel(&self, at: [u64; 3]) -> [i64; 3] {
        std::array::from_fn(|axis| {
            let steps =
                i64::try_from(at[axis].saturating_mul(self.chunk[axis])).unwrap_or(i64::MAX);
            self.offset[axis].saturating_add(steps)
        })
    }

    /// Where a chunk is.
    pub(super) fn place(&self, at: [u64; 3]) -> Result<BlockPlace> {
        let voxel = self.voxel(at);
        let mut chunk = [0; 3];
        for axis in 0..3 {
            let edge = i64::try_from(self.chunk[axis]).unwrap_or(i64::MAX).max(1);
            chunk[axis] = i32::try_from(voxel[axis].div_euclid(edge)).map_err(|_| {
                Error::unsupported(format!(
                    "block {at:?} at voxel {voxel:?}: a position of a block is a 32-bit number"
                ))
            })?;
        }
        Ok(BlockPlace { at, voxel, chunk })
    }

    /// Whether blocks begin at whole numbers of blocks.
    pub(super) fn is_aligned(&self) -> bool {
        (0..3).all(|axis| {
            i64::try_from(self.chunk[axis])
                .is_ok_and(|edge| self.offset[axis].rem_euclid(edge.max(1)) == 0)
        })
    }
}

/// The shards of a scale that is sharded into boxes.
pub(super) fn boxes(scale: &Scale) -> Result<ShardBoxes> {
    let grid = ShardGrid::of(scale)?.ok_or_else(|| {
        Error::invalid(format!(
            "scale {}: there is no `sharding`, which says which blocks share a shard",
            scale.key
        ))
    })?;
    grid.boxes()
}
