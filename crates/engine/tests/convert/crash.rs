//! A conversion is killed, or its machine loses power, or the disk fails, at any operation.
//!
//! The same conversion is run again and again with the end at operation 0, 1, 2, … until it is no longer
//! reached. Whenever it ends, its target is missing or complete. The same conversion then goes on and makes
//! the same bytes as an undisturbed one, and nothing else is left.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::ArraySpec;
use chunkyard_engine::format::{CreateOptions, OpenOptions, Place, Source};
use chunkyard_engine::open::{format_named, recognise};
use chunkyard_engine::pipeline::{Outcome, Plan, RunOptions, run};
use chunkyard_engine::repo::{self, Level, Repository, Version};
use chunkyard_engine::store::fault::{
    self, Fault, Mode, Refusal, Unsynced, at_every_operation, overlap,
};
use chunkyard_engine::store::{Limits, Store, TEMP_PREFIX};
use chunkyard_engine::{Error, ErrorKind, Result};
use futures::TryStreamExt;

use super::formats::{Entry, Repeats, every_sink, named, sinks};
use super::sample::Sample;
use super::support::{Yard, objects, read};

/// A conversion of 9 chunks, 4 of them missing, into several packs.
pub(crate) struct Work {
    source: Arc<dyn Source>,
    sample: Sample,
    to: &'static Entry,
    /// The name of the target, without the ending of its format.
    pub(crate) name: &'static str,
    chunks: [u64; 2],
    pub(crate) overwrite: bool,
    restart: bool,
}

impl Work {
    pub(crate) async fn new(yard: &Yard, to: &'static Entry) -> Self {
        let spec = ArraySpec::builder(&[5, 5], &[2, 2], "int32").build().unwrap();
        let sample = Sample::of(spec).sparse(|index| (index[0] + index[1]) % 2 == 0);
        named("shards").write(yard, "source", &sample).await;
        let source = to.input(yard, "source").await;
        let (name, chunks) = ("target", [2, 1]);
        Self { source, sample, to, name, chunks, overwrite: false, restart: false }
    }

    fn place(&self, store: &Store) -> Place {
        Place::within(store.clone(), &self.to.called(self.name)).unwrap()
    }

    /// Runs it with its target in a store.
    pub(crate) async fn run(&self, store: &Store) -> Result<Outcome> {
        let format = format_named(self.to.format)?;
        let wishes = self.to.packs(self.sample.spec.shape(), &self.chunks);
        let plan = Plan::new(&self.source, &wishes, format, "").await?;
        let place = self.place(store);
        let options = CreateOptions {
            plan: plan.name.clone(),
            overwrite: self.overwrite,
            restart: self.restart,
            ..CreateOptions::default()
        };
        let sink = format.create(&place, plan.dataset.clone(), options).await?;
        // One pack at a time, so that the same number is always the same operation.
        let limits = Limits { packs_in_flight: 1, ..Limits::default() };
        run(&self.source, sink, &plan, &RunOptions { limits, ..RunOptions::default() }).await
    }

    /// Whether the target exists; if it seems to, it must be complete.
    pub(crate) async fn is_there(&self, store: &Store, what: &str) -> bool {
        let place = self.place(store);
        let format = match recognise(&place).await {
            Ok(format) => format,
            Err(Error::NotFound { .. }) => return false,
            Err(error) => panic!("{what}: {error}"),
        };
        let opened = match format.open(&place, &OpenOptions::default()).await {
            Ok(opened) => opened,
            Err(error) => panic!("{what}: {error}"),
        };
        // An old dataset is there until it is replaced.
        let before = self.to.facts().begins_empty || self.overwrite;
        if before && opened.dataset().array(self.to.path()).is_err() {
            return false;
        }
        assert!(
            read(&opened, self.to.path()).await == self.sample.array,
            "{what}: looks complete and is not"
        );
        true
    }
}

/// A store for the target, apart from the source; the yard keeps it alive.
fn fresh(local: bool) -> (Yard, Store) {
    let yard = if local { Yard::directory() } else { Yard::memory() };
    let store = yard.store("place");
    (yard, store)
}

