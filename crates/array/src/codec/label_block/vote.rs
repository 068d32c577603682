//! The vote of a cell: 2 × 2 × 2 voxels become one.
//!
//! DVID's rule: the label that most of the eight have wins. Label 0 does not vote; among equals the
//! smaller label wins. Labels are replaced by ranks, the smallest label with the highest rank and label
//! 0 with rank 0. Then votes and rank are one number, and the greatest of eight decides, for many
//! voxels at once and whatever the number of labels.

use super::bits::{row, with_width};
use super::cells::Cell;
use super::parse::Block;
use super::{CELL, EDGE};

/// Voxels along the edge of what becomes of a cell.
pub(super) const HALF: usize = EDGE / 2;

/// What becomes of a cell.
pub(super) type Corner = [u64; HALF * HALF * HALF];

/// Voxels that are decided at once: two rows of a corner.
const LANES: usize = 2 * HALF;

/// Bits of a rank: there are 512 labels at most, and none.
const RANK_BITS: u32 = 10;

/// The eight voxels that each of some voxels stands for, child by child.
type Children = [[i16; LANES]; 8];

/// Memory for the vote of one cell.
pub(super) struct Vote {
    /// Labels with their values, in order.
    sorted: Vec<(u64, u16)>,
    /// Ranks by value.
    ranks: [i16; CELL],
    /// Labels by rank.
    labels: [u64; CELL + 1],
    children: [Children; HALF * HALF * HALF / LANES],
}

impl Vote {
    pub(super) fn new() -> Self {
        Self {
            sorted: Vec::new(),
            ranks: [0; CELL],
            labels: [0; CELL + 1],
            children: [[[0; LANES]; 8]; HALF * HALF * HALF / LANES],
        }
    }

    /// The vote of a cell of several labels.
    pub(super) fn of(&mut self, block: &Block<'_>, cell: &Cell<'_>, corner: &mut Corner) {
        if let [first, second] = *cell.indices {
            return vote_of_two(cell, block.label(first), block.label(second), corner);
        }
        self.rank(block, cell);
        let Self { ranks, children, .. } = self;
        with_width!(cell.width(), spread_rows(cell.packed, ranks, children), ());
        for (children, out) in self.children.iter().zip(corner.as_chunks_mut::<LANES>().0) {
            *out = winners(children).map(|rank| self.labels[rank as usize % (CELL + 1)]);
        }
    }

    /// Gives labels their ranks. A label that the table has twice has one rank.
    fn rank(&mut self, block: &Block<'_>, cell: &Cell<'_>) {
        self.sorted.clear();
        let labels = cell.labels(block).take(CELL).zip(0..);
        self.sorted.extend(labels);
        self.sorted.sort_unstable();
        let mut rank = 0;
        for &(label, value) in self.sorted.iter().rev() {
            if label == 0 {
                self.ranks[usize::from(value)] = 0;
                continue;
            }
            if rank == 0 || self.labels[rank] != label {
                rank += 1;
                self.labels[rank] = label;
            }
            self.ranks[usize::from(value)] = rank as i16;
        }
    }
}

/// The ranks of all voxels, each at its place among eight.
fn spread_rows<const BITS: usize>(
    packed: &[u8],
    ranks: &[i16; CELL],
    children: &mut [Children; HALF * HALF * HALF / LANES],
) {
    for (at, bytes) in packed.as_chunks::<BITS>().0.iter().enumerate().take(EDGE * EDGE) {
        let (z, y) = (at / EDGE, at % EDGE);
        // A slice of a corner is two groups of two rows.
        let group = &mut children[z / 2 * 2 + y / 4];
        let child = z % 2 * 4 + y % 2 * 2;
        let lane = y / 2 % 2 * HALF;
        let eight = row(bytes).map(|value| ranks[value % CELL]);
        for x in 0..HALF {
            group[child][lane + x] = eight[2 * x];
            group[child + 1][lane + x] = eight[2 * x + 1];
        }
    }
}

/// The rank that wins among each eight.
fn winners(children: &Children) -> [i16; LANES] {
    let mut votes = [[1i16; LANES]; 8];
    for one in 0..8 {
        for other in 0..one {
            for lane in 0..LANES {
                let same = i16::from(children[one][lane] == children[other][lane]);
                votes[one][lane] += same;
                votes[other][lane] += same;
            }
        }
    }
    let mut best = [0; LANES];
    for (votes, ranks) in votes.iter().zip(children) {
        for lane in 0..LANES {
            let score = votes[lane] << RANK_BITS | ranks[lane];
            best[lane] = best[lane].max(if ranks[lane] == 0 { 0 } else { score });
        }
    }
    best.map(|score| score & ((1 << RANK_BITS) - 1))
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
