//! Label blocks made from voxels: of arrays with other chunks, another place, or another resolution.
//!
//! Blocks are made tile by tile. A tile has the blocks that begin in a chunk of the array, so a chunk is decoded once for all of
//! them, or in as many parts as the memory asks for. Blocks that the shard wants later wait as label blocks, which are small.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::codec::label_block::encode_part;
use chunkyard_array::{Axis, Buffer, Selection};
use chunkyard_format::{BATCHES, Reader, Source};
use chunkyard_store::{Error, Result, cpu};
use rayon::prelude::*;

use super::Cursor;
use crate::export::budget::Budget;
use crate::export::geometry::{Frame, Level};

/// Voxels that are read at once at least, as bytes.
const BATCH_BYTES: u64 = 8 << 20;
/// Bytes of label blocks of a batch, and blocks.
const HANDED_BYTES: usize = 2 << 20;
const HANDED_BLOCKS: usize = 256;

/// An array that is read in boxes.
#[derive(Debug)]
pub(super) struct Made {
    reader: Reader,
    level: Level,
    frame: Frame,
    /// Bytes of an element.
    width: usize,
    /// Axes of the array.
    rank: usize,
    /// Elements of the array that a tile spans, along x, y and z.
    span: [u64; 3],
    /// Blocks of a part of a tile, along each axis.
    most: [u64; 3],
    /// Bytes of chunks that are decoded at once.
    decoded_bytes: u64,
    waiting_bytes_max: u64,
}

/// Blocks that wait until the shard wants them, by z, y and x.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    blocks: BTreeMap<[u64; 3], Bytes>,
    bytes: u64,
}

/// A box of blocks: the first, and the one behind the last.
type Tile = ([u64; 3], [u64; 3]);

/// The elements of a box of blocks that the array has.
struct Inside {
    /// Its first voxel in the exported volume, along x, y and z, and its voxels.
    first: [u64; 3],
    shape: [u64; 3],
    selection: Selection,
}

impl Waiting {
    fn has(&self, [x, y, z]: [u64; 3]) -> bool {
        self.blocks.contains_key(&[z, y, x])
    }

    fn put(&mut self, [x, y, z]: [u64; 3], block: Bytes) {
        self.bytes += block.len() as u64;
        self.blocks.insert([z, y, x], block);
    }

    fn take(&mut self, [x, y, z]: [u64; 3]) -> Option<Bytes> {
        let block = self.blocks.remove(&[z, y, x])?;
        self.bytes -= block.len() as u64;
        Some(block)
    }

    /// Gives up the blocks that are wanted last in the order of z, y and x, but not the one at `spared`: they are made again.
    fn shrink(&mut self, bytes_max: u64, [x, y, z]: [u64; 3]) {
        let spared = self.blocks.remove(&[z, y, x]);
        while self.bytes > bytes_max
            && let Some((_, block)) = self.blocks.pop_last()
        {
            self.bytes -= block.len() as u64;
        }
        self.blocks.extend(spared.map(|block| ([z, y, x], block)));
    }
}

impl Made {
    pub(super) fn new(
        source: &Arc<dyn Source>,
        reader: Reader,
        level: &Level,
        frame: &Frame,
        budget: &Budget,
    ) -> Result<Self> {
        let codecs = reader.codecs().whole();
        let dtype = codecs.dtype().name().to_owned();
        let width = match dtype.as_str() {
            "uint8" => 1,
            "uint16" => 2,
            "uint32" => 4,
            "uint64" => 8,
            _ => {
                return Err(Error::invalid(format!(
                    "{}: labels are unsigned integers, not {dtype}; cast them first",
                    level.path
                )));
            }
        };
        // Where a part of a chunk costs what the part costs, chunks do not matter.
        let free = source.is_memory(&level.path) || codecs.is_plain();
        let grid = reader.codecs().grid();
        let (rank, element) = (grid.array_shape().len(), width as u64);
        let (mut span, mut most) = ([1; 3], [1; 3]);
        for axis in 0..3 {
            let step = frame.chunk[axis].saturating_mul(level.factor[axis].max(1)).max(1);
            let chunk = grid.chunk_shape().get(level.axes[axis]).copied().unwrap_or(1);
            let chunk = chunk.min(level.shape[axis]);
            span[axis] = if free { step } else { chunk.max(step) };
            most[axis] = span[axis].div_ceil(step);
        }
        let block = frame.chunk.iter().fold(element, |bytes, edge| bytes.saturating_mul(*edge));
        let tile = |most: [u64; 3]| most.iter().fold(block, |all, n| all.saturating_mul(*n));
        let tile_bytes_max = (budget.room_bytes() / 3).max(BATCH_BYTES);
        while tile(most) > tile_bytes_max && most != [1; 3] {
            let [x, y, z] = &mut most;
            let axis = if *z > 1 {
                z
            } else if *y > 1 {
                y
            } else {
                x
            };
            *axis = axis.div_ceil(2);
        }
        // Small tiles are read several at a time.
        let several = (BATCH_BYTES / tile(most).max(1)).max(1);
        most[0] = most[0].saturating_mul(several);
        span[0] = span[0].saturating_mul(several);
        let chunk_bytes = codecs.chunk_bytes().unwrap_or(0) as u64;
        // So many chunks are decoded at once, if the tile has them.
        let at_once = chunk_bytes.max(BATCH_BYTES).saturating_mul(BATCHES as u64);
        let of_tile = tile(most).div_ceil(chunk_bytes.max(1)).max(1).saturating_mul(chunk_bytes);
        let decoded_bytes = if free { 0 } else { at_once.min(of_tile) };
        let waiting_bytes_max = (budget.share_bytes() / 2).max(HANDED_BYTES as u64);
        let (level, frame) = (level.clone(), frame.clone());
        Ok(Self { reader, level, frame, width, rank, span, most, decoded_bytes, waiting_bytes_max })
    }

