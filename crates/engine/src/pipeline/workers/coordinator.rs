//! The side that plans, hands out and commits.

use std::sync::Arc;

use chunkyard_format::{CreateOptions, Pack, Sink, Source};
use chunkyard_store::{Durability, Error, Limits, Noun, Result};

use super::order::{Address, Done, Order, PackRange, Task, public};
use crate::pipeline::conversion::Conversion;
use crate::pipeline::journal::{Journal, Resumed, pack_of, parse};
use crate::pipeline::occupied::{Scan, Slice, Visit};
use crate::pipeline::plan::Plan;
use crate::pipeline::route::survey;
use crate::pipeline::run::{Outcome, RunOptions};
use crate::pipeline::verify;

/// Element bytes of a task at most, unless a single pack has more: a few seconds of work, so that
/// little is lost when a worker is killed.
const TASK_BYTES: u64 = 256 << 20;
/// The most packs of a task, however small, and boxes in them.
const TASK_PACKS: usize = 1024;
/// The largest grid whose packs are all visited if it stores too many chunks to list at once.
const GRID_MAX: u64 = 1 << 32;
/// Tasks per worker at least, if there are enough packs: the last tasks end at different times.
const TASKS_PER_WORKER: u64 = 4;

/// A conversion that workers carry out.
#[derive(Debug)]
pub struct Coordinator {
    source: Arc<dyn Source>,
    plan: Plan,
    /// The packs to be written, array by array.
    route: Vec<Slice>,
    /// Their number, and the bytes of their elements.
    extent: (u64, u64),
    sink: Box<dyn Sink>,
    journal: Journal,
    order: Arc<Order>,
    options: RunOptions,
    resumed: u64,
    /// Finished packs, also from an earlier attempt.
    done: Resumed,
    /// A pack was taken over and could not be made durable: nothing may be committed.
    unsound: bool,
}

impl Coordinator {
    /// Creates the target of a conversion, or finds the one that an earlier attempt has begun.
    pub async fn begin(
        conversion: &Conversion,
        create: CreateOptions,
        options: RunOptions,
    ) -> Result<Self> {
        let sink = conversion.create(create).await?;
        let plan = conversion.plan.clone();
        let (journal, done) = Journal::open(&*sink, &plan).await?;
        let order = Arc::new(order(conversion, &*sink).await?);
        let source = conversion.source.clone();
        let route = known_route(&plan, &source, &options.limits).await?;
        let rounds = if options.verify { 2 } else { 1 };
        let mut done = Resumed { packs: 0, ..done };
        let mut extent = (0u64, 0u64);
        for slice in &route {
            let (packs, bytes) = slice.extent();
            extent = (extent.0.saturating_add(packs), extent.1.saturating_add(bytes));
            for pack in done_before(slice, &journal) {
                options.meter.advance(slice.plan().pack_bytes(&pack));
                options.meter.advance_packs();
                done.packs += 1;
            }
        }
        options.meter.expect_packs(extent.0.saturating_mul(rounds));
        options.meter.expect(extent.1.saturating_mul(rounds));
        let (resumed, unsound) = (done.packs, false);
        Ok(Self {
            source,
            plan,
            route,
            extent,
            sink,
            journal,
            order,
            options,
            resumed,
            done,
            unsound,
        })
    }

    /// What workers need to know, the same for all tasks.
    pub fn order(&self) -> &Arc<Order> {
        &self.order
    }

    /// Packs that are done, and packs in all.
    pub fn packs(&self) -> (u64, u64) {
        (self.done.packs, self.extent.0)
    }

    /// Bytes of the elements of all packs.
    pub fn bytes(&self) -> u64 {
        self.extent.1
    }

    /// The unfinished packs, as tasks for this many workers, made one by one. Call it again when
    /// tasks were lost.
    pub fn tasks(&self, workers: usize) -> impl Iterator<Item = Task> + Send + use<> {
        let shares = (workers.max(1) as u64).saturating_mul(TASKS_PER_WORKER);
        self.tasks_within(self.extent.1.div_ceil(shares).clamp(1, TASK_BYTES))
    }

    /// The unfinished packs, as tasks of at most this many bytes of elements, unless a single pack has more.
    pub fn tasks_within(&self, bytes_max: u64) -> impl Iterator<Item = Task> + Send + use<> {
        let (order, done) = (self.order.clone(), self.journal.done().clone());
        let visits = self.route.clone().into_iter().flat_map(move |slice| {
            let array = slice.plan().clone();
            let done = done.get(&array.target).cloned().unwrap_or_default();
            let visits = slice.visits().filter(move |visit| !done.contains(visit.pack.number));
            visits.map(move |visit| (array.pack_bytes(&visit.pack), visit))
        });
        let mut visits = visits.peekable();
        std::iter::from_fn(move || {
            let (mut ranges, mut bytes, mut count) = (Vec::<PackRange>::new(), 0_u64, 0);
            // At least one, then as many as fit.
            while let Some((size, Visit { pack, pieces })) = visits.next_if(|(size, visit)| {
                let weight = visit.pieces.len();
                let fits = bytes.saturating_add(*size) <= bytes_max;
                count == 0 || (count + weight <= TASK_PACKS && fits)
            }) {
                bytes = bytes.saturating_add(size);
                count += pieces.len();
                let whole = pieces == [pack.region.clone()];
                match ranges.last_mut() {
                    Some(last)
                        if whole
                            && last.boxes.is_empty()
                            && last.array == pack.array
                            && last.packs.end == pack.number =>
                    {
                        last.packs.end += 1;
                    }
                    _ => {
                        let boxes = pieces.iter().filter(|_| !whole);
                        ranges.push(PackRange {
                            array: pack.array,
                            packs: pack.number..pack.number.saturating_add(1),
                            boxes: boxes
                                .map(|piece| (piece.origin().to_vec(), piece.shape().to_vec()))
                                .collect(),
                        });
                    }
                }
            }
            let order = order.clone();
            (count > 0).then(|| Task { order, packs: ranges })
        })
    }

