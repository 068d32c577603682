//! A process is killed, a machine loses power, a reply is lost or the disk is full, at any operation
//! of any action of a container.
//!
//! The same work is run again and again with the fault at operation 0, 1, 2, … until it is no longer
//! reached. Afterwards the container is as before or as after the work, nothing in between;
//! acknowledged data is there; and the container can still be used.

use chunkyard_array::{ElementsBuf, Region};
use chunkyard_format::container::model::AttributeValue;
use chunkyard_format::container::{CompactOptions, Container, ContainerOptions};
use chunkyard_store::fault::{Mode, Plan, Refusal, Unsynced, at_every_operation};
use chunkyard_store::{Error, ErrorKind, Result, Store};

use super::support::{
    Contents, contents, definition, files, furnished, open, place, read, text, write,
};
use chunkyard_test_support::{Place, duplicate};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Flush,
    Compact,
    Repack,
    FlushAndCompact,
}

impl Work {
    const ALL: [Self; 4] = [Self::Flush, Self::Compact, Self::Repack, Self::FlushAndCompact];

    /// Changes everything that can be changed.
    async fn change(container: &Container) -> Result<()> {
        put(container, "a/b", Region::new([2, 2], [3, 2])?, numbers(100..106)).await?;
        put(container, "text", Region::new([1], [1])?, text(&["zwei"])).await?;
        container.set_attribute("a/b", "units", AttributeValue::String("m".into())).await?;
        container.resize("a/b", &[7, 4]).await?;
        container.delete("c").await?;
        container.define(definition("c", &[6], &[2])).await?;
        put(container, "c", Region::new([4], [1])?, numbers(9..10)).await?;
        container.define(definition("d", &[1], &[1])).await.map(drop)
    }

    async fn run(self, store: &Store) -> Result<()> {
        let container = Container::open(&place(store), ContainerOptions::default()).await?;
        let repack = self == Self::Repack;
        if matches!(self, Self::Flush | Self::FlushAndCompact) {
            Self::change(&container).await?;
        }
        match self {
            Self::Flush => container.flush().await.map(drop),
            _ => container
                .compact(&CompactOptions { repack, ..CompactOptions::default() })
                .await
                .map(drop),
        }
    }
}

async fn put(
    container: &Container,
    name: &str,
    region: Region,
    elements: ElementsBuf,
) -> Result<()> {
    container.array(name).await?.writer()?.write_elements(&region, elements).await
}

fn numbers(values: std::ops::Range<i32>) -> ElementsBuf {
    ElementsBuf::Fixed(values.flat_map(i32::to_le_bytes).collect())
}

/// The deaths worth trying: only file systems tear files and lose unsynced data.
fn deaths(place: Place) -> Vec<(Mode, Unsynced)> {
    let mut deaths = vec![(Mode::Die, Unsynced::Kept), (Mode::DieAfter, Unsynced::Kept)];
    if place == Place::Local {
        deaths.extend([
            (Mode::Die, Unsynced::Reverted),
            (Mode::Die, Unsynced::Emptied),
            (Mode::DieAfter, Unsynced::Reverted),
            (Mode::DieAfter, Unsynced::Emptied),
            (Mode::Tear, Unsynced::Kept),
            (Mode::Tear, Unsynced::Emptied),
        ]);
    }
    deaths
}

async fn found(store: &Store, what: &str) -> Contents {
    let container = Container::open(&place(store), ContainerOptions::default()).await;
    let container = container.unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = contents(&container).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    let torn = container.ignored().into_iter().filter(|file| file.reason.word() == "torn").count();
    assert_eq!(torn, 0, "{what}");
    found
}

/// The container is in the state before or after, and can still be used.
async fn survives(
    store: &Store,
    before: &Contents,
    after: &Contents,
    acknowledged: bool,
    what: &str,
) {
    let now = found(store, what).await;
    assert!(now == *after || (now == *before && !acknowledged), "{what}\n{now:#?}");
    let container = open(store).await;
    write(&container, "c", &[0], vec![77]).await;
    container.flush().await.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(read(&open(store).await, "c").await[0], 77, "{what}");
    let now = found(store, what).await;
    container.compact(&CompactOptions::default()).await.unwrap();
    assert_eq!(found(store, what).await, now, "{what}");
    assert_eq!(files_of(store).await, ["x.af", "x.stats"], "{what}");
}

