//! Files changed in place, with a fault at every step.
//!
//! The work grows a file that has its length in front: the new bytes at the end, sync, then the
//! length. The order matters, and the tests here check that a wrong order is caught.

use bytes::Bytes;
use chunkyard_store::fault::{Fault, Mode, Plan, Unsynced, at_every_operation};
use chunkyard_store::{Durability, Result, Store};

use super::{buffers, content, deaths, names, scratch};

/// Appends in the right order, or without the sync between.
async fn append(store: &Store, right: bool) -> Result<()> {
    store.write_at("d/a", 4, buffers(["ef", "gh"])).await?;
    if right {
        store.sync(&["d/a".into()]).await?;
    }
    store.write_at("d/a", 0, buffers(["7"])).await?;
    store.sync(&["d/a".into()]).await
}

/// The valid part of the file: the first byte says how many bytes follow.
fn counted(bytes: &Bytes) -> Option<&[u8]> {
    let len = usize::from(bytes.first()? - b'0');
    bytes.get(1..=len)
}

/// Every way to lose a part of four changes.
fn cuts() -> Vec<(Mode, Unsynced)> {
    let mixed = [Mode::Die, Mode::DieAfter, Mode::Tear].into_iter();
    let mixed = mixed.flat_map(|mode| (0..16).map(move |pieces| (mode, Unsynced::Mixed(pieces))));
    deaths().into_iter().chain(mixed).collect()
}

