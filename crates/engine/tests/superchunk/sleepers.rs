//! Two writers on an object store, each of which falls asleep at any of its operations, and the first
//! wakes up while the other one sleeps: whatever was acknowledged is there.

use std::time::Duration;

use chunkyard_engine::format::superchunk::{Blz, BlzOptions};
use chunkyard_engine::store::fault::{Fault, Mode, Plan};
use chunkyard_engine::store::{Options, Store};
use chunkyard_engine::{ErrorKind, Result};
use futures::{StreamExt, stream};

use super::support::{creation, numbers, open, rows, tidy, within};

/// How long the first one sleeps. The second sleeps longer, so that the first finds it at work.
const NAP: Duration = Duration::from_millis(100);
/// Pairs of writers at the same time: nearly all of their time is sleep.
const PAIRS: usize = 16;

/// A dataset in a store of its own.
async fn dataset(name: &str) -> Store {
    let store = Store::open(&format!("memory://sleepers-{name}"), &Options::default()).unwrap();
    let creation = creation("<i8", 10, 3);
    let blz = Blz::create(&within(&store), &creation, BlzOptions::default()).await.unwrap();
    blz.append(vec![rows(0..45)]).await.unwrap();
    blz.flush().await.unwrap();
    store
}

/// Adds rows in two commits; how many of them were acknowledged.
async fn add(store: &Store, commits: [std::ops::Range<i64>; 2]) -> Result<usize> {
    let blz = Blz::open(&within(store), BlzOptions::default()).await?;
    let mut done = 0;
    for more in commits {
        let added = match blz.append(vec![rows(more)]).await {
            Ok(()) => blz.flush().await,
            Err(error) => Err(error),
        };
        match added {
            Ok(()) => done += 1,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}");
                break;
            }
        }
    }
    Ok(done)
}

const EARLY: [std::ops::Range<i64>; 2] = [1000..1007, 1100..1110];
const LATE: [std::ops::Range<i64>; 2] = [2000..2017, 2100..2109];

/// The first falls asleep before operation `first`; then the second begins, and does so before
/// its write `second`.
async fn two_writers(first: usize, second: usize) {
    let what = format!("{first}-{second}");
    let store = dataset(&what).await;
    let (early, asleep) = Fault::wrap(&store, Plan::new(first, Mode::Stall(NAP)).with_reads());
    let (late, _) = Fault::wrap(&store, Plan::new(second, Mode::Stall(2 * NAP)));
    let (one, other) = tokio::join!(add(&early, EARLY), async {
        while !asleep.fired() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        add(&late, LATE).await
    });
    let found = numbers(&open(&within(&store)).await, "/").await;
    let mut left = found.strip_prefix(&(0..45).collect::<Vec<_>>()[..]).unwrap();
    let mut next = [EARLY[..one.unwrap()].iter(), LATE[..other.unwrap()].iter()];
    while let Some(row) = left.first() {
        let batch = next[usize::from(*row >= 2000)].next();
        let batch = batch.unwrap_or_else(|| panic!("{what}: {row} was not acknowledged"));
        left = left
            .strip_prefix(&batch.clone().collect::<Vec<_>>()[..])
            .unwrap_or_else(|| panic!("{what}: {batch:?} in {found:?}"));
    }
    assert!(next.iter().all(|batches| batches.len() == 0), "{what}: {found:?}");
    // Whoever comes next takes away what those left who lost.
    assert_eq!(add(&store, [3000..3001, 3100..3110]).await.unwrap(), 2, "{what}");
    tidy(&within(&store), 10, 3, &what).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_that_fall_asleep_undo_nothing_of_each_other() {
    let store = dataset("alone").await;
    let (counted, operations) = Fault::wrap(&store, Plan::never().with_reads());
    assert_eq!(add(&counted, EARLY).await.unwrap(), 2);
    let (counted, writes) = Fault::wrap(&store, Plan::never());
    assert_eq!(add(&counted, LATE).await.unwrap(), 2);
    let pairs = (0..operations.ops()).flat_map(|first| {
        // Reads of the second one find what they find, whenever they happen.
        (0..=writes.ops()).map(move |second| (first, second))
    });
    let run = |(first, second)| tokio::spawn(two_writers(first, second));
    let mut runs = stream::iter(pairs).map(run).buffer_unordered(PAIRS);
    while let Some(done) = runs.next().await {
        done.unwrap();
    }
}
