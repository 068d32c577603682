//! A selection, chunk by chunk.

use std::sync::Arc;

use super::axis::{Axis, Positions};
use super::footprint::Footprint;
use super::span::Span;
use crate::{ChunkIndex, Grid, Region, Result};

/// Iterator over the chunks that hold a part of a selection, each once, in row-major order, with
/// its wanted part. Footprints of different chunks have no place outside in common.
#[derive(Debug)]
pub struct Cells {
    /// Shape of the whole selection.
    shape: Vec<u64>,
    chunk_shape: Arc<[u64]>,
    walk: Walk,
}

#[derive(Debug)]
enum Walk {
    /// Nothing is left.
    Done,
    /// All combinations of the cells along each axis; the last axis moves first.
    Product(Vec<Cursor>),
    /// Points in the order of their chunks.
    Points { axes: Arc<[Vec<u64>]>, order: Vec<usize>, next: usize },
}

/// One axis of a selection, and which of its cells is next.
#[derive(Debug)]
struct Cursor {
    cells: AxisCells,
    current: AxisCell,
}

/// The part of an axis in one cell.
#[derive(Debug)]
struct AxisCell {
    cell: u64,
    span: Span,
    /// Where the next cell begins.
    next: u64,
}

/// An axis, cut into cells of the grid.
#[derive(Debug)]
enum AxisCells {
    /// Cells are computed on demand: there may be very many.
    Range {
        start: u64,
        step: u64,
        count: u64,
        chunk: u64,
    },
    Listed(Vec<(u64, Span)>),
}

impl Cells {
    /// Cuts axes that lie within the array of the grid.
    pub(super) fn of_axes(grid: &Grid, axes: &[Axis], shape: &[u64]) -> Self {
        let cursors: Option<Vec<Cursor>> = axes
            .iter()
            .zip(grid.chunk_shape())
            .map(|(axis, &chunk)| Cursor::new(AxisCells::new(axis, chunk)))
            .collect();
        // An axis without positions has no first cell.
        let walk = cursors.map_or(Walk::Done, Walk::Product);
        Self { shape: shape.to_vec(), chunk_shape: grid.chunk_shape().into(), walk }
    }

    /// Sorts points, which lie within the array of the grid, by their chunks.
    pub(super) fn of_points(grid: &Grid, axes: &Arc<[Vec<u64>]>, len: usize) -> Result<Self> {
        // Places in a chunk are numbered, so there must be a number for each.
        Region::whole(grid.chunk_shape()).num_bytes(1)?;
        let mut order: Vec<usize> = (0..len).collect();
        for (axis, &chunk) in axes.iter().zip(grid.chunk_shape()).rev() {
            let cells: Vec<u64> = axis.iter().map(|&at| at / chunk).collect();
            if cells.iter().any(|cell| Some(cell) != cells.first()) {
                // A stable sort: equal ones stay sorted by the axes before.
                order.sort_by_key(|&point| cells.get(point).copied());
            }
        }
        let walk = Walk::Points { axes: axes.clone(), order, next: 0 };
        Ok(Self { shape: vec![len as u64], chunk_shape: grid.chunk_shape().into(), walk })
    }

    /// Shape of the whole selection.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }
}

impl Iterator for Cells {
    type Item = (ChunkIndex, Footprint);

    fn next(&mut self) -> Option<Self::Item> {
        let chunk_shape = &self.chunk_shape;
        match &mut self.walk {
            Walk::Done => None,
            Walk::Product(axes) => {
                let index = axes.iter().map(|axis| axis.current.cell).collect();
                let spans = axes.iter().map(|axis| axis.current.span.clone()).collect();
                // A carry out of the first axis ends it; without axes there is one cell.
                if !axes.iter_mut().rev().any(Cursor::advance) {
                    self.walk = Walk::Done;
                }
                Some((index, Footprint::product(chunk_shape.clone(), spans)))
            }
            Walk::Points { axes, order, next } => {
                let rest = order.get(*next..)?;
                let cell_of = |point: usize| {
                    axes.iter()
                        .zip(&**chunk_shape)
                        .map(move |(axis, chunk)| axis.get(point).map_or(0, |at| at / chunk))
                };
                let index: ChunkIndex = cell_of(*rest.first()?).collect();
                let here =
                    rest.iter().take_while(|&&point| cell_of(point).eq(index.iter().copied()));
                let pairs: Vec<(u64, u64)> = here
                    .map(|&point| (number_in_chunk(axes, point, chunk_shape), point as u64))
                    .collect();
                *next += pairs.len();
                Some((index, Footprint::points(chunk_shape.clone(), pairs)))
            }
        }
    }
}

/// Which element of its chunk a point is, in row-major order.
fn number_in_chunk(axes: &[Vec<u64>], point: usize, chunk_shape: &[u64]) -> u64 {
    axes.iter().zip(chunk_shape).fold(0, |number, (axis, chunk)| {
        number * chunk + axis.get(point).map_or(0, |at| at % chunk)
    })
}

impl Cursor {
    /// A cursor at the first cell; `None` where there is none.
    fn new(cells: AxisCells) -> Option<Self> {
        let current = cells.at(0)?;
        Some(Self { cells, current })
    }

    /// Goes on to the next cell; at the end back to the first one, and says `false`.
    fn advance(&mut self) -> bool {
        let next = self.cells.at(self.current.next);
        let moved = next.is_some();
        if let Some(cell) = next.or_else(|| self.cells.at(0)) {
            self.current = cell;
        }
        moved
    }
}

impl AxisCells {
    fn new(axis: &Axis, chunk: u64) -> Self {
        let indices = match axis.positions() {
            &Positions::Range { start, step, count } => {
                return Self::Range { start, step, count, chunk };
            }
            Positions::List(indices) => indices,
        };
        let mut pairs: Vec<(u64, u64)> = indices.iter().copied().zip(0..).collect();
        pairs.sort_unstable();
        let mut cells = Vec::new();
        for group in pairs.chunk_by_mut(|a, b| a.0 / chunk == b.0 / chunk) {
            let cell = group.first().map_or(0, |pair| pair.0 / chunk);
            group.iter_mut().for_each(|pair| pair.0 -= cell * chunk);
            cells.push((cell, Span::of_pairs(group)));
        }
        Self::Listed(cells)
    }

    /// The cell that begins at a position of the range, or the n-th of the list.
    fn at(&self, at: u64) -> Option<AxisCell> {
        match self {
            &Self::Range { start, step, count, chunk } => {
                let left = count.checked_sub(at).filter(|&left| left > 0)?;
                let position = start + at * step;
                let (cell, inside) = (position / chunk, position % chunk);
                let fitting = (chunk - inside).div_ceil(step).min(left);
                let span = Span::Even { inside, step, outside: at, count: fitting };
                Some(AxisCell { cell, span, next: at + fitting })
            }
            Self::Listed(cells) => {
                let (cell, span) = cells.get(usize::try_from(at).ok()?)?;
                Some(AxisCell { cell: *cell, span: span.clone(), next: at + 1 })
            }
        }
    }
}