#[tokio::test]
async fn a_file_that_grows_in_the_right_order_survives_every_death() {
    for (mode, unsynced) in cuts() {
        for attempt in at_every_operation(Plan::new(0, mode).with_power_cut(unsynced)) {
            let directory = scratch(Durability::None);
            directory.put("d/a", buffers(["3abc"])).await.unwrap();
            let plan = attempt.plan();
            let (store, fault) = attempt.wrap(&directory);
            let outcome = append(&store, true).await;
            assert_eq!(outcome.is_err(), fault.fired(), "{plan:?}");
            let left = content(&directory, "d/a").await.unwrap();
            let found = counted(&left);
            assert!(found == Some(b"abc") || found == Some(b"abcefgh"), "{plan:?}: {left:?}");
            if outcome.is_ok() {
                fault.die().await.unwrap();
                assert_eq!(content(&directory, "d/a").await.unwrap(), "7abcefgh");
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_file_whose_length_is_not_behind_a_sync_is_caught() {
    for unsynced in [Unsynced::Mixed(0b1100), Unsynced::Mixed(0b1101)] {
        let directory = scratch(Durability::None);
        directory.put("d/a", buffers(["3abc"])).await.unwrap();
        let plan = Plan::new(2, Mode::Die).with_power_cut(unsynced);
        let (store, _) = Fault::wrap(&directory, plan);
        append(&store, false).await.unwrap_err();
        let left = content(&directory, "d/a").await.unwrap();
        let found = counted(&left);
        assert!(found != Some(b"abc") && found != Some(b"abcefgh"), "{unsynced:?}: {left:?}");
    }
}

/// A store with a durable file, whose death is a power cut.
async fn durable(unsynced: Unsynced) -> (super::Scratch, Store, std::sync::Arc<Fault>) {
    let directory = scratch(Durability::None);
    directory.put("d/a", buffers(["0123"])).await.unwrap();
    let plan = Plan::never().with_power_cut(unsynced);
    let (store, fault) = Fault::wrap(&directory, plan);
    (directory, store, fault)
}

#[tokio::test]
async fn a_torn_write_leaves_a_prefix_of_its_bytes() {
    let (directory, ..) = durable(Unsynced::Kept).await;
    let (store, _) = Fault::wrap(&directory, Plan::new(0, Mode::Tear));
    store.write_at("d/a", 3, buffers(["ab", "cd"])).await.unwrap_err();
    assert_eq!(content(&directory, "d/a").await.unwrap(), "012ab");
    let (store, _) = Fault::wrap(&directory, Plan::new(0, Mode::Tear));
    store.truncate("d/a", 0).await.unwrap_err();
    assert_eq!(content(&directory, "d/a").await.unwrap(), "012ab", "a cut is one step");
}

#[tokio::test]
async fn changes_since_the_last_sync_are_lost_and_those_before_are_not() {
    let (directory, store, fault) = durable(Unsynced::Reverted).await;
    store.write_at("d/a", 4, buffers(["45"])).await.unwrap();
    store.sync(&["d/a".into()]).await.unwrap();
    store.truncate("d/a", 1).await.unwrap();
    store.write_at("d/a", 1, buffers(["xyz"])).await.unwrap();
    fault.die().await.unwrap();
    assert_eq!(content(&directory, "d/a").await.unwrap(), "012345");
}

#[tokio::test]
async fn a_directory_that_is_synced_saves_no_bytes() {
    let (directory, store, fault) = durable(Unsynced::Mixed(0b10)).await;
    store.write_at("d/a", 0, buffers(["abcdef"])).await.unwrap();
    store.sync_dir("d").await.unwrap();
    fault.die().await.unwrap();
    assert_eq!(content(&directory, "d/a").await.unwrap(), "012def");
}

#[tokio::test]
async fn lost_changes_are_lost_under_every_name_of_the_file() {
    let (directory, store, fault) = durable(Unsynced::Reverted).await;
    store.link("d/a", "e/b").await.unwrap();
    store.sync_dir("e").await.unwrap();
    store.write_at("d/a", 0, buffers(["x"])).await.unwrap();
    fault.die().await.unwrap();
    assert_eq!(content(&directory, "d/a").await.unwrap(), "0123");
    assert_eq!(content(&directory, "e/b").await.unwrap(), "0123");
}

#[tokio::test]
async fn changes_follow_the_file_when_it_is_renamed() {
    for (synced, left) in [(false, "0123"), (true, "x123")] {
        let (directory, store, fault) = durable(Unsynced::Reverted).await;
        store.write_at("d/a", 0, buffers(["x"])).await.unwrap();
        store.rename("d/a", "d/b").await.unwrap();
        store.sync_dir("d").await.unwrap();
        if synced {
            store.sync(&["d/b".into()]).await.unwrap();
        }
        fault.die().await.unwrap();
        assert_eq!(names(&directory, "").await, ["d/b"]);
        assert_eq!(content(&directory, "d/b").await.unwrap(), left);
    }
}

#[tokio::test]
async fn a_file_that_goes_back_to_its_old_name_has_its_old_bytes() {
    let (directory, store, fault) = durable(Unsynced::Reverted).await;
    store.write_at("d/a", 0, buffers(["x"])).await.unwrap();
    store.rename("d/a", "d/b").await.unwrap();
    store.put("d/c", buffers(["new"])).await.unwrap();
    store.write_at("d/c", 3, buffers(["er"])).await.unwrap();
    fault.die().await.unwrap();
    assert_eq!(names(&directory, "").await, ["d/a"]);
    assert_eq!(content(&directory, "d/a").await.unwrap(), "0123");
}

#[tokio::test]
async fn a_patched_upload_is_all_or_nothing_wherever_it_dies() {
    async fn upload(store: &Store) -> Result<()> {
        let mut upload = store.begin("d/a").await?;
        upload.write(buffers(["....body"])).await?;
        upload.patch(0, "head".into()).await?;
        upload.finish().await?;
        store.sync(&["d/a".into()]).await
    }
    for (mode, unsynced) in cuts() {
        for attempt in at_every_operation(Plan::new(0, mode).with_power_cut(unsynced)) {
            let (directory, ..) = durable(Unsynced::Kept).await;
            let plan = attempt.plan();
            let (store, fault) = attempt.wrap(&directory);
            let outcome = upload(&store).await;
            assert_eq!(outcome.is_err(), fault.fired(), "{plan:?}");
            let left = content(&directory, "d/a").await.unwrap();
            assert!(left == "0123" || left == "headbody", "{plan:?}: {left:?}");
        }
    }
}
