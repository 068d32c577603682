//! What only a file system has: links, renames, locks, durability, and errors of its own.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chunkyard_store::{Durability, Error, ErrorKind, Kind, Linked, Store, Version};

use super::{buffers, content, names, scratch};

#[tokio::test]
async fn a_link_is_made_durable_with_its_directory() {
    let store = scratch(Durability::Full);
    store.put("one", buffers(["1"])).await.unwrap();
    assert_eq!(store.link("one", "refs/main").await.unwrap(), Linked::Done);
    store.sync_dir("refs").await.unwrap();
    store.sync_dir("").await.unwrap();
    assert_eq!(content(&store, "refs/main").await.unwrap(), "1");
}

#[tokio::test]
async fn linking_the_same_file_again_is_done_because_a_reply_may_have_been_lost() {
    let store = scratch(Durability::None);
    store.put("one", buffers(["1"])).await.unwrap();
    assert_eq!(store.link("one", "to").await.unwrap(), Linked::Done);
    assert_eq!(store.link("one", "to").await.unwrap(), Linked::Done);
}

#[tokio::test]
async fn a_rename_replaces() {
    let store = scratch(Durability::Full);
    store.put("new", buffers(["new"])).await.unwrap();
    store.put("d/old", buffers(["old"])).await.unwrap();
    store.rename("new", "d/old").await.unwrap();
    assert_eq!(names(&store, "").await, ["d/old"]);
    assert_eq!(content(&store, "d/old").await.unwrap(), "new");
    store.rename("d/old", "other/place").await.unwrap();
    assert_eq!(names(&store, "").await, ["other/place"]);
    assert!(matches!(store.rename("d/old", "x").await, Err(Error::NotFound { .. })));
}

#[tokio::test]
async fn a_directory_is_renamed_onto_nothing_or_an_empty_one() {
    let store = scratch(Durability::Full);
    store.put("new/a/b", buffers(["1"])).await.unwrap();
    store.rename("new", "deep/place").await.unwrap();
    assert_eq!(names(&store, "").await, ["deep/place/a/b"]);
    std::fs::create_dir(std::path::Path::new(store.url()).join("empty")).unwrap();
    store.rename("deep/place", "empty").await.unwrap();
    store.sync(&["empty/a/b".into()]).await.unwrap();
    assert_eq!(names(&store, "").await, ["empty/a/b"]);
    store.put("full/c", buffers(["2"])).await.unwrap();
    store.put("file", buffers(["3"])).await.unwrap();
    for taken in ["full", "file"] {
        let error = store.rename("empty", taken).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Store, "{error:?}");
    }
    assert!(matches!(store.rename("never", "x").await, Err(Error::NotFound { .. })));
    assert_eq!(names(&store, "").await, ["empty/a/b", "file", "full/c"]);
}

/// Exchanges, unless the file system below the temporary directory cannot.
async fn exchanged(store: &Store, a: &str, b: &str) -> bool {
    match store.exchange(a, b).await {
        Err(Error::Unsupported { .. }) => false,
        other => {
            other.unwrap();
            true
        }
    }
}

