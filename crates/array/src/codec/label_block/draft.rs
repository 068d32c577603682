//! One cell while it is made from voxels: its labels in the order in which they appear.

use super::CELL;
use super::bits::Values;

/// Up to this many labels are searched one by one; more are found by their hash.
const SEARCHED_MAX: usize = 16;

/// Slots of the hash table: never more than half full.
const SLOTS: usize = 2 * CELL;

const FREE: u16 = u16::MAX;

/// The labels of a cell and the values of its voxels.
pub(super) struct Draft {
    labels: Vec<u64>,
    values: Values,
    /// Numbers of labels, at their hash or behind it; in use when there are many.
    slots: [u16; SLOTS],
}

impl Draft {
    pub(super) fn new() -> Self {
        Self { labels: Vec::with_capacity(CELL), values: [0; CELL], slots: [FREE; SLOTS] }
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
        let (mut last, mut number) = (voxels[0], 0);
        self.labels.push(last);
        for (at, row) in voxels.as_chunks::<8>().0.iter().enumerate() {
            // Neighbours are mostly of one label.
            let mut values = [number; 8];
            if row.iter().any(|&label| label != last) {
                for (value, &label) in values.iter_mut().zip(row) {
                    if label != last {
                        (last, number) = (label, self.number(label));
                    }
                    *value = number;
                }
            }
            self.values.as_chunks_mut::<8>().0[at] = values;
        }
    }

    /// The number of a label, a new one if it has none.
    fn number(&mut self, label: u64) -> u16 {
        let count = self.labels.len();
        if count <= SEARCHED_MAX {
            if let Some(at) = self.labels.iter().position(|&known| known == label) {
                return at as u16;
            }
            self.labels.push(label);
            if count == SEARCHED_MAX {
                self.slots.fill(FREE);
                for at in 0..=count {
                    let slot = self.slot(self.labels[at]);
                    self.slots[slot] = at as u16;
                }
            }
            return count as u16;
        }
        let slot = self.slot(label);
        if self.slots[slot] == FREE {
            self.slots[slot] = count as u16;
            self.labels.push(label);
        }
        self.slots[slot]
    }

    /// The slot of a label, or a free one for it.
    fn slot(&self, label: u64) -> usize {
        let mut slot = spread(label) as usize % SLOTS;
        // There is always a free one: a cell has half as many labels as there are slots.
        while self.slots[slot] != FREE && self.labels[usize::from(self.slots[slot])] != label {
            slot = (slot + 1) % SLOTS;
        }
        slot
    }
}

/// Bits that differ for labels that differ little.
pub(super) fn spread(label: u64) -> u64 {
    label.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}
