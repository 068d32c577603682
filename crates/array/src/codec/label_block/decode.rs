//! From a block to voxels.

use super::bits::{row, with_width};
use super::parse::Block;
use super::voxel::{Voxel, check_count};
use super::{CELL, EDGE, corrupt};
use crate::Result;

/// A place of one cell in the memory of a block.
struct Place<'o, T> {
    /// From the first voxel of the cell on.
    out: &'o mut [T],
    /// Voxels from a row to the next, and from a slice to the next.
    row: usize,
    slice: usize,
}

impl Block<'_> {
    /// Writes all voxels, x fastest. What `out` holds before does not matter.
    ///
    /// Fails if `out` has another length, or if a label has no room in a voxel.
    pub fn decode_into<T: Voxel>(&self, out: &mut [T]) -> Result<()> {
        check_count(out.len(), self.grid)?;
        let [x, y, _] = self.size().map(|n| n as usize);
        let too_large = |label: u64| {
            corrupt(format!("labels of {} bytes", size_of::<T>()), format!("label {label}"))
        };
        if let [label] = self.table {
            let label = u64::from_le_bytes(*label);
            out.fill(T::from_label(label).ok_or_else(|| too_large(label))?);
            return Ok(());
        }
        let mut labels = [T::default(); CELL];
        for (cell, origin) in self.cells().zip(Self::origins(self.grid, x, x * y)) {
            cell.labels_into(self, &mut labels).map_err(too_large)?;
            let out = out.get_mut(origin..).unwrap_or_default();
            let place = Place { out, row: x, slice: x * y };
            with_width!(
                cell.width(),
                expand::<T>(cell.packed, &labels, place),
                fill(labels[0], place)
            );
        }
        Ok(())
    }
}

fn expand<const BITS: usize, T: Voxel>(packed: &[u8], labels: &[T; CELL], place: Place<'_, T>) {
    let (rows, _) = packed.as_chunks::<BITS>();
    let (slices, _) = rows.as_chunks::<EDGE>();
    for (z, slice) in slices.iter().enumerate() {
        for (y, bytes) in slice.iter().enumerate() {
            let values = row(bytes);
            let from = z * place.slice + y * place.row;
            if let Some(out) = place.out.get_mut(from..).and_then(<[T]>::first_chunk_mut::<EDGE>) {
                *out = values.map(|value| labels[value % CELL]);
            }
        }
    }
}

fn fill<T: Voxel>(label: T, place: Place<'_, T>) {
    for z in 0..EDGE {
        for y in 0..EDGE {
            let from = z * place.slice + y * place.row;
            if let Some(out) = place.out.get_mut(from..).and_then(<[T]>::first_chunk_mut::<EDGE>) {
                *out = [label; EDGE];
            }
        }
    }
}
