//! The regular grid: which chunk holds which elements.
//!
//! Chunks are equal boxes laid from the origin. Zarr v3 §"Regular grids": chunks at the upper edge
//! are as large as all others; the part outside the array is padding.

use crate::{Error, Region, Result};

#[cfg(test)]
mod tests;

/// Position of a chunk in its grid, one coordinate per dimension.
pub type ChunkIndex = Vec<u64>;

/// A regular chunk grid over an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    array_shape: Vec<u64>,
    chunk_shape: Vec<u64>,
}

impl Grid {
    /// A grid of chunks of `chunk_shape` over an array of `array_shape`.
    pub fn new(array_shape: &[u64], chunk_shape: &[u64]) -> Result<Self> {
        if array_shape.len() != chunk_shape.len() {
            return Err(Error::invalid(format!(
                "chunk shape {chunk_shape:?} has another rank than array shape {array_shape:?}"
            )));
        }
        for (&extent, &chunk) in array_shape.iter().zip(chunk_shape) {
            if chunk == 0 {
                return Err(Error::invalid(format!("chunk shape {chunk_shape:?} contains a zero")));
            }
            // Every chunk must be a region, so the padding of the last one must end below 2^64.
            if extent.div_ceil(chunk).checked_mul(chunk).is_none() {
                return Err(Error::invalid(format!(
                    "chunks of extent {chunk} over an array of extent {extent} end beyond 2^64"
                )));
            }
        }
        Ok(Self { array_shape: array_shape.to_vec(), chunk_shape: chunk_shape.to_vec() })
    }

    /// Shape of the array.
    pub fn array_shape(&self) -> &[u64] {
        &self.array_shape
    }

    /// Shape of every chunk.
    pub fn chunk_shape(&self) -> &[u64] {
        &self.chunk_shape
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.array_shape.len()
    }

    /// Number of chunks, per dimension.
    pub fn grid_shape(&self) -> Vec<u64> {
        self.array_shape.iter().zip(&self.chunk_shape).map(|(&n, &c)| n.div_ceil(c)).collect()
    }

    /// Number of chunks; saturates.
    pub fn num_chunks(&self) -> u64 {
        Region::whole(&self.grid_shape()).num_elements()
    }

    /// Whether there is a chunk at `index`.
    pub fn contains(&self, index: &[u64]) -> bool {
        index.len() == self.rank() && index.iter().zip(self.grid_shape()).all(|(&i, n)| i < n)
    }

    /// Number of a chunk, counted in row-major order; `None` where there is no such chunk, or too
    /// many before it.
    pub fn number_of(&self, index: &[u64]) -> Option<u64> {
        if !self.contains(index) {
            return None;
        }
        let mut along = index.iter().zip(self.grid_shape());
        along.try_fold(0u64, |number, (&at, n)| number.checked_mul(n)?.checked_add(at))
    }

    /// The chunk with a number, counted in row-major order; `None` if there are fewer.
    pub fn index_of(&self, number: u64) -> Option<ChunkIndex> {
        let mut rest = number;
        let mut index = self.grid_shape();
        for extent in index.iter_mut().rev() {
            let n = *extent;
            *extent = rest.checked_rem(n)?;
            rest = rest.checked_div(n)?;
        }
        (rest == 0).then_some(index)
    }

    /// The elements of a chunk, padding included.
    ///
    /// For an index that the grid does not [contain](Grid::contains) the result is some region
    /// without a meaning, never a panic; coordinates not given count as zero.
    pub fn chunk_region(&self, index: &[u64]) -> Region {
        Region::from_bounds(self.chunk_shape.iter().enumerate().map(|(dimension, &chunk)| {
            let start = index.get(dimension).copied().unwrap_or(0).saturating_mul(chunk);
            (start, start.saturating_add(chunk))
        }))
    }

    /// The elements of a chunk that are in the array.
    pub fn clipped_region(&self, index: &[u64]) -> Region {
        let whole = self.chunk_region(index);
        Region::from_bounds(
            whole
                .origin()
                .iter()
                .zip(whole.end())
                .zip(&self.array_shape)
                .map(|((&start, end), &extent)| (start.min(extent), end.min(extent))),
        )
    }

    /// The chunks that hold elements of `region`, in row-major order, made one by one.
    ///
    /// The part of the region outside the array is ignored. A region of another rank has no element
    /// in the array, hence no chunk.
    pub fn chunks_in(&self, region: &Region) -> ChunksIn {
        let cells = self.cells_in(region);
        ChunksIn { next: cells.as_ref().map(|cells| cells.origin().to_vec()), cells }
    }

    /// How many chunks [`Grid::chunks_in`] yields; saturates.
    pub fn num_chunks_in(&self, region: &Region) -> u64 {
        self.cells_in(region).map_or(0, |cells| cells.num_elements())
    }

    /// The indices that [`Grid::chunks_in`] yields, as a box; `None` for no chunk.
    pub fn cells_in(&self, region: &Region) -> Option<Region> {
        let inside = region.intersect(&Region::whole(&self.array_shape))?;
        Some(Region::from_bounds(
            inside
                .origin()
                .iter()
                .zip(inside.end())
                .zip(&self.chunk_shape)
                .map(|((&start, end), &chunk)| (start / chunk, end.div_ceil(chunk))),
        ))
    }
}

/// Iterator over the chunks of a region; see [`Grid::chunks_in`].
#[derive(Clone, Debug)]
pub struct ChunksIn {
    cells: Option<Region>,
    next: Option<ChunkIndex>,
}

impl Iterator for ChunksIn {
    type Item = ChunkIndex;

    fn next(&mut self) -> Option<ChunkIndex> {
        let current = self.next.take()?;
        let cells = self.cells.as_ref()?;
        let mut following = current.clone();
        let dimensions = following.iter_mut().zip(cells.origin()).zip(cells.shape());
        for ((coordinate, &first), &extent) in dimensions.rev() {
            *coordinate += 1;
            if *coordinate - first < extent {
                self.next = Some(following);
                break;
            }
            *coordinate = first;
        }
        Some(current)
    }
}

/// A chunk shape of about one mebibyte: the longest axis is halved until it fits.
pub fn guess_chunks(shape: &[u64], item_size: usize) -> Vec<u64> {
    const CHUNK_BYTES: u64 = 1 << 20;
    let mut chunks: Vec<u64> = shape.iter().map(|&extent| extent.max(1)).collect();
    loop {
        let bytes =
            chunks.iter().fold(item_size as u64, |bytes, &extent| bytes.saturating_mul(extent));
        // Among equal axes the first, so that runs along the last one stay long.
        match chunks.iter_mut().rev().max() {
            Some(longest) if bytes > CHUNK_BYTES && *longest > 1 => *longest = longest.div_ceil(2),
            _ => return chunks,
        }
    }
}
