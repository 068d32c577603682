//! Tables that have been written, to write each once.

use std::collections::HashMap;

use super::super::draft::spread;

/// Tables of one label that were written last, at their hash.
const RECENT: usize = 64;

/// Where tables lie, in words of 32 bits after `origin`.
pub(super) struct Tables {
    origin: usize,
    /// The first table of each fingerprint. Its labels are compared where they lie.
    first: HashMap<u64, (u32, u32)>,
    /// Tables whose fingerprint another table had before: none, unless labels were chosen for it.
    others: HashMap<Box<[u64]>, u32>,
    /// The tables of one label, which are looked up most.
    recent: [Option<(u64, u32)>; RECENT],
}

impl Tables {
    pub(super) fn new(origin: usize) -> Self {
        Self { origin, first: HashMap::new(), others: HashMap::new(), recent: [None; RECENT] }
    }

    /// Where the table of one label lies.
    pub(super) fn of_one(&mut self, label: u64, out: &mut Vec<u8>) -> u32 {
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
    pub(super) fn of(&mut self, labels: &[u64], out: &mut Vec<u8>) -> u32 {
        let fingerprint = labels.iter().fold(labels.len() as u64, |mixed, &label| {
            (mixed.rotate_left(23) ^ label).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        let next = ((out.len() - self.origin) / 4) as u32;
        let (table, count) = *self.first.entry(fingerprint).or_insert((next, labels.len() as u32));
        if table == next {
            append(labels, out);
            return table;
        }
        let from = self.origin + table as usize * 4;
        let written = out.get(from..from + count as usize * 8).unwrap_or_default();
        if written
            .as_chunks()
            .0
            .iter()
            .map(|&label| u64::from_le_bytes(label))
            .eq(labels.iter().copied())
        {
            return table;
        }
        if let Some(&table) = self.others.get(labels) {
            return table;
        }
        self.others.insert(labels.into(), next);
        append(labels, out);
        next
    }
}

fn append(labels: &[u64], out: &mut Vec<u8>) {
    out.extend(labels.iter().flat_map(|label| label.to_le_bytes()));
}
