//! Doing what a plan says: packs, several at a time, then the commit.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};

use super::budget::Budget;
use super::journal::Journal;
use super::mover::Mover;
use super::plan::{ArrayPlan, Plan};
use super::verify;
use crate::error::{Error, Result};
use crate::format::{HELD_BYTES_MAX, Pack, PackSink, Published, Receipt, Sink, Source};
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
    let budget = Budget::for_plan(plan, &options.limits, sink.held_bytes_max())?;
    let (journal, resumed) = Journal::open(&*sink, plan).await?;
    let meter = &options.meter;
    let rounds = if options.verify { 2 } else { 1 };
    meter.expect(plan.bytes().saturating_mul(rounds));
    meter.expect_packs(plan.packs().saturating_mul(rounds));
    // Owned, so that the compiler sees that all of this can go to another thread.
    let work = plan.arrays.clone().into_iter().flat_map(|array| packs_of(source, array));
    let moved = stream::iter(work)
        .map(|work| {
            let (sink, journal, budget) = (&*sink, &journal, &budget);
            async move {
                let (mover, pack) = work?;
                let bytes = mover.plan.pack_bytes(&pack);
                let mut done = (0, 0);
                if !journal.has(&pack) {
                    let receipt = move_pack(&mover, sink, budget, &pack).await?;
                    done = (receipt.chunks, receipt.bytes);
                    journal.note(sink, pack, receipt).await?;
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

/// The packs of an array, each with what moves it; or why nothing can.
fn packs_of(
    source: &Arc<dyn Source>,
    array: ArrayPlan,
) -> impl Iterator<Item = Result<(Arc<Mover>, Pack)>> + Send + use<> {
    let packs = array.each_pack();
    let (mover, failed) = match Mover::new(source, &Arc::new(array)) {
        Ok(mover) => (Some(Arc::new(mover)), None),
        Err(error) => (None, Some(Err(error))),
    };
    let packs = mover.map(|mover| packs.map(move |pack| Ok((mover.clone(), pack))));
    packs.into_iter().flatten().chain(failed)
}

impl Plan {
    /// Refuses limits within which the plan cannot be carried out.
    pub fn check(&self, limits: &Limits) -> Result<()> {
        Budget::for_plan(self, limits, HELD_BYTES_MAX).map(drop)
    }
}

/// Writes one pack, once there is memory for it. It is complete then, not yet durable.
pub(super) async fn move_pack(
    mover: &Mover,
    sink: &dyn PackSink,
    budget: &Budget,
    pack: &Pack,
) -> Result<Receipt> {
    let _room = budget.take(&mover.plan).await?;
    let mut writer = sink.open_pack(pack).await?;
    let filled = mover.fill(pack, &mut *writer).await;
    filled.map_err(|error| Error::for_array(&pack.array, error))?;
    writer.close().await
}
