//! Two sessions change one table.

use chunkyard_repo::{CommitOptions, ConflictKind, KeyRange, Rebase, Resolve, Version};
use chunkyard_store::Error;

use super::{at, keys, numbers, rows, scan, with_rows};
use crate::repo::support::{memory, reopen, sound};

fn rebased(policy: Rebase) -> CommitOptions {
    CommitOptions::message("ours").with_rebase(policy)
}

#[tokio::test]
async fn different_keys_of_one_table_rebase_also_over_merged_runs() {
    let store = memory();
    let repo = with_rows(&store, &[(1, 1), (2, 2), (3, 3)]).await;
    let ours = repo.writable_session("main").await.unwrap();
    let table = ours.table("/t").await.unwrap();
    table.upsert(rows(&[(2, 20), (50, 50)])).await.unwrap();
    table.delete(keys(&[3])).await.unwrap();
    // Enough commits that their runs are merged with the ones that we began with.
    for n in 0..9 {
        let their = repo.writable_session("main").await.unwrap();
        their.table("/t").await.unwrap().upsert(rows(&[(100 + n, n), (1, n)])).await.unwrap();
        their.commit(CommitOptions::message("theirs")).await.unwrap();
    }
    repo.optimise("main").await.unwrap();
    ours.commit(rebased(Rebase::default())).await.unwrap();
    let repo = reopen(&store).await;
    let mut expected = vec![(1, 8), (2, 20), (50, 50)];
    expected.extend((0..9).map(|n| (100 + n, n)));
    assert_eq!(at(&repo, &Version::branch("main")).await.unwrap(), expected);
    sound(&repo).await;
}

#[tokio::test]
async fn the_same_key_is_a_conflict_that_names_table_and_key() {
    let repo = with_rows(&memory(), &[(1, 1), (2, 2)]).await;
    for (policy, expected) in [(Resolve::Ours, 10), (Resolve::Theirs, 20)] {
        let ours = repo.writable_session("main").await.unwrap();
        ours.table("/t").await.unwrap().upsert(rows(&[(1, 10), (7, 70)])).await.unwrap();
        let their = repo.writable_session("main").await.unwrap();
        their.table("/t").await.unwrap().upsert(rows(&[(1, 20), (8, 80)])).await.unwrap();
        their.commit(CommitOptions::message("theirs")).await.unwrap();
        let error = ours.commit(rebased(Rebase::default())).await.unwrap_err();
        let Error::Conflict { conflicts, .. } = &error else { panic!("{error:?}") };
        assert_eq!(conflicts.len(), 1);
        assert_eq!(conflicts[0].kind, ConflictKind::Row);
        assert_eq!(
            (conflicts[0].path.as_str(), conflicts[0].keys.as_slice()),
            ("/t", &["1".to_owned()][..])
        );
        assert!(error.to_string().contains("/t") && error.to_string().contains("(1)"), "{error}");
        let table = ours.table("/t").await.unwrap();
        assert_eq!(scan(&table, &KeyRange::All).await.unwrap()[0], (1, 10), "as it was");
        ours.commit(rebased(Rebase { chunks: policy, ..Rebase::default() })).await.unwrap();
        let now = at(&repo, &Version::branch("main")).await.unwrap();
        assert_eq!(now, [(1, expected), (2, 2), (7, 70), (8, 80)]);
    }
    sound(&repo).await;
}

#[tokio::test]
async fn a_deletion_conflicts_with_a_change_and_a_removed_table_with_both() {
    let repo = with_rows(&memory(), &[(1, 1), (2, 2)]).await;
    let delete = repo.writable_session("main").await.unwrap();
    delete.table("/t").await.unwrap().delete(keys(&[2])).await.unwrap();
    let remove = repo.writable_session("main").await.unwrap();
    remove.delete("/t").unwrap();
    let insert = repo.writable_session("main").await.unwrap();
    insert.table("/t").await.unwrap().upsert(rows(&[(9, 9)])).await.unwrap();
    let their = repo.writable_session("main").await.unwrap();
    their.table("/t").await.unwrap().upsert(rows(&[(2, 20)])).await.unwrap();
    their.commit(CommitOptions::message("theirs")).await.unwrap();
    for (ours, kind) in [(&delete, ConflictKind::Row), (&remove, ConflictKind::RemovedNodeChanged)]
    {
        let error = ours.commit(rebased(Rebase::default())).await.unwrap_err();
        let Error::Conflict { conflicts, .. } = &error else { panic!("{error:?}") };
        assert_eq!(conflicts.iter().map(|conflict| conflict.kind).collect::<Vec<_>>(), [kind]);
    }
    // A table that was only laid out anew did not change.
    repo.optimise("main").await.unwrap();
    let remove = repo.writable_session("main").await.unwrap();
    remove.delete("/t").unwrap();
    repo.optimise("main").await.unwrap();
    remove.commit(rebased(Rebase::default())).await.unwrap();
    let error = insert.commit(rebased(Rebase::default())).await.unwrap_err();
    let Error::Conflict { conflicts, .. } = &error else { panic!("{error:?}") };
    assert_eq!(conflicts[0].kind, ConflictKind::NodeRemoved);
}

#[tokio::test]
async fn a_fork_reads_the_rows_of_its_session_and_changes_none() {
    let repo = with_rows(&memory(), &[(1, 1)]).await;
    let session = repo.writable_session("main").await.unwrap();
    session.table("/t").await.unwrap().upsert(rows(&[(2, 2)])).await.unwrap();
    session.create_table("/new", numbers()).await.unwrap().upsert(rows(&[(5, 5)])).await.unwrap();
    let sent = serde_json::to_string(&session.fork().await.unwrap()).unwrap();
    let fork = repo.open_fork(serde_json::from_str(&sent).unwrap()).await.unwrap();
    let table = fork.table("/t").await.unwrap();
    assert_eq!(scan(&table, &KeyRange::All).await.unwrap(), [(1, 1), (2, 2)]);
    let new = fork.table("/new").await.unwrap();
    assert_eq!(scan(&new, &KeyRange::All).await.unwrap(), [(5, 5)]);
    assert!(matches!(table.upsert(rows(&[(3, 3)])).await, Err(Error::Invalid { .. })));
    session.merge(fork.into_changes().await.unwrap()).unwrap();
    session.commit(CommitOptions::message("x")).await.unwrap();
    assert_eq!(at(&repo, &Version::branch("main")).await.unwrap(), [(1, 1), (2, 2)]);
}

#[tokio::test]
async fn an_amendment_keeps_the_rows_of_the_tip() {
    let repo = with_rows(&memory(), &[(1, 1)]).await;
    for amend in [false, true] {
        let session = repo.writable_session("main").await.unwrap();
        let key = if amend { 3 } else { 2 };
        session.table("/t").await.unwrap().upsert(rows(&[(key, key)])).await.unwrap();
        let status = session.status().await.unwrap();
        assert_eq!((status.rows.len(), status.rows[0].added), (1, 1));
        session.commit(CommitOptions { amend, ..CommitOptions::message("x") }).await.unwrap();
    }
    assert_eq!(at(&repo, &Version::branch("main")).await.unwrap(), [(1, 1), (2, 2), (3, 3)]);
    sound(&repo).await;
}
