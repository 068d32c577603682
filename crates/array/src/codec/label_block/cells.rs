//! The cells of a block, in order or by number.

use super::bits::width;
use super::parse::Block;
use super::voxel::Voxel;
use super::{CELL, EDGE, cell_count};

/// The one index of every cell of a block with one label.
const FIRST: &[[u8; 4]] = &[[0; 4]];

/// A cell: numbers of labels, and which of them each voxel has.
#[derive(Clone, Copy)]
pub(super) struct Cell<'a> {
    /// Indices into the table of the block. A cell without any is all label 0.
    pub(super) indices: &'a [[u8; 4]],
    /// Values of [`Cell::width`] bits.
    pub(super) packed: &'a [u8],
}

impl Cell<'_> {
    /// Bits per voxel.
    pub(super) fn width(&self) -> usize {
        width(self.indices.len())
    }

    /// Labels by value. A cell without labels has one, label 0.
    pub(super) fn labels(&self, block: &Block<'_>) -> impl Iterator<Item = u64> {
        let none = self.indices.is_empty().then_some(0);
        self.indices.iter().map(|&index| block.label(index)).chain(none)
    }

    /// Writes the labels by value to the start of `out` and says how many there are, or which one
    /// has no room in a voxel.
    pub(super) fn labels_into<T: Voxel>(
        &self,
        block: &Block<'_>,
        out: &mut [T; CELL],
    ) -> Result<usize, u64> {
        let mut count = 0;
        for (out, label) in out.iter_mut().zip(self.labels(block)) {
            *out = T::from_label(label).ok_or(label)?;
            count += 1;
        }
        Ok(count)
    }
}

impl<'a> Block<'a> {
    /// A label of the table.
    #[inline]
    pub(super) fn label(&self, index: [u8; 4]) -> u64 {
        // Every index was checked, so the default is never used.
        let index = u32::from_le_bytes(index) as usize;
        self.table.get(index).map_or(0, |&label| u64::from_le_bytes(label))
    }

    /// All cells, x fastest.
    pub(super) fn cells(&self) -> impl Iterator<Item = Cell<'a>> + use<'a> {
        let (counts, mut indices, mut values) = (self.counts, self.indices, self.values);
        let solid = self.table.len() == 1;
        (0..cell_count(self.grid)).map(move |at| {
            if solid {
                return Cell { indices: FIRST, packed: &[] };
            }
            let count = counts.get(at).map_or(0, |&count| usize::from(u16::from_le_bytes(count)));
            // The sections have the lengths that the counts ask for.
            let (own, rest) = indices.split_at_checked(count).unwrap_or_default();
            indices = rest;
            let (packed, rest) = values.split_at_checked(width(count)).unwrap_or_default();
            values = rest;
            Cell { indices: own, packed: packed.as_flattened() }
        })
    }

    /// Where the voxels of each cell begin in memory, in the order of [`Block::cells`], given the
    /// voxels from a row to the next and from a slice to the next.
    pub(super) fn origins(grid: [u32; 3], row: usize, slice: usize) -> impl Iterator<Item = usize> {
        let [x_cells, y_cells, z_cells] = grid.map(|cells| cells as usize);
        (0..z_cells).flat_map(move |z| {
            (0..y_cells)
                .flat_map(move |y| (0..x_cells).map(move |x| (z * slice + y * row + x) * EDGE))
        })
    }
}

/// Where each cell of a block lies in its sections, to reach cells in any order.
pub(super) struct CellIndex<'a> {
    block: Block<'a>,
    /// Position of the first index and of the first run of values of each cell.
    starts: Vec<(u32, u32)>,
}

impl<'a> CellIndex<'a> {
    pub(super) fn new(block: Block<'a>) -> Self {
        // A cell has at most 512 indices and 9 runs, a block at most 2^21 cells: a u32 is enough.
        let starts = block.counts.iter().scan((0, 0), |next: &mut (u32, u32), &count| {
            let start = *next;
            let count = u16::from_le_bytes(count);
            *next = (start.0 + u32::from(count), start.1 + width(count.into()) as u32);
            Some(start)
        });
        Self { block, starts: starts.collect() }
    }

    pub(super) fn block(&self) -> &Block<'a> {
        &self.block
    }

    /// The cell at a position in the grid, which must be inside.
    pub(super) fn cell(&self, [x, y, z]: [usize; 3]) -> Cell<'a> {
        let block = &self.block;
        let at = (z * block.grid[1] as usize + y) * block.grid[0] as usize + x;
        let (Some(&(first, run)), Some(&count)) = (self.starts.get(at), block.counts.get(at))
        else {
            return Cell { indices: FIRST, packed: &[] };
        };
        let count = usize::from(u16::from_le_bytes(count));
        let (first, run) = (first as usize, run as usize);
        let indices = block.indices.get(first..first + count).unwrap_or_default();
        let values = block.values.get(run..run + width(count)).unwrap_or_default();
        Cell { indices, packed: values.as_flattened() }
    }
}