/// The files that belong to the container; an interrupted action may have left others.
async fn files_of(store: &Store) -> Vec<String> {
    files(store).await.into_iter().filter(|name| name.starts_with("x.")).collect()
}

async fn before_and_after(template: &Store, place: Place, work: Work) -> (Contents, Contents) {
    let before = found(template, "before").await;
    let (_guard, store) = duplicate(template, place).await;
    work.run(&store).await.unwrap();
    (before, found(&store, "after").await)
}

async fn template(place: Place) -> (Option<tempfile::TempDir>, Store) {
    let (guard, store) = place.open();
    furnished(&store).await;
    (guard, store)
}

async fn interrupt_everywhere(place: Place, work: Work) {
    let (_guard, template) = template(place).await;
    let (before, after) = before_and_after(&template, place, work).await;
    for (mode, unsynced) in deaths(place) {
        for attempt in at_every_operation(Plan::new(0, mode).with_power_cut(unsynced)) {
            let n = attempt.at();
            let (_guard, store) = duplicate(&template, place).await;
            let plan = attempt.plan();
            let (faulty, fault) = attempt.wrap(&store);
            let outcome = work.run(&faulty).await;
            fault.die().await.unwrap();
            let what = format!("{place:?} {work:?} {plan:?}: {outcome:?} {:#?}", fault.log());
            survives(&store, &before, &after, outcome.is_ok(), &what).await;
            assert!(fault.fired() || (outcome.is_ok() && n > 1), "{what}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_can_be_the_last() {
    for work in Work::ALL {
        interrupt_everywhere(Place::Local, work).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_can_be_the_last_on_an_object_store() {
    for work in Work::ALL {
        interrupt_everywhere(Place::Memory, work).await;
    }
    interrupt_flush_where_objects_can_only_be_created().await;
}

/// Without conditional puts only a flush is safe beside other writers, so nothing else is offered.
async fn interrupt_flush_where_objects_can_only_be_created() {
    let (_guard, template) = template(Place::CreateOnly).await;
    let refused = Work::Compact.run(&template).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
    let (before, after) = before_and_after(&template, Place::CreateOnly, Work::Flush).await;
    for attempt in at_every_operation(Plan::new(0, Mode::DieAfter)) {
        let (_guard, store) = duplicate(&template, Place::CreateOnly).await;
        let (faulty, fault) = attempt.wrap(&store);
        let outcome = Work::Flush.run(&faulty).await;
        let now = found(&store, "create only").await;
        assert!(now == after || (now == before && outcome.is_err()), "{:?}", fault.log());
    }
}

#[tokio::test]
async fn every_operation_of_creating_a_container_can_be_the_last() {
    for place in [Place::Local, Place::Memory] {
        for (mode, unsynced) in deaths(place) {
            for attempt in at_every_operation(Plan::new(0, mode).with_power_cut(unsynced)) {
                let (_guard, store) = place.open();
                let plan = attempt.plan();
                let (faulty, fault) = attempt.wrap(&store);
                let here = super::support::place(&faulty);
                let outcome = Container::create(&here, ContainerOptions::default()).await;
                fault.die().await.unwrap();
                let what = format!("{place:?} {plan:?}: {:#?}", fault.log());
                let there = super::support::place(&store);
                match Container::open(&there, ContainerOptions::default()).await {
                    Ok(container) => assert!(container.names().await.unwrap().is_empty()),
                    Err(Error::NotFound { .. }) => {
                        assert!(outcome.is_err(), "acknowledged and lost: {what}");
                        super::support::create(&store).await;
                    }
                    Err(error) => panic!("{what}: {error}"),
                }
                assert!(fault.fired() || outcome.is_ok(), "{what}");
            }
        }
    }
}

/// One request fails or its reply is lost, reads included, and the client lives on.
async fn one_request_goes_wrong(place: Place, mode: Mode) {
    let (_guard, template) = template(place).await;
    let (before, after) = before_and_after(&template, place, Work::Flush).await;
    for attempt in at_every_operation(Plan::new(0, mode).with_reads()) {
        let (_guard, store) = duplicate(&template, place).await;
        let plan = attempt.plan();
        let (faulty, fault) = attempt.wrap(&store);
        let here = super::support::place(&faulty);
        let what = |step: &str| format!("{place:?} {plan:?} {step}: {:#?}", fault.log());
        let opened = Container::open(&here, ContainerOptions::default()).await;
        let Ok(container) = opened else { continue };
        // Changing reads too, so it can fail halfway: then change again.
        while Work::change(&container).await.is_err() {
            container.discard().await;
        }
        let outcome = container.flush().await;
        fault.relent();
        let now = found(&store, &what("flush")).await;
        match &outcome {
            Ok(_) => assert_eq!(now, after, "{}", what("acknowledged")),
            Err(Error::OutcomeUnknown { .. }) => {
                assert!(now == after || now == before, "{}", what("unknown"));
            }
            Err(error) => assert_eq!(now, before, "{} {error:?}", what("failed")),
        }
        // The handle reads its own writes, whatever happened to the flush.
        assert_eq!(contents(&container).await.unwrap(), after, "{}", what("own reads"));
        if outcome.is_err() {
            assert!(container.is_changed());
            let again = container.flush().await;
            assert!(again.is_ok(), "{} {again:?}", what("again"));
        }
        assert!(!container.is_changed());
        assert_eq!(found(&store, &what("again")).await, after);
        let layers = open(&store).await.layers().await.unwrap().len();
        assert_eq!(layers, 4, "{}", what("flushed twice"));
        write(&container, "c", &[0], vec![5]).await;
        container.flush().await.unwrap();
        let alone = place == Place::CreateOnly;
        container.compact(&CompactOptions { alone, ..CompactOptions::default() }).await.unwrap();
        assert!(fault.fired() || outcome.is_ok(), "{}", what("undisturbed"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flush_is_acknowledged_exactly_if_it_is_there() {
    for mode in [Mode::LoseReply, Mode::FailOnce] {
        one_request_goes_wrong(Place::Memory, mode).await;
    }
    one_request_goes_wrong(Place::CreateOnly, Mode::LoseReply).await;
    one_request_goes_wrong(Place::Local, Mode::FailOnce).await;
}

/// A compaction changes nothing that a reader sees, whatever happens to its requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction_can_be_tried_again_after_any_request_that_failed() {
    for place in [Place::Memory, Place::Local] {
        let (_guard, template) = template(place).await;
        let expected = found(&template, "before").await;
        let mode = if place == Place::Local { Mode::FailOnce } else { Mode::LoseReply };
        for attempt in at_every_operation(Plan::new(0, mode).with_reads()) {
            let n = attempt.at();
            let (_guard, store) = duplicate(&template, place).await;
            let (faulty, fault) = attempt.wrap(&store);
            let outcome = Work::Compact.run(&faulty).await;
            let what = format!("{place:?} {n}: {outcome:?} {:#?}", fault.log());
            assert_eq!(found(&store, &what).await, expected, "{what}");
            fault.relent();
            Work::Compact.run(&faulty).await.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(found(&store, &what).await, expected, "{what}");
            assert_eq!(files_of(&store).await, ["x.af", "x.stats"], "{what}");
        }
    }
}

/// The disk is full, has become read-only, or no file can be opened: an error, not a crash.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_wait_until_there_is_room() {
    for refusal in [Refusal::NoSpace, Refusal::ReadOnly, Refusal::TooManyFiles] {
        let (_guard, template) = template(Place::Local).await;
        let (before, after) = before_and_after(&template, Place::Local, Work::Flush).await;
        for attempt in at_every_operation(Plan::new(0, Mode::Refuse(refusal))) {
            let n = attempt.at();
            let (_guard, store) = duplicate(&template, Place::Local).await;
            let (faulty, fault) = attempt.wrap(&store);
            let container = open(&faulty).await;
            Work::change(&container).await.unwrap();
            let outcome = container.flush().await;
            let what = format!("{refusal:?} at {n}: {outcome:?} {:#?}", fault.log());
            let now = found(&store, &what).await;
            assert!(now == after || (now == before && outcome.is_err()), "{what}");
            fault.relent();
            if outcome.is_err() {
                assert!(container.is_changed(), "{what}");
                container.flush().await.unwrap_or_else(|error| panic!("{what}: {error}"));
            }
            survives(&store, &after, &after, true, &what).await;
        }
    }
}
