//! Moving files to another root, bringing them home, and repair, each killed or without power at any
//! operation: no row is lost, and the same command finishes when it is repeated.

use std::collections::BTreeMap;

use bytes::Bytes;
use chunkyard_format::superchunk::{Blz, BlzOptions, Wish};
use chunkyard_format::{OpenOptions, Place};
use chunkyard_store::fault::{Mode, Plan, Unsynced, at_every_operation};
use chunkyard_store::{Result, Store};

use super::crash::{deaths, some_deaths};
use super::support::{creation, files, numbers, resealed, rows, within};
use chunkyard_test_support::{Place as At, duplicate};

fn allowing(base: &str) -> BlzOptions {
    let allowed = vec![base.to_owned()];
    BlzOptions { open: OpenOptions { allowed, ..OpenOptions::default() }, ..BlzOptions::default() }
}

/// A root of its own, in memory or in a directory that is deleted with the guard.
fn elsewhere(in_memory: bool) -> (tempfile::TempDir, String) {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let guard = tempfile::tempdir().unwrap();
    let base = match in_memory {
        true => format!("memory://interrupted-{}/there", NEXT.fetch_add(1, Ordering::Relaxed)),
        false => guard.path().to_str().unwrap().to_owned(),
    };
    (guard, base)
}

/// 75 rows: two full files, one that is not, and a tail.
async fn template(at: At) -> (Option<tempfile::TempDir>, Store) {
    let (guard, store) = at.open();
    let wanted = creation("<i8", 10, 3);
    let blz = Blz::create(&within(&store), &wanted, BlzOptions::default()).await.unwrap();
    blz.append(vec![rows(0..75)]).await.unwrap();
    blz.flush().await.unwrap();
    (guard, store)
}

async fn names(place: &Place) -> Vec<String> {
    let found = files(place, "data").await.into_iter();
    found.map(|(name, _)| name.trim_start_matches("data/").to_owned()).collect()
}

async fn relocate(place: &Place, base: &str) -> Result<()> {
    Blz::open(place, allowing(base)).await?.relocate(1..=2, base).await
}

async fn interrupt_moving(deaths: impl Fn(At) -> Vec<(Mode, Unsynced)>) {
    for (at, in_memory) in [(At::Local, false), (At::Local, true), (At::Memory, true)] {
        let (_guard, template) = template(at).await;
        for (mode, unsynced) in deaths(at) {
            for attempt in at_every_operation(Plan::new(0, mode).with_power_cut(unsynced)) {
                let n = attempt.at();
                let (_guard, store) = duplicate(&template, at).await;
                let (_elsewhere, base) = elsewhere(in_memory);
                let plan = attempt.plan();
                let (faulty, fault) = attempt.wrap(&store);
                let moved = relocate(&within(&faulty), &base).await;
                fault.die().await.unwrap();
                let what = format!("{at:?} {plan:?}: {moved:?} {:#?}", fault.log());

                let place = within(&store);
                let mut all: Vec<i64> = (0..75).collect();
                let blz = Blz::open(&place, allowing(&base)).await.unwrap();
                assert_eq!(numbers(&blz, "/").await, all, "{what}");
                if moved.is_ok() {
                    assert_eq!(blz.shards().ranges.len(), 1, "{what}");
                }
                let again = relocate(&place, &base).await;
                assert!(again.is_ok(), "{what}: {again:?}");
                assert_eq!(names(&place).await, ["__3__.bin", "__4__.bin"], "{what}");
                let blz = Blz::open(&place, allowing(&base)).await.unwrap();
                assert_eq!(numbers(&blz, "/").await, all, "{what}");
                blz.append(vec![rows(75..88)]).await.unwrap();
                blz.flush().await.unwrap();
                all.extend(75..88);
                let blz = Blz::open(&place, allowing(&base)).await.unwrap();
                assert_eq!(numbers(&blz, "/").await, all, "{what}");
                assert!(fault.fired() || (moved.is_ok() && n > 1), "{what}");
            }
        }
    }
}

