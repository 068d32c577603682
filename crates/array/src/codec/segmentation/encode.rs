//! From voxels to tables and numbers.

use super::super::label_block::Tables;
use super::{Layout, NAME, Place, WORD, WORDS_MAX};
use crate::{Error, Result};

impl Layout {
    /// Appends the encoded chunk of some voxels, little-endian, to `out`. `out` stays as it was if this fails.
    pub(in crate::codec) fn encode_onto(&self, decoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        let done = match self.item {
            4 => self.encode_as::<4>(decoded.as_chunks().0, out),
            _ => self.encode_as::<8>(decoded.as_chunks().0, out),
        };
        if done.is_err() {
            out.truncate(start);
        }
        done
    }

    fn encode_as<const ITEM: usize>(&self, voxels: &[[u8; ITEM]], out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        out.resize(start + WORD * self.channels, 0);
        let mut draft = Draft::<ITEM>::new(self.block.iter().product());
        let each = self.size.iter().product::<usize>();
        for (channel, voxels) in voxels.chunks_exact(each.max(1)).enumerate() {
            let position = word(out.len() - start)?;
            put(out, start + WORD * channel, position);
            self.encode_channel(voxels, &mut draft, out)?;
        }
        Ok(())
    }

    fn encode_channel<const ITEM: usize>(
        &self,
        voxels: &[[u8; ITEM]],
        draft: &mut Draft<ITEM>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let origin = out.len();
        let blocks = self.grid().iter().product::<usize>();
        out.resize(origin + 2 * WORD * blocks, 0);
        let mut tables = Tables::new(origin, ITEM);
        for (number, place) in self.blocks().enumerate() {
            let values = word(out.len() - origin)?;
            let (bits, table) = match self.only_label(voxels, place) {
                Some(label) => (0, tables.of_one(label, out)),
                None => {
                    draft.fill(self, voxels, place)?;
                    let bits = draft.pack_onto(out);
                    (bits, tables.of(&draft.sorted, out))
                }
            };
            let head = origin + 2 * WORD * number;
            put(out, head, table | bits << 24);
            put(out, head + WORD, values);
        }
        word(out.len() - origin).map(drop)
    }

    /// The label of all voxels of a block, if they have the same.
    fn only_label<const ITEM: usize>(&self, voxels: &[[u8; ITEM]], place: Place) -> Option<u64> {
        let [x_len, ..] = place.len;
        let mut rows = place.rows(*self).map(|(at, _)| voxels.get(at..at + x_len));
        let first = *voxels.get(place.rows(*self).next()?.0)?;
        let same = rows.all(|row| row.is_some_and(|row| row.iter().all(|voxel| *voxel == first)));
        same.then(|| label(first))
    }
}

/// The number of a voxel that the chunk does not have: no label has it.
const OUTSIDE: u32 = u32::MAX;

/// Numbers and labels of a block with several labels.
struct Draft<const ITEM: usize> {
    /// The number of each voxel in the order in which labels appear; [`OUTSIDE`] where the chunk has ended.
    numbers: Vec<u32>,
    /// Labels in that order.
    labels: Vec<u64>,
    /// Labels in ascending order.
    sorted: Vec<u64>,
    /// The place of a number in that order.
    ranks: Vec<u32>,
    /// A label at its hash, with its number, and the block that it is of: slots of other blocks are free.
    slots: Vec<(u64, u32, u32)>,
    block: u32,
}

impl<const ITEM: usize> Draft<ITEM> {
    fn new(voxels: usize) -> Self {
        // Never more than half full.
        let slots = vec![(0, 0, 0); (2 * voxels).next_power_of_two()];
        let (labels, sorted, ranks) = (Vec::new(), Vec::new(), Vec::new());
        Self { numbers: vec![0; voxels], labels, sorted, ranks, slots, block: 0 }
    }

    fn fill(&mut self, layout: &Layout, voxels: &[[u8; ITEM]], place: Place) -> Result<()> {
        self.labels.clear();
        if place.len != layout.block {
            self.numbers.fill(OUTSIDE);
        }
        self.block = self.block.checked_add(1).ok_or_else(|| too_long(usize::MAX))?;
        let [x_len, ..] = place.len;
        let mut last = None;
        for (at, number) in place.rows(*layout) {
            let row = voxels.get(at..at + x_len).unwrap_or_default();
            for (offset, voxel) in row.iter().enumerate() {
                let label = label(*voxel);
                let found = match last {
                    Some((known, found)) if known == label => found,
                    _ => self.number_of(label),
                };
                last = Some((label, found));
                if let Some(out) = self.numbers.get_mut(number + offset) {
                    *out = found;
                }
            }
        }
        self.sorted.clone_from(&self.labels);
        self.sorted.sort_unstable();
        self.ranks.clear();
        for label in &self.labels {
            self.ranks.push(self.sorted.partition_point(|known| known < label) as u32);
        }
        Ok(())
    }

    /// The number of a label, a new one if the block had none like it.
    fn number_of(&mut self, label: u64) -> u32 {
        let mask = self.slots.len() - 1;
        let mut at = (label.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        // There is always a free slot: a block has half as many labels as there are slots.
        while let Some((known, number, block)) = self.slots.get(at)
            && *block == self.block
        {
            if *known == label {
                return *number;
            }
            at = (at + 1) & mask;
        }
        let number = self.labels.len() as u32;
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = (label, number, self.block);
        }
        self.labels.push(label);
        number
    }

    /// Appends the places of all voxels' labels in the sorted table, and says how many bits each takes.
    fn pack_onto(&self, out: &mut Vec<u8>) -> u32 {
        let bits = [1u32, 2, 4, 8].into_iter().find(|bits| 1 << bits >= self.sorted.len());
        let bits = bits.unwrap_or(16);
        let per_word = (32 / bits) as usize;
        for numbers in self.numbers.chunks(per_word) {
            let word = numbers.iter().rev().fold(0u32, |word, number| {
                // Outside the chunk there is the first label of the table.
                let rank = self.ranks.get(*number as usize).copied().unwrap_or(0);
                word << bits | rank
            });
            out.extend_from_slice(&word.to_le_bytes());
        }
        bits
    }
}

fn label<const ITEM: usize>(voxel: [u8; ITEM]) -> u64 {
    let mut bytes = [0; 8];
    if let Some(low) = bytes.first_chunk_mut::<ITEM>() {
        *low = voxel;
    }
    u64::from_le_bytes(bytes)
}

/// A number of bytes in words, as a position.
fn word(bytes: usize) -> Result<u32> {
    let words = bytes / WORD;
    match words <= WORDS_MAX {
        true => Ok(words as u32),
        false => Err(too_long(words)),
    }
}

fn too_long(words: usize) -> Error {
    Error::invalid(format!(
        "{NAME} of {words} words: its positions end at {WORDS_MAX}, use smaller chunks"
    ))
}

fn put(out: &mut [u8], at: usize, word: u32) {
    if let Some(place) = out.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *place = word.to_le_bytes();
    }
}
