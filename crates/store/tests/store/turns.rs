//! Turns of a directory: handed on in order, broken if they do not end, never left behind.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chunkyard_store::{Durability, ErrorKind, Lock, Options, Store};

use super::scratch;

const HOLD: Duration = Duration::from_millis(1);

async fn turn(store: &Store) -> Lock {
    store.turn("next", "turn", HOLD).await.unwrap()
}

fn inode(store: &Store, name: &str) -> u64 {
    std::fs::metadata(Path::new(store.url()).join(name)).unwrap().ino()
}

fn is_locked(store: &Store, name: &str) -> bool {
    let file = File::open(Path::new(store.url()).join(name)).unwrap();
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

/// Waits until a lock is held, or until it is free.
async fn until(store: &Store, name: &str, locked: bool) {
    while is_locked(store, name) != locked {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_waiting_process_goes_before_the_one_that_just_left() {
    let store = scratch(Durability::None);
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut held = turn(&store).await;
    for _ in 0..20 {
        let waiting = tokio::spawn({
            let (store, order) = (store.store.clone(), order.clone());
            async move {
                let held = turn(&store).await;
                order.lock().unwrap().push("waits");
                held
            }
        });
        until(&store, "next", true).await;
        drop(held);
        let again = turn(&store);
        tokio::pin!(again);
        let first = tokio::select! {
            biased;
            _ = &mut again => None,
            waited = waiting => Some(waited.unwrap()),
        };
        drop(first.expect("the one that waits"));
        held = again.await;
        order.lock().unwrap().push("left");
    }
    let order = order.lock().unwrap();
    assert!(order.chunks(2).all(|pair| pair == ["waits", "left"]), "{order:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_turn_that_does_not_end_is_broken_once_for_all() {
    let store = scratch(Durability::None);
    let asleep = turn(&store).await;
    let before = inode(&store, "turn");
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let store = store.store.clone();
        tasks.spawn(async move {
            for _ in 0..5 {
                drop(turn(&store).await);
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let after = inode(&store, "turn");
    assert_ne!(before, after);
    drop(turn(&store).await);
    drop(asleep);
    drop(turn(&store).await);
    assert_eq!(inode(&store, "turn"), after);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_door_that_does_not_open_is_broken_too() {
    let store = scratch(Durability::None);
    drop(turn(&store).await);
    let door = File::open(Path::new(store.url()).join("next")).unwrap();
    door.lock().unwrap();
    let both = futures::future::join(turn(&store), async {
        drop(turn(&Store::open(store.url(), &Options::default()).unwrap()).await);
    });
    // The first of the two keeps its turn until the second breaks it too, or comes second.
    drop(both.await);
    assert_ne!(inode(&store, "next"), door.metadata().unwrap().ino());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_waiter_that_gives_up_leaves_no_lock() {
    let store = scratch(Durability::None);
    let held = turn(&store).await;
    let (door, room) = (inode(&store, "next"), inode(&store, "turn"));
    for _ in 0..2 {
        let waiting = tokio::spawn({
            let store = store.store.clone();
            async move { turn(&store).await }
        });
        until(&store, "next", true).await;
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
        until(&store, "next", false).await;
    }
    drop(held);
    // The waiting threads get the lock after all, and release it.
    until(&store, "turn", false).await;
    drop(turn(&store).await);
    until(&store, "turn", false).await;
    assert_eq!((inode(&store, "next"), inode(&store, "turn")), (door, room));
}

#[tokio::test]
async fn object_stores_have_no_turns() {
    let store = Store::open("memory://turns", &Options::default()).unwrap();
    let error = store.turn("next", "turn", HOLD).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}
