//! What readers see: one committed version, whole, whatever happens meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chunkyard_repo::{CommitOptions, Config, OpenOptions, Repository, Version};
use chunkyard_store::Store;
use chunkyard_store::fault::{Fault, Plan};

use super::support::{
    Place, bytes_spec, collect, create, history, picture, read_all, read_at, reopen, sound, tiny,
    write, write_noise,
};

async fn two_arrays(store: &Store) -> Repository {
    let repo = create(store, tiny()).await;
    let session = repo.writable_session("main").await.unwrap();
    for path in ["/left", "/right"] {
        session.create_array(path, bytes_spec(&[8, 8], &[4, 4])).await.unwrap();
        write(&session, path, "0:8,0:8", 1).await.unwrap();
    }
    session.commit(CommitOptions::message("1")).await.unwrap();
    repo
}

#[tokio::test]
async fn a_reader_never_sees_an_uncommitted_or_half_committed_change() {
    for place in Place::ALL {
        let (_guard, store) = place.open();
        two_arrays(&store).await;
        let before = picture(&reopen(&store).await).await;
        // Another process looks after every single operation of the writer.
        let (counted, fault) = Fault::wrap(&store, Plan::never());
        let writer = Repository::open_in(counted, OpenOptions::default()).await.unwrap();
        let session = writer.writable_session("main").await.unwrap();
        write_noise(&session, "/left", "0:8,0:8", 2).await.unwrap();
        session.delete("/right").unwrap();
        assert_eq!(picture(&reopen(&store).await).await, before);
        session.commit(CommitOptions::message("2")).await.unwrap();
        let after = picture(&reopen(&store).await).await;
        assert_ne!(after, before);

        for stop in 0..fault.ops() {
            let (_guard, store) = super::support::duplicate(&store, place).await;
            let plan = Plan::new(stop, chunkyard_store::fault::Mode::DieAfter);
            let before = picture(&reopen(&store).await).await;
            let (faulty, _) = Fault::wrap(&store, plan);
            let writer = Repository::open_in(faulty, OpenOptions::default()).await.unwrap();
            let session = writer.writable_session("main").await.unwrap();
            if write_noise(&session, "/left", "0:8,0:8", 3).await.is_ok() {
                let _outcome = session.commit(CommitOptions::message("3")).await;
            }
            let found = picture(&reopen(&store).await).await;
            if found != before {
                let main = &found.references["Branch main"];
                assert_eq!(main[0].0, "3");
                assert_eq!(main[1..], before.references["Branch main"][..]);
            }
        }
    }
}

/// Every commit gives both arrays the same value; no reader ever finds two.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn commits_across_arrays_are_atomic() {
    for place in Place::ALL {
        let (_guard, store) = place.open();
        let repo = two_arrays(&store).await;
        let stop = Arc::new(AtomicBool::new(false));
        let reader = {
            let (store, stop) = (store.clone(), stop.clone());
            tokio::spawn(async move {
                let mut seen = std::collections::BTreeSet::new();
                while !stop.load(Ordering::Relaxed) {
                    let repo = reopen(&store).await;
                    let session = repo.readonly_session(&Version::Default).await.unwrap();
                    let left = read_all(&session, "/left").await.unwrap();
                    tokio::task::yield_now().await;
                    let right = read_all(&session, "/right").await.unwrap();
                    assert_eq!(left, right);
                    assert!(left.iter().all(|value| *value == left[0]), "{left:?}");
                    seen.insert(left[0]);
                }
                seen
            })
        };
        for value in 2..12 {
            let session = repo.writable_session("main").await.unwrap();
            write(&session, "/left", "0:8,0:8", value).await.unwrap();
            tokio::task::yield_now().await;
            write(&session, "/right", "0:8,0:8", value).await.unwrap();
            session.commit(CommitOptions::message(value.to_string())).await.unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        assert!(!reader.await.unwrap().is_empty());
        sound(&repo).await;
    }
}

#[tokio::test]
async fn a_read_session_stays_pinned() {
    let (_guard, store) = Place::Local.open();
    let repo = two_arrays(&store).await;
    let pinned = repo.readonly_session(&Version::Default).await.unwrap();
    let array = pinned.array("/left").await.unwrap();
    for value in 2..8 {
        let session = repo.writable_session("main").await.unwrap();
        write(&session, "/left", "0:8,0:8", value).await.unwrap();
        session.resize("/right", &[4, 4]).await.unwrap();
        session.commit(CommitOptions::message(value.to_string())).await.unwrap();
    }
    repo.optimise("main").await.unwrap();
    collect(&repo).await.unwrap();
    assert_eq!(read_all(&pinned, "/left").await.unwrap(), vec![1; 64]);
    assert_eq!(read_all(&pinned, "/right").await.unwrap(), vec![1; 64]);
    assert_eq!(array.spec().shape(), [8, 8]);
    assert_eq!(read_at(&repo, &Version::Default, "/left").await.unwrap(), vec![7; 64]);
}

#[tokio::test]
async fn a_session_reads_its_own_writes_and_no_other_sessions() {
    let (_guard, store) = Place::Memory.open();
    let repo = two_arrays(&store).await;
    let (a, b) = (
        repo.writable_session("main").await.unwrap(),
        repo.writable_session("main").await.unwrap(),
    );
    write(&a, "/left", "0:4,0:8", 2).await.unwrap();
    write(&b, "/left", "4:8,0:8", 3).await.unwrap();
    let (seen_a, seen_b) =
        (read_all(&a, "/left").await.unwrap(), read_all(&b, "/left").await.unwrap());
    assert_eq!((&seen_a[..32], &seen_a[32..]), (&[2; 32][..], &[1; 32][..]));
    assert_eq!((&seen_b[..32], &seen_b[32..]), (&[1; 32][..], &[3; 32][..]));
}

/// Time travel: every version of a history stays what it was, also in a fresh process.
#[tokio::test]
async fn old_versions_never_change() {
    let (_guard, store) = Place::Local.open();
    let repo = create(&store, Config::default()).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/a", bytes_spec(&[4], &[1])).await.unwrap();
    session.commit(CommitOptions::message("0")).await.unwrap();
    for value in 1..30u8 {
        let session = repo.writable_session("main").await.unwrap();
        let at = value % 4;
        write(&session, "/a", &format!("{at}:{}", at + 1), value).await.unwrap();
        session.commit(CommitOptions::message(value.to_string())).await.unwrap();
    }
    let repo = reopen(&store).await;
    for snapshot in history(&repo, "main").await {
        let Ok(last) = snapshot.message.parse::<u8>() else { continue };
        let version = Version::Snapshot(snapshot.snapshot_id.clone());
        let newest = |at: u8| (1..=last).rev().find(|value| value % 4 == at).unwrap_or(0);
        let expected: Vec<u8> = (0..4).map(newest).collect();
        assert_eq!(read_at(&repo, &version, "/a").await.unwrap(), expected);
    }
}
