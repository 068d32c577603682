//! Other labels for the same voxels.

use super::CELL;
use super::bits::{Values, unpack};
use super::builder::{Builder, solid_onto};
use super::cells::Cell;
use super::parse::{Block, Head};
use crate::Result;

/// Replaces labels in the table of an encoded block, in place, and says whether any has changed.
///
/// This is what DVID does when it maps supervoxels to bodies: nothing but the table changes, so
/// neither length nor position of anything does, and a block of any size takes microseconds.
/// Labels that become equal are in the table twice, which every reader of blocks accepts.
/// [`Block::relabel_onto`] makes one of them. Only head and table are checked.
pub fn relabel(bytes: &mut [u8], mut label_of: impl FnMut(u64) -> u64) -> Result<bool> {
    let count = Head::parse(bytes)?.table.len();
    let mut changed = false;
    let table = bytes.get_mut(16..).unwrap_or_default().as_chunks_mut::<8>().0;
    for entry in table.iter_mut().take(count) {
        let label = u64::from_le_bytes(*entry);
        let new = label_of(label);
        changed |= new != label;
        *entry = new.to_le_bytes();
    }
    Ok(changed)
}

impl Block<'_> {
    /// Appends the canonical encoding of these voxels with other labels to `out`.
    ///
    /// Equal labels become one, labels without voxels are left out, and the rest is numbered as
    /// [`encode`](super::encode) does. With `|label| label` this makes any block canonical. The
    /// values of a cell are copied as they are where its labels stay different and in order.
    pub fn relabel_onto(
        &self,
        mut label_of: impl FnMut(u64) -> u64,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let table: Vec<u64> = self.labels().map(&mut label_of).collect();
        if let [label] = table[..] {
            return solid_onto(self.grid, label, out);
        }
        // A cell that lists no label has label 0 as well.
        let zero = if self.counts.contains(&[0, 0]) { label_of(0) } else { 0 };
        let mut builder = Builder::new(self.grid);
        let mut renumbering = Renumbering::new();
        for cell in self.cells() {
            let labels = &mut renumbering.labels;
            labels.clear();
            let number = |index: &[u8; 4]| u32::from_le_bytes(*index) as usize;
            labels.extend(cell.indices.iter().filter_map(|index| table.get(number(index))));
            match labels[..] {
                [] => builder.push_solid(zero),
                [label] => builder.push_solid(label),
                _ => renumbering.push(&cell, &mut builder),
            }
        }
        builder.finish_onto(out)
    }
}

/// Brings the labels of a cell into the order in which they appear.
struct Renumbering {
    /// Labels by value.
    labels: Vec<u64>,
    values: Values,
    ordered: Vec<u64>,
}

impl Renumbering {
    fn new() -> Self {
        Self { labels: Vec::new(), values: [0; CELL], ordered: Vec::new() }
    }

    fn push(&mut self, cell: &Cell<'_>, builder: &mut Builder) {
        const NONE: u16 = u16::MAX;
        unpack(cell.packed, cell.width(), &mut self.values);
        let same = self.equal_labels();
        let mut numbers = [NONE; CELL];
        self.ordered.clear();
        let mut unchanged = true;
        for value in &mut self.values {
            let first = usize::from(same.as_ref().map_or(*value, |same| same[usize::from(*value)]));
            if numbers[first] == NONE {
                numbers[first] = self.ordered.len() as u16;
                self.ordered.push(self.labels[first]);
            }
            unchanged &= numbers[first] == *value;
            *value = numbers[first];
        }
        if let [label] = self.ordered[..] {
            builder.push_solid(label);
        } else if unchanged && self.ordered.len() == self.labels.len() {
            builder.push_packed(&self.ordered, cell.packed);
        } else {
            builder.push(&self.ordered, &self.values);
        }
    }

    /// For each value the first value with the same label; `None` if all labels differ.
    fn equal_labels(&self) -> Option<Values> {
        let mut by_label: Vec<u16> = (0..self.labels.len() as u16).collect();
        by_label.sort_by_key(|&value| self.labels[usize::from(value)]);
        let label = |value: u16| self.labels[usize::from(value)];
        if by_label.windows(2).all(|pair| label(pair[0]) != label(pair[1])) {
            return None;
        }
        let mut same = [0; CELL];
        let mut first = by_label[0];
        for &value in &by_label {
            // The sort is stable, so the first of equal labels is the first by value.
            if label(value) != label(first) {
                first = value;
            }
            same[usize::from(value)] = first;
        }
        Some(same)
    }
}
