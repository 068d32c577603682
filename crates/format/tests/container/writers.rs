//! Several writers, readers and compactors at the same time, each with a handle of its own.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chunkyard_format::container::{CompactOptions, Container};
use chunkyard_store::{Error, ErrorKind, Result, Store};
use tokio::task::JoinSet;

use super::support::{
    create, definition, directory, memory, open, read, try_read, write, write_box,
};
use chunkyard_test_support::bucket;

/// Flushes the waiting changes, after the writes of others; returns the number of conflicts.
async fn flush_at_last(container: &Container) -> u64 {
    for conflicts in 0.. {
        match container.flush().await {
            Ok(_) => return conflicts,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}"),
        }
        container.refresh().await.unwrap_or_else(|error| panic!("{error:?}"));
    }
    unreachable!()
}

/// Each writer has its own array: all acknowledged data is there at the end.
async fn writers_of_disjoint_arrays(store: &Store, writers: i32, flushes: i32) {
    create(store).await;
    let mut tasks = JoinSet::new();
    for writer in 0..writers {
        let store = store.clone();
        tasks.spawn(async move {
            let container = open(&store).await;
            let name = format!("w{writer}");
            container.define(definition(&name, &[8], &[2])).await.unwrap();
            let mut conflicts = 0;
            for flush in 0..flushes {
                write(&container, &name, &[u64::from(flush as u32) % 8], vec![flush + 1]).await;
                conflicts += flush_at_last(&container).await;
            }
            conflicts
        });
    }
    let conflicts: u64 = tasks.join_all().await.into_iter().sum();
    let container = open(store).await;
    let layers = container.layers().await.unwrap().len() as i32;
    assert_eq!(layers, writers * flushes + 1, "{conflicts} conflicts");
    let mut expected = vec![0; 8];
    (0..flushes).for_each(|flush| expected[flush as usize % 8] = flush + 1);
    for writer in 0..writers {
        assert_eq!(read(&container, &format!("w{writer}")).await, expected, "{writer}");
    }
    container.compact(&CompactOptions::default()).await.unwrap();
    for writer in 0..writers {
        assert_eq!(read(&open(store).await, &format!("w{writer}")).await, expected, "{writer}");
    }
}

/// Writers of one array: losers begin anew, and nothing acknowledged is lost.
async fn writers_of_one_array(store: &Store, writers: i32, flushes: i32) {
    let container = create(store).await;
    let cells = u64::from((writers * flushes) as u32);
    container.define(definition("a", &[cells], &[4])).await.unwrap();
    container.flush().await.unwrap();
    let mut tasks = JoinSet::new();
    for writer in 0..writers {
        let store = store.clone();
        tasks.spawn(async move {
            let container = open(&store).await;
            for flush in 0..flushes {
                let cell = flush * writers + writer;
                loop {
                    write(&container, "a", &[u64::from(cell as u32)], vec![cell + 1]).await;
                    match container.flush().await {
                        Ok(_) => break,
                        Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}"),
                    }
                    // Others may have written the same chunk.
                    container.discard().await;
                    container.refresh().await.unwrap();
                }
            }
        });
    }
    tasks.join_all().await;
    let expected: Vec<i32> = (1..=writers * flushes).collect();
    let container = open(store).await;
    assert_eq!(read(&container, "a").await, expected);
    let stats = container.statistics("a").await.unwrap().unwrap();
    assert_eq!((stats.null_count, stats.row_count), (0, cells));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_of_disjoint_arrays_lose_nothing() {
    for writers in [2, 8] {
        let (_temp, local) = directory();
        for store in [memory(), local] {
            writers_of_disjoint_arrays(&store, writers, 4).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_of_one_array_lose_nothing() {
    for writers in [2, 8] {
        let (_temp, local) = directory();
        for store in [memory(), local] {
            writers_of_one_array(&store, writers, 4).await;
        }
    }
}

/// One of the states: all elements of both arrays are from one flush.
async fn one_state(container: &Container) -> Result<i32> {
    let (a, b) = (try_read(container, "a").await?, try_read(container, "b").await?);
    let values: BTreeSet<i32> = a.iter().chain(&b).copied().collect();
    assert_eq!(values.len(), 1, "a mixture: {a:?} {b:?}");
    Ok(a[0])
}

async fn write_state(container: &Container, value: i32) {
    for name in ["a", "b"] {
        write_box(container, name, &[0, 0], &[6, 6], vec![value; 36]).await;
    }
}

/// One writer, readers, and compactors that know nothing of each other.
async fn all_at_once(store: &Store, flushes: i32, readers: usize, compactors: usize) {
    let container = create(store).await;
    for name in ["a", "b"] {
        container.define(definition(name, &[6, 6], &[4, 4])).await.unwrap();
    }
    write_state(&container, 1).await;
    container.flush().await.unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let mut tasks = JoinSet::new();
    for _ in 0..readers {
        let (store, over) = (store.clone(), over.clone());
        tasks.spawn(async move {
            let (mut last, mut reads) = (0, 0);
            while !over.load(Ordering::Relaxed) || reads == 0 {
                let container = open(&store).await;
                // The same handle twice: it stays at its state, or reports that it cannot.
                for _ in 0..2 {
                    match one_state(&container).await {
                        Ok(value) => {
                            assert!(value >= last, "back from {last} to {value}");
                            (last, reads) = (value, reads + 1);
                        }
                        Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}"),
                    }
                }
            }
        });
    }
    for _ in 0..compactors {
        let (store, over) = (store.clone(), over.clone());
        tasks.spawn(async move {
            while !over.load(Ordering::Relaxed) {
                match open(&store).await.compact(&CompactOptions::default()).await {
                    Ok(_) => {}
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}"),
                }
                tokio::task::yield_now().await;
            }
        });
    }
    let container = open(store).await;
    for value in 2..flushes + 2 {
        loop {
            write_state(&container, value).await;
            match container.flush().await {
                Ok(_) => break,
                Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}"),
            }
            container.discard().await;
            container.refresh().await.unwrap();
        }
        let found = one_state(&open(store).await).await;
        match found {
            Ok(found) => assert_eq!(found, value, "acknowledged and not there"),
            Err(Error::Conflict { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
    over.store(true, Ordering::Relaxed);
    tasks.join_all().await;
    open(store).await.compact(&CompactOptions::default()).await.unwrap();
    let container = open(store).await;
    assert_eq!(one_state(&container).await.unwrap(), flushes + 1);
    assert_eq!(container.ignored(), []);
    assert_eq!(container.layers().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_reader_beside_a_writer_and_a_compactor_sees_one_state() {
    let (_temp, local) = directory();
    for store in [memory(), local] {
        all_at_once(&store, 25, 2, 1).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_compactors_at_the_same_time_do_no_harm() {
    let (_temp, local) = directory();
    for store in [memory(), local] {
        all_at_once(&store, 25, 1, 2).await;
    }
}

mod s3 {
    use super::*;

    fn store() -> Store {
        let url = bucket::fresh_url();
        let url = url.expect("CHUNKYARD_TEST_S3 names no bucket; run `make test-s3`");
        Store::open(&url, &Default::default()).unwrap()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    #[ignore = "needs an S3 server; run by `make test-s3`"]
    async fn writers_lose_nothing() {
        writers_of_disjoint_arrays(&store(), 4, 3).await;
        writers_of_one_array(&store(), 4, 3).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    #[ignore = "needs an S3 server; run by `make test-s3`"]
    async fn readers_beside_compactors_see_one_state() {
        all_at_once(&store(), 10, 2, 2).await;
    }
}
