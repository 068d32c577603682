//! Targets that cannot leave a chunk out: how many fill values would be written there.

use std::sync::Arc;

use chunkyard_array::Region;
use chunkyard_format::{Occupied, Source};
use chunkyard_store::{Error, Result};
use futures::TryStreamExt;

use super::plan::{ArrayPlan, Plan};

/// Bytes of fill values that are written for one array at most: 1 TiB.
const FILL_BYTES_MAX: u64 = 1 << 40;

impl Plan {
    /// Refuses a plan that would write more than 1 TiB of fill values for one array. For arrays
    /// that large, lists the stored chunks if the target stores all chunks.
    pub async fn check_fill(&self, source: &Arc<dyn Source>) -> Result<()> {
        for array in &self.arrays {
            let missing = array.bytes.saturating_sub(stored_bytes(array, source).await?);
            if missing > FILL_BYTES_MAX {
                return Err(Error::unsupported(format!(
                    "writing {}: the target stores every chunk, and {} GiB of the {} GiB of this \
                     array are not stored in the source and would be written as fill values; \
                     convert a region of it, or to a format that leaves such chunks out, such as \
                     zarr3 or repo",
                    array.target,
                    missing >> 30,
                    array.bytes >> 30
                )));
            }
        }
        Ok(())
    }
}

/// Bytes of the stored elements of an array, or enough to know that the rest can be written.
async fn stored_bytes(array: &ArrayPlan, source: &Arc<dyn Source>) -> Result<u64> {
    if !array.every || array.bytes <= FILL_BYTES_MAX {
        return Ok(array.bytes);
    }
    let Occupied::Cells { grid, mut cells } = source.occupied(&array.source)? else {
        return Ok(array.bytes);
    };
    let wanted = Region::new(&*array.offset, array.to.spec.shape())?;
    let (item, mut stored) = (array.to.item_bytes(), 0u64);
    loop {
        let cell = match cells.try_next().await {
            Ok(Some(cell)) => cell,
            Ok(None) => return Ok(stored),
            // Without a list the number is unknown.
            Err(Error::Unsupported { .. }) => return Ok(array.bytes),
            Err(error) => return Err(error),
        };
        let found = grid.clipped_region(&cell).intersect(&wanted);
        let bytes = found.map_or(0, |found| found.num_elements().saturating_mul(item));
        stored = stored.saturating_add(bytes);
        if array.bytes.saturating_sub(stored) <= FILL_BYTES_MAX {
            return Ok(stored);
        }
    }
}
