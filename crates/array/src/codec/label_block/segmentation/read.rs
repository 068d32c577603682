//! From a segmentation to a block.

use super::super::builder::Builder;
use super::super::draft::Draft;
use super::super::{CELL, EDGE};
use super::{grid_over, inside, positions};
use crate::{Error, Result};

/// Appends the canonical label block of a `compressed_segmentation` of `extent` voxels along x, y and
/// z to `out`. Where `extent` is no multiple of 8, the block is larger, and the rest is label 0.
///
/// Every position and value is checked against the bytes. Labels of 64 bits, one channel.
pub fn from_segmentation(bytes: &[u8], extent: [u32; 3], out: &mut Vec<u8>) -> Result<()> {
    let grid = grid_over(extent)?;
    let reader = Reader::new(bytes)?;
    let mut builder = Builder::new(grid);
    let mut draft = Draft::new();
    let mut voxels = [0; CELL];
    for (at, place) in positions(grid).enumerate() {
        let cell = reader.cell(at)?;
        let inside = inside(extent, place);
        let whole = inside == [EDGE; 3];
        if cell.width == 0 && whole {
            builder.push_solid(reader.label(&cell, 0)?);
        } else if cell.width == 1 && whole {
            reader.push_two(&cell, &mut builder)?;
        } else {
            reader.expand(&cell, &mut voxels)?;
            if !whole {
                clip(&mut voxels, inside);
            }
            draft.fill(&voxels);
            match *draft.labels() {
                [label] => builder.push_solid(label),
                ref labels => builder.push(labels, draft.values()),
            }
        }
    }
    builder.finish_onto(out)
}

/// Makes voxels outside label 0.
fn clip(voxels: &mut [u64; CELL], inside: [usize; 3]) {
    for (at, voxel) in voxels.iter_mut().enumerate() {
        let place = [at % EDGE, at / EDGE % EDGE, at / (EDGE * EDGE)];
        if place.iter().zip(inside).any(|(&at, inside)| at >= inside) {
            *voxel = 0;
        }
    }
}

/// The head of a cell.
struct Cell {
    number: usize,
    width: usize,
    table: usize,
    /// As many bytes as 512 values of the width take.
    values: usize,
}

struct Reader<'a> {
    /// What positions count through.
    words: &'a [[u8; 4]],
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self> {
        let (words, odd) = bytes.as_chunks::<4>();
        let Some((first, words)) = words.split_first().filter(|_| odd.is_empty()) else {
            return Err(corrupt("words of 32 bits", format!("{} bytes", bytes.len())));
        };
        match u32::from_le_bytes(*first) {
            1 => Ok(Self { words }),
            other => Err(corrupt("one channel, at word 1", format!("word {other}"))),
        }
    }

    fn cell(&self, number: usize) -> Result<Cell> {
        let Some(&[first, second]) = self.words.as_chunks::<2>().0.get(number) else {
            let found = format!("{} words", self.words.len());
            return Err(corrupt(format!("a head of cell {number}"), found));
        };
        let [a, b, c, width] = first;
        if !matches!(width, 0 | 1 | 2 | 4 | 8 | 16 | 32) {
            let expected = "0, 1, 2, 4, 8, 16 or 32 bits per voxel";
            return Err(corrupt(expected, format!("{width} in cell {number}")));
        }
        Ok(Cell {
            number,
            width: width.into(),
            table: u32::from_le_bytes([a, b, c, 0]) as usize,
            values: u32::from_le_bytes(second) as usize,
        })
    }

    fn label(&self, cell: &Cell, value: usize) -> Result<u64> {
        let at = value.checked_mul(2).and_then(|at| at.checked_add(cell.table));
        let label = at.and_then(|at| self.words.get(at..)?.first_chunk::<2>());
        let Some(label) = label.and_then(|words| words.as_flattened().first_chunk()) else {
            let expected = format!("label {value} of a table at word {}", cell.table);
            let found = format!("{} words, in cell {}", self.words.len(), cell.number);
            return Err(corrupt(expected, found));
        };
        Ok(u64::from_le_bytes(*label))
    }

    fn values(&self, cell: &Cell) -> Result<&'a [u8]> {
        let len = CELL / 32 * cell.width;
        let range = cell.values.checked_add(len).map(|end| cell.values..end);
        let Some(words) = range.and_then(|range| self.words.get(range)) else {
            let expected = format!("{len} words of values at word {}", cell.values);
            let found = format!("{} words, in cell {}", self.words.len(), cell.number);
            return Err(corrupt(expected, found));
        };
        Ok(words.as_flattened())
    }

    /// A cell of one bit per voxel: the bits are turned round, and flipped if the larger label is
    /// first.
    fn push_two(&self, cell: &Cell, builder: &mut Builder) -> Result<()> {
        let (words, _) = self.values(cell)?.as_chunks::<8>();
        let flip = match words.first().map(|&word| u64::from_le_bytes(word) & 1) {
            Some(1) => u64::MAX,
            _ => 0,
        };
        let mut packed = [[0; 8]; CELL / 64];
        let mut others = 0;
        for (out, &word) in packed.iter_mut().zip(words) {
            let word = u64::from_le_bytes(word) ^ flip;
            others |= word;
            *out = word.reverse_bits().to_be_bytes();
        }
        let first = self.label(cell, usize::from(flip != 0))?;
        if others == 0 {
            builder.push_solid(first);
            return Ok(());
        }
        let second = self.label(cell, usize::from(flip == 0))?;
        if first == second {
            builder.push_solid(first);
        } else {
            builder.push_packed(&[first, second], packed.as_flattened());
        }
        Ok(())
    }

    fn expand(&self, cell: &Cell, voxels: &mut [u64; CELL]) -> Result<()> {
        let bytes = self.values(cell)?;
        match cell.width {
            0 => voxels.fill(self.label(cell, 0)?),
            16 => {
                for (voxel, &value) in voxels.iter_mut().zip(bytes.as_chunks::<2>().0) {
                    *voxel = self.label(cell, u16::from_le_bytes(value).into())?;
                }
            }
            32 => {
                for (voxel, &value) in voxels.iter_mut().zip(bytes.as_chunks::<4>().0) {
                    *voxel = self.label(cell, u32::from_le_bytes(value) as usize)?;
                }
            }
            width => {
                let per_byte = 8 / width;
                let mask = (1usize << width) - 1;
                for (voxels, &byte) in voxels.chunks_exact_mut(per_byte).zip(bytes) {
                    for (at, voxel) in voxels.iter_mut().enumerate() {
                        *voxel = self.label(cell, usize::from(byte) >> (width * at) & mask)?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn corrupt(expected: impl Into<String>, found: impl Into<String>) -> Error {
    Error::corrupt("compressed segmentation", expected, found)
}
