//! Which body a supervoxel belongs to, at one version, in memory.
//!
//! The `mapping` table of a version is sorted by supervoxel, so it is loaded into two columns as it
//! comes, and searched there. A third column finds the neighbourhood of a key with one look: supervoxel
//! ids are spread over buckets of equal width, and each bucket remembers its first row.
//!
//! ```text
//!  starts   0   3   3   7 …              one per bucket, a quarter as many as rows
//!           │   └───────┐
//!  keys     2 4 9 │ … │ 31 33 …          8 bytes a row
//!  bodies   2 2 0 │ … │  7  7 …          8 bytes a row; 0 is a retired id
//! ```
//!
//! A supervoxel without a row is a body of its own: most of a segmentation is never edited.

#[cfg(test)]
mod tests;

use chunkyard_store::{Error, Result};

/// Rows per bucket, on average: one cache line of keys.
const BUCKET_ROWS: usize = 4;
/// How many questions are asked side by side, so that their cache misses overlap.
const LANES: usize = 16;

/// The mapping of one version: immutable, at most 17 bytes for each row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapping {
    keys: Vec<u64>,
    bodies: Vec<u64>,
    starts: Vec<u32>,
    shift: u32,
}

impl Mapping {
    /// The mapping of rows sorted by supervoxel, without doubles.
    pub fn from_sorted(keys: Vec<u64>, bodies: Vec<u64>) -> Result<Self> {
        if keys.len() != bodies.len() {
            let (found, expected) = (bodies.len(), keys.len());
            return Err(Error::invalid(format!("{expected} supervoxels and {found} bodies")));
        }
        if u32::try_from(keys.len()).is_err() {
            return Err(Error::unsupported(format!("a mapping of {} rows in memory", keys.len())));
        }
        if let Some(pair) = keys.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(Error::invalid(format!(
                "supervoxel {} follows {} in the mapping, which is sorted",
                pair[1], pair[0]
            )));
        }
        let (first, last) = (keys.first().copied(), keys.last().copied());
        let span = last.zip(first).map_or(0, |(last, first)| last - first);
        let buckets = (keys.len() / BUCKET_ROWS).max(1) as u64;
        let mut shift = 0;
        while shift < u64::BITS - 1 && span >> shift >= buckets {
            shift += 1;
        }
        let mut made = Self { keys, bodies, starts: Vec::new(), shift };
        made.starts = made.bucket_starts(span);
        Ok(made)
    }

    fn bucket_starts(&self, span: u64) -> Vec<u32> {
        let count = (span >> self.shift) as usize + 2;
        let mut starts = Vec::with_capacity(count);
        let first = self.keys.first().copied().unwrap_or_default();
        for (row, key) in self.keys.iter().enumerate() {
            let bucket = ((key - first) >> self.shift) as usize;
            // Rows are at most `u32::MAX`, which was checked.
            starts.resize(starts.len().max(bucket + 1), row as u32);
        }
        starts.resize(count, self.keys.len() as u32);
        starts
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
        (self.keys.capacity() + self.bodies.capacity()) * 8 + self.starts.capacity() * 4
    }

    /// The rows, by supervoxel.
    pub fn rows(&self) -> impl Iterator<Item = (u64, u64)> {
        self.keys.iter().copied().zip(self.bodies.iter().copied())
    }

    /// What the mapping says of a supervoxel: `Some(0)` is a retired id, `None` one that was never
    /// mapped.
    pub fn get(&self, supervoxel: u64) -> Option<u64> {
        let (start, end) = self.bucket(supervoxel)?;
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
                *row = self.bucket(*label).unwrap_or_default();
            }
            for (&(start, end), label) in rows.iter().zip(batch) {
                *label = self.search(*label, start, end).unwrap_or(*label);
            }
        }
        for label in batches.into_remainder() {
            *label = self.body(*label);
        }
    }

    /// The rows among which a supervoxel would be.
    fn bucket(&self, supervoxel: u64) -> Option<(usize, usize)> {
        let offset = supervoxel.checked_sub(*self.keys.first()?)?;
        let bucket = usize::try_from(offset >> self.shift).ok()?;
        let bounds = self.starts.get(bucket..bucket.checked_add(2)?)?;
        Some((bounds[0] as usize, bounds[1] as usize))
    }

    fn search(&self, supervoxel: u64, start: usize, end: usize) -> Option<u64> {
        let keys = self.keys.get(start..end)?;
        let at = if keys.len() <= 2 * BUCKET_ROWS {
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
