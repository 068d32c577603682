//! Questions that the encoded form answers without all voxels.

use std::collections::BTreeMap;

use super::bits::{unpack, width};
use super::cells::{Cell, CellIndex};
use super::parse::{Block, Head};
use super::{CELL, EDGE};
use crate::Result;

impl Block<'_> {
    /// The table: every label of the block, in the order of their numbers.
    ///
    /// A label may be there twice, or have no voxel left, after a program has rewritten the table.
    pub fn labels(&self) -> impl ExactSizeIterator<Item = u64> {
        self.table.iter().map(|&label| u64::from_le_bytes(label))
    }

    /// Labels that have voxels, and how many, by label.
    pub fn counts(&self) -> Vec<(u64, u64)> {
        let mut by_number = vec![0u64; self.table.len()];
        let mut without_label = 0;
        let mut own = [0; CELL];
        for cell in self.cells() {
            if cell.indices.is_empty() {
                without_label += CELL as u64;
                continue;
            }
            count_values(&cell, &mut own);
            for (&index, count) in cell.indices.iter().zip(own) {
                if let Some(total) = by_number.get_mut(u32::from_le_bytes(index) as usize) {
                    *total += u64::from(count);
                }
            }
        }
        let mut by_label = BTreeMap::from([(0, without_label)]);
        for (label, count) in self.labels().zip(by_number) {
            *by_label.entry(label).or_insert(0) += count;
        }
        by_label.into_iter().filter(|&(_, count)| count > 0).collect()
    }

    /// Labels other than 0 that have voxels, how many, and the box they lie in, by label.
    pub fn extents(&self) -> Vec<Extent> {
        let mut found: Vec<Option<Extent>> = vec![None; self.table.len()];
        let [x_cells, y_cells, _] = self.grid.map(|cells| cells as usize);
        let (mut own, mut values) = ([Seen::default(); CELL], [0; CELL]);
        for (at, cell) in self.cells().enumerate() {
            let origin = [at % x_cells, at / x_cells % y_cells, at / (x_cells * y_cells)]
                .map(|cell| (cell * EDGE) as u32);
            let count = cell.indices.len();
            if count == 1 {
                own[0] = Seen { count: CELL as u32, axes: [u8::MAX; 3] };
            } else {
                own[..count].fill(Seen::default());
                unpack(cell.packed, cell.width(), &mut values);
                for (place, &value) in values.iter().enumerate() {
                    own[usize::from(value) % CELL].add(place);
                }
            }
            for (&index, seen) in cell.indices.iter().zip(own) {
                let label = self.label(index);
                if seen.count > 0
                    && label != 0
                    && let Some(slot) = found.get_mut(u32::from_le_bytes(index) as usize)
                {
                    let extent = seen.extent(label, origin);
                    *slot = Some(slot.map_or(extent, |known| known.union(&extent)));
                }
            }
        }
        let mut extents: Vec<Extent> = found.into_iter().flatten().collect();
        extents.sort_unstable_by_key(|extent| extent.label);
        // A table may name a label twice.
        extents.dedup_by(|later, kept| {
            let same = later.label == kept.label;
            if same {
                *kept = kept.union(later);
            }
            same
        });
        extents
    }

    /// The label of a voxel; `None` outside of the block.
    pub fn label_at(&self, at: [u32; 3]) -> Option<u64> {
        if at.iter().zip(self.size()).any(|(&at, size)| at >= size) {
            return None;
        }
        if let [label] = self.table {
            return Some(u64::from_le_bytes(*label));
        }
        let [x, y, z] = at.map(|at| at as usize / EDGE);
        let before = (z * self.grid[1] as usize + y) * self.grid[0] as usize + x;
        let (mut first, mut run) = (0, 0);
        for &count in self.counts.get(..before)? {
            let count = usize::from(u16::from_le_bytes(count));
            (first, run) = (first + count, run + width(count));
        }
        let count = usize::from(u16::from_le_bytes(*self.counts.get(before)?));
        let indices = self.indices.get(first..first + count)?;
        let values = self.values.get(run..run + width(count))?;
        Some(label_in(self, &Cell { indices, packed: values.as_flattened() }, at))
    }

    /// The labels of many voxels, in their order; `None` outside of the block.
    pub fn labels_at(&self, points: &[[u32; 3]]) -> Vec<Option<u64>> {
        let cells = CellIndex::new(*self);
        let inside = |at: &[u32; 3]| at.iter().zip(self.size()).all(|(&at, size)| at < size);
        let label = |at: [u32; 3]| label_in(self, &cells.cell(at.map(|at| at as usize / EDGE)), at);
        points.iter().map(|at| inside(at).then(|| label(*at))).collect()
    }

    /// The one label of all voxels, if there is one.
    ///
    /// The answer is about voxels: a block of several labels is solid too if all of them are equal,
    /// or if only one has voxels.
    pub fn solid_label(&self) -> Option<u64> {
        let mut cells = self.cells();
        let first = solid(self, &cells.next()?)?;
        if self.table.len() == 1 {
            return Some(first);
        }
        cells.all(|cell| solid(self, &cell) == Some(first)).then_some(first)
    }

    /// Whether all voxels are label 0, as in a block that is not stored.
    pub fn is_zero(&self) -> bool {
        self.solid_label() == Some(0)
    }
}

