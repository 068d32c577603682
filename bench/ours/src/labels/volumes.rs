//! Volumes to import: one in memory, and ones that a rule makes up.

use async_trait::async_trait;
use chunkyard_array::Region;
use chunkyard_engine::Result;
use chunkyard_labels::Volume;

/// A volume in memory, as little-endian bytes.
pub struct Stored {
    pub bytes: Vec<u8>,
    pub shape: [u64; 3],
}

#[async_trait]
impl Volume for Stored {
    fn shape(&self) -> [u64; 3] {
        self.shape
    }

    async fn read(&self, region: &Region) -> Result<Vec<u64>> {
        let (words, _) = self.bytes.as_chunks::<8>();
        let mut out = Vec::with_capacity(region.num_elements() as usize);
        rows_of(region, |[z, y, x], count| {
            let from = ((z * self.shape[1] + y) * self.shape[2] + x) as usize;
            let row = words.get(from..from + count).unwrap_or_default();
            out.extend(row.iter().map(|&word| u64::from_le_bytes(word)));
        });
        Ok(out)
    }
}

/// A volume whose labels follow from their position along z, y, x.
pub struct Rule {
    pub shape: [u64; 3],
    pub label: fn([u64; 3]) -> u64,
}

#[async_trait]
impl Volume for Rule {
    fn shape(&self) -> [u64; 3] {
        self.shape
    }

    async fn read(&self, region: &Region) -> Result<Vec<u64>> {
        let mut out = Vec::with_capacity(region.num_elements() as usize);
        rows_of(region, |[z, y, x], count| {
            out.extend((0..count as u64).map(|at| (self.label)([z, y, x + at])));
        });
        Ok(out)
    }
}

/// Calls a function with the start and the length of each row of a box.
fn rows_of(region: &Region, mut row: impl FnMut([u64; 3], usize)) {
    let (start, shape) = (region.origin(), region.shape());
    for z in start[0]..start[0] + shape[0] {
        for y in start[1]..start[1] + shape[1] {
            row([z, y, start[2]], shape[2] as usize);
        }
    }
}
