//! Two writers on an object store each fall asleep at any of their operations, and the first wakes up while the
//! second sleeps: all acknowledged rows are there, and no others.
//!
//! The rows must be the result of the acknowledged operations in some order that keeps the order of each
//! writer. An operation that lost to the other writer has no effect, except that rows which it was
//! changing may be old or new.

use chunkyard_array::Region;
use chunkyard_format::OpenOptions;
use chunkyard_format::superchunk::{Blz, BlzOptions};
use chunkyard_store::fault::{Fault, Mode, Plan, overlap, pairs};
use chunkyard_store::{Error, ErrorKind, Options, Result, Store};

use super::support::{creation, numbers, rows, tidy, within};

/// How many pairs of each scenario are tried, unless there is time for all.
const SAMPLE: usize = 30;

/// What a writer does, and commits.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Act {
    /// Adds so many rows.
    Add(u64),
    Trim(u64),
    Resize(u64),
    /// First row and number of rows that get new values.
    Change(u64, u64),
    /// Moves the files from this number up to 2 to a place.
    Move(u64, &'static str),
}

use Act::{Add, Change, Move, Resize, Trim};

/// The acts that prepare the dataset, those of the first writer, and those of the second.
type Scenario = (&'static [Act], &'static [Act], &'static [Act]);

const SCENARIOS: &[Scenario] = &[
    (&[Add(45)], &[Add(7), Add(10)], &[Add(17), Add(9)]),
    (&[Add(75)], &[Trim(12), Add(5)], &[Add(17), Trim(3)]),
    (&[Add(75)], &[Trim(20), Add(20)], &[Trim(33), Add(33)]),
    (&[Add(75), Trim(30)], &[Add(30)], &[Add(30), Trim(9)]),
    (&[Add(75)], &[Resize(80), Resize(52)], &[Add(9), Resize(61)]),
    (&[Add(75)], &[Change(12, 5), Change(71, 2)], &[Change(14, 3), Add(6)]),
    (&[Add(75)], &[Change(33, 3), Add(4)], &[Trim(40), Add(45)]),
    (&[Add(75)], &[Change(33, 3)], &[Move(1, "a"), Add(5)]),
    (&[Add(75)], &[Move(1, "a"), Add(5)], &[Trim(40), Add(45)]),
    (&[Add(75)], &[Trim(40), Add(45)], &[Move(1, "a"), Add(5)]),
    (&[Add(75)], &[Move(1, "a"), Trim(40)], &[Move(1, "a"), Add(8)]),
    (&[Add(75), Move(1, "a"), Trim(30)], &[Add(30), Move(2, "b")], &[Add(6), Trim(9)]),
    (&[Add(75), Move(1, "a"), Trim(30)], &[Trim(2), Add(9)], &[Add(40)]),
];

/// Rows that no other act adds, for act `number` of a writer.
fn fresh(writer: usize, number: usize, count: u64) -> std::ops::Range<i64> {
    let first = 10_000 * (writer as i64 + 1) + 1000 * number as i64;
    first..first + count as i64
}

/// Applies an act to the rows.
fn model(rows: &mut Vec<i64>, act: Act, fresh: std::ops::Range<i64>) {
    match act {
        Add(_) => rows.extend(fresh),
        Trim(count) => rows.truncate(rows.len().saturating_sub(count as usize)),
        Resize(len) => rows.resize(len as usize, 0),
        Change(start, _) => {
            let changed = rows.iter_mut().skip(start as usize).zip(fresh);
            changed.for_each(|(row, new)| *row = new);
        }
        Move(..) => {}
    }
}

async fn perform(blz: &Blz, act: Act, base: &str, fresh: std::ops::Range<i64>) -> Result<()> {
    match act {
        Add(_) => blz.append(vec![rows(fresh)]).await?,
        Trim(count) => blz.trim(count).await?,
        Resize(len) => blz.resize(len).await?,
        Change(start, count) => {
            let region = Region::new([start], [count])?;
            blz.writer("/")?.write_region(&region, rows(fresh)).await?;
        }
        Move(first, place) => blz.relocate(first..=2, &format!("{base}/{place}")).await?,
    }
    blz.flush().await
}

fn count_of(act: Act) -> u64 {
    match act {
        Add(count) | Change(_, count) => count,
        _ => 0,
    }
}

/// Opens a dataset whose files may be at a place.
async fn open(store: &Store, base: &str) -> Result<Blz> {
    let allowed = OpenOptions { allowed: vec![base.to_owned()], ..OpenOptions::default() };
    let options = BlzOptions { open: allowed, mutable: true, ..BlzOptions::default() };
    Blz::open(&within(store), options).await
}

/// An act, the rows that it adds, and whether it was acknowledged; if not, it may have happened.
type Done = (Act, std::ops::Range<i64>, bool);

/// Does one act after the other until one is lost, and gives the acts that count or may count.
async fn write(store: &Store, base: &str, writer: usize, acts: &[Act]) -> Vec<Done> {
    let blz = open(store, base).await.unwrap();
    let mut done = Vec::new();
    for (number, act) in acts.iter().enumerate() {
        let fresh = fresh(writer, number, count_of(*act));
        match perform(&blz, *act, base, fresh.clone()).await {
            Ok(()) => done.push((*act, fresh, true)),
            Err(error) => {
                // The other writer has moved the file, or cut off the rows to move or change.
                let refused = matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Unsupported)
                    && matches!(act, Move(..) | Change(..));
                let unknown = matches!(error, Error::OutcomeUnknown { .. });
                let changes = matches!(act, Change(..));
                let lost = error.kind() == ErrorKind::Conflict || (unknown && changes);
                assert!(refused || lost, "{act:?}: {error:?}");
                done.extend(changes.then_some((*act, fresh, false)));
                break;
            }
        }
    }
    done
}

