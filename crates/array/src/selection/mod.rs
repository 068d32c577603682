//! Selecting elements of an array that do not form a box.
//!
//! A [`Selection`] is orthogonal: along each axis a range with a step, or a list of indices, and
//! all combinations of these. [`Points`] are elements one by one. Both are cut along a chunk grid
//! into [`Cells`]: chunk by chunk, lazily, the [`Footprint`] of the selection in the chunk. Reading
//! and writing need nothing else, and nothing here is ever as large as the selected elements.
//!
//! ```text
//!  Selection ─┐                       ┌─ View          of a chunk into the output
//!             ├─▶ Cells ─▶ Footprint ─┤
//!  Points ────┘                       └─ scatter_part  of given elements into a chunk
//! ```

mod axis;
mod cells;
mod footprint;
mod points;
mod span;
#[cfg(test)]
mod tests;

pub use self::axis::Axis;
pub use self::cells::Cells;
pub use self::footprint::Footprint;
pub use self::points::Points;
use crate::{Error, Grid, Region, Result};

/// All combinations of positions along each axis of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    axes: Vec<Axis>,
    shape: Vec<u64>,
}

impl Selection {
    /// A selection with these positions along each axis.
    pub fn new(axes: Vec<Axis>) -> Self {
        let shape = axes.iter().map(Axis::len).collect();
        Self { axes, shape }
    }

    /// The axes.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// How many positions are selected, per axis: the shape of the result.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Bytes that the selected elements take when they lie densely in memory.
    pub fn num_bytes(&self, item_size: usize) -> Result<usize> {
        crate::copy::dense_bytes(&self.shape, item_size)
    }

    /// Cuts the selection along the grid of an array that it must lie within.
    pub fn cells(&self, grid: &Grid) -> Result<Cells> {
        let shape = grid.array_shape();
        if self.axes.len() != shape.len() {
            return Err(Error::invalid(format!(
                "a selection of {} axes in an array of shape {shape:?}",
                self.axes.len()
            )));
        }
        // An empty selection lies within any array.
        if !self.shape.contains(&0) {
            for (number, (axis, &extent)) in self.axes.iter().zip(shape).enumerate() {
                check_index(axis.max(), extent, number)?;
            }
        }
        Ok(Cells::of_axes(grid, &self.axes, &self.shape))
    }

    /// Whether some chunk of the grid may be selected in part only. True if in doubt.
    pub fn cuts_chunks(&self, grid: &Grid) -> bool {
        let extents = grid.array_shape().iter().zip(grid.chunk_shape());
        self.axes.iter().zip(extents).any(|(axis, (&extent, &chunk))| axis.cuts(extent, chunk))
    }
}

impl From<&Region> for Selection {
    fn from(region: &Region) -> Self {
        let axes = region.origin().iter().zip(region.shape());
        Self::new(axes.map(|(&start, &count)| Axis::contiguous(start, count)).collect())
    }
}

/// Refuses the largest index along an axis where it lies outside the array.
fn check_index(largest: Option<u64>, extent: u64, axis: usize) -> Result<()> {
    match largest {
        Some(index) if index >= extent => Err(Error::invalid(format!(
            "index {index} is out of bounds for axis {axis} with size {extent}"
        ))),
        _ => Ok(()),
    }
}
