//! One conversion by many workers, each of which opens everything for itself.
//!
//! Tasks are done in any order, twice, at the same time, or in vain. The result is the same as of
//! one process, and nothing else is left.

mod crash;

use chunkyard_engine::format::{CreateOptions, OpenOptions, Place};
use chunkyard_engine::open::recognise;
use chunkyard_engine::pipeline::{
    Conversion, Coordinator, Done, Movement, Outcome, Request, RunOptions, Task, Wishes,
    WorkOptions, work,
};
use chunkyard_engine::repo::{self, Level, Repository};
use chunkyard_engine::store::{Options, Store};
use chunkyard_engine::{Error, ErrorKind, Result};
use futures::future;

use super::formats::{Entry, Repeats, named, shared_sinks, sinks, sources_by_hand};
use super::sample::Sample;
use super::support::{PATH, Yard, objects, opened, options, read_back};

const SHAPE: [u64; 2] = [43, 13];

fn wishes(to: &'static Entry, movement: Movement) -> Wishes {
    let chunks = if movement == Movement::Regrid { [3, 2] } else { [4, 3] };
    let wishes = to.packs(&SHAPE, &chunks);
    match movement {
        Movement::Transcode => Wishes { codec: Some("zstd:1+crc32c".to_owned()), ..wishes },
        _ => wishes,
    }
}

fn sample() -> Sample {
    Sample::new(&SHAPE, &[4, 3], "int32").sparse(|index| index[0] != 2)
}

fn request(source: String, target: String, to: &'static Entry, wishes: Wishes) -> Request {
    let open = OpenOptions { store: options(), ..OpenOptions::default() };
    Request { source, target, open, to: Some(to.format.to_owned()), wishes }
}

async fn begin(conversion: &Conversion) -> Result<Coordinator> {
    let options = RunOptions { verify: true, ..RunOptions::default() };
    Coordinator::begin(conversion, CreateOptions::default(), options).await
}

/// Does a task as another process would, which knows only the task.
pub(crate) async fn elsewhere(task: &Task) -> Result<Done> {
    let sent: Task = serde_json::from_slice(&serde_json::to_vec(task).unwrap()).unwrap();
    let done = work(&sent, &WorkOptions { store: options(), ..WorkOptions::default() }).await?;
    Ok(serde_json::from_slice(&serde_json::to_vec(&done).unwrap()).unwrap())
}

/// Shuffles things in an order that depends on `seed` only.
fn shuffle<T>(things: &mut [T], seed: u64) {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    for last in (1..things.len()).rev() {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        things.swap(last, (state >> 33) as usize % (last + 1));
    }
}

/// Everything that can happen to tasks, then the end.
async fn carry_out(mut coordinator: Coordinator, seed: u64) -> Outcome {
    let mut tasks: Vec<Task> = coordinator.tasks(64).collect();
    assert!(tasks.len() > 2, "{} tasks", tasks.len());
    shuffle(&mut tasks, seed);
    let lost = tasks.pop().unwrap();
    elsewhere(&lost).await.unwrap();
    for (number, task) in tasks.iter().enumerate() {
        // Two at the same time.
        let (one, two) = future::join(elsewhere(task), elsewhere(task)).await;
        let (one, two) = (one.unwrap(), two.unwrap());
        assert!(coordinator.adopt(&two).await.unwrap() > 0);
        assert_eq!(coordinator.adopt(&two).await.unwrap(), 0, "adopted twice");
        assert_eq!(coordinator.adopt(&one).await.unwrap(), 0, "adopted twice");
        if number == 1 {
            coordinator.pause().await.unwrap();
        }
    }
    let left: Vec<Task> = coordinator.tasks(64).collect();
    assert_eq!(left, [lost]);
    coordinator.adopt(&elsewhere(&left[0]).await.unwrap()).await.unwrap();
    assert!(coordinator.tasks(1).next().is_none());
    coordinator.finish().await.unwrap()
}

async fn is_sound(url: &str) {
    let open = repo::OpenOptions { store: options(), ..Default::default() };
    let repo = Repository::open(url, open).await.unwrap();
    assert_eq!(repo.verify(Level::Bytes).await.unwrap().findings, []);
}

