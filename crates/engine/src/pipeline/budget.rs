//! The memory for packs that are filled at the same time.

use chunkyard_format::BATCHES;
use chunkyard_store::{Error, Limits, Result};
use tokio::sync::Semaphore;

use super::mover::{BATCH_BYTES, BATCH_CHUNKS};
use super::plan::{ArrayPlan, Movement, Plan};
use super::regrid::CHUNKS_AT_ONCE;

/// Memory for packs under way, counted before they begin.
#[derive(Debug)]
pub(super) struct Budget {
    /// In units of [`UNIT`].
    room: Semaphore,
    units: u32,
    limit_bytes: u64,
    /// The most that a pack holds while it waits to be complete.
    held_bytes_max: u64,
}

const UNIT: u64 = 1 << 20;

/// The cost of a chunk under way besides its bytes: index, place, name, views.
const UNDER_WAY: u64 = 512;
/// The cost of a complete chunk until its pack is complete: a name in the receipt,
const NAMED_IN_RECEIPT: u64 = 256;
/// or an entry in the index of its shard.
const NAMED_IN_INDEX: u64 = 32;

/// How the source chunks of a tile are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fetching {
    /// All chunks at once: each is decoded once.
    Whole,
    /// Batch by batch, where all of them do not fit: some are decoded again for the next tile.
    Batches,
}

impl Budget {
    /// Refuses limits that are too small for a plan.
    pub(super) fn for_plan(plan: &Plan, limits: &Limits, held_bytes_max: u64) -> Result<Self> {
        let budget = Self::new(limits, held_bytes_max);
        plan.arrays.iter().try_for_each(|array| budget.check(array))?;
        Ok(budget)
    }

    fn new(limits: &Limits, held_bytes_max: u64) -> Self {
        let limit_bytes = limits.bytes_in_flight as u64;
        // The rest is for pools, caches and the program itself.
        let units = u32::try_from(limit_bytes / UNIT * 3 / 4).unwrap_or(u32::MAX).max(1);
        Self { room: Semaphore::new(units as usize), units, limit_bytes, held_bytes_max }
    }

    /// Refuses an array if not even one of its packs fits.
    fn check(&self, plan: &ArrayPlan) -> Result<()> {
        let needed = working_bytes(plan, self.held_bytes_max, self.fetching(plan));
        if needed <= self.room_bytes() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{}: a chunk and what it is made from take {} MiB at once, which does not fit the limit \
             of {} MiB; raise it with --memory",
            plan.target,
            needed.div_ceil(UNIT),
            self.limit_bytes / UNIT
        )))
    }

    fn room_bytes(&self) -> u64 {
        u64::from(self.units).saturating_mul(UNIT)
    }

    /// How the packs of an array are filled within the limits.
    pub(super) fn fetching(&self, plan: &ArrayPlan) -> Fetching {
        let whole = working_bytes(plan, self.held_bytes_max, Fetching::Whole);
        if whole <= self.room_bytes() { Fetching::Whole } else { Fetching::Batches }
    }

    /// Waits until there is memory for a pack of an array.
    pub(super) async fn take(&self, plan: &ArrayPlan) -> Result<tokio::sync::SemaphorePermit<'_>> {
        let needed = working_bytes(plan, self.held_bytes_max, self.fetching(plan));
        let units = u32::try_from(needed.div_ceil(UNIT)).unwrap_or(u32::MAX);
        let permit = self.room.acquire_many(units.clamp(1, self.units)).await;
        permit.map_err(|closed| Error::store("reserve", "memory", closed))
    }
}

/// The memory that a pack of an array takes at most while it is filled.
fn working_bytes(plan: &ArrayPlan, held_bytes_max: u64, fetching: Fetching) -> u64 {
    let bytes = |extents: &[u64], item: u64| {
        extents.iter().fold(item, |bytes, &extent| bytes.saturating_mul(extent))
    };
    let (source_item, target_item) = (plan.from.item_bytes(), plan.to.item_bytes());
    let source_chunk = plan.from.spec.chunk_shape().unwrap_or_default();
    let target_chunk = plan.to.spec.chunk_shape().unwrap_or_default();
    let batch = match plan.movement {
        Movement::Copy | Movement::Rewrite | Movement::Transcode => {
            bytes(source_chunk, source_item).max(8 << 20).saturating_mul(2)
        }
        // Only the encoded result: chunks are gathered from where the elements are.
        Movement::Regrid if plan.from_memory => bytes(plan.tile(fetching), target_item),
        // The tile, the encoded source chunks that reach into and over it, the encoded result.
        Movement::Regrid => {
            let touched = bytes(&plan.touched_by_tile(fetching), source_item);
            let fetched = match fetching {
                Fetching::Whole => touched,
                Fetching::Batches => {
                    let batch = bytes(source_chunk, source_item).max(BATCH_BYTES);
                    touched.min(batch.saturating_mul(BATCHES as u64))
                }
            };
            bytes(plan.tile(fetching), source_item)
                .saturating_add(fetched)
                .saturating_add(bytes(plan.tile(fetching), target_item))
        }
    };
    // Each chunk costs something besides its bytes: chunks under way, and chunks of the pack, which
    // are named in its receipt or in the index of its shard.
    let at_once = match plan.movement {
        Movement::Copy | Movement::Rewrite | Movement::Transcode => BATCH_CHUNKS,
        Movement::Regrid => CHUNKS_AT_ONCE,
    };
    let named = if plan.to.sharding.is_some() { NAMED_IN_INDEX } else { NAMED_IN_RECEIPT };
    let chunks = plan.chunks_of_pack();
    let beside = at_once.min(chunks).saturating_mul(UNDER_WAY);
    let batch = batch.saturating_add(beside).saturating_add(chunks.saturating_mul(named));
    let chunk = bytes(target_chunk, target_item);
    // A pack that waits until it is complete holds at most this.
    let held = bytes(plan.packs.chunk_shape(), target_item).min(held_bytes_max).max(chunk);
    batch.saturating_add(held)
}
