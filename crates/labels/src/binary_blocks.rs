//! The voxels of a body as a mask for each block: DVID's other form of a sparse volume, for programs that work
//! block by block.
//!
//! ```text
//!  u32 cells along x, y, z │ u64 id │ block │ block │ …                                          little-endian
//!  block   i32 x, y, z of its first voxel │ u8 0 none, 1 all, 2 some │ for each of the cells, if some:
//!  cell    u8 0 none, 1 all, 2 some │ 64 bytes, if some: a bit for each voxel, x fastest, least bit first
//! ```
//!
//! A cell has 8 voxels along each axis.

use std::collections::HashSet;

use chunkyard_store::{Error, Result, cpu};

use crate::Labelmap;
use crate::blocks::{At, BLOCKS_AT_ONCE, voxels};

/// Voxels along an edge of a cell.
const EDGE: usize = 8;
/// Bytes of the mask of a cell.
const MASK: usize = EDGE * EDGE * EDGE / 8;

const NONE: u8 = 0;
const ALL: u8 = 1;
const SOME: u8 = 2;

impl Labelmap {
    /// The voxels of a body, or of one of its supervoxels, in DVID's form of masks. Positions count from the first
    /// voxel of the volume.
    pub async fn binary_blocks(&self, body: u64, supervoxel: Option<u64>) -> Result<Vec<u8>> {
        self.body(body).await?;
        let size = self.layout.block_xyz().map(|edge| edge as usize);
        let mut out: Vec<u8> = Vec::new();
        for edge in size {
            out.extend(((edge / EDGE) as u32).to_le_bytes());
        }
        out.extend(supervoxel.unwrap_or(body).to_le_bytes());
        let index = self.index_of(body).await?;
        for some in index.chunks(BLOCKS_AT_ONCE) {
            let at: Vec<At> = some.iter().map(|row| row.key.1).collect();
            let (blocks, count) = (self.blocks(0, &at).await?, self.layout.block_voxels());
            let wanted: Vec<HashSet<u64>> = some
                .iter()
                .map(|row| {
                    let ids = row.parts.iter().map(|part| part.supervoxel);
                    ids.filter(|id| supervoxel.is_none_or(|only| only == *id)).collect()
                })
                .collect();
            let heads = at.iter().map(|at| self.first_voxel(*at)).collect::<Result<Vec<_>>>()?;
            let made = cpu(move || -> Result<Vec<u8>> {
                let mut made = Vec::new();
                for ((head, block), wanted) in heads.iter().zip(&blocks).zip(&wanted) {
                    if wanted.is_empty() {
                        continue;
                    }
                    made.extend_from_slice(head);
                    mask_block(&voxels(block.as_deref(), count)?, size, wanted, &mut made);
                }
                Ok(made)
            });
            out.extend(made.await??);
        }
        Ok(out)
    }

    /// x, y and z of the first voxel of a block, as that form has them.
    fn first_voxel(&self, at: At) -> Result<[u8; 12]> {
        let mut head = [0; 12];
        for (axis, out) in head.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let position = u64::from(at[2 - axis]) * u64::from(self.layout.block[2 - axis]);
            let position = i32::try_from(position).map_err(|_| {
                Error::unsupported(format!("position {position} in a sparse volume of DVID"))
            })?;
            *out = position.to_le_bytes();
        }
        Ok(head)
    }
}

/// Flag and cells of a block, whose voxels and size have x first.
fn mask_block(labels: &[u64], size: [usize; 3], wanted: &HashSet<u64>, out: &mut Vec<u8>) {
    let inside: Vec<bool> = labels.iter().map(|label| wanted.contains(label)).collect();
    match (inside.contains(&true), inside.contains(&false)) {
        (false, _) => return out.push(NONE),
        (_, false) => return out.push(ALL),
        _ => out.push(SOME),
    }
    let [x_cells, y_cells, z_cells] = size.map(|edge| edge / EDGE);
    for cell in 0..x_cells * y_cells * z_cells {
        let corner = [cell % x_cells, cell / x_cells % y_cells, cell / (x_cells * y_cells)];
        let [x, y, z] = corner.map(|cell| cell * EDGE);
        let mut mask = [0; MASK];
        for (row, bits) in mask.iter_mut().enumerate() {
            let from = ((z + row / EDGE) * size[1] + y + row % EDGE) * size[0] + x;
            let row = inside.get(from..from + EDGE).unwrap_or_default();
            *bits = row.iter().rev().fold(0, |bits, &inside| bits << 1 | u8::from(inside));
        }
        if mask.iter().all(|&bits| bits == 0) {
            out.push(NONE);
        } else if mask.iter().all(|&bits| bits == u8::MAX) {
            out.push(ALL);
        } else {
            out.push(SOME);
            out.extend(mask);
        }
    }
}
