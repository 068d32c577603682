//! From voxels to a block.

use super::builder::{Builder, bytes_max, solid_onto};
use super::draft::Draft;
use super::parse::Block;
use super::voxel::{Voxel, check_count};
use super::{CELL, EDGE, grid_of};
use crate::{Error, Result};

/// Appends a block of `size` voxels along x, y and z to `out`, given its voxels, x fastest.
///
/// The encoding is canonical: labels are numbered as they appear, cell by cell and then voxel by
/// voxel, in the cells as DVID does and also in the table, which DVID leaves in the order of a hash
/// map.
pub fn encode<T: Voxel>(voxels: &[T], size: [u32; 3], out: &mut Vec<u8>) -> Result<()> {
    let (x, y) = (size[0] as usize, size[1] as usize);
    check_count(voxels.len(), grid_of(size)?)?;
    encode_part(voxels, [x, x.saturating_mul(y)], size, out)
}

/// Appends a block of voxels that are a part of more: from a row to the next there are `strides[0]` of
/// them, from a slice to the next `strides[1]`. `voxels` begins with the first one of the block.
pub fn encode_part<T: Voxel>(
    voxels: &[T],
    strides: [usize; 2],
    size: [u32; 3],
    out: &mut Vec<u8>,
) -> Result<()> {
    let grid = grid_of(size)?;
    let [row, slice] = strides;
    let [x, y, z] = size.map(|n| n as usize);
    let last = [(y - 1).checked_mul(row), (z - 1).checked_mul(slice), Some(x)];
    let needed = last.into_iter().try_fold(0usize, |sum, part| sum.checked_add(part?));
    if needed.is_none_or(|needed| needed > voxels.len()) {
        return Err(Error::invalid(format!(
            "a part of {size:?} voxels with strides of {strides:?} does not lie in {} voxels",
            voxels.len()
        )));
    }
    let mut builder = Builder::new(grid);
    let mut draft = Draft::new();
    let mut cell = [0; CELL];
    for origin in Block::origins(grid, row, slice) {
        let voxels = voxels.get(origin..).unwrap_or_default();
        let others = gather(voxels, row, slice, &mut cell);
        if others == 0 {
            builder.push_solid(cell[0]);
        } else {
            draft.fill(&cell);
            builder.push(draft.labels(), draft.values());
        }
    }
    builder.finish_onto(out)
}

/// Copies the voxels of a cell, and says in which bits any of them differs from the first.
fn gather<T: Voxel>(voxels: &[T], row: usize, slice: usize, cell: &mut [u64; CELL]) -> u64 {
    let first = voxels.first().map_or(0, |voxel| voxel.label());
    let mut others = 0;
    for (z, out) in cell.as_chunks_mut::<{ EDGE * EDGE }>().0.iter_mut().enumerate() {
        for (y, out) in out.as_chunks_mut::<EDGE>().0.iter_mut().enumerate() {
            let from = voxels.get(z * slice + y * row..).and_then(<[T]>::first_chunk::<EDGE>);
            *out = from.copied().unwrap_or_default().map(Voxel::label);
            others |= out.iter().fold(0, |others, &label| others | (label ^ first));
        }
    }
    others
}

/// Appends a block of `size` voxels that all have one label.
pub fn encode_solid(label: u64, size: [u32; 3], out: &mut Vec<u8>) -> Result<()> {
    solid_onto(grid_of(size)?, label, out)
}

/// The most bytes that a block of `size` voxels can take.
pub fn encoded_bytes_max(size: [u32; 3]) -> Result<usize> {
    grid_of(size).map(bytes_max)
}
