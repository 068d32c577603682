//! The fault wrapper works as documented, so that tests built on it mean something. The work is a
//! repository's commit to a directory: put, sync, link, sync_dir.

use std::time::{Duration, Instant};

use chunkyard_store::fault::{Fault, Injected, Mode, Plan, Unsynced, at_every_operation};
use chunkyard_store::{Created, Durability, Error, Linked, Result, Store, Version};

use super::{Scratch, buffers, content, deaths, memory, names, scratch};

/// Makes `data` durable, then visible as `refs/1`; true once that is acknowledged.
async fn commit(store: &Store) -> Result<()> {
    store.put("data", buffers(["some", "data"])).await?;
    store.put("tmp/1", buffers(["see data"])).await?;
    store.sync(&["data".into(), "tmp/1".into()]).await?;
    assert_eq!(store.link("tmp/1", "refs/1").await?, Linked::Done);
    store.sync_dir("refs").await
}

/// The same, but the data is synced after it is made visible.
async fn commit_too_early(store: &Store) -> Result<()> {
    store.put("data", buffers(["some", "data"])).await?;
    store.put("tmp/1", buffers(["see data"])).await?;
    assert_eq!(store.link("tmp/1", "refs/1").await?, Linked::Done);
    store.sync_dir("refs").await?;
    store.sync(&["data".into(), "tmp/1".into()]).await
}

/// Whether the visible part is whole.
async fn consistent(store: &Store) -> bool {
    match content(store, "refs/1").await {
        None => true,
        Some(bytes) => {
            bytes == "see data" && content(store, "data").await.is_some_and(|b| b == "somedata")
        }
    }
}

