//! Doing what a plan says: packs, several at a time, then the commit.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::Semaphore;

use super::journal::Journal;
use super::mover::Mover;
use super::plan::{ArrayPlan, Movement, Plan};
use super::verify;
use crate::error::{Error, Result};
use crate::format::{Pack, Published, Sink, Source};
use crate::meter::Meter;
use crate::store::Limits;

/// How a plan is carried out.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// How much of the machine it may use.
    pub limits: Limits,
    /// Read back what was written, before it is visible, and compare it with the source.
    pub verify: bool,
    /// Advanced as the work goes on, for a progress bar.
    pub meter: Arc<Meter>,
}

/// What was done.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Packs of the plan, and how many of them an earlier attempt had done.
    pub packs: u64,
    /// See `packs`.
    pub resumed: u64,
    /// Chunks that are stored.
    pub chunks: u64,
    /// Their encoded bytes.
    pub bytes_stored: u64,
    /// Bytes of the elements.
    pub bytes: u64,
    /// What was made visible.
    pub published: Published,
}

/// Carries out a plan, and makes the result visible at the very end. After a failure the same plan
/// goes on where this one ended.
pub async fn run(
    source: &Arc<dyn Source>,
    sink: Box<dyn Sink>,
    plan: &Plan,
    options: &RunOptions,
) -> Result<Outcome> {
    let budget = check(plan, &options.limits)?;
    let (journal, resumed) = Journal::open(&*sink, plan).await?;
    let meter = &options.meter;
    let rounds = if options.verify { 2 } else { 1 };
    meter.expect(plan.bytes().saturating_mul(rounds));
    meter.expect_packs(plan.packs().saturating_mul(rounds));
    let work = plan.arrays.iter().flat_map(|array| {
        let mover = Mover::new(source, &Arc::new(array.clone())).map(Arc::new);
        let packs: Box<dyn Iterator<Item = _> + Send> = match mover {
            Ok(mover) => Box::new(array.each_pack().map(move |pack| Ok((mover.clone(), pack)))),
            Err(error) => Box::new(std::iter::once(Err(error))),
        };
        packs
    });
    let moved = stream::iter(work)
        .map(|work| {
            let (sink, journal, budget) = (&*sink, &journal, &budget);
            async move {
                let (mover, pack) = work?;
                let bytes = mover.plan.pack_bytes(&pack);
                let mut done = (0, 0);
                if !journal.has(&pack) {
                    done = move_pack(&mover, sink, journal, budget, pack).await?;
                }
                meter.advance(bytes);
                meter.advance_packs();
                Ok::<_, Error>(done)
            }
        })
        .buffer_unordered(options.limits.packs_in_flight.max(1))
        .try_fold((0, 0), |sum, done| async move { Ok((sum.0 + done.0, sum.1 + done.1)) })
        .await;
    // Also after a failure: what is done is done.
    let flushed = journal.flush(&*sink).await;
    let (chunks, bytes_stored) = moved?;
    flushed?;
    if options.verify {
        verify::verify(source, &sink.written().await?, plan, meter).await?;
    }
    let published = sink.finish().await?;
    Ok(Outcome {
        packs: plan.packs(),
        resumed: resumed.packs,
        chunks: chunks + resumed.chunks,
        bytes_stored: bytes_stored + resumed.bytes,
        bytes: plan.bytes(),
        published,
    })
}

impl Plan {
    /// Refuses limits within which the plan cannot be carried out.
    pub fn check(&self, limits: &Limits) -> Result<()> {
        check(self, limits).map(drop)
    }
}

fn check(plan: &Plan, limits: &Limits) -> Result<Budget> {
    let budget = Budget::new(limits);
    for array in &plan.arrays {
        budget.check(array)?;
    }
    Ok(budget)
}

/// Writes one pack; gives the number of its chunks and their bytes.
async fn move_pack(
    mover: &Mover,
    sink: &dyn Sink,
    journal: &Journal,
    budget: &Budget,
    pack: Pack,
) -> Result<(u64, u64)> {
    let receipt = {
        let _room = budget.take(&mover.plan).await?;
        let mut writer = sink.open_pack(&pack).await?;
        let filled = mover.fill(&pack, &mut *writer).await;
        filled.map_err(|error| Error::for_array(&pack.array, error))?;
        writer.close().await?
    };
    let done = (receipt.chunks, receipt.bytes);
    journal.note(sink, pack, receipt).await?;
    Ok(done)
}

/// Memory for packs under way, counted before they begin.
struct Budget {
    /// In units of [`UNIT`].
    room: Semaphore,
    units: u32,
    limit_bytes: u64,
}

const UNIT: u64 = 1 << 20;

impl Budget {
    fn new(limits: &Limits) -> Self {
        let limit_bytes = limits.bytes_in_flight as u64;
        // The rest is for what lies around: pools, caches, the program itself.
        let units = u32::try_from(limit_bytes / UNIT * 3 / 4).unwrap_or(u32::MAX).max(1);
        Self { room: Semaphore::new(units as usize), units, limit_bytes }
    }

    /// Refuses an array of which not even one pack fits.
    fn check(&self, plan: &ArrayPlan) -> Result<()> {
        let needed = working_bytes(plan);
        if needed <= u64::from(self.units).saturating_mul(UNIT) {
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

    async fn take(&self, plan: &ArrayPlan) -> Result<tokio::sync::SemaphorePermit<'_>> {
        let units = u32::try_from(working_bytes(plan).div_ceil(UNIT)).unwrap_or(u32::MAX);
        let permit = self.room.acquire_many(units.clamp(1, self.units)).await;
        permit.map_err(|closed| Error::store("reserve", "memory", closed))
    }
}

/// The memory that a pack of an array takes at most while it is filled.
fn working_bytes(plan: &ArrayPlan) -> u64 {
    let bytes = |extents: &[u64], item: u64| {
        extents.iter().fold(item, |bytes, &extent| bytes.saturating_mul(extent))
    };
    let (source_item, target_item) = (plan.from.item_bytes(), plan.to.item_bytes());
    let source_chunk = plan.from.spec.chunk_shape().unwrap_or_default();
    let target_chunk = plan.to.spec.chunk_shape().unwrap_or_default();
    let batch = match plan.movement {
        Movement::Copy | Movement::Transcode => {
            bytes(source_chunk, source_item).max(8 << 20).saturating_mul(2)
        }
        // Only the encoded result: chunks are gathered from where the elements are.
        Movement::Regrid if plan.from_memory => bytes(&plan.tile, target_item),
        // The tile, the encoded source chunks that reach into and over it, the encoded result.
        Movement::Regrid => bytes(&plan.tile, source_item)
            .saturating_add(bytes(&plan.touched_by_tile(), source_item))
            .saturating_add(bytes(&plan.tile, target_item)),
    };
    let chunk = bytes(target_chunk, target_item);
    // Packs that wait until they are complete hold at most this.
    let held = bytes(plan.packs.chunk_shape(), target_item).min(64 << 20).max(chunk);
    batch.saturating_add(held)
}
