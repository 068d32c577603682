//! Rows arrive in many small batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use chunkyard_array::codec::blosc::{Compressor, Shuffle};
use chunkyard_format::Place;
use chunkyard_format::superchunk::{Blz, BlzOptions, Compression, Creation};
use chunkyard_store::fault::{Fault, Plan};

use super::support::{creation, files, local, memory, numbers, open, rows, within};
use chunkyard_test_support::Place as At;

async fn create(place: &Place, wanted: &Creation) -> Blz {
    Blz::create(place, wanted, BlzOptions::default()).await.unwrap()
}

/// Chunks of 160 KB in blocks of 16.
fn of_many_blocks() -> Creation {
    let mut wanted = creation("<i8", 20_000, 3);
    wanted.slack = 100;
    wanted.wish.compression = Some(Compression {
        compressor: Compressor::Lz4,
        level: 5,
        shuffle: Shuffle::Byte,
        block_bytes: 16 << 10,
    });
    wanted
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_read_here_whether_they_are_encoded_or_not() {
    let (_temp, local) = local();
    for place in [memory(), local] {
        let blz = create(&place, &of_many_blocks()).await;
        let mut end = 0;
        while end < 130_000 {
            blz.append(vec![rows(end..end + 1700)]).await.unwrap();
            end += 1700;
            if end % 5 == 0 {
                assert_eq!(numbers(&blz, "/").await, (0..end).collect::<Vec<_>>());
            }
        }
        blz.flush().await.unwrap();
        assert_eq!(numbers(&open(&place).await, "/").await, (0..end).collect::<Vec<_>>());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_that_are_committed_one_by_one_make_the_files_of_one_batch() {
    let (_temp, at_once) = local();
    let (_temp, by_and_by) = local();
    let whole = create(&at_once, &of_many_blocks()).await;
    // A copy of the meta files, because data files name their dataset.
    for (path, bytes) in files(&at_once, "meta").await {
        by_and_by.directory().put(&path, vec![bytes]).await.unwrap();
    }
    let parts = open(&by_and_by).await;
    let mut end = 0;
    for more in [1, 1999, 48, 0, 6144, 2048, 9759, 1, 1, 300, 19_999, 7000, 30_000, 12_345] {
        parts.append(vec![rows(end..end + more)]).await.unwrap();
        parts.flush().await.unwrap();
        end += more;
        assert_eq!(numbers(&open(&by_and_by).await, "/").await, (0..end).collect::<Vec<_>>());
    }
    whole.append(vec![rows(0..end)]).await.unwrap();
    whole.flush().await.unwrap();
    assert_eq!(files(&by_and_by, "data").await, files(&at_once, "data").await);
}

#[tokio::test]
async fn a_dropped_handle_loses_only_its_uncommitted_rows() {
    let (_temp, place) = local();
    let blz = create(&place, &of_many_blocks()).await;
    blz.append(vec![rows(0..50_000)]).await.unwrap();
    blz.flush().await.unwrap();
    for end in 50_000..50_100 {
        blz.append(vec![rows(end * 1000..end * 1000 + 999)]).await.unwrap();
    }
    // Some of its chunks are still being encoded.
    drop(blz);
    let next = open(&place).await;
    assert_eq!(numbers(&next, "/").await, (0..50_000).collect::<Vec<_>>());
    next.append(vec![rows(50_000..50_001)]).await.unwrap();
    next.flush().await.unwrap();
    assert_eq!(numbers(&open(&place).await, "/").await, (0..50_001).collect::<Vec<_>>());
}

/// Rows in memory that records when it is released.
struct Lent(Bytes, Arc<AtomicBool>);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.1.store(true, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn memory_that_was_lent_is_given_back_when_append_returns() {
    let blz = create(&memory(), &creation("<i8", 10, 3)).await;
    let mut end = 0;
    for more in [3, 10, 7, 45, 1, 2000] {
        let returned = Arc::new(AtomicBool::new(false));
        let lent = Lent(rows(end..end + more), returned.clone());
        blz.append(vec![Bytes::from_owner(lent)]).await.unwrap();
        assert!(returned.load(Ordering::Relaxed), "{more} rows");
        end += more;
    }
    assert_eq!(numbers(&blz, "/").await, (0..end).collect::<Vec<_>>());
}

/// Exactly the syncs that design/010 asks for.
#[tokio::test]
async fn a_small_batch_is_durable_after_three_syncs() {
    let (_guard, store) = At::Local.open();
    create(&within(&store), &creation("<i8", 10, 3)).await;
    let (watched, fault) = Fault::wrap(&store, Plan::never());
    let blz = open(&within(&watched)).await;
    for (from, to) in [(0, 4), (4, 7)] {
        blz.append(vec![rows(from..to)]).await.unwrap();
        blz.flush().await.unwrap();
    }
    let log = fault.log();
    let words = log.iter().filter_map(|op| op.split(' ').next()).collect::<Vec<_>>();
    let batch = ["lock", "put", "put", "sync_content", "rename", "sync_dir", "rename", "sync_dir"];
    assert_eq!(words, [batch, batch].concat(), "{log:?}");
}
