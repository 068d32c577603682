//! One cell while it is made from voxels: its labels in the order in which they appear.

use super::CELL;
use super::bits::Values;

/// Slots of the hash table: never more than half full.
const SLOTS: usize = 2 * CELL;

/// A label and its number, in the cell that the slot was last used for.
#[derive(Clone, Copy, Default)]
struct Slot {
    label: u64,
    cell: u32,
    number: u16,
}

/// The labels of a cell and the values of its voxels.
///
/// A voxel finds its number at the hash of its label. In a noisy cell labels change at any voxel, and
/// a guess whether the next is equal to the last would fail often; that the label is at its hash
/// almost never fails.
pub(super) struct Draft {
    labels: Vec<u64>,
    values: Values,
    slots: Box<[Slot; SLOTS]>,
    /// Slots of other cells are free.
    cell: u32,
}

impl Draft {
    pub(super) fn new() -> Self {
        let slots = Box::new([Slot::default(); SLOTS]);
        Self { labels: Vec::with_capacity(CELL), values: [0; CELL], slots, cell: 0 }
    }

    /// Labels in the order in which they appear.
    pub(super) fn labels(&self) -> &[u64] {
        &self.labels
    }

    /// The number of each voxel's label.
    pub(super) fn values(&self) -> &Values {
        &self.values
    }

    /// Makes a cell of these voxels.
    pub(super) fn fill(&mut self, voxels: &[u64; CELL]) {
        self.labels.clear();
        // A block has at most 2^21 cells, and a draft serves one block.
        self.cell += 1;
        let mut last = voxels[0];
        let mut number = self.add(last);
        for (at, row) in voxels.as_chunks::<8>().0.iter().enumerate() {
            let mut values = [number; 8];
            let others = row.iter().fold(0, |others, label| others | (label ^ last));
            if others != 0 {
                for (value, &label) in values.iter_mut().zip(row) {
                    let slot = self.slots[spread(label) as usize % SLOTS];
                    let known = slot.label == label && slot.cell == self.cell;
                    *value = if known { slot.number } else { self.add(label) };
                }
                (last, number) = (row[7], values[7]);
            }
            self.values.as_chunks_mut::<8>().0[at] = values;
        }
    }

    /// The number of a label that is not at its hash: behind it, or a new one.
    #[cold]
    fn add(&mut self, label: u64) -> u16 {
        let mut at = spread(label) as usize % SLOTS;
        // There is always a free one: a cell has half as many labels as there are slots.
        while self.slots[at].cell == self.cell {
            if self.slots[at].label == label {
                return self.slots[at].number;
            }
            at = (at + 1) % SLOTS;
        }
        let number = self.labels.len() as u16;
        self.slots[at] = Slot { label, cell: self.cell, number };
        self.labels.push(label);
        number
    }
}

/// Bits that differ for labels that differ little.
pub(super) fn spread(label: u64) -> u64 {
    label.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}
