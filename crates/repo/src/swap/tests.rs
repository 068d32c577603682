//! The atomic step under torture: many writers, stalls between any two operations, sleepers.

use std::sync::Arc;
use std::time::Duration;

use chunkyard_store::fault::{Fault, Mode, Plan};
use chunkyard_store::{Durability, Options};

use super::*;
use crate::state::{Reference, ReferenceKind, Snapshot};
use crate::{CreateOptions, GcOptions, OpenOptions, Repository};

fn scratch() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { durability: Durability::None, ..Options::default() };
    let store = Store::open(directory.path().to_str().unwrap(), &options).unwrap();
    (directory, store)
}

fn memory(name: &str, conditional_put: bool) -> Store {
    let mut options = Options::default();
    if !conditional_put {
        options.values.insert("conditional_put".into(), "false".into());
    }
    Store::open(&format!("memory://swap-{name}"), &options).unwrap()
}

async fn created(store: &Store) -> StateFile {
    let repo =
        Repository::create_in(store.clone(), OpenOptions::default(), CreateOptions::default());
    repo.await.unwrap();
    StateFile::new(store.clone())
}

/// A successor with one more tag.
fn tagged(state: &State, name: &str) -> State {
    let mut next = state.successor(1).unwrap();
    let reference = Reference {
        name: name.to_owned(),
        snapshot_id: next.snapshots[0].snapshot_id.clone(),
        kind: ReferenceKind::Tag,
    };
    next.refs.insert(name.to_owned(), reference);
    next
}

/// A successor with one more snapshot.
pub(super) fn committed(state: &State, id: &str) -> State {
    let mut next = state.successor(1).unwrap();
    let parent = next.snapshots[0].clone();
    next.snapshots.push(Arc::new(Snapshot {
        snapshot_id: id.to_owned(),
        parent_snapshot_id: Some(parent.snapshot_id.clone()),
        timestamp_ms: parent.timestamp_ms + 1,
        ..(*parent).clone()
    }));
    next
}

/// Swaps until it wins; each attempt goes through a store that stalls at another operation.
async fn add_tag(store: &Store, name: &str, seed: usize) {
    for attempt in 0.. {
        let stall = Mode::Stall(Duration::from_millis((seed * 7 + attempt) as u64 % 9));
        let plan = Plan::new((seed + attempt) % 6, stall);
        let file = StateFile::new(Fault::wrap(store, plan).0);
        let current = file.read_for_writing().await.unwrap();
        let next = tagged(&current.state, name);
        match file.swap(&current, next, &[]).await.unwrap() {
            Swap::Won(_) => return,
            Swap::Lost => back_off(0).await,
        }
    }
}

