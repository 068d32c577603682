//! Which blocks are stored. A server has no list of them, but it answers for a box with the blocks that it has.
//!
//! A box of 8 × 8 × 8 blocks is a *cell*. Rows of cells along x are walked, several rows at once. Where a box is empty the next one
//! is twice as long, up to eight cells, because a server finds out about an empty row by one look into its index; where a box holds
//! something the next is one cell again, because a server reads all of a box before it notices that its client has heard enough.
//!
//! ```text
//!  x ──▶  |c|c|c|·|· ·|· · · ·|· · · · · · · c|→ again, one cell
//! ```

use std::ops::Range;

use bytes::Bytes;
use chunkyard_array::ChunkIndex;
use chunkyard_store::dvid_http::{Asked, DvidBackend, Stream};
use chunkyard_store::{ChunkRef, Error, Result};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};

use super::level::Level;
use crate::ChunkStream;

/// Blocks along each edge of a cell.
pub(super) const CELL: u64 = 8;
/// The most cells of a box.
const CELLS_MAX: u64 = 8;
/// The most rows that are walked at once.
const ROWS_MAX: usize = 8;

/// A row of chunks along x that is up to a cell thick.
#[derive(Debug, Clone)]
struct Row {
    z: Range<u64>,
    y: Range<u64>,
    x: Range<u64>,
}

impl Row {
    /// The rows that cover chunks, in the grid of cells.
    fn all(start: [u64; 3], count: [u64; 3]) -> impl Iterator<Item = Self> + Send {
        let [z, y, x] = [0, 1, 2].map(|axis| start[axis]..start[axis].saturating_add(count[axis]));
        let planes = pieces(z);
        planes.flat_map(move |z| {
            let x = x.clone();
            pieces(y.clone()).map(move |y| Self { z: z.clone(), y, x: x.clone() })
        })
    }

    /// The next box of a row, of up to `cells` cells.
    fn split(&self, at: u64, cells: u64) -> Range<u64> {
        let end = (at / CELL).saturating_add(cells).saturating_mul(CELL);
        at..end.min(self.x.end)
    }

    /// A box of the row as the server names it.
    fn asked(&self, level: &Level, x: &Range<u64>) -> Result<([i32; 3], [u32; 3])> {
        let none = || Error::invalid("a box of blocks beyond the coordinates of DVID");
        let start = level.block(&[self.z.start, self.y.start, x.start]).ok_or_else(none)?.zyx;
        let size = [&self.z, &self.y, x].map(|range| u32::try_from(range.end - range.start).ok());
        let [Some(z), Some(y), Some(x)] = size else { return Err(none()) };
        Ok((start, [z, y, x]))
    }
}

/// A range cut where cells are.
fn pieces(range: Range<u64>) -> impl Iterator<Item = Range<u64>> + Send {
    let cells = range.start / CELL..range.end.div_ceil(CELL);
    cells.map(move |cell| (cell * CELL).max(range.start)..((cell + 1) * CELL).min(range.end))
}

/// How many rows are walked at once.
fn rows_at_once(backend: &DvidBackend) -> usize {
    backend.client().limits().requests.clamp(1, ROWS_MAX)
}

/// The cells that hold stored blocks, by their index in the grid of cells. Of each box only the first block is read.
pub(super) fn cells<'a>(
    backend: &'a DvidBackend,
    level: &'a Level,
) -> BoxStream<'a, Result<ChunkIndex>> {
    let count = level.grid.grid_shape();
    let Ok(count) = count.try_into() else { return stream::empty().boxed() };
    stream::iter(Row::all([0; 3], count))
        .map(move |row| cells_of(backend, level, row))
        .buffer_unordered(rows_at_once(backend))
        .map_ok(|cells| stream::iter(cells.into_iter().map(Ok)))
        .try_flatten()
        .boxed()
}

async fn cells_of(backend: &DvidBackend, level: &Level, row: Row) -> Result<Vec<ChunkIndex>> {
    let (mut found, mut at, mut width) = (Vec::new(), row.x.start, 1);
    while at < row.x.end {
        let x = row.split(at, width);
        let (start, size) = row.asked(level, &x)?;
        if !backend.is_occupied(level.scale, start, size).await? {
            at = x.end;
            width = (width * 2).min(CELLS_MAX);
        } else if width > 1 {
            width = 1;
        } else {
            found.push(vec![row.z.start / CELL, row.y.start / CELL, x.start / CELL]);
            at = x.end;
        }
    }
    Ok(found)
}

/// The stored blocks among chunks, with their bytes.
pub(super) fn chunks<'a>(
    backend: &'a DvidBackend,
    level: &'a Level,
    (start, count): ([u64; 3], [u64; 3]),
) -> ChunkStream<'a> {
    stream::iter(Row::all(start, count))
        .map(move |row| chunks_of(backend, level, row))
        .flatten_unordered(rows_at_once(backend))
        .map(move |found| {
            let (block, bytes) = found?;
            Ok((level.chunk(block)?, ChunkRef::Inline(bytes)))
        })
        .boxed()
}

/// Where a walk along a row is.
struct Walk {
    row: Row,
    at: u64,
    width: u64,
    answer: Option<Arriving>,
}

/// An answer that is arriving.
struct Arriving {
    blocks: Stream<([i32; 3], Bytes)>,
    /// Where its box ends.
    end: u64,
    /// Whether it has held anything.
    any: bool,
}

fn chunks_of<'a>(
    backend: &'a DvidBackend,
    level: &'a Level,
    row: Row,
) -> BoxStream<'a, Result<([i32; 3], Bytes)>> {
    let walk = Walk { at: row.x.start, row, width: 1, answer: None };
    stream::try_unfold(walk, move |mut walk| async move {
        loop {
            match &mut walk.answer {
                None if walk.at >= walk.row.x.end => return Ok(None),
                None => {
                    let x = walk.row.split(walk.at, walk.width);
                    let (start, size) = walk.row.asked(level, &x)?;
                    let blocks = backend.blocks(level.scale, Asked::Box { start, size });
                    walk.answer = Some(Arriving { blocks, end: x.end, any: false });
                }
                Some(Arriving { blocks, end, any }) => match blocks.try_next().await? {
                    Some(found) => {
                        *any = true;
                        return Ok(Some((found, walk)));
                    }
                    None => {
                        walk.width = if *any { 1 } else { (walk.width * 2).min(CELLS_MAX) };
                        walk.at = *end;
                        walk.answer = None;
                    }
                },
            }
        }
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_cover_everything_once_and_end_where_cells_do() {
        let mut seen = std::collections::BTreeSet::new();
        let (start, count) = ([3, 0, 5], [14, 9, 70]);
        for row in Row::all(start, count) {
            assert_eq!(row.z.start / CELL, (row.z.end - 1) / CELL);
            let (mut at, mut width) = (row.x.start, 1);
            while at < row.x.end {
                let x = row.split(at, width);
                assert!(x.end > at && (x.end % CELL == 0 || x.end == row.x.end));
                for block in x.clone() {
                    for (z, y) in row.z.clone().flat_map(|z| row.y.clone().map(move |y| (z, y))) {
                        assert!(seen.insert([z, y, block]));
                    }
                }
                (at, width) = (x.end, width % 3 + 1);
            }
        }
        assert_eq!(seen.len(), 14 * 9 * 70);
        assert_eq!((seen.first(), seen.last()), (Some(&[3, 0, 5]), Some(&[16, 8, 74])));
        assert_eq!(Row::all([0; 3], [0, 5, 5]).count(), 0);
    }
}