    /// Adopts the packs of a worker, and from time to time records them. Returns how many packs
    /// were new: a repeated task adds none.
    pub async fn adopt(&mut self, done: &Done) -> Result<u64> {
        self.require_sound()?;
        if done.plan != self.plan.name {
            return Err(Error::invalid("these receipts are of another conversion"));
        }
        let records = parse(&done.receipts, self.plan.seed()).ok_or_else(|| Error::Corrupt {
            file: "the receipts of a worker".to_owned(),
            what: "checksum".to_owned(),
            expected: "that of records of this plan".to_owned(),
            found: format!("{} bytes of something else", done.receipts.len()),
        })?;
        let mut adopted = 0;
        for (array, number, receipt) in records {
            let pack = pack_of(&self.plan, &array, number)
                .ok_or_else(|| Error::NotFound { what: Noun::Pack, name: array.clone() })?;
            if self.journal.has(&pack) {
                continue;
            }
            let receipt = self.sink.accept(&pack, receipt).await?;
            self.journal.mark(&pack);
            self.done.packs += 1;
            self.done.chunks += receipt.chunks;
            self.done.bytes += receipt.bytes;
            if let Some(array) = self.plan.array(&pack.array) {
                self.options.meter.advance(array.pack_bytes(&pack));
                self.options.meter.advance_packs();
            }
            // Also if this future is dropped on the way.
            self.unsound = true;
            self.journal.note(&*self.sink, pack, receipt).await?;
            self.unsound = false;
            adopted += 1;
        }
        Ok(adopted)
    }

    /// Records finished packs, so that a later run can continue.
    pub async fn pause(&mut self) -> Result<()> {
        self.require_sound()?;
        self.unsound = true;
        self.journal.flush(&*self.sink).await?;
        self.unsound = false;
        Ok(())
    }

    fn require_sound(&self) -> Result<()> {
        match self.unsound {
            false => Ok(()),
            true => Err(Error::invalid(
                "packs could not be made durable; convert again to go on with those that are",
            )),
        }
    }

    /// Makes the result visible, when all packs are done.
    pub async fn finish(mut self) -> Result<Outcome> {
        let (done, packs) = self.packs();
        // Some receipts may be for packs that are empty by now, so counting is not enough.
        if self.tasks(1).next().is_some() {
            let left = packs.saturating_sub(done);
            return Err(Error::invalid(format!("{left} of {packs} packs are not done")));
        }
        self.pause().await?;
        if self.options.verify {
            let written = self.sink.written().await?;
            let RunOptions { limits, meter, .. } = &self.options;
            verify::verify(&self.source, &written, &self.plan, limits, meter).await?;
        }
        let published = self.sink.finish().await?;
        Ok(Outcome {
            packs,
            resumed: self.resumed,
            chunks: self.done.chunks,
            bytes_stored: self.done.bytes,
            bytes: self.plan.bytes(),
            damaged: Vec::new(),
            published,
        })
    }
}

/// The packs of a plan that are worth a visit, all of them at once: tasks are handed out in any order.
async fn known_route(plan: &Plan, source: &Arc<dyn Source>, limits: &Limits) -> Result<Vec<Slice>> {
    // Nothing else takes memory here.
    let bytes_in_flight = limits.bytes_in_flight.saturating_mul(4);
    let limits = Limits { bytes_in_flight, ..*limits };
    let legs = survey(plan, |array| vec![Scan::source_of(array, source)], &limits).await?;
    let known = legs.into_iter().map(|leg| {
        let plan = leg.plan().clone();
        match leg.into_slice() {
            Some(slice) => Ok(slice),
            None if plan.from.grid()?.num_chunks() <= GRID_MAX => Ok(Slice::all(&plan)),
            None => Err(Error::unsupported(format!(
                "{}: it stores more chunks than fit into memory, here and there in a grid of {}; \
                 convert it without workers, or regions of it",
                plan.source,
                plan.from.grid()?.num_chunks()
            ))),
        }
    });
    known.collect()
}

/// The packs of a slice that an earlier attempt has done.
fn done_before(slice: &Slice, journal: &Journal) -> Vec<Pack> {
    let plan = slice.plan();
    let Some(done) = journal.done().get(&plan.target) else { return Vec::new() };
    let is_there = |number: &u64| slice.is_all() || done.contains(*number);
    let numbers: Box<dyn Iterator<Item = u64>> =
        if slice.is_all() { Box::new(done.iter()) } else { Box::new(slice.numbers()) };
    numbers.filter(is_there).filter_map(|number| plan.pack(number)).collect()
}

/// A conversion as its workers need to know it.
async fn order(conversion: &Conversion, sink: &dyn Sink) -> Result<Order> {
    let (from, to) = &conversion.places;
    let request = &conversion.request;
    let store = &request.open.store;
    // Absolute, since workers may be elsewhere.
    let source =
        Address { url: from.directory().url().into(), format: conversion.from.name().into() };
    let target = Address { url: to.directory().url().into(), format: conversion.to.name().into() };
    Ok(Order {
        source,
        version: conversion.source.version(),
        allowed: request.open.allowed.clone(),
        target,
        wishes: request.wishes.clone(),
        name: conversion.name.clone(),
        storage: public(store),
        durable: store.durability == Durability::Full,
        plan: conversion.plan.name.clone(),
        ticket: sink.ticket().await?,
    })
}
