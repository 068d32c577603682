//! The side that writes packs.

use std::collections::BTreeMap;
use std::sync::Arc;

use chunkyard_array::Region;
use chunkyard_format::{Meter, Pack, PackSink, Receipt, Source};
use chunkyard_store::{Error, Noun, Options, Result};
use futures::{StreamExt, TryStreamExt, stream};

use super::order::{Done, Order, PackRange, Task};
use crate::pipeline::budget::Budget;
use crate::pipeline::conversion::Conversion;
use crate::pipeline::journal::render;
use crate::pipeline::mover::Mover;
use crate::pipeline::occupied::Visit;
use crate::pipeline::plan::{ArrayPlan, Plan};
use crate::pipeline::run::move_pack;

/// A worker's own settings.
#[derive(Debug, Clone, Default)]
pub struct WorkOptions {
    /// Options of stores that orders do not carry, such as secrets, and the limits for this
    /// machine.
    pub store: Options,
    /// Advanced as packs are written.
    pub meter: Arc<Meter>,
}

/// Takes part in a conversion: source open, plan made, sink joined. Serves any number of tasks.
#[derive(Debug)]
pub struct Worker {
    source: Arc<dyn Source>,
    plan: Plan,
    sink: Box<dyn PackSink>,
    budget: Budget,
    packs_in_flight: usize,
    meter: Arc<Meter>,
}

/// Does a task.
pub async fn work(task: &Task, options: &WorkOptions) -> Result<Done> {
    Worker::join(&task.order, options).await?.work(&task.packs).await
}

impl Worker {
    /// Prepares for the tasks of an order.
    pub async fn join(order: &Order, options: &WorkOptions) -> Result<Self> {
        let limits = options.store.limits;
        let conversion = Conversion::of_order(order, &options.store).await?;
        let Conversion { source, plan, to, .. } = &conversion;
        let sink = to.join(conversion.target(), &plan.dataset, &order.ticket).await?;
        let (source, plan) = (source.clone(), plan.clone());
        let budget = Budget::for_plan(&plan, &limits, sink.held_bytes_max())?;
        let packs_in_flight = limits.packs_in_flight.max(1);
        Ok(Self { source, plan, sink, budget, packs_in_flight, meter: options.meter.clone() })
    }

    /// Writes packs, and gives their receipts when they are durable.
    pub async fn work(&self, packs: &[PackRange]) -> Result<Done> {
        let mut movers = BTreeMap::new();
        for array in packs.iter().map(|range| &range.array) {
            if !movers.contains_key(array) {
                let planned = self.plan.array(array).ok_or_else(|| unknown(array))?;
                let mover = Mover::new(&self.source, &Arc::new(planned.clone()), None)?;
                movers.insert(array.clone(), mover);
            }
        }
        // Owned, so that the compiler sees that all of this can go to another thread.
        let owned: Vec<PackRange> = packs.into();
        let numbers = owned.into_iter().flat_map(|PackRange { array, packs, boxes }| {
            packs.map(move |number| (array.clone(), number, boxes.clone()))
        });
        let written: Vec<(Pack, Receipt)> = stream::iter(numbers)
            .map(|(array, number, boxes)| {
                let mover = movers.get(&array);
                async move {
                    let mover = mover.ok_or_else(|| unknown(&array))?;
                    let visit = visit(&mover.plan, number, boxes)?;
                    let receipt = move_pack(mover, &*self.sink, &self.budget, &visit).await?;
                    self.meter.advance(mover.plan.pack_bytes(&visit.pack));
                    self.meter.advance_packs();
                    Ok::<_, Error>((visit.pack, receipt))
                }
            })
            .buffer_unordered(self.packs_in_flight)
            .try_collect()
            .await?;
        let receipts: Vec<Receipt> = written.iter().map(|(_, receipt)| receipt.clone()).collect();
        self.sink.sync(&receipts).await?;
        let receipts = render(&written, self.plan.seed());
        Ok(Done { plan: self.plan.name.clone(), receipts })
    }
}

/// The pack with a number, and its boxes that hold anything according to the task.
fn visit(plan: &ArrayPlan, number: u64, boxes: Vec<(Vec<u64>, Vec<u64>)>) -> Result<Visit> {
    let pack = plan.pack(number).ok_or_else(|| unknown(&plan.target))?;
    if boxes.is_empty() {
        return Ok(Visit { pieces: vec![pack.region.clone()], pack });
    }
    let (grid, mut pieces) = (plan.to.grid()?, Vec::with_capacity(boxes.len()));
    for (origin, shape) in boxes {
        let piece = Region::new(origin, shape)?;
        // Otherwise half a chunk would be written as a whole one.
        let ends = piece.end();
        let axes = grid.chunk_shape().iter().zip(grid.array_shape()).enumerate();
        let is_whole = |(axis, (chunk, extent)): (usize, (&u64, &u64))| {
            let (start, end) = (piece.origin()[axis], ends[axis]);
            start.is_multiple_of(*chunk) && (end.is_multiple_of(*chunk) || end == *extent)
        };
        if !pack.region.contains(&piece) || !axes.into_iter().all(is_whole) {
            return Err(Error::invalid(format!(
                "{}: a task for the box {piece}, which is not of whole chunks of the pack {}",
                plan.target, pack.region
            )));
        }
        pieces.push(piece);
    }
    Ok(Visit { pack, pieces })
}

fn unknown(array: &str) -> Error {
    Error::NotFound { what: Noun::Pack, name: array.to_owned() }
}