/// The voxels of one label in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The label.
    pub label: u64,
    /// How many voxels it has.
    pub voxels: u64,
    /// The least x, y and z of them.
    pub min: [u32; 3],
    /// The greatest x, y and z of them.
    pub max: [u32; 3],
}

impl Extent {
    /// Both together.
    fn union(&self, other: &Self) -> Self {
        Self {
            label: self.label,
            voxels: self.voxels + other.voxels,
            min: std::array::from_fn(|axis| self.min[axis].min(other.min[axis])),
            max: std::array::from_fn(|axis| self.max[axis].max(other.max[axis])),
        }
    }
}

/// What a cell has of a label: how many voxels, and per axis a bit for each position that has one.
#[derive(Clone, Copy, Default)]
struct Seen {
    count: u32,
    axes: [u8; 3],
}

impl Seen {
    fn add(&mut self, place: usize) {
        self.count += 1;
        self.axes[0] |= 1 << (place % EDGE);
        self.axes[1] |= 1 << (place / EDGE % EDGE);
        self.axes[2] |= 1 << (place / (EDGE * EDGE));
    }

    fn extent(&self, label: u64, origin: [u32; 3]) -> Extent {
        Extent {
            label,
            voxels: self.count.into(),
            min: std::array::from_fn(|axis| origin[axis] + self.axes[axis].trailing_zeros()),
            max: std::array::from_fn(|axis| origin[axis] + self.axes[axis].ilog2()),
        }
    }
}

/// The labels in the table of an encoded block, from its first 16 + 8 N bytes. Nothing after them is
/// read or checked.
pub fn table_of(bytes: &[u8]) -> Result<impl ExactSizeIterator<Item = u64>> {
    Ok(Head::parse(bytes)?.table.iter().map(|&label| u64::from_le_bytes(label)))
}

/// Counts the voxels of each value of a cell that has labels.
fn count_values(cell: &Cell<'_>, counts: &mut [u16; CELL]) {
    let (words, _) = cell.packed.as_chunks::<8>();
    let words = words.iter().map(|&word| u64::from_be_bytes(word));
    const LOW: u64 = 0x5555_5555_5555_5555;
    match cell.width() {
        0 => counts[0] = CELL as u16,
        1 => {
            counts[1] = words.map(|word| word.count_ones() as u16).sum();
            counts[0] = CELL as u16 - counts[1];
        }
        2 => {
            let mut found = [0; 4];
            for word in words {
                let (high, low) = (word >> 1 & LOW, word & LOW);
                found[1] += (low & !high).count_ones() as u16;
                found[2] += (high & !low).count_ones() as u16;
                found[3] += (high & low).count_ones() as u16;
            }
            found[0] = CELL as u16 - found[1] - found[2] - found[3];
            counts[..4].copy_from_slice(&found);
        }
        width => {
            let mut values = [0; CELL];
            unpack(cell.packed, width, &mut values);
            counts[..cell.indices.len()].fill(0);
            values.iter().for_each(|&value| counts[usize::from(value) % CELL] += 1);
        }
    }
}

/// The label of a voxel of a cell, given the position in the block.
fn label_in(block: &Block<'_>, cell: &Cell<'_>, at: [u32; 3]) -> u64 {
    let [x, y, z] = at.map(|at| at as usize % EDGE);
    let width = cell.width();
    let bit = ((z * EDGE + y) * EDGE + x) * width;
    let byte = |at: usize| cell.packed.get(at).map_or(0, |&byte| u32::from(byte));
    // A value of at most nine bits lies in at most two bytes.
    let pair = byte(bit / 8) << 8 | byte(bit / 8 + 1);
    let value = (pair << (bit % 8) & 0xffff) >> (16 - width);
    cell.indices.get(value as usize).map_or(0, |&index| block.label(index))
}

/// The one label of all voxels of a cell.
fn solid(block: &Block<'_>, cell: &Cell<'_>) -> Option<u64> {
    let mut labels = cell.labels(block);
    let first = labels.next()?;
    if labels.all(|label| label == first) {
        return Some(first);
    }
    let (mut labels, mut values) = ([0; CELL], [0; CELL]);
    cell.labels_into(block, &mut labels).ok()?;
    unpack(cell.packed, cell.width(), &mut values);
    let label = |value: u16| labels[usize::from(value) % CELL];
    let first = label(values[0]);
    values.iter().all(|&value| label(value) == first).then_some(first)
}