#[tokio::test]
async fn two_trees_swap_their_names() {
    let store = scratch(Durability::Full);
    store.put("old/a", buffers(["old"])).await.unwrap();
    store.put("tmp/new/deep/b", buffers(["new"])).await.unwrap();
    store.sync(&["old/a".into(), "tmp/new/deep/b".into()]).await.unwrap();
    if !exchanged(&store, "tmp/new", "old").await {
        return;
    }
    assert_eq!(names(&store, "").await, ["old/deep/b", "tmp/new/a"]);
    store.sync(&["old/deep/b".into(), "tmp/new/a".into()]).await.unwrap();
    store.put("file", buffers(["file"])).await.unwrap();
    assert!(exchanged(&store, "file", "old").await);
    assert_eq!(names(&store, "").await, ["file/deep/b", "old", "tmp/new/a"]);
    for (a, b) in [("never", "old"), ("old", "never")] {
        match store.exchange(a, b).await.unwrap_err() {
            Error::NotFound { name, .. } => assert_eq!(name, "never"),
            other => panic!("{other:?}"),
        }
    }
    let within = store.exchange("tmp", "tmp/new").await.unwrap_err();
    assert_eq!(within.kind(), ErrorKind::Invalid);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lock_has_one_holder_at_a_time() {
    let store = scratch(Durability::None);
    let inside = Arc::new(AtomicUsize::new(0));
    let tasks = (0..12).map(|_| {
        let (store, inside) = (store.store.clone(), inside.clone());
        tokio::spawn(async move {
            let held = store.lock("locks/main").await.unwrap();
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
            tokio::time::sleep(Duration::from_millis(1)).await;
            assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
            drop(held);
        })
    });
    for outcome in futures::future::join_all(tasks).await {
        outcome.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_folder_of_a_lock_may_be_taken_away_by_its_holder() {
    let store = scratch(Durability::None);
    let inside = Arc::new(AtomicUsize::new(0));
    let tasks = (0..8).map(|_| {
        let (store, inside) = (store.store.clone(), inside.clone());
        tokio::spawn(async move {
            for _ in 0..50 {
                let held = store.lock("work/lock").await.unwrap();
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                // Not empty if another task recreated the lock meanwhile.
                store.delete_dir("work").await.ok();
                drop(held);
            }
        })
    });
    for outcome in futures::future::join_all(tasks).await {
        outcome.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_lock_file_does_not_split_the_lock() {
    let store = scratch(Durability::None);
    let first = store.lock("lock").await.unwrap();
    let waiting = tokio::spawn({
        let store = store.store.clone();
        async move { store.lock("lock").await.unwrap() }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    store.delete(&["lock".into()]).await.unwrap();
    drop(first);
    let held = waiting.await.unwrap();
    let third = tokio::time::timeout(Duration::from_millis(50), store.lock("lock")).await;
    assert!(third.is_err(), "two hold the lock");
    drop(held);
}

#[tokio::test]
async fn conditional_puts_are_not_for_file_systems() {
    let store = scratch(Durability::None);
    assert_eq!(store.kind(), Kind::Local);
    assert_eq!(store.create("a", "x".into()).await.unwrap_err().kind(), ErrorKind::Unsupported);
    let version = Version { etag: None, version: None };
    let error = store.replace("a", "x".into(), &version).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[tokio::test]
async fn syncing_a_missing_file_fails() {
    let store = scratch(Durability::Full);
    store.put("a", buffers(["x"])).await.unwrap();
    let error = store.sync(&["a".into(), "b".into()]).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error:?}");
}

#[tokio::test]
async fn many_files_are_synced_in_one_call() {
    let store = scratch(Durability::Full);
    let paths: Vec<String> = (0..100).map(|i| format!("d{}/f{i}", i % 7)).collect();
    for path in &paths {
        store.put(path, buffers(["x"])).await.unwrap();
    }
    store.sync(&paths).await.unwrap();
}

#[tokio::test]
async fn a_directory_in_the_way_is_an_error_with_its_path() {
    let store = scratch(Durability::None);
    store.put("d/file", buffers(["x"])).await.unwrap();
    for error in [
        store.put("d", buffers(["y"])).await.unwrap_err(),
        store.delete(&["d".into()]).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Store);
        assert!(error.to_string().ends_with("/root/d"), "{error}");
    }
    assert_eq!(names(&store, "").await, ["d/file"], "and nothing is left behind");
}

#[tokio::test]
async fn an_unreadable_file_is_not_missing() {
    let store = scratch(Durability::None);
    store.put("secret", buffers(["x"])).await.unwrap();
    let path = std::path::Path::new(store.url()).join("secret");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    match store.get("secret").await {
        Ok(_) => {} // the superuser reads everything
        Err(error) => assert_eq!(error.kind(), ErrorKind::Store),
    }
}
