//! Tables survive crashes, collections and damage, or the damage is an error.

use chunkyard_repo::{
    CommitOptions, ExpireOptions, Level, OpenOptions, Repository, Severity, Version,
};
use chunkyard_store::fault::{Mode, Plan, at_every_operation};
use chunkyard_store::{Result, Store};
use futures::TryStreamExt;

use super::{at, keys, rows, with_rows};
use crate::repo::support::{Place, collect, duplicate, memory, reopen, repetitions, sound};

async fn furnish(store: &Store) {
    let repo = with_rows(store, &[(1, 1), (2, 2), (3, 3)]).await;
    for n in 0..3 {
        let session = repo.writable_session("main").await.unwrap();
        let table = session.table("/t").await.unwrap();
        table.upsert(rows(&[(10 + n, n), (2, n)])).await.unwrap();
        table.delete(keys(&[3])).await.unwrap();
        session.commit(CommitOptions::message("x")).await.unwrap();
    }
}

async fn change(store: &Store) -> Result<()> {
    let repo = Repository::open_in(store.clone(), OpenOptions::default()).await?;
    let session = repo.writable_session("main").await?;
    let table = session.table("/t").await?;
    table.upsert(rows(&[(5, 55)])).await?;
    table.delete(keys(&[1])).await?;
    session.commit(CommitOptions::message("change")).await.map(drop)
}

async fn optimise(store: &Store) -> Result<()> {
    let repo = Repository::open_in(store.clone(), OpenOptions::default()).await?;
    repo.optimise("main").await.map(drop)
}

#[tokio::test]
async fn every_operation_of_a_commit_or_a_compaction_can_be_the_last() {
    let main = Version::branch("main");
    for place in [Place::Memory, Place::Local] {
        if !place.is_wanted() {
            continue;
        }
        let (_guard, template) = place.open();
        furnish(&template).await;
        let before = at(&reopen(&template).await, &main).await.unwrap();
        let (_after, done) = duplicate(&template, place).await;
        change(&done).await.unwrap();
        let changed = at(&reopen(&done).await, &main).await.unwrap();
        assert_ne!(before, changed);
        for compacts in [false, true] {
            for mode in [Mode::Die, Mode::DieAfter] {
                for attempt in at_every_operation(Plan::new(0, mode)) {
                    let (_guard, store) = duplicate(&template, place).await;
                    let (faulty, fault) = attempt.wrap(&store);
                    let outcome = match compacts {
                        true => optimise(&faulty).await,
                        false => change(&faulty).await,
                    };
                    fault.die().await.unwrap();
                    let repo = reopen(&store).await;
                    let found = at(&repo, &main).await.unwrap();
                    let expected = if compacts { &before } else { &changed };
                    let what = format!("{place:?} {mode:?} {compacts} {:?}", fault.log());
                    assert!(found == *expected || (found == before && outcome.is_err()), "{what}");
                    change(&store).await.unwrap();
                    collect(&repo).await.unwrap();
                    assert_eq!(sound(&reopen(&store).await).await, 0, "{what}");
                }
            }
        }
    }
}

#[tokio::test]
async fn expiry_and_collection_keep_the_runs_of_kept_versions_and_no_others() {
    let store = memory();
    furnish(&store).await;
    let repo = reopen(&store).await;
    let now = at(&repo, &Version::branch("main")).await.unwrap();
    let old = repo.state().await.unwrap().snapshots[1].snapshot_id.clone();
    repo.create_tag("old", &Version::Snapshot(old), false).await.unwrap();
    repo.optimise("main").await.unwrap();
    repo.expire(&ExpireOptions { keep_last: Some(1), ..ExpireOptions::default() }).await.unwrap();
    collect(&repo).await.unwrap();
    let repo = reopen(&store).await;
    assert_eq!(at(&repo, &Version::branch("main")).await.unwrap(), now);
    assert_eq!(at(&repo, &Version::Tag("old".into())).await.unwrap(), [(1, 1), (2, 2), (3, 3)]);
    assert_eq!(sound(&repo).await, 0);
    let left: Vec<_> = store.list("i").await.unwrap().try_collect().await.unwrap();
    assert_eq!(left.len(), 2, "one run of each version");
}

/// Whatever bit of a run: verification names the file, and a reader gets the right rows or an error.
#[tokio::test]
async fn no_flipped_bit_of_a_run_goes_unnoticed() {
    let store = memory();
    let many: Vec<(u64, u64)> = (0..5000).map(|n| (n * 3, n * n)).collect();
    let repo = with_rows(&store, &many).await;
    let session = repo.writable_session("main").await.unwrap();
    session.table("/t").await.unwrap().delete(keys(&[3])).await.unwrap();
    session.commit(CommitOptions::message("x")).await.unwrap();
    let right = at(&repo, &Version::branch("main")).await.unwrap();
    let files: Vec<_> = store.list("i").await.unwrap().try_collect().await.unwrap();
    assert_eq!(files.len(), 2);
    for meta in files {
        let bytes = store.get(&meta.path).await.unwrap().bytes;
        let step = (bytes.len() / repetitions(150, 40)).max(1);
        for at_byte in (0..bytes.len()).step_by(step) {
            let mut flipped = bytes.to_vec();
            flipped[at_byte] ^= 1 << (at_byte % 8);
            store.put(&meta.path, vec![flipped.into()]).await.unwrap();
            let repo = reopen(&store).await;
            let what = format!("{} byte {at_byte}", meta.path);
            match at(&repo, &Version::branch("main")).await {
                Ok(found) => assert_eq!(found, right, "{what}"),
                Err(error) => {
                    assert_eq!(
                        error.kind(),
                        chunkyard_store::ErrorKind::Corrupt,
                        "{what}: {error}"
                    );
                }
            }
            let report = repo.verify(Level::Metadata).await.unwrap();
            let named = report
                .findings
                .iter()
                .any(|finding| finding.severity == Severity::Error && finding.file == meta.path);
            assert!(named, "{what}: {:?}", report.findings);
        }
        store.put(&meta.path, vec![bytes]).await.unwrap();
    }
    sound(&reopen(&store).await).await;
}

/// Requests and bytes of setting one row do not depend on how many rows there are.
#[tokio::test]
async fn a_commit_of_one_row_costs_the_same_in_a_large_table() {
    let mut costs = Vec::new();
    for count in [10_000u64, repetitions(1_000_000, 200_000) as u64] {
        let store = memory();
        let many: Vec<(u64, u64)> = (0..count).map(|n| (n * 2, n ^ 0x5555)).collect();
        drop(with_rows(&store, &many).await);
        let (counted, fault) =
            chunkyard_store::fault::Fault::wrap(&store, Plan::never().with_reads());
        let repo = reopen(&counted).await;
        let session = repo.writable_session("main").await.unwrap();
        session.table("/t").await.unwrap().upsert(rows(&[(77, 7)])).await.unwrap();
        let snapshot = session.commit(CommitOptions::message("one")).await.unwrap();
        let operations = fault.log();
        assert!(
            !operations.iter().any(|op| op.starts_with("get") && op.contains("i/")),
            "{operations:?}"
        );
        costs.push((operations.len(), snapshot.summary.bytes_written));
    }
    let [small, large] = costs[..] else { panic!() };
    assert_eq!(small.0, large.0, "requests");
    assert!(small.1.abs_diff(large.1) < 200, "bytes: {small:?} {large:?}");
}
