//! Chunks of labels as Neuroglancer's `compressed_segmentation`.
//!
//! Specification: `compressed_segmentation` of the Neuroglancer precomputed format. A chunk of `uint64` or `uint32` has
//! the axes z, y and x, or channels before these. It is cut into blocks, each with a table of its labels, sorted, and
//! a number for each voxel that chooses from the table:
//!
//! ```text
//!  u32 per channel     where its data begins
//!  channel             two u32 per block │ per block: numbers, then its table unless an equal one is there already
//!
//!  first u32           where the table begins, 24 bits │ bits per voxel << 24
//!  second              where the numbers begin
//! ```
//!
//! Positions count words of 32 bits from where the channel begins. Numbers have 0, 1, 2, 4, 8 or 16 bits, the first
//! voxel in the lowest, and are there for the whole block, also where the chunk ends inside it; 32 bits are read.
//! Compatible implementations: neuroglancer, TensorStore, cloud-volume; the bytes are equal to theirs.
//!
//! ```json
//! {"name": "compressed_segmentation", "configuration": {"block_size": [8, 8, 8]}}
//! ```
//!
//! `block_size` has the order of the axes: z, y, x.

mod decode;
mod encode;
mod zarr;

use zarrs::metadata::v3::MetadataV3;

pub(super) use self::zarr::register;
use super::label_block;
use crate::{DType, Error, Result};

/// The name of the codec.
pub const NAME: &str = "compressed_segmentation";

/// Positions of tables have 24 bits, and some readers take no more of the positions of numbers.
const WORDS_MAX: usize = 1 << 24;

/// Voxels of a block at most. With more there could be more labels than 16 bits count, and readers differ in what they
/// make of 32.
const BLOCK_VOXELS_MAX: u64 = 1 << 16;

/// Bytes of a position or any other word.
const WORD: usize = 4;

/// How the voxels of a chunk lie in memory, and its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    channels: usize,
    /// Voxels along x, y and z.
    size: [usize; 3],
    block: [usize; 3],
    /// Bytes of a voxel, 4 or 8.
    item: usize,
}

impl Layout {
    /// The layout, if the codec is this one and takes such chunks.
    pub(super) fn recognise(codec: &MetadataV3, dtype: &DType, shape: &[u64]) -> Option<Self> {
        Self::of(codec, dtype, shape)?.ok()
    }

    /// The layout, if the codec is this one.
    fn of(codec: &MetadataV3, dtype: &DType, shape: &[u64]) -> Option<Result<Self>> {
        if codec.name() != NAME {
            return None;
        }
        let block = codec.configuration().and_then(|members| members.get("block_size"));
        let block = block.and_then(|block| {
            let extents = block.as_array()?.iter().map(serde_json::Value::as_u64);
            <[u64; 3]>::try_from(extents.collect::<Option<Vec<_>>>()?).ok()
        });
        let Some(block) = block else {
            let message = format!("{NAME} needs a block_size of three extents, such as [8, 8, 8]");
            return Some(Err(Error::invalid(message)));
        };
        Some(Self::new(dtype.name(), shape, block))
    }

    fn new(dtype: &str, shape: &[u64], block: [u64; 3]) -> Result<Self> {
        let item = match dtype {
            "uint64" => 8,
            "uint32" => 4,
            _ => {
                return Err(Error::invalid(format!(
                    "{NAME} takes labels of uint64 or uint32, not {dtype}"
                )));
            }
        };
        let (channels, [z, y, x]) = match *shape {
            [z, y, x] => (1, [z, y, x]),
            [channels, z, y, x] => (channels, [z, y, x]),
            _ => {
                return Err(Error::invalid(format!(
                    "{NAME} takes chunks with the axes z, y and x, and maybe channels before these, \
                     not with {}",
                    shape.len()
                )));
            }
        };
        let voxels = block.iter().try_fold(1u64, |product, extent| product.checked_mul(*extent));
        if !voxels.is_some_and(|voxels| (1..=BLOCK_VOXELS_MAX).contains(&voxels)) {
            return Err(Error::invalid(format!(
                "{NAME} takes blocks of 1 to {BLOCK_VOXELS_MAX} voxels, not of {block:?}"
            )));
        }
        let number = |extent: u64| {
            let what = || Error::unsupported(format!("a chunk of shape {shape:?}"));
            usize::try_from(extent).map_err(|_| what())
        };
        let [block_z, block_y, block_x] = block;
        Ok(Self {
            channels: number(channels)?,
            size: [number(x)?, number(y)?, number(z)?],
            block: [number(block_x)?, number(block_y)?, number(block_z)?],
            item,
        })
    }