    /// Bytes in hand at most while blocks are made.
    pub(super) fn working_bytes(&self) -> u64 {
        let voxels = self
            .frame
            .chunk
            .iter()
            .zip(self.most)
            .fold(1, |all: u64, (edge, n)| all.saturating_mul(edge.saturating_mul(n)));
        let tile = voxels.saturating_mul(self.width as u64);
        tile.saturating_add(self.decoded_bytes).saturating_add(self.waiting_bytes_max)
    }

    /// The next blocks, of a tile that is made now or was made before.
    pub(super) async fn fetch(
        &self,
        chunks: &mut Cursor,
    ) -> Result<Option<Vec<([u64; 3], Bytes)>>> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while bytes < HANDED_BYTES && batch.len() < HANDED_BLOCKS {
            let Some(&at) = chunks.ahead.peek() else { break };
            if let Some(block) = chunks.waiting.take(at) {
                bytes += block.len();
                batch.push((at, block));
            } else if self.inside(at, at.map(|at| at + 1)).is_some() {
                if !batch.is_empty() {
                    break;
                }
                self.make_tile(at, chunks).await?;
                continue;
            }
            chunks.ahead.next();
        }
        Ok((!batch.is_empty()).then_some(batch))
    }

    /// Makes the blocks of the tile of a block, as far as the shard asks for them.
    async fn make_tile(&self, at: [u64; 3], chunks: &mut Cursor) -> Result<()> {
        let (first, end) = self.tile_of(at);
        let mut wanted = vec![at];
        for z in first[2]..end[2] {
            for y in first[1]..end[1] {
                for x in first[0]..end[0] {
                    let one = [x, y, z];
                    if one != at && (chunks.still_asks_for)(at, one) && !chunks.waiting.has(one) {
                        wanted.push(one);
                    }
                }
            }
        }
        let (mut low, mut high) = (at, at);
        for one in &wanted {
            for axis in 0..3 {
                low[axis] = low[axis].min(one[axis]);
                high[axis] = high[axis].max(one[axis]);
            }
        }
        let Some(inside) = self.inside(low, high.map(|at| at + 1)) else { return Ok(()) };
        let bytes = inside.selection.num_bytes(self.reader.item_size()?)?;
        let memory = Buffer::zeroed(bytes)?;
        let read = self.reader.read_selection_into(&inside.selection, memory).await?;
        let here = self.gatherer(&inside);
        let made = cpu(move || {
            let one = |at: [u64; 3]| here.block(&read, at).map(|block| (at, Bytes::from(block)));
            wanted.into_par_iter().map(one).collect::<Result<Vec<_>>>()
        })
        .await??;
        for (one, block) in made {
            chunks.waiting.put(one, block);
        }
        chunks.waiting.shrink(self.waiting_bytes_max, at);
        Ok(())
    }

    /// The tile of a block: those that begin in the same span of the array, or a part of them.
    fn tile_of(&self, at: [u64; 3]) -> Tile {
        let (mut first, mut end) = (at, at);
        for axis in 0..3 {
            let factor = i128::from(self.level.factor[axis].max(1));
            let step = i128::from(self.frame.chunk[axis]) * factor;
            let shift =
                i128::from(self.frame.offset[axis]) * factor - i128::from(self.level.origin[axis]);
            let span = i128::from(self.span[axis]);
            let number = (i128::from(at[axis]) * step + shift).div_euclid(span);
            // The first block that begins at or behind a place of the array.
            let block = |place: i128| u64::try_from((place - shift + step - 1).div_euclid(step));
            let (low, high) = (block(number * span), block((number + 1) * span));
            let (low, high) = (low.unwrap_or(0), high.unwrap_or(at[axis] + 1));
            let most = self.most[axis].max(1);
            first[axis] = low + (at[axis] - low) / most * most;
            end[axis] = first[axis].saturating_add(most).min(high);
        }
        (first, end)
    }

    /// What of a box of blocks the array has, in the exported volume; `None` if nothing.
    fn inside(&self, low: [u64; 3], high: [u64; 3]) -> Option<Inside> {
        let (mut first, mut shape) = ([0; 3], [0; 3]);
        let mut axes = vec![Axis::range(0, 1, 1).ok()?; self.rank];
        let level = &self.level;
        for axis in 0..3 {
            let offset = i128::from(self.frame.offset[axis]);
            let chunk = i128::from(self.frame.chunk[axis]);
            let (start, stop) = (i128::from(low[axis]) * chunk, i128::from(high[axis]) * chunk);
            let factor = i128::from(level.factor[axis].max(1));
            let origin = i128::from(level.origin[axis]);
            let begin = (offset + start).max((origin + factor - 1).div_euclid(factor));
            let array_end = (origin + i128::from(level.shape[axis]) - 1).div_euclid(factor) + 1;
            let volume_end = offset + i128::from(self.frame.size[axis]);
            let end = (offset + stop).min(array_end).min(volume_end);
            if begin >= end {
                return None;
            }
            first[axis] = u64::try_from(begin - offset).ok()?;
            shape[axis] = u64::try_from(end - begin).ok()?;
            let from = u64::try_from(begin * factor - origin).ok()?;
            let range = Axis::range(from, level.factor[axis].max(1), shape[axis]).ok()?;
            *axes.get_mut(level.axes[axis])? = range;
        }
        Some(Inside { first, shape, selection: Selection::new(axes) })
    }

    fn gatherer(&self, inside: &Inside) -> Gatherer {
        // The order of the array's axes is that of what was read; axes of one element do not count.
        let mut order = [0, 1, 2];
        order.sort_unstable_by_key(|axis| std::cmp::Reverse(self.level.axes[*axis]));
        let (mut strides, mut stride) = ([0; 3], 1);
        for axis in order {
            strides[axis] = stride;
            stride *= inside.shape[axis] as usize;
        }
        let (first, shape, chunk) = (inside.first, inside.shape, self.frame.chunk);
        Gatherer { first, shape, strides, chunk, width: self.width }
    }
}

