//! Several writers and readers at the same time, each with a handle of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chunkyard_format::Place;
use chunkyard_format::superchunk::{Blz, BlzOptions};
use chunkyard_store::ErrorKind;
use tokio::task::JoinSet;

use super::support::{creation, local, memory, numbers, open, rows, tidy, try_numbers, within};
use chunkyard_test_support as stores;

/// Adds rows and commits them, and tries again if another writer was faster.
async fn add(blz: &Blz, more: std::ops::Range<i64>) -> u64 {
    for conflicts in 0.. {
        let added = match blz.append(vec![rows(more.clone())]).await {
            Ok(()) => blz.flush().await,
            Err(error) => Err(error),
        };
        match added {
            Ok(()) => return conflicts,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(conflicts.min(20) * 3)).await;
    }
    unreachable!()
}

/// Each writer adds its own batches: all are there, each in one piece, in the order of their writer.
async fn lose_nothing(place: &Place, writers: i64, batches: i64) {
    Blz::create(place, &creation("<i8", 10, 3), BlzOptions::default()).await.unwrap();
    let mut tasks = JoinSet::new();
    for writer in 0..writers {
        let place = place.clone();
        tasks.spawn(async move {
            let blz = open(&place).await;
            for batch in 0..batches {
                let first = 1_000_000 * writer + 1000 * batch;
                add(&blz, first..first + 1 + (7 * writer + 5 * batch) % 23).await;
            }
        });
    }
    tasks.join_all().await;
    let mut found: &[i64] = &numbers(&open(place).await, "/").await;
    let mut next = vec![0; writers as usize];
    while let Some(first) = found.first() {
        let (writer, batch) = (first / 1_000_000, first % 1_000_000 / 1000);
        assert_eq!(batch, next[writer as usize], "batch of writer {writer}");
        next[writer as usize] += 1;
        let count = 1 + (7 * writer + 5 * batch) % 23;
        let (rows, rest) = found.split_at(count as usize);
        assert_eq!(rows, (*first..first + count).collect::<Vec<_>>());
        found = rest;
    }
    assert!(next.iter().all(|count| *count == batches), "{next:?}");
    tidy(place, 10, 3, "after all").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_at_the_same_time_lose_nothing() {
    for writers in [2, 5] {
        let (_temp, local) = local();
        for place in [memory(), local] {
            lose_nothing(&place, writers, 6).await;
        }
    }
}

/// Row `n` is always `n`, so a reader finds a prefix of the rows, or an error that says that they were changed
/// meanwhile.
async fn readers_see_a_prefix(place: &Place, rounds: i64) {
    Blz::create(place, &creation("<i8", 10, 3), BlzOptions::default()).await.unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let mut tasks = JoinSet::new();
    for reader in 0..3 {
        let (place, over) = (place.clone(), over.clone());
        tasks.spawn(async move {
            let mut blz = open(&place).await;
            let mut reads = 0_u64;
            while !over.load(Ordering::Relaxed) || reads < 3 {
                match try_numbers(&blz, "/").await {
                    Ok(found) => {
                        assert_eq!(found, (0..found.len() as i64).collect::<Vec<_>>(), "{reader}");
                        reads += 1;
                    }
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}"),
                }
                match reads % 2 {
                    0 => blz = open(&place).await,
                    _ => blz.refresh().await.unwrap(),
                }
            }
        });
    }
    let blz = open(place).await;
    let mut len = 0;
    for round in 0..rounds {
        let more = 1 + 17 * round % 41;
        add(&blz, len..len + more).await;
        len += more;
        if round % 3 == 2 {
            let less = len * (round % 5) / 6;
            blz.trim(less as u64).await.unwrap();
            len -= less;
        }
    }
    over.store(true, Ordering::Relaxed);
    tasks.join_all().await;
    assert_eq!(numbers(&open(place).await, "/").await, (0..len).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_beside_a_writer_see_a_prefix_of_the_rows() {
    let (_temp, local) = local();
    for place in [memory(), local] {
        readers_see_a_prefix(&place, 60).await;
    }
}

/// Two long-lived handles: one dies between its tail and the commit, and the rows that the other adds then
/// must not go over the only copy of rows that count.
#[tokio::test]
async fn a_handle_notices_the_leftovers_of_a_dead_one() {
    use chunkyard_store::fault::{Fault, Mode, Plan, at_every_operation};
    let (_guard, store) = stores::directory();
    let place = within(&store);
    Blz::create(&place, &creation("<i8", 10, 100), BlzOptions::default()).await.unwrap();
    let first = open(&place).await;
    add(&first, 0..45).await;
    for attempt in at_every_operation(Plan::new(0, Mode::Die)) {
        let at = attempt.at();
        let (faulty, fault) = attempt.wrap(&store);
        let second = open(&within(&faulty)).await;
        let died = match second.append(vec![rows(1000..1043)]).await {
            Ok(()) => second.flush().await,
            Err(error) => Err(error),
        };
        drop(second);
        let len = open(&place).await.len() as i64;
        if !fault.fired() {
            died.unwrap();
            break;
        }
        // The next writer dies too, at its first write in place.
        let log = |fault: &Fault| fault.log().iter().any(|op| op.starts_with("write_at"));
        for attempt in at_every_operation(Plan::new(0, Mode::Tear)) {
            let (faulty, fault) = attempt.wrap(&store);
            let third = open(&within(&faulty)).await;
            let _died =
                third.append(vec![rows(2000..2090)]).await.is_err() || third.flush().await.is_err();
            drop(third);
            if log(&fault) {
                break;
            }
        }
        let found = numbers(&open(&place).await, "/").await;
        assert_eq!(found.get(..45).unwrap(), (0..45).collect::<Vec<_>>(), "{at} {len}");
        add(&first, 45..47).await;
        let now = first.len();
        first.trim(now - 45).await.unwrap();
        assert_eq!(numbers(&open(&place).await, "/").await, (0..45).collect::<Vec<_>>(), "{at}");
    }
}

mod s3 {
    use chunkyard_store::Options;

    use super::*;
    use chunkyard_test_support::bucket;

    fn place() -> Place {
        let url = bucket::fresh_url();
        let url = url.expect("CHUNKYARD_TEST_S3 names no bucket; run `make test-s3`");
        Place::new(&format!("{url}/x.blz"), &Options::default()).unwrap()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    #[ignore = "needs an S3 server; run by `make test-s3`"]
    async fn writers_at_the_same_time_lose_nothing() {
        lose_nothing(&place(), 3, 4).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    #[ignore = "needs an S3 server; run by `make test-s3`"]
    async fn readers_beside_a_writer_see_a_prefix_of_the_rows() {
        readers_see_a_prefix(&place(), 20).await;
    }
}

#[tokio::test]
async fn old_leftovers_of_dead_writers_beside_the_sizes_are_removed() {
    let (temp, place) = local();
    let blz = Blz::create(&place, &creation("<i8", 10, 3), BlzOptions::default()).await.unwrap();
    let meta = temp.path().join("x.blz/meta");
    let hours_ago = |hours: u64| std::time::SystemTime::now() - Duration::from_secs(3600 * hours);
    for (name, hours) in [(".tmp-old", 2), (".tmp-new", 0), ("mine", 2)] {
        let file = std::fs::File::create(meta.join(name)).unwrap();
        file.set_modified(hours_ago(hours)).unwrap();
    }
    add(&blz, 0..3).await;
    let is_there = |name: &str| meta.join(name).exists();
    assert_eq!([".tmp-old", ".tmp-new", "mine"].map(is_there), [false, true, true]);
}
