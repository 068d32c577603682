//! Voxels in memory: numbers, or the little-endian bytes of numbers.

use crate::{Error, Result};

/// A label as it lies in memory.
///
/// Arrays of bytes stand for little-endian numbers, so that a buffer of bytes is decoded into, and
/// encoded from, without a copy.
pub trait Voxel: Copy + Default + Eq + private::Sealed {
    /// The voxel with that label, if it has room for one so large.
    fn from_label(label: u64) -> Option<Self>;
    /// Its label.
    fn label(self) -> u64;
}

mod private {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for u32 {}
    impl Sealed for [u8; 8] {}
    impl Sealed for [u8; 4] {}
}

impl Voxel for u64 {
    fn from_label(label: u64) -> Option<Self> {
        Some(label)
    }

    fn label(self) -> u64 {
        self
    }
}

impl Voxel for u32 {
    fn from_label(label: u64) -> Option<Self> {
        label.try_into().ok()
    }

    fn label(self) -> u64 {
        self.into()
    }
}

impl Voxel for [u8; 8] {
    fn from_label(label: u64) -> Option<Self> {
        Some(label.to_le_bytes())
    }

    fn label(self) -> u64 {
        u64::from_le_bytes(self)
    }
}

impl Voxel for [u8; 4] {
    fn from_label(label: u64) -> Option<Self> {
        u32::from_label(label).map(u32::to_le_bytes)
    }

    fn label(self) -> u64 {
        u32::from_le_bytes(self).into()
    }
}

/// Refuses memory for another number of voxels than a block of `grid` has.
pub(super) fn check_count(found: usize, grid: [u32; 3]) -> Result<()> {
    let expected = super::cell_count(grid) * super::CELL;
    if found == expected {
        return Ok(());
    }
    let size = grid.map(|cells| cells as usize * super::EDGE);
    Err(Error::invalid(format!(
        "a label block of {size:?} voxels has {expected} of them, the buffer {found}"
    )))
}