#[tokio::test]
async fn a_right_commit_survives_every_death() {
    for (mode, unsynced) in deaths() {
        for attempt in at_every_operation(Plan::new(0, mode).with_power_cut(unsynced)) {
            let n = attempt.at();
            let directory = scratch(Durability::None);
            let plan = attempt.plan();
            let (store, fault) = attempt.wrap(&directory);
            let outcome = commit(&store).await;
            assert_eq!(outcome.is_err(), fault.fired(), "{mode:?} {n}");
            assert!(consistent(&directory).await, "{plan:?}: {:?}", fault.log());
            if outcome.is_ok() {
                assert_eq!((n, fault.ops()), (5, 5));
                fault.die().await.unwrap();
                assert!(content(&directory, "refs/1").await.is_some(), "acknowledged and lost");
                assert!(consistent(&directory).await);
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_commit_that_is_visible_before_it_is_durable_is_caught() {
    for unsynced in [Unsynced::Reverted, Unsynced::Emptied] {
        let mut caught = 0;
        for n in 0..5 {
            let directory = scratch(Durability::None);
            let plan = Plan::new(n, Mode::DieAfter).with_power_cut(unsynced);
            let (store, _fault) = Fault::wrap(&directory, plan);
            commit_too_early(&store).await.unwrap_err();
            caught += usize::from(!consistent(&directory).await);
        }
        assert!(caught > 0, "{unsynced:?}");
    }
}

#[tokio::test]
async fn a_commit_whose_link_is_not_synced_is_lost_with_the_power() {
    let directory = scratch(Durability::None);
    let plan = Plan::never().with_power_cut(Unsynced::Reverted);
    let (store, fault) = Fault::wrap(&directory, plan);
    store.put("a", buffers(["x"])).await.unwrap();
    store.sync(&["a".into()]).await.unwrap();
    store.link("a", "refs/1").await.unwrap();
    fault.die().await.unwrap();
    assert_eq!(names(&directory, "").await, ["a"]);
}

#[tokio::test]
async fn a_rename_that_is_not_synced_is_undone_by_a_power_cut() {
    let directory = scratch(Durability::None);
    directory.put("old", buffers(["old"])).await.unwrap();
    let plan = Plan::never().with_power_cut(Unsynced::Reverted);
    let (store, fault) = Fault::wrap(&directory, plan);
    store.put("d/new", buffers(["new"])).await.unwrap();
    store.sync(&["d/new".into()]).await.unwrap();
    store.rename("d/new", "old").await.unwrap();
    assert_eq!(content(&store, "old").await.unwrap(), "new");
    fault.die().await.unwrap();
    assert_eq!(content(&directory, "old").await.unwrap(), "old");
    assert_eq!(content(&directory, "d/new").await.unwrap(), "new");
}

#[tokio::test]
async fn synced_bytes_survive_under_each_durable_name() {
    for named in [false, true] {
        let directory = scratch(Durability::None);
        directory.put("d/old", buffers(["old"])).await.unwrap();
        let plan = Plan::never().with_power_cut(Unsynced::Reverted);
        let (store, fault) = Fault::wrap(&directory, plan);
        store.put("d/new", buffers(["new"])).await.unwrap();
        store.sync_content(&["d/new".into()]).await.unwrap();
        store.rename("d/new", "d/old").await.unwrap();
        if named {
            store.sync_dir("d").await.unwrap();
        }
        fault.die().await.unwrap();
        let left = if named { "new" } else { "old" };
        assert_eq!(content(&directory, "d/old").await.unwrap(), left);
        assert_eq!(content(&directory, "d/new").await, None);
    }
}

#[tokio::test]
async fn an_overwrite_never_loses_the_old_content() {
    for (mode, unsynced) in deaths() {
        let directory = scratch(Durability::None);
        directory.put("a", buffers(["old"])).await.unwrap();
        let plan = Plan::new(0, mode).with_power_cut(unsynced);
        let (store, _fault) = Fault::wrap(&directory, plan);
        store.put("a", buffers(["new"])).await.unwrap_err();
        let left = content(&directory, "a").await.unwrap();
        assert!(left == "old" || left == "new", "{plan:?}: {left:?}");
    }
}

/// A store with one object, and a fault at the first operation.
fn faulty(mode: Mode) -> (Scratch, Store, std::sync::Arc<Fault>) {
    let directory = scratch(Durability::None);
    let (store, fault) = Fault::wrap(&directory, Plan::new(0, mode));
    (directory, store, fault)
}

fn is_injected(error: &Error) -> bool {
    matches!(error, Error::Store { source, .. } if source.is::<Injected>())
}

#[tokio::test]
async fn death_before_has_no_effect_and_is_final() {
    let (directory, store, fault) = faulty(Mode::Die);
    assert!(is_injected(&store.put("a", buffers(["x"])).await.unwrap_err()));
    assert!(is_injected(&store.put("b", buffers(["x"])).await.unwrap_err()));
    assert!(is_injected(&store.get("a").await.unwrap_err()));
    assert!(is_injected(&store.lock("a").await.unwrap_err()));
    assert!(fault.dead() && fault.fired());
    assert!(names(&directory, "").await.is_empty());
}

#[tokio::test]
async fn death_after_has_its_effect_and_is_final() {
    let (directory, store, _) = faulty(Mode::DieAfter);
    assert!(is_injected(&store.put("a", buffers(["x"])).await.unwrap_err()));
    assert!(is_injected(&store.put("b", buffers(["x"])).await.unwrap_err()));
    assert_eq!(names(&directory, "").await, ["a"]);
}

#[tokio::test]
async fn a_torn_put_leaves_a_prefix() {
    let (directory, store, _) = faulty(Mode::Tear);
    assert!(is_injected(&store.put("a", buffers(["012", "3456", "789"])).await.unwrap_err()));
    assert_eq!(content(&directory, "a").await.unwrap(), "01234");
}

#[tokio::test]
async fn a_torn_delete_deletes_half() {
    let directory = scratch(Durability::None);
    let paths = ["a", "b", "c", "d"].map(String::from);
    for path in &paths {
        directory.put(path, buffers(["x"])).await.unwrap();
    }
    let (store, _) = Fault::wrap(&directory, Plan::new(0, Mode::Tear));
    assert!(is_injected(&store.delete(&paths).await.unwrap_err()));
    assert_eq!(names(&directory, "").await, ["c", "d"]);
}

#[tokio::test]
async fn a_lost_reply_has_its_effect_and_life_goes_on() {
    let inner = memory("lost-reply");
    let (store, fault) = Fault::wrap(&inner, Plan::new(0, Mode::LoseReply));
    assert!(is_injected(&store.create("ref", "1".into()).await.unwrap_err()));
    assert_eq!(store.create("ref", "1".into()).await.unwrap(), Created::Exists);
    assert_eq!(fault.log(), ["create ref", "create ref"]);
}

#[tokio::test]
async fn a_late_request_takes_effect_before_the_next_write_that_works() {
    let inner = memory("late");
    let (store, _) = Fault::wrap(&inner, Plan::new(0, Mode::Late(1)));
    assert!(is_injected(&store.create("ref", "1".into()).await.unwrap_err()));
    assert!(is_injected(&store.create("ref", "2".into()).await.unwrap_err()));
    assert!(content(&store, "ref").await.is_none());
    assert_eq!(store.create("ref", "3".into()).await.unwrap(), Created::Exists);
    assert_eq!(content(&store, "ref").await.unwrap(), "1");
}

#[tokio::test]
async fn the_condition_of_a_late_request_is_that_of_its_time() {
    let inner = memory("too-late");
    inner.put("ref", buffers(["0"])).await.unwrap();
    let expected = Version::from(&inner.head("ref").await.unwrap());
    let (store, fault) = Fault::wrap(&inner, Plan::new(0, Mode::Late(usize::MAX)));
    assert!(is_injected(&store.replace("ref", "1".into(), &expected).await.unwrap_err()));
    assert!(is_injected(&store.put("ref", buffers(["2"])).await.unwrap_err()));
    inner.put("ref", buffers(["other"])).await.unwrap();
    fault.relent();
    store.put("another", buffers(["x"])).await.unwrap();
    assert_eq!(content(&store, "ref").await.unwrap(), "other");
}

#[tokio::test]
async fn a_single_failure_has_no_effect_and_life_goes_on() {
    let (_directory, store, _) = faulty(Mode::FailOnce);
    assert!(is_injected(&store.put("a", buffers(["x"])).await.unwrap_err()));
    assert!(content(&store, "a").await.is_none());
    store.put("a", buffers(["x"])).await.unwrap();
}

#[tokio::test]
async fn a_stall_is_only_slow() {
    let time = Duration::from_millis(30);
    let (_directory, store, _) = faulty(Mode::Stall(time));
    let start = Instant::now();
    store.put("a", buffers(["x"])).await.unwrap();
    assert!(start.elapsed() >= time);
}

#[tokio::test]
async fn reads_are_counted_when_asked() {
    let inner = memory("counted-reads");
    inner.put("a", buffers(["x"])).await.unwrap();
    let (store, fault) = Fault::wrap(&inner, Plan::new(1, Mode::FailOnce).with_reads());
    store.get("a").await.unwrap();
    assert!(is_injected(&store.head("a").await.unwrap_err()));
    store.get_range("a", 0..1).await.unwrap();
    assert_eq!(fault.log(), ["get a", "head a", "get_ranges a"]);
}
