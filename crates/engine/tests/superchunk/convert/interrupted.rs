//! Conversions into BLZ that are killed, or meant to replace something.

use std::sync::Arc;

use chunkyard_array::ArraySpec;
use chunkyard_engine::format::{CreateOptions, OpenOptions, Place, Source};
use chunkyard_engine::open::format_named;
use chunkyard_engine::pipeline::{Outcome, Plan, RunOptions, Wishes, run};
use chunkyard_engine::store::fault::{self, Fault, Mode, Unsynced};
use chunkyard_engine::store::{Limits, Store};
use chunkyard_engine::{Error, Result};

use super::super::support::{local, memory};
use super::wishes;
use crate::convert::sample::Sample;
use crate::convert::support::{From, PATH, Yard, opened, read};

/// A conversion of several packs.
struct Work {
    source: Arc<dyn Source>,
    sample: Sample,
    overwrite: bool,
    /// The name of what it becomes, and the array in it.
    target: &'static str,
    path: &'static str,
}

impl Work {
    async fn new() -> Self {
        let spec = ArraySpec::builder(&[11, 2], &[2, 2], "int32").build().unwrap();
        let sample = Sample::of(spec).sparse(|index| index[0] != 1);
        let source = From::Zarr3.write(&Yard::memory(), "source", &sample).await;
        Self { source, sample, overwrite: false, target: "t.blz", path: PATH }
    }

    /// The same into a single Bloscpack file.
    async fn single() -> Self {
        let yard = Yard::memory();
        let work = Self::new().await;
        From::Zarr3.write(&yard, "source", &work.sample).await;
        let source = opened(&yard.at(&format!("source{PATH}"))).await;
        Self { source, target: "t.blp", path: "/", ..work }
    }

    async fn run(&self, store: &Store) -> Result<Outcome> {
        let format = format_named("blz")?;
        let shards = Some(Some(vec![4, 2]));
        let wishes = Wishes { pack_bytes: Some(1), shards, ..wishes("blosc:lz4:1") };
        let plan = Plan::new(&*self.source, &wishes, format, "")?;
        let place = Place::within(store.clone(), self.target)?;
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
        let place = Place::within(store.clone(), self.target).unwrap();
        let format = format_named("blz").unwrap();
        match format.open(&place, &OpenOptions::default()).await {
            Ok(source) => {
                assert!(
                    read(&source, self.path).await == self.sample.array,
                    "{what}: not complete"
                );
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
    }
}

async fn interrupt_everywhere(work: &Work, is_local: bool, deaths: &[(Mode, Unsynced)]) {
    for &(mode, unsynced) in deaths {
        for n in 0.. {
            let (_temp, here) = local();
            let place = if is_local { here } else { memory() };
            let store = place.object().unwrap().0.clone();
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
async fn a_conversion_killed_anywhere_in_a_directory_goes_on() {
    let deaths = [
        (Mode::Die, Unsynced::Kept),
        (Mode::DieAfter, Unsynced::Emptied),
        (Mode::Tear, Unsynced::Reverted),
    ];
    interrupt_everywhere(&Work::new().await, true, &deaths).await;
    interrupt_everywhere(&Work::single().await, true, &deaths).await;
}

#[tokio::test]
async fn a_conversion_killed_anywhere_on_an_object_store_goes_on() {
    let deaths = [(Mode::Die, Unsynced::Kept), (Mode::DieAfter, Unsynced::Kept)];
    interrupt_everywhere(&Work::new().await, false, &deaths).await;
}

/// Replaces what is there if told to; what anything else is said to be.
async fn replace(mut work: Work, store: &Store, spoil: impl AsyncFn(&Store)) -> String {
    work.run(store).await.unwrap();
    let refused = work.run(store).await.unwrap_err();
    assert!(matches!(refused, Error::AlreadyExists { .. }), "{refused}");
    work.overwrite = true;
    work.run(store).await.unwrap();
    assert!(work.is_there(store, "replaced").await);
    // Nothing is left beside it.
    let found = store.list_dir("").await.unwrap();
    assert_eq!(found.objects.len() + found.dirs.len(), 1, "{found:?}");
    spoil(store).await;
    work.run(store).await.unwrap_err().to_string()
}

#[tokio::test]
async fn what_is_there_is_replaced_only_when_told_to() {
    let (_temp, place) = local();
    let store = place.object().unwrap().0;
    let refused = replace(Work::new().await, store, async |store| {
        store.delete(&["t.blz/meta/sizes".to_owned()]).await.unwrap();
    });
    let refused = refused.await;
    assert!(refused.contains("no BLZ"), "{refused}");

    let (_temp, place) = local();
    let store = place.object().unwrap().0;
    let refused = replace(Work::single().await, store, async |store| {
        store.put("t.blp", vec!["no such file".into()]).await.unwrap();
    });
    let refused = refused.await;
    assert!(refused.contains("no Bloscpack"), "{refused}");
}
