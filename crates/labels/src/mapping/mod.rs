//! Which body a supervoxel belongs to, at one version, in memory.
//!
//! The `mapping` table of a version is sorted by supervoxel, so it is loaded into two columns as it
//! comes, and searched there. `buckets` finds the neighbourhood of a key with one or two looks.
//!
//! ```text
//!  buckets  0   3   3   7 …              where each begins, a quarter as many as rows
//!           │   └───────┐
//!  keys     2 4 9 │ … │ 31 33 …          8 bytes a row
//!  bodies   2 2 0 │ … │  7  7 …          8 bytes a row; 0 is a retired id
//! ```
//!
//! A supervoxel without a row is a body of its own: most of a segmentation is never edited.

mod buckets;
#[cfg(test)]
mod tests;

use chunkyard_store::{Error, Result};

use self::buckets::{Buckets, ROWS_MAX};

/// Rows that are compared one after the other: a few are faster so than halved again and again.
const COMPARED: usize = 8;
/// How many questions are asked side by side, so that their cache misses overlap.
const LANES: usize = 16;

/// The mapping of one version: immutable, at most 20 bytes for each row, 17 where ids are spread evenly.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapping {
    keys: Vec<u64>,
    bodies: Vec<u64>,
    buckets: Buckets,
}

impl Mapping {
    /// The mapping of rows sorted by supervoxel, without doubles.
    pub fn from_sorted(keys: Vec<u64>, bodies: Vec<u64>) -> Result<Self> {
        if keys.len() != bodies.len() {
            let (found, expected) = (bodies.len(), keys.len());
            return Err(Error::invalid(format!("{expected} supervoxels and {found} bodies")));
        }
        if keys.len() > ROWS_MAX {
            return Err(Error::unsupported(format!("a mapping of {} rows in memory", keys.len())));
        }
        if let Some(pair) = keys.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(Error::invalid(format!(
                "supervoxel {} follows {} in the mapping, which is sorted",
                pair[1], pair[0]
            )));
        }
        let buckets = Buckets::of(&keys);
        Ok(Self { keys, bodies, buckets })
    }

    /// How many supervoxels have a row.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether every supervoxel is a body of its own.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        (self.keys.capacity() + self.bodies.capacity()) * 8 + self.buckets.bytes()
    }

    /// The rows, by supervoxel.
    pub fn rows(&self) -> impl Iterator<Item = (u64, u64)> {
        self.keys.iter().copied().zip(self.bodies.iter().copied())
    }

    /// What the mapping says of a supervoxel: `Some(0)` is a retired id, `None` one that was never
    /// mapped.
    pub fn get(&self, supervoxel: u64) -> Option<u64> {
        let (start, end) = self.buckets.find(supervoxel)?;
        self.search(supervoxel, start, end)
    }

    /// The body of a supervoxel: itself if it was never mapped, 0 if the id is retired.
    pub fn body(&self, supervoxel: u64) -> u64 {
        self.get(supervoxel).unwrap_or(supervoxel)
    }

    /// The bodies of many supervoxels, in place. Faster than one by one, and fastest when they are sorted.
    pub fn relabel(&self, labels: &mut [u64]) {
        let mut batches = labels.chunks_exact_mut(LANES);
        for batch in &mut batches {
            let mut rows = [(0, 0); LANES];
            for (row, label) in rows.iter_mut().zip(batch.iter()) {
                *row = self.buckets.find(*label).unwrap_or_default();
            }
            for (&(start, end), label) in rows.iter().zip(batch) {
                *label = self.search(*label, start, end).unwrap_or(*label);
            }
        }
        for label in batches.into_remainder() {
            *label = self.body(*label);
        }
    }

    fn search(&self, supervoxel: u64, start: usize, end: usize) -> Option<u64> {
        let keys = self.keys.get(start..end)?;
        let at = if keys.len() <= COMPARED {
            keys.iter().take_while(|&&key| key < supervoxel).count()
        } else {
            keys.partition_point(|&key| key < supervoxel)
        };
        (keys.get(at) == Some(&supervoxel)).then(|| self.bodies[start + at])
    }
}

/// A mapping that is put together batch by batch, as a scan of its table delivers it.
#[derive(Debug, Default)]
pub struct MappingBuilder {
    keys: Vec<u64>,
    bodies: Vec<u64>,
}

impl MappingBuilder {
    /// With room for so many rows.
    pub fn with_capacity(rows: usize) -> Self {
        Self { keys: Vec::with_capacity(rows), bodies: Vec::with_capacity(rows) }
    }

    /// Appends rows.
    pub fn extend(&mut self, supervoxels: &[u64], bodies: &[u64]) {
        self.keys.extend_from_slice(supervoxels);
        self.bodies.extend_from_slice(bodies);
    }

    /// The mapping.
    pub fn finish(self) -> Result<Mapping> {
        let (mut keys, mut bodies) = (self.keys, self.bodies);
        // Growing doubles; what is kept for long is as large as it has to be.
        keys.shrink_to_fit();
        bodies.shrink_to_fit();
        Mapping::from_sorted(keys, bodies)
    }
}