/// Takes blocks out of what was read.
struct Gatherer {
    first: [u64; 3],
    shape: [u64; 3],
    /// Elements from one voxel to the next, along x, y and z.
    strides: [usize; 3],
    chunk: [u64; 3],
    width: usize,
}

impl Gatherer {
    /// The label block of a chunk; voxels that were not read are label 0.
    fn block(&self, read: &[u8], at: [u64; 3]) -> Result<Vec<u8>> {
        let [x, y, z] = self.chunk.map(|extent| extent as usize);
        let mut voxels = vec![0; x * y * z];
        // The part of the block that was read, counted from the block and from what was read.
        let part = |axis: usize| {
            let start = at[axis] * self.chunk[axis];
            let low = start.max(self.first[axis]);
            let end = start + self.chunk[axis];
            let high = end.min(self.first[axis] + self.shape[axis]).max(low);
            let read = low - self.first[axis];
            ((low - start) as usize, read as usize, (high - low) as usize)
        };
        let ((x0, from_x, width), (y0, from_y, rows), (z0, from_z, planes)) =
            (part(0), part(1), part(2));
        let [step, by_y, by_z] = self.strides;
        for plane in 0..planes {
            for row in 0..rows {
                let from = (from_z + plane) * by_z + (from_y + row) * by_y + from_x * step;
                let to = ((z0 + plane) * y + y0 + row) * x + x0;
                let line = voxels.get_mut(to..to + width).unwrap_or_default();
                self.copy(read.get(from * self.width..).unwrap_or_default(), line);
            }
        }
        let edges = self.chunk.map(|extent| u32::try_from(extent).unwrap_or(u32::MAX));
        let mut block = Vec::new();
        encode_part(&voxels, [x, x * y], edges, &mut block)?;
        Ok(block)
    }

    /// Copies elements, little-endian, one step after the other.
    fn copy(&self, from: &[u8], line: &mut [u64]) {
        fn each<const N: usize>(
            from: &[u8],
            step: usize,
            line: &mut [u64],
            label: impl Fn([u8; N]) -> u64,
        ) {
            for (voxel, element) in line.iter_mut().zip(from.chunks(N * step.max(1))) {
                *voxel = element.first_chunk().map_or(0, |bytes| label(*bytes));
            }
        }
        let step = self.strides[0];
        match self.width {
            1 => each(from, step, line, |[byte]| u64::from(byte)),
            2 => each(from, step, line, |bytes| u64::from(u16::from_le_bytes(bytes))),
            4 => each(from, step, line, |bytes| u64::from(u32::from_le_bytes(bytes))),
            _ => each(from, step, line, u64::from_le_bytes),
        }
    }
}
