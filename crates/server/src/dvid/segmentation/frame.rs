//! Where the blocks of a labelmap are.

use chunkyard_engine::{Error, Result};

/// A position along z, y and x: of a voxel, or of a block in blocks.
pub(crate) type At = [i64; 3];

/// Blocks, scales and extent of a labelmap.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    /// Voxels of a block along z, y and x.
    pub(crate) block: [u32; 3],
    /// Where the blocks of each scale begin, and one after where they end.
    pub(crate) scales: Vec<(At, At)>,
    /// The voxels of full resolution: from the first up to the second and without it.
    pub(crate) voxels: (At, At),
    /// Size of a voxel.
    pub(crate) voxel_size: [f64; 3],
    /// The unit of that size.
    pub(crate) unit: Option<String>,
}

impl Frame {
    /// Refuses a scale that there is not.
    pub(crate) fn check_scale(&self, scale: usize) -> Result<()> {
        match scale < self.scales.len() {
            true => Ok(()),
            false => Err(Error::invalid(format!(
                "scale {scale}: there are the scales 0 to {}",
                self.scales.len().saturating_sub(1)
            ))),
        }
    }

    /// Whether there is no voxel.
    pub(crate) fn is_empty(&self) -> bool {
        (0..3).any(|axis| self.voxels.0[axis] >= self.voxels.1[axis])
    }

    /// Voxels of a block.
    pub(crate) fn block_voxels(&self) -> usize {
        self.block.iter().map(|edge| *edge as usize).product()
    }

    /// The blocks that a box of voxels meets: the first, and one after the last.
    pub(crate) fn blocks_of(&self, start: At, end: At) -> (At, At) {
        let edge = self.block.map(i64::from);
        (
            std::array::from_fn(|axis| start[axis].div_euclid(edge[axis])),
            std::array::from_fn(|axis| (end[axis] - 1).div_euclid(edge[axis]) + 1),
        )
    }
}
