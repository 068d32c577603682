//! A request of an append or a flush times out and takes effect later, or its reply is lost. The caller goes
//! on with more rows: the writer must not take its own objects for those of another one, and each row is
//! there once.

use std::sync::Arc;

use chunkyard_format::superchunk::{Blz, BlzOptions};
use chunkyard_store::fault::{Fault, Mode, Plan};
use chunkyard_store::{Error, ErrorKind, Store};

use super::support::{creation, numbers, open, rows, tidy, within};
use chunkyard_test_support::{Place as At, duplicate};

const CHUNKLEN: u64 = 10;
const SUPERCHUNK: u64 = 3;

async fn template(count: i64) -> Store {
    let (_, store) = At::Memory.open();
    let wanted = creation("<i8", CHUNKLEN, SUPERCHUNK);
    let blz = Blz::create(&within(&store), &wanted, BlzOptions::default()).await.unwrap();
    blz.append(vec![rows(0..count)]).await.unwrap();
    blz.flush().await.unwrap();
    store
}

async fn faulty(store: &Store, n: usize, mode: Mode) -> (Blz, Arc<Fault>) {
    let (faulty, fault) = Fault::wrap(store, Plan::new(n, mode));
    (open(&within(&faulty)).await, fault)
}

async fn append_around(mode: Mode, before: i64, first: i64, second: i64) {
    let template = template(before).await;
    let (middle, end) = (before + first, before + first + second);
    for n in 0.. {
        let (_guard, store) = duplicate(&template, At::Memory).await;
        let (blz, fault) = faulty(&store, n, mode).await;
        let mut added = blz.append(vec![rows(before..middle)]).await;
        let flushed = blz.flush().await;
        fault.relent();
        let log = format!("{mode:?} {before} {first} {second} {n}: {added:?} {flushed:?}");
        let what = format!("{log} {:#?}", fault.log());
        for error in [&added, &flushed].into_iter().filter_map(|done| done.as_ref().err()) {
            assert_eq!(error.kind(), ErrorKind::Store, "{what}");
        }
        if added.is_err() {
            // Nothing of these rows waits.
            assert_eq!(blz.len(), before as u64, "{what}");
            added = blz.append(vec![rows(before..middle)]).await;
            assert!(added.is_ok(), "{what} {added:?}");
        }
        assert_eq!(blz.len(), middle as u64, "{what}");
        blz.append(vec![rows(middle..end)]).await.unwrap_or_else(|e| panic!("{what} {e:?}"));
        blz.flush().await.unwrap_or_else(|error| panic!("{what} {error:?}"));
        let expected: Vec<i64> = (0..end).collect();
        assert_eq!(numbers(&blz, "/").await, expected, "{what}");
        assert_eq!(numbers(&open(&within(&store)).await, "/").await, expected, "{what}");
        // A tail that landed late and was not needed any more goes with the next writer.
        let next = open(&within(&store)).await;
        next.append(vec![rows(end..end + 1)]).await.unwrap();
        next.flush().await.unwrap();
        let expected: Vec<i64> = (0..=end).collect();
        assert_eq!(numbers(&open(&within(&store)).await, "/").await, expected, "{what}");
        tidy(&within(&store), CHUNKLEN, SUPERCHUNK, &what).await;
        if !fault.fired() {
            assert!(flushed.is_ok() && n > 1, "{what}");
            break;
        }
    }
}

const MODES: [Mode; 4] = [Mode::LoseReply, Mode::Late(0), Mode::Late(1), Mode::Late(usize::MAX)];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_land_late_are_known_as_our_own() {
    for mode in MODES {
        append_around(mode, 45, 3, 2).await;
        append_around(mode, 45, 20, 40).await;
        append_around(mode, 55, 3, 2).await;
        append_around(mode, 28, 30, 2).await;
    }
}

/// If only one request goes wrong, a flush finds out.
#[tokio::test]
async fn one_time_out_is_no_error_of_an_append_or_a_flush() {
    let template = template(45).await;
    for mode in [Mode::LoseReply, Mode::Late(0)] {
        for n in 0.. {
            let (_guard, store) = duplicate(&template, At::Memory).await;
            let (blz, fault) = faulty(&store, n, mode).await;
            blz.append(vec![rows(45..85)]).await.unwrap();
            blz.flush().await.unwrap();
            let found = numbers(&open(&within(&store)).await, "/").await;
            assert_eq!(found, (0..85).collect::<Vec<_>>(), "{mode:?} {n} {:#?}", fault.log());
            if !fault.fired() {
                assert!(n > 1, "{:?}", fault.log());
                break;
            }
        }
    }
}

/// The flush that could not tell is repeated, and adds nothing twice; until it can tell, the rows wait.
#[tokio::test]
async fn a_flush_of_unknown_outcome_can_be_repeated() {
    let template = template(45).await;
    for n in 0.. {
        let (_guard, store) = duplicate(&template, At::Memory).await;
        let (blz, fault) = faulty(&store, n, Mode::Late(usize::MAX)).await;
        if blz.append(vec![rows(45..50)]).await.is_err() {
            continue;
        }
        let first = blz.flush().await;
        let is_commit = fault.log().get(n).is_some_and(|op| op == "replace x.blz/meta/sizes");
        if is_commit {
            assert!(matches!(first, Err(Error::OutcomeUnknown { .. })), "{first:?}");
            assert!(blz.flush().await.is_err(), "still no answer");
        }
        fault.relent();
        blz.flush().await.unwrap();
        let found = numbers(&open(&within(&store)).await, "/").await;
        assert_eq!(found, (0..50).collect::<Vec<_>>(), "{n} {:#?}", fault.log());
        if is_commit {
            break;
        }
        assert!(fault.fired(), "no commit: {:#?}", fault.log());
    }
}

/// Another writer claims while our commit is unknown: then it can never land.
#[tokio::test]
async fn rows_of_unknown_outcome_lose_to_another_writer() {
    let store = template(45).await;
    let (blz, fault) = faulty(&store, 2, Mode::Late(usize::MAX)).await;
    blz.append(vec![rows(45..50)]).await.unwrap();
    let unknown = blz.flush().await.unwrap_err();
    assert!(matches!(unknown, Error::OutcomeUnknown { .. }), "{unknown:?} {:#?}", fault.log());
    let other = open(&within(&store)).await;
    other.append(vec![rows(100..107)]).await.unwrap();
    other.flush().await.unwrap();
    fault.relent();
    let lost = blz.flush().await.unwrap_err();
    assert!(matches!(lost, Error::Conflict { .. }), "{lost:?}");
    let expected: Vec<i64> = (0..45).chain(100..107).collect();
    assert_eq!(numbers(&open(&within(&store)).await, "/").await, expected);
}
