//! Tables that have been written, to write each once.

use std::collections::HashMap;

use super::super::draft::spread;

/// Tables of one label that were written last, at their hash.
const RECENT: usize = 64;

/// Where tables lie, in words of 32 bits after `origin`.
pub(in crate::codec) struct Tables {
    origin: usize,
    /// Bytes of a label, 4 or 8.
    item: usize,
    /// The first table of each fingerprint. Its labels are compared where they lie.
    first: HashMap<u64, (u32, u32)>,
    /// Tables whose fingerprint another table had before: none, unless labels were chosen for it.
    others: HashMap<Box<[u64]>, u32>,
    /// The tables of one label, which are looked up most.
    recent: [Option<(u64, u32)>; RECENT],
}

impl Tables {
    pub(in crate::codec) fn new(origin: usize, item: usize) -> Self {
        Self { origin, item, first: HashMap::new(), others: HashMap::new(), recent: [None; RECENT] }
    }

    /// Where the table of one label lies.
    pub(in crate::codec) fn of_one(&mut self, label: u64, out: &mut Vec<u8>) -> u32 {
        let slot = spread(label) as usize % RECENT;
        match self.recent[slot] {
            Some((known, table)) if known == label => table,
            _ => {
                let table = self.of(&[label], out);
                self.recent[slot] = Some((label, table));
                table
            }
        }
    }

    /// Where a sorted table lies; it is appended to `out` if there is no equal one.
    pub(in crate::codec) fn of(&mut self, labels: &[u64], out: &mut Vec<u8>) -> u32 {
        let fingerprint = labels.iter().fold(labels.len() as u64, |mixed, &label| {
            (mixed.rotate_left(23) ^ label).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        let next = ((out.len() - self.origin) / 4) as u32;
        let (table, count) = *self.first.entry(fingerprint).or_insert((next, labels.len() as u32));
        if table == next {
            self.append(labels, out);
            return table;
        }
        let from = self.origin + table as usize * 4;
        let written = out.get(from..from + count as usize * self.item).unwrap_or_default();
        let same = match self.item {
            4 => equal(written.as_chunks().0, labels, |label| u64::from(u32::from_le_bytes(label))),
            _ => equal(written.as_chunks().0, labels, u64::from_le_bytes),
        };
        if same {
            return table;
        }
        if let Some(&table) = self.others.get(labels) {
            return table;
        }
        self.others.insert(labels.into(), next);
        self.append(labels, out);
        next
    }

    fn append(&self, labels: &[u64], out: &mut Vec<u8>) {
        match self.item {
            // The caller's labels have 32 bits.
            4 => out.extend(labels.iter().flat_map(|label| (*label as u32).to_le_bytes())),
            _ => out.extend(labels.iter().flat_map(|label| label.to_le_bytes())),
        }
    }
}

fn equal<const ITEM: usize>(
    written: &[[u8; ITEM]],
    labels: &[u64],
    read: impl Fn([u8; ITEM]) -> u64,
) -> bool {
    written.iter().map(|&label| read(label)).eq(labels.iter().copied())
}
