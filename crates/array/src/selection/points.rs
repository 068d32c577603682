//! Elements one by one.

use std::sync::Arc;

use super::cells::Cells;
use super::check_index;
use crate::{Error, Grid, Result};

/// Elements of an array by their coordinates, in any order, repeats included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Points {
    len: usize,
    axes: Arc<[Vec<u64>]>,
}

impl Points {
    /// Points by their coordinates along each axis.
    pub fn new(axes: Vec<Vec<u64>>) -> Result<Self> {
        let len = axes.first().map_or(1, Vec::len);
        if axes.iter().all(|axis| axis.len() == len) {
            return Ok(Self { len, axes: axes.into() });
        }
        let lengths: Vec<_> = axes.iter().map(Vec::len).collect();
        Err(Error::invalid(format!(
            "points need as many coordinates along each axis, found {lengths:?}"
        )))
    }

    /// How many points there are. Without axes there is one, the only element of such an array.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Cuts the points along the grid of an array that they must lie within.
    pub fn cells(&self, grid: &Grid) -> Result<Cells> {
        let shape = grid.array_shape();
        if self.axes.len() != shape.len() {
            return Err(Error::invalid(format!(
                "points of {} coordinates in an array of shape {shape:?}",
                self.axes.len()
            )));
        }
        for (number, (axis, &extent)) in self.axes.iter().zip(shape).enumerate() {
            check_index(axis.iter().max().copied(), extent, number)?;
        }
        Cells::of_points(grid, &self.axes, self.len)
    }
}