#[tokio::test]
async fn many_workers_make_what_one_process_makes() {
    let movements = [Movement::Copy, Movement::Transcode, Movement::Regrid];
    for (seed, yard) in Yard::both().into_iter().enumerate() {
        let sample = sample();
        for from in sources_by_hand().filter(|from| from.sink.is_some()) {
            let source = format!("{from:?}");
            from.write(&yard, &source, &sample).await;
            for (to, movement) in shared_sinks().flat_map(|to| movements.map(|it| (to, it))) {
                let alone = format!("{from:?}-{to:?}-{movement}-alone");
                let many = format!("{from:?}-{to:?}-{movement}-many");
                let expected = prepare_at(&yard, &source, &alone, to, movement).await;
                if to.is_exact() {
                    assert_eq!(expected.plan.arrays[0].movement, movement, "{many}");
                }
                let run = RunOptions::default();
                let expected = expected.run(CreateOptions::default(), &run).await.unwrap();
                let conversion = prepare_at(&yard, &source, &many, to, movement).await;
                let coordinator = begin(&conversion).await.unwrap();
                let outcome = carry_out(coordinator, seed as u64).await;
                assert_eq!((outcome.packs, outcome.chunks), (expected.packs, expected.chunks));
                assert_eq!(outcome.bytes_stored, expected.bytes_stored, "{many}");
                assert!(read_back(&yard, &many).await == sample.array, "{many} differs");
                match to.facts().repeats {
                    Repeats::Content => is_sound(&yard.at(&many)).await,
                    Repeats::Bytes => assert!(
                        objects(&yard.store(&many)).await == objects(&yard.store(&alone)).await,
                        "{many}: other objects than by one process"
                    ),
                    Repeats::Names => {}
                }
            }
        }
        let listed = yard.store("").list_dir("").await.unwrap();
        assert!(listed.dirs.iter().all(|dir| !dir.starts_with('.')), "{:?}", listed.dirs);
    }
}

async fn prepare_at(
    yard: &Yard,
    source: &str,
    target: &str,
    to: &'static Entry,
    movement: Movement,
) -> Conversion {
    let request = request(yard.at(source), yard.at(target), to, wishes(to, movement));
    Conversion::prepare(request).await.unwrap()
}

#[tokio::test]
async fn a_coordinator_that_is_gone_is_replaced_and_does_not_begin_anew() {
    for yard in Yard::both() {
        let sample = sample();
        named("zarr3").write(&yard, "source", &sample).await;
        for to in sinks() {
            let target = to.called(&format!("{to:?}"));
            let conversion = prepare_at(&yard, "source", &target, to, Movement::Copy).await;
            let mut first = begin(&conversion).await.unwrap();
            let tasks: Vec<Task> = first.tasks(64).collect();
            let mut adopted = 0;
            for task in &tasks[..3] {
                adopted += first.adopt(&elsewhere(task).await.unwrap()).await.unwrap();
            }
            // Not adopted: the receipt dies with the coordinator.
            let orphan = elsewhere(&tasks[3]).await.unwrap();
            first.pause().await.unwrap();
            drop(first);
            let conversion = prepare_at(&yard, "source", &target, to, Movement::Copy).await;
            let second = begin(&conversion).await.unwrap();
            assert_eq!(second.packs().0, adopted);
            assert!(second.tasks(64).count() < tasks.len());
            drop(orphan);
            let outcome = carry_out(second, 7).await;
            assert_eq!(outcome.resumed, adopted);
            assert!(read_back(&yard, &target).await == sample.array, "{target} differs");
        }
    }
}

#[tokio::test]
async fn nothing_is_visible_before_the_end_and_the_end_needs_all_packs() {
    for yard in Yard::both() {
        named("zarr3").write(&yard, "source", &sample()).await;
        for to in sinks() {
            let target = to.called(&format!("{to:?}"));
            let conversion = prepare_at(&yard, "source", &target, to, Movement::Copy).await;
            let mut coordinator = begin(&conversion).await.unwrap();
            for task in coordinator.tasks(64).skip(1) {
                coordinator.adopt(&elsewhere(&task).await.unwrap()).await.unwrap();
            }
            let error = coordinator.finish().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
            let place = Place::new(&yard.at(&target), &options()).unwrap();
            match to.facts().begins_empty {
                true => {
                    let opened = opened(&yard.at(&target)).await;
                    assert_eq!(opened.dataset().arrays().count(), 0);
                }
                false => {
                    assert!(recognise(&place).await.is_err(), "{to:?}: visible before the end");
                }
            }
        }
    }
}