/// Whatever happened: the target is missing or complete, and the next attempt finishes.
async fn goes_on(work: &Work, store: &Store, expected: &BTreeMap<String, Bytes>, what: &str) {
    let complete = work.is_there(store, what).await;
    match work.run(store).await {
        Ok(_) => {}
        // The commit went through, only the reply was lost.
        Err(error) if error.kind() == ErrorKind::Conflict && complete => {}
        Err(error) => panic!("{what}: {error:?}"),
    }
    assert!(work.is_there(store, what).await, "{what}");
    let mut found = objects(store).await;
    match work.to.facts().repeats {
        Repeats::Content => return is_sound(store, what).await,
        Repeats::Names => {
            // Killed before the file beside it, which only other programs read, it lacks that file; the name of
            // the file aside then says that it is not needed.
            let files = work.to.files(work.name);
            found.retain(|name, _| !name.starts_with(TEMP_PREFIX));
            let left: Vec<&String> = found.keys().collect();
            let killed = complete && left.len() == 1;
            let expected = if killed { &files[..1] } else { &files[..] };
            assert_eq!(left, expected.iter().collect::<Vec<_>>(), "{what}");
            return;
        }
        Repeats::Bytes => {}
    }
    found.retain(|_, bytes| !work.to.facts().empties || !bytes.is_empty());
    let names = |all: &BTreeMap<String, Bytes>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&found), names(expected), "{what}");
    assert!(found == *expected, "{what}: other bytes");
}

/// A repository gives its files random names; its content must be right, and no journal may stay.
async fn is_sound(store: &Store, what: &str) {
    let place = store.below("target").unwrap();
    let repo = Repository::open_in(place.clone(), repo::OpenOptions::default()).await.unwrap();
    let report = repo.verify(Level::Bytes).await.unwrap();
    assert_eq!(report.findings, [], "{what}");
    let tip = repo.readonly_session(&Version::Default).await.unwrap();
    assert_eq!(tip.snapshot().message, "convert", "{what}");
    assert!(place.list_dir("j").await.unwrap().objects.is_empty(), "{what}");
    let journals: Vec<_> = place.list("j").await.unwrap().try_collect().await.unwrap();
    assert!(journals.is_empty(), "{what}: {journals:?}");
}

async fn interrupt_everywhere(
    to: &'static Entry,
    local: bool,
    deaths: &'static [(Mode, Unsynced)],
) {
    let yard = Yard::memory();
    let work = Work::new(&yard, to).await;
    let (_yard, store) = fresh(local);
    let (counted, fault) = Fault::wrap(&store, fault::Plan::never());
    work.run(&counted).await.unwrap();
    assert!(work.is_there(&store, "undisturbed").await);
    let expected = objects(&store).await;
    assert!(fault.ops() > 5, "{:?}", fault.log());
    for &(mode, unsynced) in deaths {
        for attempt in at_every_operation(fault::Plan::new(0, mode).with_power_cut(unsynced)) {
            let (_yard, store) = fresh(local);
            let plan = attempt.plan();
            let (faulty, fault) = attempt.wrap(&store);
            let outcome = work.run(&faulty).await;
            fault.die().await.unwrap();
            let what = format!("{to:?} {plan:?}: {:?} {:#?}", outcome.err(), fault.log());
            goes_on(&work, &store, &expected, &what).await;
        }
    }
}

const DEATHS: [(Mode, Unsynced); 7] = [
    (Mode::Die, Unsynced::Kept),
    (Mode::Die, Unsynced::Reverted),
    (Mode::Die, Unsynced::Emptied),
    (Mode::DieAfter, Unsynced::Kept),
    (Mode::DieAfter, Unsynced::Reverted),
    (Mode::Tear, Unsynced::Kept),
    (Mode::Tear, Unsynced::Emptied),
];

