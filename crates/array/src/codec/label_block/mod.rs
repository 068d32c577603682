//! Label blocks: boxes of 64-bit labels in the compressed form of DVID.
//!
//! A segmentation has few labels in any small box. So a block is cut into *cells* of 8 × 8 × 8
//! voxels; a cell lists the labels it has, by their number in the table of the block, and gives each
//! voxel as few bits as it takes to choose one of them. docs/formats/label-block.md describes every
//! byte.
//!
//! ```text
//!  grid 3 × u32 │ N u32 │ table N × u64 │ counts u16 per cell │ indices u32 │ values, bits per voxel
//!                              ▲                                   │  ▲            │
//!                              └───────────────────────────────────┘  └────────────┘
//! ```
//!
//! - [`Block`] is a checked view of the bytes: [`Block::parse`] refuses anything that a later step
//!   could trip over, so what comes after cannot fail on account of the bytes.
//! - [`Block::decode_into`] and [`encode`] go to voxels and back. What [`encode`] writes is canonical:
//!   labels are numbered in the order in which they appear, and equal voxels give equal bytes.
//! - Many questions are answered from the encoded form: [`Block::labels`], [`Block::counts`],
//!   [`Block::extents`], [`Block::label_at`], [`Block::solid_label`].
//! - So are changes: [`relabel`] rewrites the table alone, [`Block::relabel_onto`] merges what has
//!   become equal, [`downsample`] votes eight blocks into one.
//! - [`Block::segmentation_onto`] and [`from_segmentation`] go to Neuroglancer's
//!   `compressed_segmentation` and back, cell by cell.
//! - [`value`] is the wrapper in which DVID stores a block: a byte that says how it is compressed.
//! - [`NAME`] is the codec of Zarr arrays whose chunks are label blocks.
//!
//! Axes are given as x, y, z; x runs fastest in memory. Compatible implementations: DVID
//! (`datatype/common/labels`), whose blocks are read whatever the order of their tables.
//!
//! ```
//! use chunkyard_array::codec::label_block::{Block, encode};
//!
//! let mut voxels = vec![7u64; 16 * 16 * 16];
//! (voxels[0], voxels[1]) = (9, 5);
//! let mut bytes = Vec::new();
//! encode(&voxels, [16, 16, 16], &mut bytes)?;
//! let block = Block::parse(&bytes)?;
//! assert_eq!(block.labels().collect::<Vec<_>>(), [9, 5, 7]);
//! assert_eq!(block.counts(), [(5, 1), (7, 4094), (9, 1)]);
//! # Ok::<(), chunkyard_array::Error>(())
//! ```

mod bits;
mod builder;
mod cells;
pub(super) mod chain;
mod decode;
mod downsample;
mod draft;
mod encode;
mod parse;
mod query;
mod relabel;
mod segmentation;
#[cfg(test)]
mod tests;
pub mod value;
mod vote;
mod voxel;
pub(super) mod zarr;

pub use downsample::downsample;
pub use encode::{encode, encode_part, encode_solid, encoded_bytes_max};
pub use parse::{Block, SIZE_MAX};
pub use query::{Extent, table_of};
pub use relabel::relabel;
pub(super) use segmentation::Tables;
pub use segmentation::from_segmentation;
pub use voxel::Voxel;
pub use zarr::NAME;

/// Voxels along an edge of a cell.
const EDGE: usize = 8;

/// Voxels of a cell.
const CELL: usize = EDGE * EDGE * EDGE;

/// The most cells along an axis of a block.
const GRID_MAX: u32 = 128;

/// The number of cells of a grid within [`GRID_MAX`].
fn cell_count(grid: [u32; 3]) -> usize {
    grid.iter().map(|&cells| cells as usize).product()
}

/// The error of bytes that are no label block.
fn corrupt(expected: impl Into<String>, found: impl Into<String>) -> crate::Error {
    crate::Error::corrupt("label block", expected, found)
}

/// The cells along each axis of a block of `size` voxels, if there is such a block.
fn grid_of(size: [u32; 3]) -> crate::Result<[u32; 3]> {
    let edge = EDGE as u32;
    if size.iter().all(|&n| n != 0 && n % edge == 0 && n <= SIZE_MAX) {
        return Ok(size.map(|n| n / edge));
    }
    Err(crate::Error::invalid(format!(
        "a label block has a multiple of {edge} voxels along each axis, from {edge} to {SIZE_MAX}, \
         not {size:?}"
    )))
}
