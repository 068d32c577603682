//! From a block to a segmentation.

use super::super::bits::{Values, unpack};
use super::super::builder::reserve;
use super::super::cells::{Cell, CellIndex};
use super::super::parse::Block;
use super::super::{CELL, EDGE, cell_count};
use super::cell::{LABELS_MAX, Whole};
use super::tables::Tables;
use super::{WORDS_MAX, grid_over, inside, positions};
use crate::{Error, Result};

const LOW: u64 = 0x5555_5555_5555_5555;

impl Block<'_> {
    /// Appends these labels as a `compressed_segmentation` of the first `extent` voxels along x, y
    /// and z, which is [`Block::size`] or, at the upper edge of a volume, less.
    ///
    /// Fails if tables and values take more than 2^24 words, which only blocks of more than 2^20
    /// voxels can. `out` is then as it was.
    pub fn segmentation_onto(&self, extent: [u32; 3], out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        let done = self.write_segmentation(extent, out);
        if done.is_err() {
            out.truncate(start);
        }
        done
    }

    fn write_segmentation(&self, extent: [u32; 3], out: &mut Vec<u8>) -> Result<()> {
        let size = self.size();
        if extent.iter().zip(size).any(|(&wanted, size)| wanted > size) {
            return Err(Error::invalid(format!(
                "a label block of {size:?} voxels has no part of {extent:?}"
            )));
        }
        let grid = grid_over(extent)?;
        let mut writer = Writer::new(out, cell_count(grid))?;
        let whole = extent == size;
        let index = (!whole).then(|| CellIndex::new(*self));
        let mut cells = self.cells();
        for (at, place) in positions(grid).enumerate() {
            let cell = match &index {
                Some(index) => Some(index.cell(place.map(|at| at as usize))),
                None => cells.next(),
            };
            let Some(cell) = cell else { break };
            writer.start(at)?;
            match (cell.indices, inside(extent, place)) {
                ([], _) => writer.solid(0),
                (&[index], _) => writer.solid(self.label(index)),
                (&[first, second], [EDGE, EDGE, EDGE]) => {
                    writer.two(&cell, self.label(first), self.label(second));
                }
                (_, [EDGE, EDGE, EDGE]) => writer.some(self, &cell),
                (_, inside) => writer.any(self, &cell, inside),
            }
        }
        writer.check_len()
    }
}

struct Writer<'o> {
    out: &'o mut Vec<u8>,
    /// Where positions count from.
    origin: usize,
    /// The head of the cell at hand.
    head: usize,
    tables: Tables,
    whole: Whole,
    /// Memory for one cell.
    labels: [u64; CELL],
    values: Values,
    sorted: Vec<u64>,
}

impl<'o> Writer<'o> {
    fn new(out: &'o mut Vec<u8>, cells: usize) -> Result<Self> {
        reserve(out, 4 + 8 * cells)?;
        out.extend_from_slice(&1u32.to_le_bytes());
        let origin = out.len();
        out.resize(origin + 8 * cells, 0);
        Ok(Self {
            out,
            origin,
            head: origin,
            tables: Tables::new(origin, size_of::<u64>()),
            whole: Whole::new(),
            labels: [0; CELL],
            values: [0; CELL],
            sorted: Vec::new(),
        })
    }

    fn position(&self) -> u32 {
        ((self.out.len() - self.origin) / 4) as u32
    }

