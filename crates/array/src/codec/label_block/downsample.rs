//! Eight blocks become one of half the resolution.
//!
//! DVID's rule: a voxel of the result takes the label that most of its eight voxels have. Label 0
//! does not vote, so the result is 0 only where all eight are; among equals the smaller label wins.
//!
//! A cell of the result is made from eight cells. A cell of one label votes without a look at its
//! voxels, one of two labels with a few operations on its bits.

use super::bits::{Values, unpack};
use super::builder::Builder;
use super::cells::{Cell, CellIndex};
use super::draft::Draft;
use super::parse::Block;
use super::{CELL, EDGE, grid_of};
use crate::{Error, Result};

/// Voxels along the edge of what becomes of a cell.
const HALF: usize = EDGE / 2;

/// What becomes of a cell.
type Corner = [u64; HALF * HALF * HALF];

/// Up to this many labels are counted one after the other, all voxels at once.
const COUNTED_MAX: usize = 24;

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
    voxels: [u64; CELL],
    corner: Corner,
    labels: [u64; CELL],
    values: Values,
}

impl Made {
    fn new() -> Self {
        Self {
            draft: Draft::new(),
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
                (Source::Voting(block, cell), None) => self.vote(block, cell),
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
        self.expand(block, cell);
        let first = start(corner);
        for (at, voxel) in self.corner.iter_mut().enumerate() {
            let [z, y, x] = [at / (HALF * HALF), at / HALF % HALF, at % HALF];
            let value = self.values[first + (z * EDGE + y) * EDGE + x];
            *voxel = self.labels[usize::from(value) % CELL];
        }
    }

    fn expand(&mut self, block: &Block<'_>, cell: &Cell<'_>) -> usize {
        unpack(cell.packed, cell.width(), &mut self.values);
        cell.labels_into(block, &mut self.labels).unwrap_or_default()
    }

    fn vote(&mut self, block: &Block<'_>, cell: &Cell<'_>) {
        if let [first, second] = *cell.indices {
            return vote_of_two(cell, block.label(first), block.label(second), &mut self.corner);
        }
        let count = self.expand(block, cell);
        let labels = &self.labels[..count];
        let mut order = [0; COUNTED_MAX];
        let Some(order) = order.get_mut(..count) else {
            return vote_one_by_one(&self.values, &self.labels, &mut self.corner);
        };
        for (at, number) in order.iter_mut().enumerate() {
            *number = at as u16;
        }
        let label = |number: u16| labels[usize::from(number)];
        order.sort_unstable_by_key(|&number| label(number));
        if order.windows(2).any(|pair| label(pair[0]) == label(pair[1])) {
            // Votes for a label that is there twice belong together.
            return vote_one_by_one(&self.values, &self.labels, &mut self.corner);
        }
        let mut most = [0; HALF * HALF * HALF];
        let mut winner = [u16::MAX; HALF * HALF * HALF];
        for &number in order.iter().filter(|&&number| label(number) != 0) {
            // In ascending order, so that a later label must have more votes.
            count_votes(&self.values, number, &mut most, &mut winner);
        }
        for (voxel, &number) in self.corner.iter_mut().zip(&winner) {
            *voxel = labels.get(usize::from(number)).copied().unwrap_or(0);
        }
    }
}

/// The first voxel of a corner in a cell.
fn start(corner: usize) -> usize {
    let [x, y, z] = [corner & 1, corner >> 1 & 1, corner >> 2];
    ((z * EDGE + y) * EDGE + x) * HALF
}

/// Counts the votes for one value, and makes it the winner where it has more than the one before.
fn count_votes(
    values: &Values,
    number: u16,
    most: &mut [u16; HALF * HALF * HALF],
    winner: &mut [u16; HALF * HALF * HALF],
) {
    let (rows, _) = values.as_chunks::<EDGE>();
    let places = most.as_chunks_mut::<HALF>().0.iter_mut().zip(winner.as_chunks_mut::<HALF>().0);
    for (at, (most, winner)) in places.enumerate() {
        let first = at / HALF * 2 * EDGE + at % HALF * 2;
        let four = [rows[first], rows[first + 1], rows[first + EDGE], rows[first + EDGE + 1]];
        let mut columns = [0u16; EDGE];
        for row in four {
            for (count, value) in columns.iter_mut().zip(row) {
                *count += u16::from(value == number);
            }
        }
        for x in 0..HALF {
            let votes = columns[2 * x] + columns[2 * x + 1];
            let more = votes > most[x];
            most[x] = if more { votes } else { most[x] };
            winner[x] = if more { number } else { winner[x] };
        }
    }
}

/// The vote for cells of many labels, or of labels that are there twice.
fn vote_one_by_one(values: &Values, labels: &[u64; CELL], corner: &mut Corner) {
    for (at, voxel) in corner.iter_mut().enumerate() {
        let [z, y, x] = [at / (HALF * HALF), at / HALF % HALF, at % HALF];
        let first = ((z * EDGE + y) * EDGE + x) * 2;
        let eight: [u64; 8] = std::array::from_fn(|child| {
            let [x, y, z] = [child & 1, child >> 1 & 1, child >> 2];
            labels[usize::from(values[first + (z * EDGE + y) * EDGE + x]) % CELL]
        });
        *voxel = winner_of(eight);
    }
}

/// The label of a voxel, given the eight that it stands for.
fn winner_of(eight: [u64; 8]) -> u64 {
    let (mut most, mut winner) = (0, 0);
    for &label in eight.iter().filter(|&&label| label != 0) {
        let votes = eight.iter().filter(|&&other| other == label).count();
        if votes > most || (votes == most && label < winner) {
            (most, winner) = (votes, label);
        }
    }
    winner
}

/// The vote of a cell of two labels. The second one wins from a certain number of votes on, so
/// counting bits decides.
fn vote_of_two(cell: &Cell<'_>, first: u64, second: u64, corner: &mut Corner) {
    let enough = match (first, second) {
        (0, _) => 1,
        (_, 0) => 8,
        _ if second < first => 4,
        _ => 5,
    };
    const PAIRS: u64 = 0x5555_5555_5555_5555;
    const FOURS: u64 = 0x3333_3333_3333_3333;
    // A slice of a cell is one word: rows are bytes, the first in the topmost, and so is the first
    // voxel of a row.
    let (slices, _) = cell.packed.as_chunks::<8>();
    let pairs = |slice: &[u8; 8]| {
        let word = u64::from_be_bytes(*slice);
        (word & PAIRS) + (word >> 1 & PAIRS)
    };
    let (out, _) = corner.as_chunks_mut::<{ HALF * HALF }>();
    for (two, out) in slices.as_chunks::<2>().0.iter().zip(out) {
        // Sums of two voxels along x, then of two slices, in four bits each: at most four.
        let (near, far) = (pairs(&two[0]), pairs(&two[1]));
        let even = (near & FOURS) + (far & FOURS);
        let odd = (near >> 2 & FOURS) + (far >> 2 & FOURS);
        // The rows of a pair are neighbouring bytes. Sums are at most eight; with what is missing to
        // eight added, the fourth bit says whether there are enough.
        let missing = (8 - enough) * 0x1111_1111_1111_1111;
        let even = even + (even >> 8) + missing;
        let odd = odd + (odd >> 8) + missing;
        for (y, row) in out.as_chunks_mut::<HALF>().0.iter_mut().enumerate() {
            let bottom = 48 - 16 * y;
            let wins = |sums: u64, bit: usize| sums >> (bottom + bit) & 0b1000 != 0;
            let label = |wins: bool| if wins { second } else { first };
            *row = [
                label(wins(odd, 4)),
                label(wins(even, 4)),
                label(wins(odd, 0)),
                label(wins(even, 0)),
            ];
        }
    }
}