#[tokio::test]
async fn receipts_of_another_plan_and_damaged_ones_are_refused() {
    let yard = Yard::directory();
    named("zarr3").write(&yard, "source", &sample()).await;
    for to in sinks() {
        let [a, b] = ["a", "b"].map(|name| to.called(&format!("{to:?}-{name}")));
        let conversion = prepare_at(&yard, "source", &a, to, Movement::Copy).await;
        let mut coordinator = begin(&conversion).await.unwrap();
        let other = prepare_at(&yard, "source", &b, to, Movement::Regrid).await;
        let other = begin(&other).await.unwrap();
        let foreign = elsewhere(&other.tasks(64).next().unwrap()).await.unwrap();
        let error = coordinator.adopt(&foreign).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let own = elsewhere(&coordinator.tasks(64).next().unwrap()).await.unwrap();
        let disguised = Done { plan: own.plan.clone(), ..foreign };
        let mut damaged = own.receipts.to_vec();
        damaged[9] ^= 1;
        let damaged = Done { receipts: damaged.into(), ..own.clone() };
        for wrong in [disguised, damaged] {
            let error = coordinator.adopt(&wrong).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
        }
        assert!(coordinator.adopt(&own).await.unwrap() > 0);
    }
}

#[tokio::test]
async fn a_source_that_changed_after_planning_is_a_clear_error() {
    let yard = Yard::directory();
    named("zarr3").write(&yard, "source", &sample()).await;
    let conversion = prepare_at(&yard, "source", "target", named("zarr3"), Movement::Copy).await;
    let coordinator = begin(&conversion).await.unwrap();
    let task = coordinator.tasks(64).next().unwrap();
    named("zarr3").write(&yard, "source", &Sample::new(&[24, 13], &[4, 3], "int32")).await;
    let error = elsewhere(&task).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("has changed"), "{error}");
}

/// A branch that moves on does not change the version that is converted.
#[tokio::test]
async fn a_repository_is_read_as_it_was_at_planning() {
    let yard = Yard::directory();
    let sample = sample();
    named("repo").write(&yard, "source", &sample).await;
    let conversion = prepare_at(&yard, "source", "target", named("shards"), Movement::Copy).await;
    let mut coordinator = begin(&conversion).await.unwrap();
    let open = repo::OpenOptions { store: options(), ..Default::default() };
    let repo = Repository::open(&yard.at("source"), open).await.unwrap();
    let session = repo.writable_session("main").await.unwrap();
    session.delete(PATH).unwrap();
    session.commit(repo::CommitOptions::message("gone")).await.unwrap();
    for task in coordinator.tasks(2) {
        coordinator.adopt(&elsewhere(&task).await.unwrap()).await.unwrap();
    }
    coordinator.finish().await.unwrap();
    assert!(read_back(&yard, "target").await == sample.array);
}

#[tokio::test]
async fn a_worker_that_comes_after_the_end_gets_an_error_and_changes_nothing() {
    for yard in Yard::both() {
        named("zarr3").write(&yard, "source", &sample()).await;
        let conversion =
            prepare_at(&yard, "source", "target", named("shards"), Movement::Copy).await;
        let mut coordinator = begin(&conversion).await.unwrap();
        let tasks: Vec<Task> = coordinator.tasks(64).collect();
        for task in &tasks {
            coordinator.adopt(&elsewhere(task).await.unwrap()).await.unwrap();
        }
        coordinator.finish().await.unwrap();
        let before = objects(&yard.store("")).await;
        let error = elsewhere(&tasks[0]).await.unwrap_err();
        assert!(matches!(error, Error::Conflict { .. }), "{error}");
        assert!(objects(&yard.store("")).await == before);
        // Nor does it disturb another conversion that is under way there.
        yard.store("").delete_dir("target").await.unwrap();
        let other = prepare_at(&yard, "source", "target", named("zarr3"), Movement::Regrid).await;
        let other = begin(&other).await.unwrap();
        assert!(elsewhere(&tasks[0]).await.is_err());
        drop(other);
    }
}

/// A worker on another machine sees another directory under the name of the target.
#[tokio::test]
async fn a_directory_that_workers_do_not_share_is_an_error() {
    let yard = Yard::directory();
    named("zarr3").write(&yard, "source", &sample()).await;
    let conversion = prepare_at(&yard, "source", "target", named("zarr3"), Movement::Copy).await;
    let coordinator = begin(&conversion).await.unwrap();
    let task = coordinator.tasks(64).next().unwrap();
    let parent = Store::open(&yard.at(""), &Options::default()).unwrap();
    parent.delete_dir(".target.chunkyard/journal").await.unwrap();
    let error = elsewhere(&task).await.unwrap_err();
    assert!(error.to_string().contains("shared"), "{error}");
}
