//! To Neuroglancer's `compressed_segmentation` and back, for 64-bit labels in blocks of 8 × 8 × 8.
//!
//! Specification: `compressed_segmentation` of the Neuroglancer precomputed format. One channel:
//!
//! ```text
//!  u32 1 │ two u32 per cell │ per cell: values, then its table unless an equal one is there already
//!
//!  first u32 of a cell    where its table begins, 24 bits │ bits per voxel << 24
//!  second                 where its values begin
//! ```
//!
//! Positions count words of 32 bits from after the leading `1`. Values have 0, 1, 2, 4, 8 or 16 bits,
//! the first voxel in the lowest; a table is sorted and has the labels of the cell and no others.
//!
//! Both forms have cells of the same shape with values that choose from a table, so a cell of two or
//! four labels is converted by a few operations on 64 bits at a time. The bytes are equal to those
//! that TensorStore writes for the same voxels.

mod cell;
mod read;
mod tables;
mod write;

pub use read::from_segmentation;
pub(in crate::codec) use tables::Tables;

use super::parse::SIZE_MAX;
use crate::{Error, Result};

/// Positions of tables have 24 bits, and some readers take no more of those of values.
const WORDS_MAX: usize = 1 << 24;

/// The cells along each axis of a box that need not end where a cell does.
fn grid_over(extent: [u32; 3]) -> Result<[u32; 3]> {
    if extent.iter().all(|&n| n != 0 && n <= SIZE_MAX) {
        return Ok(extent.map(|n| n.div_ceil(super::EDGE as u32)));
    }
    Err(Error::invalid(format!(
        "a segmentation of {extent:?} voxels: expected 1 to {SIZE_MAX} along each axis"
    )))
}

/// How many voxels of a cell are inside along each axis.
fn inside(extent: [u32; 3], cell: [u32; 3]) -> [usize; 3] {
    let edge = super::EDGE as u32;
    std::array::from_fn(|axis| (extent[axis] - cell[axis] * edge).min(edge) as usize)
}

/// The positions of the cells of a grid, x fastest.
fn positions([x_cells, y_cells, z_cells]: [u32; 3]) -> impl Iterator<Item = [u32; 3]> {
    (0..z_cells)
        .flat_map(move |z| (0..y_cells).flat_map(move |y| (0..x_cells).map(move |x| [x, y, z])))
}
