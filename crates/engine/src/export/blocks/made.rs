//! Label blocks made from voxels: of arrays with other chunks, another place, or another resolution.

use chunkyard_array::codec::label_block::encode_part;
use chunkyard_array::{Axis, Buffer, Selection};
use chunkyard_format::Reader;
use chunkyard_labels::widen;
use chunkyard_store::{Error, Result, cpu};
use rayon::prelude::*;

use super::Cursor;
use crate::export::geometry::{Frame, Level};

/// Voxels that are read at once, as bytes of 64-bit labels.
const BATCH_BYTES: u64 = 8 << 20;

/// An array that is read in boxes.
#[derive(Debug)]
pub(super) struct Made {
    reader: Reader,
    level: Level,
    frame: Frame,
    width: usize,
}

/// A box of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    first: [u64; 3],
    /// Chunks along x.
    count: u64,
}

/// The voxels of a row that the array has: where they begin in the row, how many they are along z, y and x, and where they
/// are in the array.
struct Inside {
    start: [u64; 3],
    shape: [u64; 3],
    selection: Selection,
}

impl Made {
    pub(super) fn new(reader: Reader, level: &Level, frame: &Frame) -> Result<Self> {
        let dtype = reader.codecs().whole().dtype().name().to_owned();
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
        Ok(Self { reader, level: level.clone(), frame: frame.clone(), width })
    }

    /// Reads the next row of chunks and makes label blocks of it.
    pub(super) async fn fetch(
        &self,
        chunks: &mut Cursor,
    ) -> Result<Option<Vec<([u64; 3], Vec<u8>)>>> {
        let Some(row) = self.next_row(chunks) else { return Ok(None) };
        let Some(inside) = self.inside(&row) else { return Ok(Some(Vec::new())) };
        let bytes = inside.selection.num_bytes(self.reader.item_size()?)?;
        let memory = Buffer::zeroed(bytes)?;
        let read = self.reader.read_selection_into(&inside.selection, memory).await?;
        let (width, size) = (self.width, self.frame.chunk);
        cpu(move || {
            let voxels = padded(&widen(&read, width), &inside, &row, size);
            let encode = |number: u64| {
                let at = [row.first[0] + number, row.first[1], row.first[2]];
                encode(&voxels, number, row.count, size).map(|block| (at, block))
            };
            (0..row.count).into_par_iter().map(encode).collect::<Result<Vec<_>>>()
        })
        .await?
        .map(Some)
    }

    /// The chunks ahead that follow one another along x, as many as are read at once.
    fn next_row(&self, chunks: &mut Cursor) -> Option<Row> {
        let chunk_bytes = self.frame.chunk.iter().product::<u64>().saturating_mul(8).max(1);
        let most = (BATCH_BYTES / chunk_bytes).max(1);
        let first = chunks.ahead.next()?;
        let mut row = Row { first, count: 1 };
        while row.count < most {
            let following = [first[0] + row.count, first[1], first[2]];
            if chunks.ahead.next_if_eq(&following).is_none() {
                break;
            }
            row.count += 1;
        }
        Some(row)
    }

    /// What of a row the array has; `None` if nothing.
    fn inside(&self, row: &Row) -> Option<Inside> {
        let (mut start, mut shape, mut axes) = ([0; 3], [0; 3], Vec::with_capacity(3));
        let level = &self.level;
        for axis in [2, 1, 0] {
            let count = if axis == 0 { row.count } else { 1 };
            let extent = self.frame.chunk[axis].checked_mul(count)?;
            let low = i128::from(self.frame.offset[axis])
                + i128::from(row.first[axis]) * i128::from(self.frame.chunk[axis]);
            let factor = i128::from(level.factor[axis].max(1));
            let origin = i128::from(level.origin[axis]);
            // The first and the last voxel of the row that lie in the array and in the exported volume.
            let first = low.max((origin + factor - 1).div_euclid(factor));
            let array_end = (origin + i128::from(level.shape[axis]) - 1).div_euclid(factor) + 1;
            let volume_end =
                i128::from(self.frame.offset[axis]) + i128::from(self.frame.size[axis]);
            let end = (low + i128::from(extent)).min(array_end).min(volume_end);
            if first >= end {
                return None;
            }
            let from = u64::try_from(first * factor - origin).ok()?;
            let length = u64::try_from(end - first).ok()?;
            start[2 - axis] = u64::try_from(first - low).ok()?;
            shape[2 - axis] = length;
            axes.push(Axis::range(from, level.factor[axis].max(1), length).ok()?);
        }
        Some(Inside { start, shape, selection: Selection::new(axes) })
    }
}

/// The voxels of a row of whole chunks, x fastest; those that the array has not are label 0.
fn padded(voxels: &[u64], inside: &Inside, row: &Row, size: [u64; 3]) -> Vec<u64> {
    let whole = [size[2], size[1], size[0] * row.count];
    if inside.shape == whole {
        return voxels.to_vec();
    }
    let [depth, height, width] = whole.map(|extent| extent as usize);
    let mut out = vec![0; depth * height * width];
    let [z0, y0, x0] = inside.start.map(|at| at as usize);
    let [_, rows, length] = inside.shape.map(|extent| extent as usize);
    for (number, line) in voxels.chunks_exact(length.max(1)).enumerate() {
        let (z, y) = (z0 + number / rows.max(1), y0 + number % rows.max(1));
        let at = (z * height + y) * width + x0;
        if let Some(place) = out.get_mut(at..at + length) {
            place.copy_from_slice(line);
        }
    }
    out
}

/// The label block of a chunk of a row.
fn encode(voxels: &[u64], number: u64, count: u64, size: [u64; 3]) -> Result<Vec<u8>> {
    let [x, y, _] = size.map(|extent| extent as usize);
    let width = x * count as usize;
    let first = voxels.get(x * number as usize..).unwrap_or_default();
    let mut block = Vec::new();
    let edges = size.map(|extent| u32::try_from(extent).unwrap_or(u32::MAX));
    encode_part(first, [width, width * y], edges, &mut block)?;
    Ok(block)
}
