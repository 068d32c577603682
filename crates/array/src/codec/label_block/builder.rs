//! A block while it is made, cell by cell.

use std::collections::HashMap;

use super::bits::{Values, pack_onto, width};
use super::draft::spread;
use super::{CELL, cell_count};
use crate::{Error, Result};

/// Collects the sections of a block. Labels are numbered in the order in which they come.
pub(super) struct Builder {
    grid: [u32; 3],
    labels: Labels,
    counts: Vec<u8>,
    indices: Vec<u8>,
    values: Vec<u8>,
}

impl Builder {
    pub(super) fn new(grid: [u32; 3]) -> Self {
        Self {
            grid,
            labels: Labels::default(),
            counts: Vec::new(),
            indices: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Adds a cell of one label.
    pub(super) fn push_solid(&mut self, label: u64) {
        self.push_labels(&[label]);
    }

    /// Adds a cell. Its labels must differ and must be in the order in which they appear.
    pub(super) fn push(&mut self, labels: &[u64], values: &Values) {
        self.push_labels(labels);
        pack_onto(values, width(labels.len()), &mut self.values);
    }

    /// The same, with values that are packed already.
    pub(super) fn push_packed(&mut self, labels: &[u64], packed: &[u8]) {
        self.push_labels(labels);
        self.values.extend_from_slice(packed);
    }

    fn push_labels(&mut self, labels: &[u64]) {
        self.counts.extend_from_slice(&(labels.len() as u16).to_le_bytes());
        for &label in labels {
            self.indices.extend_from_slice(&self.labels.number(label).to_le_bytes());
        }
    }

    /// Appends the block to `out`.
    pub(super) fn finish_onto(self, out: &mut Vec<u8>) -> Result<()> {
        debug_assert_eq!(self.counts.len(), 2 * cell_count(self.grid), "a count per cell");
        let table = &self.labels.table;
        if let [label] = table[..] {
            return solid_onto(self.grid, label, out);
        }
        let sections = [&self.counts, &self.indices, &self.values];
        let room =
            16 + 8 * table.len() + sections.iter().map(|section| section.len()).sum::<usize>();
        reserve(out, room)?;
        head_onto(self.grid, table.len(), out);
        out.extend(table.iter().flat_map(|label| label.to_le_bytes()));
        for section in sections {
            out.extend_from_slice(section);
        }
        Ok(())
    }
}

/// Appends a block of one label.
pub(super) fn solid_onto(grid: [u32; 3], label: u64, out: &mut Vec<u8>) -> Result<()> {
    reserve(out, 24)?;
    head_onto(grid, 1, out);
    out.extend_from_slice(&label.to_le_bytes());
    Ok(())
}

fn head_onto(grid: [u32; 3], labels: usize, out: &mut Vec<u8>) {
    for number in grid.into_iter().chain([labels as u32]) {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

/// Makes room at the end of `out`, or says that there is no memory.
pub(super) fn reserve(out: &mut Vec<u8>, bytes: usize) -> Result<()> {
    out.try_reserve(bytes)
        .map_err(|_| Error::OutOfMemory { what: "an encoded label block".into(), bytes })
}

/// Labels that were seen last, at their hash: as many as a crowded block has.
const RECENT: usize = 2048;

/// The table of a block. A block has at most 2^30 voxels, so numbers fit.
struct Labels {
    table: Vec<u64>,
    numbers: HashMap<u64, u32>,
    /// Spares the map most searches: a label of one cell is mostly one of its neighbours'.
    recent: Box<[Option<(u64, u32)>]>,
}

impl Default for Labels {
    fn default() -> Self {
        Self { table: Vec::new(), numbers: HashMap::new(), recent: vec![None; RECENT].into() }
    }
}

impl Labels {
    fn number(&mut self, label: u64) -> u32 {
        let recent = &mut self.recent[spread(label) as usize % RECENT];
        match *recent {
            Some((known, number)) if known == label => number,
            _ => {
                let next = self.table.len() as u32;
                let number = *self.numbers.entry(label).or_insert_with(|| {
                    self.table.push(label);
                    next
                });
                *recent = Some((label, number));
                number
            }
        }
    }
}

/// The most bytes that a block of `grid` takes: every voxel has a label of its own.
pub(super) fn bytes_max(grid: [u32; 3]) -> usize {
    let cell = CELL * (8 + 4) + 2 + CELL / 8 * width(CELL);
    16 + cell_count(grid) * cell
}