    fn check_len(&self) -> Result<()> {
        let words = (self.out.len() - self.origin) / 4;
        if words <= WORDS_MAX {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "a compressed segmentation of {words} words: its positions end at {WORDS_MAX}, use \
             smaller chunks"
        )))
    }

    /// Goes on to a cell.
    fn start(&mut self, cell: usize) -> Result<()> {
        self.head = self.origin + 8 * cell;
        self.check_len()
    }

    /// Writes the head of the cell, after its values and before its table.
    fn finish(&mut self, width: u32, values: u32, table: u32) {
        let words = [table | width << 24, values];
        if let Some(head) = self.out.get_mut(self.head..).and_then(<[u8]>::first_chunk_mut::<8>) {
            head.as_chunks_mut::<4>().0.copy_from_slice(&words.map(u32::to_le_bytes));
        }
    }

    fn solid(&mut self, label: u64) {
        let values = self.position();
        let table = self.tables.of_one(label, self.out);
        self.finish(0, values, table);
    }

    /// A cell that lists two labels.
    fn two(&mut self, cell: &Cell<'_>, first: u64, second: u64) {
        let (words, _) = cell.packed.as_chunks::<8>();
        let seconds: u32 = words.iter().map(|&word| u64::from_be_bytes(word).count_ones()).sum();
        match seconds as usize {
            _ if first == second => self.solid(first),
            0 => self.solid(first),
            CELL => self.solid(second),
            _ => {
                let values = self.position();
                let flip = if first < second { 0 } else { u64::MAX };
                let packed = words.iter().map(|&word| u64::from_be_bytes(word).reverse_bits());
                self.out.extend(packed.flat_map(|word| (word ^ flip).to_le_bytes()));
                let table = self.tables.of(&[first.min(second), first.max(second)], self.out);
                self.finish(1, values, table);
            }
        }
    }

    /// A cell of three labels or more.
    fn some(&mut self, block: &Block<'_>, cell: &Cell<'_>) {
        let done = match cell.indices.len() {
            0..=4 => self.four(block, cell),
            5..=LABELS_MAX => self.more(block, cell),
            _ => false,
        };
        if !done {
            self.any(block, cell, [EDGE; 3]);
        }
    }

    /// A cell of up to [`LABELS_MAX`] labels, all of which differ and have voxels; says whether it is one.
    fn more(&mut self, block: &Block<'_>, cell: &Cell<'_>) -> bool {
        if !self.whole.sort(block, cell) {
            return false;
        }
        let (start, values) = (self.out.len(), self.position());
        let (width, all_used) = self.whole.values_onto(cell, self.out);
        if !all_used {
            self.out.truncate(start);
            return false;
        }
        let table = self.tables.of(&self.whole.labels, self.out);
        self.finish(width, values, table);
        true
    }

    /// A cell of three or four labels, all of which differ and have voxels; says whether it is one.
    fn four(&mut self, block: &Block<'_>, cell: &Cell<'_>) -> bool {
        let count = cell.indices.len().min(4);
        let mut labels = [0; 4];
        for (label, &index) in labels.iter_mut().zip(cell.indices) {
            *label = block.label(index);
        }
        let labels = &labels[..count];
        let mut sorted = [0; 4];
        let sorted = &mut sorted[..count];
        sorted.copy_from_slice(labels);
        sorted.sort_unstable();
        let (words, _) = cell.packed.as_chunks::<8>();
        let mut used = [0; 4];
        for &word in words {
            for (used, mask) in used.iter_mut().zip(masks(word)) {
                *used |= mask;
            }
        }
        let used = used.iter().filter(|&&mask| mask != 0).count();
        if used < count || sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return false;
        }
        let mut numbers = [0; 4];
        for (number, label) in numbers.iter_mut().zip(labels) {
            *number = sorted.iter().filter(|&other| other < label).count() as u64;
        }
        let values = self.position();
        self.out.extend(words.iter().flat_map(|&word| {
            // No two masks share a bit pair, and numbers have two bits.
            let new = masks(word)
                .iter()
                .zip(numbers)
                .fold(0, |new, (mask, number)| new | (mask * number));
            new.to_le_bytes()
        }));
        let table = self.tables.of(sorted, self.out);
        self.finish(2, values, table);
        true
    }

    /// Any cell, of which so many voxels are inside along each axis.
    fn any(&mut self, block: &Block<'_>, cell: &Cell<'_>, inside: [usize; 3]) {
        let Ok(count) = cell.labels_into(block, &mut self.labels) else { return };
        unpack(cell.packed, cell.width(), &mut self.values);
        let is_inside = |at: usize| {
            let place = [at % EDGE, at / EDGE % EDGE, at / (EDGE * EDGE)];
            place.iter().zip(inside).all(|(&at, inside)| at < inside)
        };
        let mut used = [false; CELL];
        for (at, &value) in self.values.iter().enumerate() {
            used[usize::from(value) % CELL] |= is_inside(at);
        }
        let labels = &self.labels[..count];
        let mut sorted = std::mem::take(&mut self.sorted);
        sorted.clear();
        sorted.extend(labels.iter().zip(used).filter(|&(_, used)| used).map(|(&label, _)| label));
        sorted.sort_unstable();
        sorted.dedup();
        if let [label] = sorted[..] {
            self.solid(label);
        } else {
            let mut numbers = [0; CELL];
            for (number, label) in numbers.iter_mut().zip(labels) {
                // A label without voxels has no number, and no voxel asks for it.
                *number = sorted.binary_search(label).unwrap_or_default() as u16;
            }
            for (at, value) in self.values.iter_mut().enumerate() {
                let number = numbers[usize::from(*value) % CELL];
                *value = if is_inside(at) { number } else { 0 };
            }
            let start = self.position();
            let width = match sorted.len() {
                0..=2 => pack::<1>(&self.values, self.out),
                3..=4 => pack::<2>(&self.values, self.out),
                5..=16 => pack::<4>(&self.values, self.out),
                17..=256 => pack::<8>(&self.values, self.out),
                _ => pack::<16>(&self.values, self.out),
            };
            let table = self.tables.of(&sorted, self.out);
            self.finish(width, start, table);
        }
        self.sorted = sorted;
    }
}

/// For values of two bits, the first in the topmost: where each of the four values is, as the lower
/// bit of two, the first in the lowest.
fn masks(word: [u8; 8]) -> [u64; 4] {
    let turned = u64::from_be_bytes(word).reverse_bits();
    let (high, low) = (turned & LOW, turned >> 1 & LOW);
    [!(high | low) & LOW, low & !high, high & !low, high & low]
}

/// Appends values of `BITS` bits, the first in the lowest; says how many bits.
fn pack<const BITS: usize>(values: &Values, out: &mut Vec<u8>) -> u32 {
    // Four values fill a word at the widest, 64 of them at the narrowest.
    for values in values.chunks_exact(64 / BITS) {
        let word = values.iter().rev().fold(0u64, |word, &value| word << BITS | u64::from(value));
        out.extend_from_slice(&word.to_le_bytes());
    }
    BITS as u32
}