/// Cuts rows off in a file elsewhere and adds new ones, so that the file comes home.
async fn come_home(place: &Place, base: &str) -> Result<()> {
    let blz = Blz::open(place, allowing(base)).await?;
    blz.resize(44).await?;
    blz.append(vec![rows(100..103)]).await?;
    blz.flush().await
}

async fn interrupt_coming_home(deaths: impl Fn(At) -> Vec<(Mode, Unsynced)>) {
    for (at, in_memory) in [(At::Local, false), (At::Memory, true)] {
        let (_guard, template) = template(at).await;
        let (_elsewhere, base) = elsewhere(in_memory);
        relocate(&within(&template), &base).await.unwrap();
        let cut: Vec<i64> = (0..44).collect();
        let after = [cut.clone(), vec![100, 101, 102]].concat();
        let states = [(0..75).collect(), cut, after.clone()];
        for (mode, unsynced) in deaths(at) {
            for attempt in at_every_operation(Plan::new(0, mode).with_power_cut(unsynced)) {
                let n = attempt.at();
                let (_guard, store) = duplicate(&template, at).await;
                let plan = attempt.plan();
                let (faulty, fault) = attempt.wrap(&store);
                let done = come_home(&within(&faulty), &base).await;
                fault.die().await.unwrap();
                let what = format!("{at:?} {plan:?}: {done:?} {:#?}", fault.log());

                let place = within(&store);
                let blz = Blz::open(&place, allowing(&base)).await.unwrap();
                let found = numbers(&blz, "/").await;
                assert!(states.contains(&found), "{what} {found:?}");
                assert!(done.is_err() || found == after, "{what} {found:?}");
                let again = come_home(&place, &base).await;
                assert!(again.is_ok(), "{what}: {again:?}");
                let blz = Blz::open(&place, allowing(&base)).await.unwrap();
                assert_eq!(numbers(&blz, "/").await, after, "{what}");
                assert_eq!(names(&place).await, ["__2__.bin", "__3__.bin"], "{what}");
                assert!(fault.fired() || (done.is_ok() && n > 1), "{what}");
            }
        }
    }
}

/// Damages the files of a dataset, given by path.
type Damage = fn(&mut BTreeMap<String, Vec<u8>>);

const DAMAGES: &[Damage] = &[
    |files| *files.get_mut("data/__2__.bin").unwrap().last_mut().unwrap() ^= 1,
    |files| *files.get_mut("data/__3__.bin").unwrap().last_mut().unwrap() ^= 1,
    |files| files.get_mut("data/__2__.bin").unwrap()[16..32].fill(0x7f),
    |files| files.get_mut("data/__2__.bin").unwrap().truncate(300),
    |files| drop(files.remove("data/__2__.bin")),
    |files| drop(files.remove("meta/sizes")),
    // Rows of a full chunk become a tail, and another file has its name.
    |files| {
        let sizes = files.get_mut("meta/sizes").unwrap();
        *sizes = resealed(sizes, "[75]", "[44]");
    },
];

/// All files of a dataset.
async fn contents(store: &Store) -> BTreeMap<String, Vec<u8>> {
    let place = within(store);
    let mut all = BTreeMap::new();
    for folder in ["data", "meta"] {
        let found = files(&place, folder).await.into_iter();
        all.extend(found.map(|(path, bytes)| (path, bytes.to_vec())));
    }
    all
}

async fn repair(store: &Store) -> Result<u64> {
    let repaired = Blz::repair(&within(store), &BlzOptions::default(), false).await?;
    Ok(repaired.rows_after)
}

/// The dataset reads as `rows` rows, and every earlier file still exists, perhaps under another name.
async fn is_repaired(store: &Store, before: &BTreeMap<String, Vec<u8>>, rows: u64, what: &str) {
    let blz = Blz::open(&within(store), BlzOptions::default()).await.unwrap();
    assert_eq!(numbers(&blz, "/").await, (0..rows as i64).collect::<Vec<_>>(), "{what}");
    let now = contents(store).await;
    for (path, bytes) in before.iter().filter(|(path, _)| path.starts_with("data/")) {
        assert!(now.values().any(|found| found == bytes), "{what}: {path} is gone");
    }
}

