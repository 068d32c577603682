//! From bytes to a checked view of them.

use std::fmt;

use super::bits::{all_below, width};
use super::{CELL, EDGE, GRID_MAX, cell_count, corrupt};
use crate::Result;

/// Voxels along the longest edge that a block can have.
pub const SIZE_MAX: u32 = GRID_MAX * EDGE as u32;

/// Bytes before the table.
const HEAD_BYTES: usize = 16;

/// A label block whose bytes have been checked. Copies refer to the same bytes.
#[derive(Clone, Copy)]
pub struct Block<'a> {
    pub(super) grid: [u32; 3],
    pub(super) table: &'a [[u8; 8]],
    /// Labels per cell; none at all if the block has one label.
    pub(super) counts: &'a [[u8; 2]],
    pub(super) indices: &'a [[u8; 4]],
    /// A cell takes as many of these as a voxel takes bits.
    pub(super) values: &'a [[u8; CELL / 8]],
    bytes: &'a [u8],
}

impl<'a> Block<'a> {
    /// Checks bytes that are one block and nothing else.
    ///
    /// The grid, every length, every index and every value is checked. Nothing is allocated.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        match Self::parse_prefix(bytes)? {
            (block, []) => Ok(block),
            (_, rest) => Err(corrupt(
                format!("{} bytes", bytes.len() - rest.len()),
                format!("{} more after them", rest.len()),
            )),
        }
    }

    /// Checks a block at the start of some bytes, and gives the bytes after it. DVID ignores those.
    pub fn parse_prefix(bytes: &'a [u8]) -> Result<(Self, &'a [u8])> {
        let Head { grid, table, rest } = Head::parse(bytes)?;
        let mut cursor = Cursor { rest, len: bytes.len() };
        let mut block = Self { grid, table, counts: &[], indices: &[], values: &[], bytes: &[] };
        if table.len() > 1 {
            block.counts = cursor.take(cell_count(grid) as u64, "counts of labels of cells")?;
            let (indices, values) = block.lengths()?;
            block.indices = cursor.take(indices, "indices of labels of cells")?;
            block.values = cursor.take(values, "packed values of 64 bytes")?;
            block.check_indices()?;
            block.check_values()?;
        }
        let (own, rest) = bytes.split_at(bytes.len() - cursor.rest.len());
        block.bytes = own;
        Ok((block, rest))
    }

    /// The bytes of the block.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Voxels along x, y and z.
    pub fn size(&self) -> [u32; 3] {
        self.grid.map(|cells| cells * EDGE as u32)
    }

    /// The number of voxels.
    pub fn voxel_count(&self) -> usize {
        cell_count(self.grid) * CELL
    }

    /// How many indices and runs of values the counts ask for.
    fn lengths(&self) -> Result<(u64, u64)> {
        let (mut indices, mut values) = (0, 0);
        for (cell, &count) in self.counts.iter().enumerate() {
            let count = usize::from(u16::from_le_bytes(count));
            if count > CELL {
                let found = format!("{count} in cell {cell}");
                return Err(corrupt(format!("at most {CELL} labels per cell"), found));
            }
            indices += count as u64;
            values += width(count) as u64;
        }
        Ok((indices, values))
    }

    fn check_indices(&self) -> Result<()> {
        let largest = self.indices.iter().map(|&index| u32::from_le_bytes(index)).max();
        match largest {
            Some(index) if index as usize >= self.table.len() => Err(corrupt(
                format!("indices into a table of {} labels", self.table.len()),
                format!("{index}"),
            )),
            _ => Ok(()),
        }
    }

    fn check_values(&self) -> Result<()> {
        for (at, cell) in self.cells().enumerate() {
            if !all_below(cell.packed, cell.indices.len()) {
                let expected = format!("values below {} in cell {at}", cell.indices.len());
                return Err(corrupt(expected, "a larger one"));
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Block<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block")
            .field("size", &self.size())
            .field("labels", &self.table.len())
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

/// Grid and table, which is all that some questions need.
pub(super) struct Head<'a> {
    pub(super) grid: [u32; 3],
    pub(super) table: &'a [[u8; 8]],
    rest: &'a [u8],
}

impl<'a> Head<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self> {
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() else {
            let expected = format!("a head of {HEAD_BYTES} bytes");
            return Err(corrupt(expected, format!("{} bytes", bytes.len())));
        };
        let (words, _) = head.as_chunks::<4>();
        let [x, y, z, count] = std::array::from_fn(|at| u32::from_le_bytes(words[at]));
        let grid = [x, y, z];
        if grid.iter().any(|&cells| cells == 0 || cells > GRID_MAX) {
            let expected = format!("1 to {GRID_MAX} cells along each axis");
            return Err(corrupt(expected, format!("{grid:?}")));
        }
        let voxels = cell_count(grid) * CELL;
        if count == 0 || count as usize > voxels {
            let expected = format!("1 to {voxels} labels for as many voxels");
            return Err(corrupt(expected, format!("{count}")));
        }
        let mut cursor = Cursor { rest, len: bytes.len() };
        let table = cursor.take(count.into(), "labels of the table")?;
        Ok(Self { grid, table, rest: cursor.rest })
    }
}

/// Bytes that are taken from the front, section by section.
struct Cursor<'a> {
    rest: &'a [u8],
    len: usize,
}

impl<'a> Cursor<'a> {
    fn take<const BYTES: usize>(&mut self, count: u64, what: &str) -> Result<&'a [[u8; BYTES]]> {
        let wanted = count.checked_mul(BYTES as u64).and_then(|bytes| usize::try_from(bytes).ok());
        let Some((section, rest)) = wanted.and_then(|bytes| self.rest.split_at_checked(bytes))
        else {
            let at = self.len - self.rest.len();
            let expected = format!("{count} {what} from byte {at} on");
            return Err(corrupt(expected, format!("{} bytes in all", self.len)));
        };
        self.rest = rest;
        Ok(section.as_chunks().0)
    }
}