    /// The most bytes of an encoded chunk.
    pub(super) fn encoded_bytes_max(&self) -> Result<usize> {
        let voxels: usize = self.block.iter().product();
        // Two words of a head, and for each voxel a number of 32 bits and a label of its own.
        let per_block = 2 * WORD + voxels * (WORD + self.item);
        let blocks = self.grid().iter().try_fold(per_block, |all, n| all.checked_mul(*n));
        let bytes = blocks
            .and_then(|blocks| blocks.checked_add(WORD)?.checked_mul(self.channels))
            .filter(|bytes| *bytes <= isize::MAX as usize);
        bytes.ok_or_else(|| Error::unsupported(format!("a chunk of {:?} voxels", self.size)))
    }

    /// Blocks along x, y and z.
    fn grid(&self) -> [usize; 3] {
        let [x, y, z] = self.size;
        let [block_x, block_y, block_z] = self.block;
        [x.div_ceil(block_x), y.div_ceil(block_y), z.div_ceil(block_z)]
    }

    /// The blocks, x fastest.
    fn blocks(&self) -> impl Iterator<Item = Place> + use<> {
        let ([x_blocks, y_blocks, z_blocks], layout) = (self.grid(), *self);
        let along = move |axis: usize, at: usize| {
            let start = at * layout.block[axis];
            (start, layout.block[axis].min(layout.size[axis] - start))
        };
        (0..z_blocks).flat_map(move |z| {
            (0..y_blocks).flat_map(move |y| {
                (0..x_blocks).map(move |x| {
                    let ((x, x_len), (y, y_len), (z, z_len)) =
                        (along(0, x), along(1, y), along(2, z));
                    Place { start: [x, y, z], len: [x_len, y_len, z_len] }
                })
            })
        })
    }

    /// The extent along x, y and z, where this is one channel of 64-bit labels in blocks of 8 × 8 × 8: then a label block
    /// becomes it, and it a label block, without a look at the voxels.
    pub(super) fn as_label_block(&self) -> Option<[u32; 3]> {
        let [x, y, z] = self.size.map(|n| u32::try_from(n).ok());
        let same = self.channels == 1 && self.item == 8 && self.block == [8; 3];
        let extent = [x?, y?, z?];
        (same && extent.iter().all(|n| *n <= label_block::SIZE_MAX)).then_some(extent)
    }

    /// Between the order of the machine and little-endian.
    fn to_little_endian(self, bytes: &mut [u8]) {
        if cfg!(target_endian = "big") {
            bytes.chunks_exact_mut(self.item).for_each(<[u8]>::reverse);
        }
    }
}

/// The voxels of a block that are in the chunk.
#[derive(Clone, Copy, Debug)]
struct Place {
    start: [usize; 3],
    len: [usize; 3],
}

impl Place {
    /// The rows along x: where each lies in the channel, and which number its first voxel has in the block.
    fn rows(self, layout: Layout) -> impl Iterator<Item = (usize, usize)> {
        let [x_size, y_size, _] = layout.size;
        let [x_block, y_block, _] = layout.block;
        let ([x, y, z], [_, y_len, z_len]) = (self.start, self.len);
        (0..z_len).flat_map(move |dz| {
            (0..y_len).map(move |dy| {
                (((z + dz) * y_size + y + dy) * x_size + x, (dz * y_block + dy) * x_block)
            })
        })
    }
}

/// Refuses a chain that the array cannot have, with a reason that `zarrs` has no error for.
pub(super) fn check(codecs: &[MetadataV3], dtype: &DType, shape: &[u64]) -> Result<()> {
    let layout = codecs.first().and_then(|first| Layout::of(first, dtype, shape));
    layout.transpose().map(drop)
}

/// The codec as typed on a command line.
pub(super) fn shorthand(dtype: &DType) -> Result<serde_json::Value> {
    Layout::new(dtype.name(), &[8; 3], [8; 3])?;
    Ok(serde_json::json!({"name": NAME, "configuration": {"block_size": [8, 8, 8]}}))
}

#[cfg(test)]
mod tests;
