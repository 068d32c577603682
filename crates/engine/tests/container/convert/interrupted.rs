//! Conversions into containers that are killed, refused, or meant to replace something.

use std::sync::Arc;

use chunkyard_array::ArraySpec;
use chunkyard_engine::format::{CreateOptions, OpenOptions, Place, Source};
use chunkyard_engine::open::format_named;
use chunkyard_engine::pipeline::{Outcome, Plan, RunOptions, Wishes, run};
use chunkyard_engine::store::fault::{self, Fault, Mode, Refusal, Unsynced};
use chunkyard_engine::store::{Limits, Store};
use chunkyard_engine::{Error, ErrorKind, Result};

use super::{TARGET, wishes};
use crate::container::support::{directory, empty_footer, files, furnished, layer_file, memory};
use crate::convert::sample::Sample;
use crate::convert::support::{From, PATH, Yard, read};

/// A conversion into a container, of several packs.
struct Work {
    source: Arc<dyn Source>,
    sample: Sample,
    overwrite: bool,
}

impl Work {
    async fn new() -> Self {
        let spec = ArraySpec::builder(&[5, 5], &[2, 2], "int32").build().unwrap();
        let sample = Sample::of(spec).sparse(|index| (index[0] + index[1]) % 2 == 0);
        let source = From::Shards.write(&Yard::memory(), "source", &sample).await;
        Self { source, sample, overwrite: false }
    }

    async fn run(&self, store: &Store) -> Result<Outcome> {
        let format = format_named("container")?;
        let wishes = Wishes { pack_bytes: Some(1), ..wishes(&[2, 1], "zstd:1") };
        let plan = Plan::new(&*self.source, &wishes, format, "")?;
        let place = Place::within(store.clone(), TARGET)?;
        let options = CreateOptions {
            plan: plan.name.clone(),
            overwrite: self.overwrite,
            ..CreateOptions::default()
        };
        let sink = format.create(&place, plan.dataset.clone(), options).await?;
        // One pack at a time, so that the same number is the same operation.
        let limits = Limits { packs_in_flight: 1, ..Limits::default() };
        run(&self.source, sink, &plan, &RunOptions { limits, ..RunOptions::default() }).await
    }

    /// Whether the target is there; if it looks so, it is complete.
    async fn is_there(&self, store: &Store, what: &str) -> bool {
        let place = Place::within(store.clone(), TARGET).unwrap();
        let format = format_named("container").unwrap();
        match format.open(&place, &OpenOptions::default()).await {
            Ok(source) if source.dataset().array(PATH).is_err() => false,
            Ok(source) => {
                assert!(read(&source, PATH).await == self.sample.array, "{what}: not complete");
                true
            }
            Err(Error::NotFound { .. }) => false,
            Err(error) => panic!("{what}: {error}"),
        }
    }

    /// After whatever happened: not there or complete, and the next attempt finishes.
    async fn goes_on(&self, store: &Store, what: &str) {
        let complete = self.is_there(store, what).await;
        match self.run(store).await {
            Ok(_) => {}
            Err(Error::AlreadyExists { .. }) if complete => {}
            Err(error) => panic!("{what}: {error:?}"),
        }
        assert!(self.is_there(store, what).await, "{what}");
        let left: Vec<_> = files(store).await.into_iter().filter(|n| n.starts_with('x')).collect();
        if complete {
            // Killed between the container and what only other programs read.
            assert!(left.starts_with(&[TARGET.to_owned()]) && left.len() <= 2, "{what}: {left:?}");
        } else {
            assert_eq!(left, [TARGET, "x.stats"], "{what}");
        }
        let dirs = store.list_dir("").await.unwrap().dirs;
        assert!(dirs.is_empty(), "{what}: {dirs:?}");
    }
}

const DEATHS: [(Mode, Unsynced); 6] = [
    (Mode::Die, Unsynced::Kept),
    (Mode::Die, Unsynced::Reverted),
    (Mode::DieAfter, Unsynced::Kept),
    (Mode::DieAfter, Unsynced::Emptied),
    (Mode::Tear, Unsynced::Kept),
    (Mode::Tear, Unsynced::Emptied),
];

async fn interrupt_everywhere(local: bool, deaths: &[(Mode, Unsynced)]) {
    let work = Work::new().await;
    for &(mode, unsynced) in deaths {
        for n in 0.. {
            let (_temp, here) = directory();
            let store = if local { here } else { memory() };
            let plan = fault::Plan::new(n, mode).with_power_cut(unsynced);
            let (faulty, fault) = Fault::wrap(&store, plan);
            let outcome = work.run(&faulty).await;
            fault.die().await.unwrap();
            let what = format!("{plan:?}: {outcome:?} {:#?}", fault.log());
            assert!(outcome.is_ok() <= work.is_there(&store, &what).await, "{what}");
            work.goes_on(&store, &what).await;
            if !fault.fired() {
                break;
            }
        }
    }
}

