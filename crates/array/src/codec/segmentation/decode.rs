//! From tables and numbers to voxels. Every position and number is checked against the bytes.

use super::{Layout, Place, WORD};
use crate::{Error, Result};

impl Layout {
    /// Decodes a chunk into its voxels, little-endian.
    pub(in crate::codec) fn decode_into(&self, encoded: &[u8], out: &mut [u8]) -> Result<()> {
        let (words, odd) = encoded.as_chunks::<WORD>();
        if !odd.is_empty() {
            return Err(corrupt("words of 32 bits", format!("{} bytes", encoded.len())));
        }
        match self.item {
            4 => self.decode_as::<1, 4>(words, out.as_chunks_mut().0),
            _ => self.decode_as::<2, 8>(words, out.as_chunks_mut().0),
        }
    }

    fn decode_as<const WORDS: usize, const ITEM: usize>(
        &self,
        words: &[[u8; WORD]],
        out: &mut [[u8; ITEM]],
    ) -> Result<()> {
        let each = self.size.iter().product::<usize>();
        for (channel, out) in out.chunks_exact_mut(each.max(1)).enumerate() {
            let start = words.get(channel).map(|start| u32::from_le_bytes(*start));
            let from = start.filter(|start| *start as usize >= self.channels);
            let Some(data) = from.and_then(|start| words.get(start as usize..)) else {
                let expected = format!("where channel {channel} begins, in {} words", words.len());
                return Err(corrupt(expected, format!("{start:?}")));
            };
            for (number, place) in self.blocks().enumerate() {
                let block = Block::<WORDS>::read(data, number)?;
                self.decode_block(&block, place, out)?;
            }
        }
        Ok(())
    }

    fn decode_block<const WORDS: usize, const ITEM: usize>(
        &self,
        block: &Block<'_, WORDS>,
        place: Place,
        out: &mut [[u8; ITEM]],
    ) -> Result<()> {
        let [x_len, ..] = place.len;
        let label = |number: usize| -> Result<[u8; ITEM]> {
            let words = block.table.get(number).ok_or_else(|| block.no_label(number))?;
            words.as_flattened().first_chunk().copied().ok_or_else(|| block.no_label(number))
        };
        if block.bits == 0 {
            let label = label(0)?;
            for (at, _) in place.rows(*self) {
                out.get_mut(at..at + x_len).unwrap_or_default().fill(label);
            }
            return Ok(());
        }
        let (bits, mask) = (block.bits, u32::MAX >> (32 - block.bits));
        for (at, first) in place.rows(*self) {
            let row = out.get_mut(at..at + x_len).unwrap_or_default();
            for (offset, voxel) in row.iter_mut().enumerate() {
                // A block has at most 2^16 voxels.
                let bit = (first + offset) * bits as usize;
                let word = block.values.get(bit / 32).ok_or_else(|| block.no_value(bit / 32))?;
                let number = u32::from_le_bytes(*word) >> (bit % 32) & mask;
                *voxel = label(number as usize)?;
            }
        }
        Ok(())
    }
}

/// A block as it is stored.
struct Block<'a, const WORDS: usize> {
    number: usize,
    bits: u32,
    /// All labels from the first of the table on: how many are its own is not said.
    table: &'a [[[u8; WORD]; WORDS]],
    values: &'a [[u8; WORD]],
}

impl<'a, const WORDS: usize> Block<'a, WORDS> {
    fn read(data: &'a [[u8; WORD]], number: usize) -> Result<Self> {
        let Some(&[first, second]) = data.as_chunks::<2>().0.get(number) else {
            let found = format!("{} words", data.len());
            return Err(corrupt(format!("a head of block {number}"), found));
        };
        let [a, b, c, bits] = first;
        if !matches!(bits, 0 | 1 | 2 | 4 | 8 | 16 | 32) {
            let expected = "0, 1, 2, 4, 8, 16 or 32 bits per voxel";
            return Err(corrupt(expected, format!("{bits} in block {number}")));
        }
        let (table, values) = (u32::from_le_bytes([a, b, c, 0]), u32::from_le_bytes(second));
        Ok(Self {
            number,
            bits: bits.into(),
            table: data.get(table as usize..).unwrap_or_default().as_chunks().0,
            values: data.get(values as usize..).unwrap_or_default(),
        })
    }

    fn no_label(&self, label: usize) -> Error {
        let found = format!("{} labels before the end, in block {}", self.table.len(), self.number);
        corrupt(format!("label {label} of a table"), found)
    }

    fn no_value(&self, word: usize) -> Error {
        let found = format!("{} words before the end, in block {}", self.values.len(), self.number);
        corrupt(format!("word {word} of numbers"), found)
    }
}

fn corrupt(expected: impl Into<String>, found: impl Into<String>) -> Error {
    Error::corrupt("compressed segmentation", expected, found)
}
