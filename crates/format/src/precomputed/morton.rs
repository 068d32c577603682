//! The compressed Morton code: the number of a chunk, by which shards keep it.
//!
//! Specification: neuroglancer, `sharded.md`, "Compressed Morton code". Bit by bit, from the lowest, x, y and z take
//! turns; an axis whose grid has no use for another bit drops out. Codes that lie near each other are chunks that do.

use chunkyard_store::{Error, Result};

/// Bits of a code at most.
const BITS_MAX: u32 = u64::BITS;

/// The codes of a grid of chunks. Axes are x, y, z.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Morton {
    grid: [u64; 3],
    /// The axis of each bit of a code, and which bit of its coordinate it is.
    bits: Vec<(usize, u32)>,
}

impl Morton {
    /// The codes of a grid with this many chunks along x, y and z. Fails if they need more than 64 bits.
    pub fn new(grid: [u64; 3]) -> Result<Self> {
        let needed = grid.map(bits_of);
        let total: u32 = needed.iter().sum();
        if total > BITS_MAX {
            return Err(Error::unsupported(format!(
                "a grid of {grid:?} chunks: their numbers take {total} bits, and {BITS_MAX} is the most"
            )));
        }
        let mut bits = Vec::with_capacity(total as usize);
        for bit in 0..BITS_MAX {
            for (axis, needed) in needed.iter().enumerate() {
                if bit < *needed {
                    bits.push((axis, bit));
                }
            }
        }
        Ok(Self { grid, bits })
    }

    /// Number of chunks along x, y and z.
    pub fn grid(&self) -> [u64; 3] {
        self.grid
    }

    /// Number of bits of a code.
    pub fn num_bits(&self) -> u32 {
        self.bits.len() as u32
    }

    /// The code of a chunk. Coordinates outside the grid lose their upper bits.
    pub fn encode(&self, chunk: [u64; 3]) -> u64 {
        let [x, y, z] = chunk;
        self.bits.iter().enumerate().fold(0, |code, (at, (axis, bit))| {
            let coordinate = match axis {
                0 => x,
                1 => y,
                _ => z,
            };
            code | (((coordinate >> bit) & 1) << at)
        })
    }

    /// The chunk of a code; `None` if the grid has no such chunk.
    pub fn decode(&self, code: u64) -> Option<[u64; 3]> {
        let used = code.checked_shr(self.num_bits()).unwrap_or(0) == 0;
        let chunk = self.corner(code, 0);
        (used && self.contains(chunk)).then_some(chunk)
    }

    /// Whether the grid has a chunk.
    pub fn contains(&self, chunk: [u64; 3]) -> bool {
        chunk.iter().zip(&self.grid).all(|(at, n)| at < n)
    }

    /// The coordinates of a code whose `low` lowest bits are left out.
    pub(super) fn corner(&self, code: u64, low: u32) -> [u64; 3] {
        let mut corner = [0; 3];
        for (at, (axis, bit)) in self.bits.iter().enumerate().skip(low as usize) {
            if let Some(coordinate) = corner.get_mut(*axis) {
                *coordinate |= ((code >> at) & 1) << bit;
            }
        }
        corner
    }

    /// How far the codes that differ in their `low` lowest bits alone extend along each axis, in chunks, as if
    /// the grid went on for ever.
    pub(super) fn cell(&self, low: u32) -> [u64; 3] {
        let mut cell = [1; 3];
        for (axis, _) in self.bits.iter().take(low as usize) {
            if let Some(extent) = cell.get_mut(*axis) {
                *extent = u64::saturating_mul(*extent, 2);
            }
        }
        cell
    }

    /// The chunks of the grid from `start` up to before `end`, with their codes, in ascending order of these.
    pub fn walk(&self, start: [u64; 3], end: [u64; 3]) -> Walk<'_> {
        self.walk_cells(0, start, end)
    }

    /// Like [`Morton::walk`], over cells of chunks whose codes differ in their `low` lowest bits alone; each is
    /// given by its lowest code. A cell counts if a chunk of it does.
    pub(super) fn walk_cells(&self, low: u32, start: [u64; 3], end: [u64; 3]) -> Walk<'_> {
        let mut stop = end;
        stop.iter_mut().zip(&self.grid).for_each(|(end, extent)| *end = (*end).min(*extent));
        let empty = start.iter().zip(&stop).any(|(start, stop)| start >= stop);
        let root = (!empty).then_some((0, self.num_bits()));
        let low = low.min(self.num_bits());
        Walk { morton: self, low, start, stop, ahead: root.into_iter().collect() }
    }
}

/// Codes of a box, made one by one: the memory is that of a code's bits, however many there are.
#[derive(Debug)]
pub struct Walk<'a> {
    morton: &'a Morton,
    low: u32,
    start: [u64; 3],
    stop: [u64; 3],
    /// Beginnings of codes that are still to come, the next one last, with the number of bits that are open.
    ahead: Vec<(u64, u32)>,
}

impl Iterator for Walk<'_> {
    type Item = (u64, [u64; 3]);

    fn next(&mut self) -> Option<Self::Item> {
        while let Some((code, open)) = self.ahead.pop() {
            let (corner, cell) = (self.morton.corner(code, open), self.morton.cell(open));
            let meets = (0..3).all(|axis| {
                let (at, extent) = (corner.get(axis), cell.get(axis));
                let (Some(at), Some(extent)) = (at, extent) else { return false };
                let (start, stop) = (self.start.get(axis), self.stop.get(axis));
                stop.is_some_and(|stop| at < stop)
                    && start.is_some_and(|start| at.saturating_add(*extent) > *start)
            });
            if !meets {
                continue;
            }
            if open <= self.low {
                return Some((code, corner));
            }
            let bit = 1 << (open - 1);
            self.ahead.push((code | bit, open - 1));
            self.ahead.push((code, open - 1));
        }
        None
    }
}

/// Bits that the coordinates of an axis take. Note: of the greatest coordinate, which is one below the extent.
fn bits_of(extent: u64) -> u32 {
    u64::BITS - extent.saturating_sub(1).leading_zeros()
}