/// Formats are independent of each other, so they share the processors.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_can_be_the_last_in_a_directory() {
    let all = every_sink().map(|to| tokio::spawn(interrupt_everywhere(to, true, &DEATHS)));
    for done in all.collect::<Vec<_>>() {
        done.await.unwrap();
    }
}

#[tokio::test]
async fn every_operation_can_be_the_last_on_an_object_store() {
    for to in sinks() {
        let deaths = &[(Mode::Die, Unsynced::Kept), (Mode::DieAfter, Unsynced::Kept)];
        interrupt_everywhere(to, false, deaths).await;
    }
}

/// The old dataset is there until it is the new one.
#[tokio::test]
async fn every_operation_can_be_the_last_of_replacing() {
    let yard = Yard::memory();
    let old = Work::new(&yard, named("zarr3")).await;
    let new = Work { overwrite: true, ..Work::new(&Yard::memory(), named("shards")).await };
    let (_yard, store) = fresh(true);
    old.run(&store).await.unwrap();
    let before = objects(&store).await;
    new.run(&store).await.unwrap();
    let after = objects(&store).await;
    assert_ne!(before, after);
    for mode in [Mode::Die, Mode::DieAfter] {
        for attempt in at_every_operation(fault::Plan::new(0, mode)) {
            let (_yard, store) = fresh(true);
            old.run(&store).await.unwrap();
            let plan = attempt.plan();
            let (faulty, fault) = attempt.wrap(&store);
            let outcome = new.run(&faulty).await;
            let what = format!("{plan:?}: {:?} {:#?}", outcome.err(), fault.log());
            let mut found = objects(&store).await;
            found.retain(|path, _| path.starts_with("target/"));
            assert!(found == before || found == after, "{what}");
            new.run(&store).await.unwrap();
            assert_eq!(objects(&store).await, after, "{what}");
        }
    }
}

#[tokio::test]
async fn a_refusal_at_any_operation_is_a_clear_error_and_no_loss() {
    for to in sinks() {
        let yard = Yard::memory();
        let work = Work::new(&yard, to).await;
        let (_yard, store) = fresh(true);
        work.run(&store).await.unwrap();
        let expected = objects(&store).await;
        for refusal in [Refusal::NoSpace, Refusal::ReadOnly, Refusal::Denied] {
            for attempt in at_every_operation(fault::Plan::new(0, Mode::Refuse(refusal))) {
                let (_yard, store) = fresh(true);
                let plan = attempt.plan();
                let (faulty, fault) = attempt.wrap(&store);
                let outcome = work.run(&faulty).await;
                let what = format!("{to:?} {plan:?}: {outcome:?} {:#?}", fault.log());
                if let Err(error) = &outcome {
                    assert_eq!(error.kind(), ErrorKind::Store, "{what}");
                }
                assert!(outcome.is_ok() <= work.is_there(&store, &what).await, "{what}");
                goes_on(&work, &store, &expected, &what).await;
                assert!(fault.fired() || outcome.is_ok(), "{what}");
            }
        }
    }
}

/// One conversion falls asleep at any operation, while another does the same work from the beginning to the
/// end. The first then finds it done, or was done itself.
#[tokio::test]
async fn a_conversion_that_falls_asleep_while_another_does_it_is_a_conflict() {
    for to in sinks() {
        let yard = Yard::memory();
        let work = Work::new(&yard, to).await;
        for local in [true, false] {
            fall_asleep(&work, local).await;
        }
    }
}

async fn fall_asleep(work: &Work, local: bool) {
    for attempt in at_every_operation(fault::Plan::new(0, Mode::Sleep).with_reads()) {
        let (_yard, store) = fresh(local);
        let (sleepy, asleep) = attempt.wrap(&store);
        let (awake, never_asleep) = Fault::wrap(&store, fault::Plan::never());
        let both = overlap((&asleep, work.run(&sleepy)), (&never_asleep, work.run(&awake)));
        let (one, other) = both.await;
        let n = attempt.at();
        let what = format!("{:?} {n} {local}: {one:?} {other:?} {:#?}", work.to, asleep.log());
        assert!(one.is_ok() || other.is_ok(), "{what}");
        for error in [one, other].into_iter().filter_map(Result::err) {
            assert_eq!(error.kind(), ErrorKind::Conflict, "{what}");
        }
        assert!(work.is_there(&store, &what).await, "{what}");
    }
}

