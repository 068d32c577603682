//! Many ranges at once give the same bytes as one by one.

use std::ops::Range;

use bytes::Bytes;
use chunkyard_store::fault::{Fault, Plan};
use chunkyard_store::{Durability, Error, Guard, Limits, Request, Store};
use proptest::prelude::*;

use super::{memory, scratch};
use chunkyard_test_support::cases;

const SIZE: u64 = 300_000;

fn request(path: &str, range: Range<u64>) -> Request {
    Request { path: path.into(), range, guard: None }
}

async fn fill(store: &Store) -> Vec<Bytes> {
    let mut contents = Vec::new();
    for object in 0..3u64 {
        let bytes: Bytes = (0..SIZE).map(|i| ((i * (7 + object)) >> 3) as u8).collect();
        store.put(&format!("o/{object}"), vec![bytes.clone()]).await.unwrap();
        contents.push(bytes);
    }
    contents
}

#[tokio::test]
async fn many_ranges_of_one_file_are_one_read() {
    let (store, fault) = Fault::wrap(&scratch(Durability::None), Plan::never().with_reads());
    store.put("a", vec![vec![7; 10_000].into()]).await.unwrap();
    let before = fault.ops();
    let requests: Vec<_> = (0..100).map(|i| request("a", i * 100..i * 100 + 50)).collect();
    let read = store.fetch(&requests, &Limits::default()).await.unwrap();
    assert!(read.len() == 100 && read.iter().all(|bytes| bytes.len() == 50));
    assert_eq!(fault.log()[before..], ["get_ranges a"]);
}

#[tokio::test]
async fn an_empty_request_reads_nothing() {
    let (store, fault) = Fault::wrap(&memory("nothing"), Plan::never().with_reads());
    assert!(store.fetch(&[], &Limits::default()).await.unwrap().is_empty());
    let read = store.fetch(&[request("missing", 5..5)], &Limits::default()).await.unwrap();
    assert_eq!(read, [""]);
    assert_eq!(fault.ops(), 0);
}

#[tokio::test]
async fn one_bad_range_fails_the_whole() {
    for store in [&scratch(Durability::None).store, &memory("bad-range")] {
        fill(store).await;
        let beyond = [request("o/0", 0..10), request("o/1", SIZE - 5..SIZE + 5)];
        let error = store.fetch(&beyond, &Limits::default()).await.unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
        let missing = [request("o/0", 0..10), request("o/9", 0..1)];
        let error = store.fetch(&missing, &Limits::default()).await.unwrap_err();
        assert!(matches!(error, Error::NotFound { .. }), "{error:?}");
        let guard = Some(Guard { etag: Some("another".into()), not_newer_than_ms: None });
        let changed = [Request { guard, ..request("o/0", 0..10) }];
        let error = store.fetch(&changed, &Limits::default()).await.unwrap_err();
        assert!(matches!(error, Error::VirtualSourceChanged { .. }), "{error:?}");
    }
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn results_are_in_the_order_asked_and_right(
        asked in prop::collection::vec((0..3usize, 0..SIZE, 0..2_000u64), 0..60),
        at_once in 0..5usize,
        local: bool,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let directory = scratch(Durability::None);
            let store = if local { directory.store.clone() } else { memory("fetch-property") };
            let contents = fill(&store).await;
            let ranges: Vec<(usize, Range<u64>)> = asked
                .iter()
                .map(|&(object, start, length)| (object, start..(start + length).min(SIZE)))
                .collect();
            let requests: Vec<Request> = ranges
                .iter()
                .map(|(object, range)| request(&format!("o/{object}"), range.clone()))
                .collect();
            let limits = Limits { requests: at_once, ..Limits::default() };
            let read = store.fetch(&requests, &limits).await.unwrap();
            for ((object, range), bytes) in ranges.iter().zip(&read) {
                let range = range.start as usize..range.end as usize;
                assert_eq!(*bytes, contents[*object].slice(range));
            }
            assert_eq!(read.len(), requests.len());
        });
    }
}