async fn interrupt_repair(damage: Damage, deaths: Vec<(Mode, Unsynced)>) {
    let at = At::Local;
    let (_guard, template) = template(at).await;
    let place = within(&template);
    let mut damaged = contents(&template).await;
    damage(&mut damaged);
    template.delete_dir("x.blz").await.unwrap();
    for (path, bytes) in &damaged {
        let bytes = Bytes::from(bytes.clone());
        place.directory().put(path, vec![bytes]).await.unwrap();
    }
    let (_guard, undisturbed) = duplicate(&template, at).await;
    let rows_after = repair(&undisturbed).await.unwrap();
    is_repaired(&undisturbed, &damaged, rows_after, "undisturbed").await;
    for (mode, unsynced) in deaths {
        for attempt in at_every_operation(Plan::new(0, mode).with_power_cut(unsynced)) {
            let (_guard, store) = duplicate(&template, at).await;
            let plan = attempt.plan();
            let (faulty, fault) = attempt.wrap(&store);
            let repaired = repair(&faulty).await;
            fault.die().await.unwrap();
            let what = format!("{plan:?}: {repaired:?} {:#?}", fault.log());
            if repaired.is_ok() {
                is_repaired(&store, &damaged, rows_after, &what).await;
            }
            let again = repair(&store).await;
            assert!(again.as_ref().is_ok_and(|rows| *rows == rows_after), "{what}: {again:?}");
            is_repaired(&store, &damaged, rows_after, &what).await;
            let blz = Blz::open(&within(&store), BlzOptions::default()).await.unwrap();
            let more = rows_after as i64..rows_after as i64 + 33;
            blz.append(vec![rows(more.clone())]).await.unwrap();
            blz.flush().await.unwrap();
            let blz = Blz::open(&within(&store), BlzOptions::default()).await.unwrap();
            assert_eq!(numbers(&blz, "/").await, (0..more.end).collect::<Vec<_>>(), "{what}");
            assert!(fault.fired() || repaired.is_ok(), "{what}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_of_moving_files_can_be_the_last() {
    interrupt_moving(some_deaths).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_of_bringing_files_home_can_be_the_last() {
    interrupt_coming_home(some_deaths).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes; run by `make stress`"]
async fn stress_moves_and_repairs_are_interrupted_in_every_way() {
    interrupt_moving(deaths).await;
    interrupt_coming_home(deaths).await;
    for damage in DAMAGES {
        interrupt_repair(*damage, deaths(At::Local)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_of_a_repair_can_be_the_last() {
    for damage in DAMAGES {
        interrupt_repair(*damage, some_deaths(At::Local)).await;
    }
}

#[tokio::test]
async fn a_repair_keeps_a_file_that_is_where_the_tail_goes() {
    let (_guard, store) = At::Local.open();
    let mut wanted = creation("[('x', '<i8'), ('y', '<i8')]", 10, 3);
    let wish = wanted.wish.clone();
    wanted.columns.insert("x".to_owned(), wish.clone());
    wanted.columns.insert("y".to_owned(), Wish { chunklen: Some(16), ..wish });
    let blz = Blz::create(&within(&store), &wanted, BlzOptions::default()).await.unwrap();
    blz.append(vec![rows(0..96), rows(100..196)]).await.unwrap();
    blz.flush().await.unwrap();
    // 48 rows of y are left, which end within a full chunk of x.
    let directory = within(&store).directory().clone();
    directory.delete(&["data/y/__2__.bin".to_owned()]).await.unwrap();
    let kept = directory.get("data/x/__3__.bin").await.unwrap().bytes;
    let done = Blz::repair(&within(&store), &BlzOptions::default(), false).await.unwrap();
    assert_eq!(done.rows_after, 48, "{done:#?}");
    let blz = Blz::open(&within(&store), BlzOptions::default()).await.unwrap();
    assert_eq!(numbers(&blz, "/x").await, (0..48).collect::<Vec<_>>());
    assert_eq!(numbers(&blz, "/y").await, (100..148).collect::<Vec<_>>());
    let found = files(&within(&store), "data/x").await;
    assert!(found.iter().any(|(_, bytes)| *bytes == kept), "{done:#?}");
}