/// Everything that these acts can make of the rows.
fn outcomes(rows: &[i64], one: &[Done], other: &[Done], found: &mut Vec<Vec<i64>>) {
    if one.is_empty() && other.is_empty() {
        found.push(rows.to_vec());
    }
    let mut next = |act: &Done, one: &[Done], other: &[Done]| {
        let mut after = rows.to_vec();
        model(&mut after, act.0, act.1.clone());
        outcomes(&after, one, other, found);
        if !act.2 {
            outcomes(rows, one, other, found);
        }
    };
    if let Some((first, rest)) = one.split_first() {
        next(first, rest, other);
    }
    if let Some((first, rest)) = other.split_first() {
        next(first, one, rest);
    }
}

/// A dataset in a store of its own, the place its files may move to, and its rows.
async fn dataset(name: &str, acts: &[Act]) -> (Store, String, Vec<i64>) {
    let store = Store::open(&format!("memory://sleepers-{name}"), &Options::default()).unwrap();
    let base = format!("memory://sleepers-{name}-elsewhere/there");
    let creation = creation("<i8", 10, 3);
    Blz::create(&within(&store), &creation, BlzOptions::default()).await.unwrap();
    let blz = open(&store, &base).await.unwrap();
    let mut rows = Vec::new();
    for (number, act) in acts.iter().enumerate() {
        let fresh = fresh(0, number, count_of(*act));
        perform(&blz, *act, &base, fresh.clone()).await.unwrap();
        model(&mut rows, *act, fresh);
    }
    (store, base, rows)
}

/// The first writer falls asleep before operation `first`; then the second begins, and falls asleep before
/// its write `second`.
async fn two_writers(at: usize, scenario: Scenario, first: usize, second: usize) {
    let what = format!("{at}-{first}-{second}");
    let (before, early_acts, late_acts) = scenario;
    let (store, base, was) = dataset(&what, before).await;
    let (early, asleep) = Fault::wrap(&store, Plan::new(first, Mode::Sleep).with_reads());
    let (late, asleep_too) = Fault::wrap(&store, Plan::new(second, Mode::Sleep));
    let (one, other) = overlap(
        (&asleep, write(&early, &base, 1, early_acts)),
        (&asleep_too, write(&late, &base, 2, late_acts)),
    )
    .await;
    let now = open(&store, &base).await.unwrap();
    let mut found = numbers(&now, "/").await;
    let mut possible = Vec::new();
    outcomes(&was, &one, &other, &mut possible);
    let what = format!("{scenario:?} {first} {second}: {one:?} {other:?}");
    assert!(possible.contains(&found), "{what} {found:?}");

    // The next writer removes the leftovers of the losers.
    let next = open(&store, &base).await.unwrap();
    for (number, count) in [(0, 1), (1, 10)] {
        let more = fresh(3, number, count);
        next.append(vec![rows(more.clone())]).await.unwrap();
        next.flush().await.unwrap();
        found.extend(more);
    }
    let now = open(&store, &base).await.unwrap();
    assert_eq!(numbers(&now, "/").await, found, "{what}");
    if !now.shards().ranges.is_empty() {
        next.resize(25).await.unwrap();
        next.append(vec![rows(7..9)]).await.unwrap();
        next.flush().await.unwrap();
        found = [&found[..25], &[7, 8]].concat();
    }
    assert_eq!(numbers(&open(&store, &base).await.unwrap(), "/").await, found, "{what}");
    tidy(&within(&store), 10, 3, &what).await;
}

/// The operations of the first writer of a scenario, and the writes of the second.
async fn operations(at: usize, (before, early, late): Scenario) -> (usize, usize) {
    let counts = [(0, Plan::never().with_reads(), early), (1, Plan::never(), late)];
    let mut counted = [0; 2];
    for (writer, plan, acts) in counts {
        let (store, base, _) = dataset(&format!("{at}-alone-{writer}"), before).await;
        let (faulty, operations) = Fault::wrap(&store, plan);
        assert_eq!(write(&faulty, &base, 1 + writer, acts).await.len(), acts.len());
        counted[writer] = operations.ops();
    }
    (counted[0], counted[1])
}

async fn fall_asleep(most: usize) {
    for (at, scenario) in SCENARIOS.iter().enumerate() {
        let (operations, writes) = operations(at, *scenario).await;
        // The second writer sleeps before writes only: the time of its reads makes no difference.
        for (first, second) in pairs(operations, writes, most) {
            two_writers(at, *scenario, first, second).await;
        }
    }
}

#[tokio::test]
async fn writers_that_fall_asleep_undo_nothing_of_each_other() {
    fall_asleep(SAMPLE).await;
}

#[tokio::test]
#[ignore = "takes minutes; run by `make stress`"]
async fn stress_writers_that_fall_asleep_anywhere_undo_nothing_of_each_other() {
    fall_asleep(usize::MAX).await;
}

#[tokio::test]
async fn the_same_rows_added_again_are_another_object() {
    let (store, base, _) = dataset("again", &[Add(60)]).await;
    let file = || async { within(&store).directory().get("data/__2__.bin").await.unwrap().bytes };
    let before = file().await;
    let blz = open(&store, &base).await.unwrap();
    let all = fresh(0, 0, 60);
    blz.trim(15).await.unwrap();
    blz.append(vec![rows(all.end - 15..all.end)]).await.unwrap();
    blz.flush().await.unwrap();
    let now = open(&store, &base).await.unwrap();
    assert_eq!(numbers(&now, "/").await, all.collect::<Vec<_>>());
    // Where an etag is a digest of the bytes, it must differ from the earlier one.
    assert_ne!(file().await, before);
}
