//! Eight blocks become one of half the resolution.
//!
//! A voxel of the result takes the label that most of its eight voxels have, as `vote` decides; label
//! 0 does not vote, so the result is 0 only where all eight are.
//!
//! A cell of the result is made from eight cells. A cell of one label votes without a look at its
//! voxels, one of two labels with a few operations on its bits.

use super::bits::{Values, unpack};
use super::builder::Builder;
use super::cells::{Cell, CellIndex};
use super::draft::Draft;
use super::parse::Block;
use super::vote::{Corner, HALF, Vote};
use super::{CELL, EDGE, grid_of};
use crate::{Error, Result};

/// Appends to `out` the block of `size` voxels that has half the resolution of `octants`.
///
/// Octant `4 z + 2 y + x` is the block whose position is odd along z, y and x where these are 1.
/// Where an octant is `None`, its part of the result is taken from `base`, the result as it is
/// stored already, or is label 0 without one. All blocks must have that size. The result is
/// canonical.
///
/// DVID makes all of the result 0 if all octants that are given are; here the part of an absent
/// octant stays what it is in `base`.
pub fn downsample(
    octants: [Option<Block<'_>>; 8],
    base: Option<Block<'_>>,
    size: [u32; 3],
    out: &mut Vec<u8>,
) -> Result<()> {
    let grid = grid_of(size)?;
    for block in octants.iter().chain([&base]).flatten() {
        if block.grid != grid {
            let found = block.size();
            return Err(Error::invalid(format!(
                "label blocks to downsample have {size:?} voxels, found one of {found:?}"
            )));
        }
    }
    let octants = octants.map(|octant| octant.map(CellIndex::new));
    let base = base.map(CellIndex::new);
    let cells = grid.map(|cells| cells as usize);
    let mut builder = Builder::new(grid);
    let mut made = Made::new();
    for z in 0..cells[2] {
        for y in 0..cells[1] {
            for x in 0..cells[0] {
                let sources = std::array::from_fn(|corner| {
                    let place = [x, y, z];
                    let at: [usize; 3] =
                        std::array::from_fn(|axis| 2 * place[axis] + (corner >> axis & 1));
                    // The eight blocks together are a grid twice as large.
                    let octant = (0..3).map(|axis| usize::from(at[axis] >= cells[axis]) << axis);
                    let within = std::array::from_fn(|axis| at[axis] % cells[axis]);
                    match (&octants[octant.sum::<usize>()], &base) {
                        (Some(block), _) => Source::Voting(block.block(), block.cell(within)),
                        (None, Some(base)) => Source::Kept(base.block(), base.cell(place)),
                        (None, None) => Source::Zero,
                    }
                });
                made.push(&sources, &mut builder);
            }
        }
    }
    builder.finish_onto(out)
}

/// Where a corner of a cell of the result comes from.
enum Source<'a> {
    /// A cell of twice the resolution.
    Voting(&'a Block<'a>, Cell<'a>),
    /// The same corner of the stored cell of the result.
    Kept(&'a Block<'a>, Cell<'a>),
    Zero,
}

impl Source<'_> {
    /// Its label, if it has one only.
    fn solid(&self) -> Option<u64> {
        match self {
            Self::Zero => Some(0),
            Self::Voting(block, cell) | Self::Kept(block, cell) => match *cell.indices {
                [] => Some(0),
                [index] => Some(block.label(index)),
                _ => None,
            },
        }
    }
}

/// Memory for one cell of the result.
struct Made {
    draft: Draft,
    vote: Vote,
    voxels: [u64; CELL],
    corner: Corner,
    labels: [u64; CELL],
    values: Values,
}

impl Made {
    fn new() -> Self {
        Self {
            draft: Draft::new(),
            vote: Vote::new(),
            voxels: [0; CELL],
            corner: [0; HALF * HALF * HALF],
            labels: [0; CELL],
            values: [0; CELL],
        }
    }

    fn push(&mut self, sources: &[Source<'_>; 8], builder: &mut Builder) {
        let first = sources[0].solid();
        if let Some(label) = first
            && sources.iter().all(|source| source.solid() == first)
        {
            return builder.push_solid(label);
        }
        for (corner, source) in sources.iter().enumerate() {
            match (source, source.solid()) {
                (_, Some(label)) => self.corner = [label; HALF * HALF * HALF],
                (Source::Voting(block, cell), None) => self.vote.of(block, cell, &mut self.corner),
                (Source::Kept(block, cell), None) => self.keep(block, cell, corner),
                (Source::Zero, None) => {}
            }
            self.place(corner);
        }
        self.draft.fill(&self.voxels);
        match *self.draft.labels() {
            [label] => builder.push_solid(label),
            ref labels => builder.push(labels, self.draft.values()),
        }
    }

    /// Copies the finished corner to its place in the cell.
    fn place(&mut self, corner: usize) {
        let (rows, _) = self.voxels.as_chunks_mut::<HALF>();
        let first = start(corner) / HALF;
        for (at, row) in self.corner.as_chunks::<HALF>().0.iter().enumerate() {
            let (z, y) = (at / HALF, at % HALF);
            rows[first + (z * EDGE + y) * 2] = *row;
        }
    }

    /// Takes the corner as it is in a cell of the result.
    fn keep(&mut self, block: &Block<'_>, cell: &Cell<'_>, corner: usize) {
        unpack(cell.packed, cell.width(), &mut self.values);
        // A u64 has room for any label.
        cell.labels_into(block, &mut self.labels).unwrap_or_default();
        let first = start(corner);
        for (at, voxel) in self.corner.iter_mut().enumerate() {
            let [z, y, x] = [at / (HALF * HALF), at / HALF % HALF, at % HALF];
            let value = self.values[first + (z * EDGE + y) * EDGE + x];
            *voxel = self.labels[usize::from(value) % CELL];
        }
    }
}

/// The first voxel of a corner in a cell.
fn start(corner: usize) -> usize {
    let [x, y, z] = [corner & 1, corner >> 1 & 1, corner >> 2];
    ((z * EDGE + y) * EDGE + x) * HALF
}
