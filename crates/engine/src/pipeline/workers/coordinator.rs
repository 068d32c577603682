//! The side that plans, hands out and commits.

use std::sync::Arc;

use super::order::{Address, Done, Order, PackRange, Task, public};
use crate::error::{Error, Result};
use crate::format::{CreateOptions, Sink, Source};
use crate::pipeline::conversion::Conversion;
use crate::pipeline::journal::{Journal, Resumed, pack_of, parse};
use crate::pipeline::plan::Plan;
use crate::pipeline::run::{Outcome, RunOptions};
use crate::pipeline::verify;
use crate::store::Durability;

/// Elements of a task in bytes, at most, unless a pack has more: what a worker needs a few seconds
/// for, so that little is lost when it is killed.
const TASK_BYTES: u64 = 256 << 20;
/// Packs of a task at most, however small.
const TASK_PACKS: usize = 1024;
/// Tasks per worker, at least, where there are so many packs: the last ones end at different times.
const TASKS_PER_WORKER: u64 = 4;

/// A conversion that others carry out.
#[derive(Debug)]
pub struct Coordinator {
    source: Arc<dyn Source>,
    plan: Plan,
    sink: Box<dyn Sink>,
    journal: Journal,
    order: Arc<Order>,
    options: RunOptions,
    resumed: u64,
    /// What is done, by an earlier attempt as well.
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
        let rounds = if options.verify { 2 } else { 1 };
        options.meter.expect(plan.bytes().saturating_mul(rounds));
        options.meter.expect_packs(plan.packs().saturating_mul(rounds));
        let source = conversion.source.clone();
        let resumed = done.packs;
        let begun =
            Self { source, plan, sink, journal, order, options, resumed, done, unsound: false };
        for array in &begun.plan.arrays {
            for pack in array.each_pack().filter(|pack| begun.journal.has(pack)) {
                begun.options.meter.advance(array.pack_bytes(&pack));
                begun.options.meter.advance_packs();
            }
        }
        Ok(begun)
    }

    /// What workers need to know, the same for all tasks.
    pub fn order(&self) -> &Arc<Order> {
        &self.order
    }

    /// Packs that are done, and packs in all.
    pub fn packs(&self) -> (u64, u64) {
        (self.done.packs, self.plan.packs())
    }

    /// The packs that are not done now, as tasks for so many workers, made one by one. May be asked
    /// for again when tasks were lost.
    pub fn tasks(&self, workers: usize) -> impl Iterator<Item = Task> + Send + use<> {
        let shares = (workers.max(1) as u64).saturating_mul(TASKS_PER_WORKER);
        let bytes_max = self.plan.bytes().div_ceil(shares).clamp(1, TASK_BYTES);
        let (order, done) = (self.order.clone(), self.journal.done().clone());
        let packs = self.plan.arrays.clone().into_iter().flat_map(move |array| {
            let done = done.get(&array.target).cloned().unwrap_or_default();
            let packs = array.each_pack().filter(move |pack| !done.contains(pack.number));
            packs.map(move |pack| (array.pack_bytes(&pack), pack))
        });
        let mut packs = packs.peekable();
        std::iter::from_fn(move || {
            let (mut ranges, mut bytes, mut count) = (Vec::<PackRange>::new(), 0_u64, 0);
            // At least one, then as many as fit.
            while let Some((size, pack)) = packs.next_if(|(size, _)| {
                count == 0 || (count < TASK_PACKS && bytes.saturating_add(*size) <= bytes_max)
            }) {
                (bytes, count) = (bytes.saturating_add(size), count + 1);
                match ranges.last_mut() {
                    Some(last) if last.array == pack.array && last.packs.end == pack.number => {
                        last.packs.end += 1;
                    }
                    _ => ranges.push(PackRange {
                        array: pack.array,
                        packs: pack.number..pack.number.saturating_add(1),
                    }),
                }
            }
            let order = order.clone();
            (count > 0).then(|| Task { order, packs: ranges })
        })
    }

    /// Takes over what a worker has done, and from time to time writes it down. Gives the number of
    /// packs that were not done before: a task that was repeated adds nothing.
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
                .ok_or_else(|| Error::NotFound { what: "pack of the plan", name: array.clone() })?;
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

    /// Writes down what is done, for whoever goes on later.
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
        if done < packs {
            return Err(Error::invalid(format!("{} of {packs} packs are not done", packs - done)));
        }
        self.pause().await?;
        if self.options.verify {
            let written = self.sink.written().await?;
            verify::verify(&self.source, &written, &self.plan, &self.options.meter).await?;
        }
        let published = self.sink.finish().await?;
        Ok(Outcome {
            packs,
            resumed: self.resumed,
            chunks: self.done.chunks,
            bytes_stored: self.done.bytes,
            bytes: self.plan.bytes(),
            published,
        })
    }
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
