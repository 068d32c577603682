//! Carrying out a plan: packs, several at a time, then the commit.

use std::sync::Arc;

use chunkyard_format::{HELD_BYTES_MAX, Meter, PackSink, Published, Receipt, Sink, Source};
use chunkyard_store::{Error, Limits, Result};
use futures::{StreamExt, TryStreamExt, stream};

use super::budget::Budget;
use super::damage::{Damage, Damaged};
use super::journal::Journal;
use super::mover::Mover;
use super::occupied::{Scan, Visit};
use super::plan::Plan;
use super::route::survey;
use super::verify;

/// How a plan is carried out.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// The resources it may use.
    pub limits: Limits,
    /// Read back what was written, before it is visible, and compare it with the source.
    pub verify: bool,
    /// Go on without chunks that cannot be read, and [list](Outcome::damaged) them. The target has the fill value
    /// there.
    pub skip_corrupt: bool,
    /// Advanced with the work, for a progress bar.
    pub meter: Arc<Meter>,
}

/// What was done.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Packs that hold anything, and how many of them an earlier attempt had done.
    pub packs: u64,
    /// See `packs`.
    pub resumed: u64,
    /// Chunks that are stored.
    pub chunks: u64,
    /// Their encoded bytes.
    pub bytes_stored: u64,
    /// Bytes of the elements.
    pub bytes: u64,
    /// Chunks that could not be read and were left out.
    pub damaged: Vec<Damaged>,
    /// The result that was made visible.
    pub published: Published,
}

/// Carries out a plan, and makes the result visible at the very end. After a failure, running the
/// same plan again continues where this run ended.
pub async fn run(
    source: &Arc<dyn Source>,
    sink: Box<dyn Sink>,
    plan: &Plan,
    options: &RunOptions,
) -> Result<Outcome> {
    let budget = Budget::for_plan(plan, &options.limits, sink.held_bytes_max())?;
    let (journal, resumed) = Journal::open(&*sink, plan).await?;
    let damage = options.skip_corrupt.then(|| Arc::new(Damage::default()));
    if damage.is_some() && (resumed.chunks > 0 || options.verify) {
        return Err(Error::invalid(
            "a conversion that leaves damaged chunks out is begun anew and not compared with its source: what \
             an earlier attempt left out is not known",
        ));
    }
    let meter = &options.meter;
    let rounds = if options.verify { 2 } else { 1 };
    let expect = |(packs, bytes): (u64, u64)| {
        meter.expect_packs(packs.saturating_mul(rounds));
        meter.expect(bytes.saturating_mul(rounds));
    };
    let legs = survey(plan, |array| vec![Scan::source_of(array, source)], &options.limits).await?;
    legs.iter().for_each(|leg| expect(leg.extent()));
    let moved = stream::iter(legs)
        .map(|leg| {
            let mover = Arc::new(Mover::new(source, leg.plan(), damage.clone())?);
            Ok::<_, Error>(leg.visits(expect).map_ok(move |visit| (mover.clone(), visit)))
        })
        .try_flatten()
        .map(|work| {
            let (sink, journal, budget) = (&*sink, &journal, &budget);
            async move {
                let (mover, visit) = work?;
                let bytes = mover.plan.pack_bytes(&visit.pack);
                let mut moved = Moved { packs: 1, ..Moved::default() };
                if journal.has(&visit.pack) {
                    moved.resumed = 1;
                } else {
                    let receipt = move_pack(&mover, sink, budget, &visit).await?;
                    (moved.chunks, moved.bytes) = (receipt.chunks, receipt.bytes);
                    journal.note(sink, visit.pack, receipt).await?;
                }
                meter.advance(bytes);
                meter.advance_packs();
                Ok::<_, Error>(moved)
            }
        })
        .buffer_unordered(options.limits.packs_in_flight.max(1))
        .try_fold(Moved::default(), |sum, moved| async move { Ok(sum.and(moved)) })
        .await;
    // Also after a failure: finished packs count.
    let flushed = journal.flush(&*sink).await;
    let moved = moved?;
    flushed?;
    if options.verify {
        let written = sink.written().await?;
        verify::verify(source, &written, plan, &options.limits, meter).await?;
    }
    let published = sink.finish().await?;
    Ok(Outcome {
        packs: moved.packs,
        resumed: moved.resumed,
        chunks: moved.chunks + resumed.chunks,
        bytes_stored: moved.bytes + resumed.bytes,
        bytes: plan.bytes(),
        damaged: damage.map(|damage| damage.list()).unwrap_or_default(),
        published,
    })
}

/// What was done in this attempt.
#[derive(Debug, Clone, Copy, Default)]
struct Moved {
    /// Visited packs, and how many of them were done before.
    packs: u64,
    resumed: u64,
    chunks: u64,
    bytes: u64,
}

impl Moved {
    fn and(self, more: Self) -> Self {
        Self {
            packs: self.packs + more.packs,
            resumed: self.resumed + more.resumed,
            chunks: self.chunks + more.chunks,
            bytes: self.bytes + more.bytes,
        }
    }
}

impl Plan {
    /// Refuses limits that are too small for the plan.
    pub fn check(&self, limits: &Limits) -> Result<()> {
        Budget::for_plan(self, limits, HELD_BYTES_MAX).map(drop)
    }
}

/// Writes one pack, once there is memory for it. It is complete then, not yet durable.
pub(super) async fn move_pack(
    mover: &Mover,
    sink: &dyn PackSink,
    budget: &Budget,
    visit: &Visit,
) -> Result<Receipt> {
    let _room = budget.take(&mover.plan).await?;
    let mut writer = sink.open_pack(&visit.pack).await?;
    let filled = mover.fill(&visit.pieces, &mut *writer, budget.fetching(&mover.plan)).await;
    filled.map_err(|error| Error::for_array(&visit.pack.array, error))?;
    writer.close().await
}
