//! Whole directories that appear or are replaced in one step, with a fault at every step.

use bytes::Bytes;
use chunkyard_store::fault::{Fault, Plan, Unsynced, at_every_operation};
use chunkyard_store::{Durability, Error, Result, Store};

use super::{buffers, content, deaths, names, scratch};

/// Replaces the dataset `data`, of two files, by another in one step; then deletes the old one.
async fn replace_tree(store: &Store) -> Result<()> {
    for name in ["a", "deep/b"] {
        store.put(&format!("tmp/{name}"), buffers(["new"])).await?;
    }
    store.sync(&["tmp/a".into(), "tmp/deep/b".into()]).await?;
    store.exchange("tmp", "data").await?;
    store.sync_dir("").await?;
    store.delete_dir("tmp").await
}

/// The same, for a place with nothing in it yet.
async fn create_tree(store: &Store) -> Result<()> {
    for name in ["a", "deep/b"] {
        store.put(&format!("tmp/{name}"), buffers(["new"])).await?;
    }
    store.sync(&["tmp/a".into(), "tmp/deep/b".into()]).await?;
    store.rename("tmp", "data").await?;
    store.sync_dir("").await
}

/// The contents of the two files of a dataset.
async fn tree(store: &Store, name: &str) -> [Option<Bytes>; 2] {
    [content(store, &format!("{name}/a")).await, content(store, &format!("{name}/deep/b")).await]
}

async fn old_tree(store: &Store) {
    for path in ["data/a", "data/deep/b"] {
        store.put(path, buffers(["old"])).await.unwrap();
    }
}

#[tokio::test]
async fn a_tree_is_replaced_all_or_nothing_wherever_it_dies() {
    let whole = |text: &'static str| [Some(text.into()), Some(text.into())];
    for (mode, unsynced) in deaths() {
        for attempt in at_every_operation(Plan::new(0, mode).with_power_cut(unsynced)) {
            let directory = scratch(Durability::None);
            old_tree(&directory).await;
            let plan = attempt.plan();
            let (store, fault) = attempt.wrap(&directory);
            let outcome = replace_tree(&store).await;
            if matches!(outcome, Err(Error::Unsupported { .. })) {
                return; // the file system below the temporary directory cannot do it
            }
            assert_eq!(outcome.is_err(), fault.fired(), "{plan:?}");
            let left = tree(&directory, "data").await;
            assert!(left == whole("old") || left == whole("new"), "{plan:?}: {left:?}");
            if outcome.is_ok() {
                fault.die().await.unwrap();
                assert_eq!(tree(&directory, "data").await, whole("new"), "acknowledged and lost");
                assert!(names(&directory, "tmp").await.is_empty());
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_tree_is_created_all_or_nothing_wherever_it_dies() {
    for (mode, unsynced) in deaths() {
        for attempt in at_every_operation(Plan::new(0, mode).with_power_cut(unsynced)) {
            let directory = scratch(Durability::None);
            let plan = attempt.plan();
            let (store, fault) = attempt.wrap(&directory);
            let outcome = create_tree(&store).await;
            assert_eq!(outcome.is_err(), fault.fired(), "{plan:?}");
            let all = [Some("new".into()), Some("new".into())];
            let left = tree(&directory, "data").await;
            assert!(left == [None, None] || left == all, "{plan:?}: {left:?}");
            if outcome.is_ok() {
                fault.die().await.unwrap();
                assert_eq!(tree(&directory, "data").await, all, "acknowledged and lost");
                break;
            }
        }
    }
}

#[tokio::test]
async fn an_exchange_that_is_not_synced_is_undone_by_a_power_cut() {
    let directory = scratch(Durability::None);
    old_tree(&directory).await;
    let plan = Plan::never().with_power_cut(Unsynced::Reverted);
    let (store, fault) = Fault::wrap(&directory, plan);
    store.put("tmp/a", buffers(["new"])).await.unwrap();
    match store.exchange("tmp", "data").await {
        Err(Error::Unsupported { .. }) => return,
        other => other.unwrap(),
    }
    // This shows the mistake of deleting before the names are durable.
    store.delete_dir("tmp").await.unwrap();
    fault.die().await.unwrap();
    assert!(names(&directory, "").await.is_empty(), "neither the old nor the new");
}