/// Recorded work is not done again: the second attempt reads no chunk of a recorded pack.
#[tokio::test]
async fn packs_that_were_recorded_are_not_moved_again() {
    for to in sinks() {
        let yard = Yard::memory();
        let work = Work::new(&yard, to).await;
        let (_yard, store) = fresh(true);
        let (counted, fault) = Fault::wrap(&store, fault::Plan::never());
        work.run(&counted).await.unwrap();
        // The commit of all formats begins after the last record.
        let journal = fault.log().iter().rposition(|op| op.starts_with("put") && in_journal(op));
        let (_yard, store) = fresh(true);
        let plan = fault::Plan::new(journal.unwrap() + 2, Mode::Die);
        let (faulty, _) = Fault::wrap(&store, plan);
        work.run(&faulty).await.unwrap_err();
        let outcome = work.run(&store).await.unwrap();
        assert_eq!(outcome.resumed, outcome.packs, "{to:?}");
        assert!(work.is_there(&store, "resumed").await);
    }
}

fn in_journal(op: &str) -> bool {
    op.contains("/journal/0") || op.contains("/j/") && op.ends_with("/00000000")
}

/// The worst moment is after the data got its name, when a journal could still say it is elsewhere.
#[tokio::test]
async fn a_target_that_is_deleted_after_a_kill_is_made_anew() {
    for (to, local) in [(named("zarr3"), true), (named("shards"), true), (named("zarr3"), false)] {
        let yard = Yard::memory();
        let work = Work::new(&yard, to).await;
        let (_yard, store) = fresh(local);
        work.run(&store).await.unwrap();
        let expected = objects(&store).await;
        for attempt in at_every_operation(fault::Plan::new(0, Mode::DieAfter)) {
            let (_yard, store) = fresh(local);
            let plan = attempt.plan();
            let (faulty, fault) = attempt.wrap(&store);
            work.run(&faulty).await.ok();
            store.delete_dir("target").await.unwrap();
            let what = format!("{to:?} {plan:?} {:#?}", fault.log());
            goes_on(&work, &store, &expected, &what).await;
        }
    }
}

/// Leftovers of another plan, or of the same one, must not be in a conversion that begins anew.
#[tokio::test]
async fn beginning_anew_at_any_point_leaves_nothing_of_the_old() {
    for (to, local) in [(named("zarr3"), true), (named("shards"), true), (named("zarr3"), false)] {
        let yard = Yard::memory();
        // With other chunks, all of them stored.
        let mut old = Work { chunks: [1, 1], ..Work::new(&yard, named("zarr3")).await };
        old.sample = Sample::of(old.sample.spec.clone());
        old.source = named("zarr3").write(&Yard::memory(), "old", &old.sample).await;
        let new = Work { restart: true, ..Work::new(&Yard::memory(), to).await };
        let (_yard, store) = fresh(local);
        new.run(&store).await.unwrap();
        let expected = objects(&store).await;
        let (_yard, store) = fresh(local);
        let (counted, fault) = Fault::wrap(&store, fault::Plan::never());
        old.run(&counted).await.unwrap();
        // Every point of the old one before it is visible, and every point of beginning anew.
        let visible = fault.log().iter().position(|op| op.contains("zarr.json")).unwrap();
        for n in 1..visible {
            let (_yard, store) = fresh(local);
            let (faulty, _) = Fault::wrap(&store, fault::Plan::new(n, Mode::Die));
            old.run(&faulty).await.unwrap_err();
            let plan = fault::Plan::new(n % 5, Mode::DieAfter);
            let (faulty, fault) = Fault::wrap(&store, plan);
            new.run(&faulty).await.ok();
            let what = format!("{to:?} {n} {plan:?} {:#?}", fault.log());
            goes_on(&new, &store, &expected, &what).await;
        }
    }
}
