//! A whole cell of several labels, all of which differ and have voxels, in one pass over its values.

use super::super::CELL;
use super::super::bits::{row, with_width};
use super::super::cells::Cell;
use super::super::parse::Block;

/// Up to this many labels are marked in one word when a voxel has them.
pub(super) const LABELS_MAX: usize = 64;

/// Memory for a cell.
pub(super) struct Whole {
    /// Labels with their values, in order.
    sorted: Vec<(u64, u8)>,
    /// The labels alone.
    pub(super) labels: Vec<u64>,
    /// The number of each value in that order.
    numbers: [u64; LABELS_MAX],
}

impl Whole {
    pub(super) fn new() -> Self {
        Self { sorted: Vec::new(), labels: Vec::new(), numbers: [0; LABELS_MAX] }
    }

    /// Sorts the labels of a cell of at most [`LABELS_MAX`]; says whether all of them differ.
    pub(super) fn sort(&mut self, block: &Block<'_>, cell: &Cell<'_>) -> bool {
        self.sorted.clear();
        self.sorted.extend(cell.labels(block).zip(0..LABELS_MAX as u8));
        self.sorted.sort_unstable();
        self.labels.clear();
        self.labels.extend(self.sorted.iter().map(|&(label, _)| label));
        for (number, &(_, value)) in self.sorted.iter().enumerate() {
            self.numbers[usize::from(value) % LABELS_MAX] = number as u64;
        }
        self.labels.windows(2).all(|pair| pair[0] != pair[1])
    }

    /// Appends the values in the other order, with the bits that the other form gives them. Says how
    /// many bits, and whether every label has a voxel.
    pub(super) fn values_onto(&self, cell: &Cell<'_>, out: &mut Vec<u8>) -> (u32, bool) {
        let start = out.len();
        let width = match self.labels.len() {
            0..=16 => 4,
            _ => 8,
        };
        out.resize(start + CELL / 8 * width, 0);
        let (packed, numbers, values) = (cell.packed, &self.numbers, &mut out[start..]);
        let used = match width {
            4 => with_width!(cell.width(), turn4(packed, numbers, values), 0),
            _ => with_width!(cell.width(), turn8(packed, numbers, values), 0),
        };
        (width as u32, used.count_ones() as usize == self.labels.len())
    }
}

fn turn4<const BITS: usize>(packed: &[u8], numbers: &[u64; LABELS_MAX], out: &mut [u8]) -> u64 {
    turn::<BITS, 4>(packed, numbers, out)
}

fn turn8<const BITS: usize>(packed: &[u8], numbers: &[u64; LABELS_MAX], out: &mut [u8]) -> u64 {
    turn::<BITS, 8>(packed, numbers, out)
}

/// From values of `BITS` bits, the first in the topmost, to numbers of `OUT` bits, the first in the
/// lowest; gives a bit for each value that a voxel has. A row takes as many bytes as a voxel bits.
#[inline(always)]
fn turn<const BITS: usize, const OUT: usize>(
    packed: &[u8],
    numbers: &[u64; LABELS_MAX],
    out: &mut [u8],
) -> u64 {
    let mut used = 0;
    let rows = packed.as_chunks::<BITS>().0.iter().zip(out.as_chunks_mut::<OUT>().0);
    for (bytes, out) in rows {
        let values = row(bytes).map(|value| value % LABELS_MAX);
        let (mut word, mut seen) = (0, 0);
        for (at, value) in values.into_iter().enumerate() {
            word |= numbers[value] << (OUT * at);
            seen |= 1 << value;
        }
        used |= seen;
        out.copy_from_slice(&u64::to_le_bytes(word)[..OUT]);
    }
    used
}