async fn torture(store: Store, tasks: usize, swaps: usize) {
    created(&store).await;
    let mut writers = tokio::task::JoinSet::new();
    for task in 0..tasks {
        let store = store.clone();
        writers.spawn(async move {
            for n in 0..swaps {
                add_tag(&store, &format!("{task}-{n}"), task * 31 + n).await;
            }
        });
    }
    while let Some(done) = writers.join_next().await {
        done.unwrap();
    }
    let state = StateFile::new(store).read().await.unwrap().state;
    // Exactly one generation for each, so none was lost and none was made twice.
    assert_eq!(state.generation, (tasks * swaps) as u64);
    assert_eq!(state.refs.len(), tasks * swaps + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_swap_is_lost_or_made_twice_in_a_directory() {
    let (_guard, store) = scratch();
    torture(store, 4, 30).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_swap_is_lost_or_made_twice_on_object_stores() {
    torture(memory("conditional", true), 4, 30).await;
    torture(memory("create-only", false), 4, 30).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
#[ignore = "takes minutes; run by `make stress`"]
async fn no_swap_of_many_is_lost_or_made_twice() {
    let (_guard, store) = scratch();
    torture(store, 8, 60).await;
    torture(memory("many-conditional", true), 8, 60).await;
    torture(memory("many-create-only", false), 8, 60).await;
}

/// No later generation comes that would clean up: collection does it.
#[tokio::test]
async fn a_collection_removes_the_claims_of_past_generations() {
    let (guard, store) = scratch();
    let file = created(&store).await;
    for n in 0..100 {
        let current = file.read().await.unwrap();
        let next = tagged(&current.state, &format!("v{n}"));
        assert!(matches!(file.swap(&current, next, &[]).await.unwrap(), Swap::Won(_)));
    }
    let exists = |generation: u64| guard.path().join(format!("g/{generation:020}.json")).exists();
    assert!(!exists(32) && exists(33), "96 was the last generation that cleaned up");
    // What an earlier version left, to keep the number taken.
    std::fs::write(guard.path().join(format!("g/{:020}.json", 7)), b"").unwrap();
    let repo = Repository::open_in(store.clone(), OpenOptions::default()).await.unwrap();
    repo.garbage_collect(&GcOptions::default()).await.unwrap();
    assert!((0..=36).all(|generation| !exists(generation)), "64 generations behind");
    assert!((37..=100).all(exists), "the last 64 stay");
    assert_eq!(file.read_for_writing().await.unwrap().state.generation, 100);
}

/// A writer slept for so long that the claim of its generation was published and removed. It can
/// claim the number again, and must notice that the claim is void.
#[tokio::test]
async fn a_sleeper_notices_that_its_claim_is_void() {
    let (guard, store) = scratch();
    let file = created(&store).await;
    let old = file.read().await.unwrap();
    for n in 0..300 {
        let current = file.read().await.unwrap();
        let next = tagged(&current.state, &format!("v{n}"));
        assert!(matches!(file.swap(&current, next, &[]).await.unwrap(), Swap::Won(_)));
    }
    let claim = guard.path().join("g/00000000000000000001.json");
    assert!(!claim.exists(), "removed long ago");
    for late in [committed(&old.state, "late"), tagged(&old.state, "late")] {
        assert!(matches!(file.swap(&old, late, &[]).await.unwrap(), Swap::Lost));
        assert!(!claim.exists(), "a void claim does not stay");
    }
    let latest = file.read_for_writing().await.unwrap();
    let latest = file.complete(latest).await.unwrap().state;
    assert_eq!(latest.generation, 300);
    assert!(!latest.refs.contains_key("late") && latest.snapshot("late").is_none());
}

/// The published copy went back, as on a file system whose locks do nothing: writers find the
/// highest claim by listing, and readers by probing.
#[tokio::test]
async fn a_published_copy_that_went_back_is_found_out() {
    let (guard, store) = scratch();
    let file = created(&store).await;
    let published = guard.path().join("state.json");
    let old = std::fs::read(&published).unwrap();
    for n in 0..5 {
        let current = file.read().await.unwrap();
        file.swap(&current, tagged(&current.state, &format!("v{n}")), &[]).await.unwrap();
    }
    // The published copy and its claim are one file with two names.
    std::fs::remove_file(&published).unwrap();
    std::fs::write(&published, old).unwrap();
    assert_eq!(file.read().await.unwrap().state.generation, 5);
    let current = file.read_for_writing().await.unwrap();
    file.swap(&current, tagged(&current.state, "next"), &[]).await.unwrap();
    let state = checksum::open(&std::fs::read(&published).unwrap(), "state.json").unwrap();
    assert_eq!(state.generation, 6, "published anew");
    assert_eq!(state.refs.len(), 7);
}

#[tokio::test]
async fn a_claim_that_is_damaged_is_never_skipped() {
    let (guard, store) = scratch();
    let file = created(&store).await;
    let published = std::fs::read(guard.path().join("state.json")).unwrap();
    let claim = guard.path().join("g/00000000000000000001.json");
    for bytes in [&published[..], &published[..published.len() / 2], b"{}", b""] {
        std::fs::write(&claim, bytes).unwrap();
        let error = file.read().await.unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        assert!(file.read_for_writing().await.is_err());
    }
}

#[tokio::test]
async fn two_protocols_never_guard_one_root() {
    let store = memory("protocols", true);
    created(&store).await;
    let other = StateFile::new(memory("protocols", false));
    let error = other.read_for_writing().await.unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
}

#[tokio::test]
async fn the_checksum_covers_every_byte_of_the_state() {
    let store = memory("checksum", true);
    let bytes = created(&store).await.read().await.unwrap().bytes;
    let state = checksum::open(&bytes, "state.json").unwrap();
    assert_eq!(checksum::seal(&state, &mut Rendered::default()).unwrap(), bytes);
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.to_vec();
            flipped[at] ^= 1 << bit;
            let opened = checksum::open(&flipped, "state.json");
            assert!(opened.is_err(), "bit {bit} of byte {at}");
        }
        assert!(checksum::open(&bytes[..at], "state.json").is_err(), "the first {at} bytes");
    }
}