#[tokio::test]
async fn every_operation_of_a_conversion_can_be_the_last() {
    interrupt_everywhere(true, &DEATHS).await;
}

#[tokio::test]
async fn every_operation_of_a_conversion_can_be_the_last_on_an_object_store() {
    interrupt_everywhere(false, &[DEATHS[0], DEATHS[2]]).await;
}

#[tokio::test]
async fn a_refusal_at_any_operation_of_a_conversion_is_no_loss() {
    let work = Work::new().await;
    for refusal in [Refusal::NoSpace, Refusal::ReadOnly] {
        for n in 0.. {
            let (_temp, store) = directory();
            let plan = fault::Plan::new(n, Mode::Refuse(refusal));
            let (faulty, fault) = Fault::wrap(&store, plan);
            let outcome = work.run(&faulty).await;
            let what = format!("{plan:?}: {outcome:?} {:#?}", fault.log());
            if let Err(error) = &outcome {
                assert_eq!(error.kind(), ErrorKind::Store, "{what}");
            }
            work.goes_on(&store, &what).await;
            if !fault.fired() {
                break;
            }
        }
    }
}

#[tokio::test]
async fn packs_that_were_recorded_are_not_moved_again() {
    let work = Work::new().await;
    let (_temp, store) = directory();
    let (counted, fault) = Fault::wrap(&store, fault::Plan::never());
    work.run(&counted).await.unwrap();
    let recorded = |op: &String| op.starts_with("put") && op.contains("/journal/0");
    let last = fault.log().iter().rposition(recorded).unwrap();
    let (_temp, store) = directory();
    let (faulty, _) = Fault::wrap(&store, fault::Plan::new(last + 2, Mode::Die));
    work.run(&faulty).await.unwrap_err();
    let outcome = work.run(&store).await.unwrap();
    assert_eq!(outcome.resumed, outcome.packs);
    assert!(work.is_there(&store, "resumed").await);
}

/// What is replaced is the old one, layers and all, until it is the new one.
#[tokio::test]
async fn every_operation_of_replacing_a_container_can_be_the_last() {
    let work = Work { overwrite: true, ..Work::new().await };
    for foreign in [false, true] {
        for mode in [Mode::Die, Mode::DieAfter] {
            for n in 0.. {
                let (_temp, store) = directory();
                furnished(&store).await;
                if foreign {
                    // A layer of another program, which does not say which container it belongs to.
                    let layer = layer_file(&[], &empty_footer(9, TARGET));
                    store.put("x.9.af", vec![layer]).await.unwrap();
                }
                let (faulty, fault) = Fault::wrap(&store, fault::Plan::new(n, mode));
                let outcome = work.run(&faulty).await;
                let what = format!("{mode:?} {n} {foreign}: {outcome:?} {:#?}", fault.log());
                let container = crate::container::support::open(&store).await;
                let names = container.names().await.unwrap();
                match names.len() {
                    1 => assert_eq!(names, [PATH.trim_start_matches('/')], "{what}"),
                    _ => assert_eq!(names, ["a/b", "c", "text"], "{what}"),
                }
                let layers = container.layers().await.unwrap().len();
                let expected = if names.len() == 1 { 1 } else { 3 + usize::from(foreign) };
                assert_eq!(layers, expected, "{what}");
                work.goes_on(&store, &what).await;
                if !fault.fired() {
                    break;
                }
            }
        }
    }
}

/// Whoever still has the old container open cannot write into the new one, and is told so.
#[tokio::test]
async fn a_writer_of_a_container_that_was_replaced_gets_a_conflict() {
    let (_temp, store) = directory();
    let old = furnished(&store).await;
    old.define(crate::container::support::definition("late", &[1], &[1])).await.unwrap();
    let work = Work { overwrite: true, ..Work::new().await };
    work.run(&store).await.unwrap();
    for _ in 0..2 {
        let error = old.flush().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        let error = old.refresh().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    }
    assert!(work.is_there(&store, "after").await);
    assert_eq!(files(&store).await, [TARGET, "x.stats"]);
}

#[tokio::test]
async fn a_conversion_does_not_replace_a_container_unless_it_is_told_to() {
    for store in [memory(), directory().1] {
        let work = Work::new().await;
        work.run(&store).await.unwrap();
        let error = work.run(&store).await.unwrap_err();
        assert!(matches!(error, Error::AlreadyExists { .. }), "{error:?}");
        assert!(work.is_there(&store, "once").await);
    }
}
