//! Expiry: which snapshots stay, how they hang together afterwards, and that diffs stay exact.

use chunkyard_repo::{CommitOptions, ExpireOptions, Repository, Snapshot, Version};
use chunkyard_store::{Error, ErrorKind};

use super::support::{
    bytes_spec, collect, create, history, memory, read_at, reopen, sound, tiny, write,
};

/// A history of `count` commits, each writing another chunk of `/a`.
async fn line(count: u64) -> Repository {
    let repo = create(&memory(), tiny()).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/a", bytes_spec(&[count + 1], &[1])).await.unwrap();
    session.commit(CommitOptions::message("0")).await.unwrap();
    for n in 1..=count {
        commit(&repo, "main", n).await;
    }
    repo
}

async fn commit(repo: &Repository, branch: &str, n: u64) -> std::sync::Arc<Snapshot> {
    let session = repo.writable_session(branch).await.unwrap();
    write(&session, "/a", &format!("{n}:{}", n + 1), n as u8).await.unwrap();
    session.commit(CommitOptions::message(n.to_string())).await.unwrap()
}

async fn messages(repo: &Repository) -> Vec<String> {
    repo.state().await.unwrap().snapshots.iter().map(|s| s.message.clone()).collect()
}

fn keep(count: usize) -> ExpireOptions {
    ExpireOptions { keep_last: Some(count), ..ExpireOptions::default() }
}

#[tokio::test]
async fn the_newest_of_each_branch_and_everything_referenced_stay() {
    let repo = line(6).await;
    let main = history(&repo, "main").await;
    repo.create_tag("v2", &Version::Snapshot(main[4].snapshot_id.clone()), false).await.unwrap();
    repo.create_branch("side", &Version::Snapshot(main[3].snapshot_id.clone())).await.unwrap();
    let expired = repo.expire(&keep(2)).await.unwrap();
    assert_eq!(expired.snapshots.len(), 4);
    assert_eq!(messages(&repo).await, ["2", "3", "5", "6"]);
    // Each kept snapshot hangs on its nearest kept ancestor.
    let line: Vec<_> = history(&repo, "main").await.iter().map(|s| s.message.clone()).collect();
    assert_eq!(line, ["6", "5", "3", "2"]);
    assert_eq!(history(&repo, "side").await.len(), 2);
    collect(&repo).await.unwrap();
    let repo = reopen(repo.store()).await;
    assert_eq!(sound(&repo).await, 0);
    let tagged = read_at(&repo, &Version::Tag("v2".into()), "/a").await.unwrap();
    assert_eq!(tagged, [0, 1, 2, 0, 0, 0, 0]);
    assert_eq!(read_at(&repo, &Version::Default, "/a").await.unwrap(), [0, 1, 2, 3, 4, 5, 6]);
}

#[tokio::test]
async fn nothing_to_expire_changes_nothing() {
    let repo = line(2).await;
    let before = repo.state().await.unwrap();
    let expired = repo.expire(&keep(10)).await.unwrap();
    assert_eq!((expired.snapshots.len(), expired.references.len()), (0, 0));
    assert_eq!(repo.state().await.unwrap(), before);
    let error = repo.expire(&ExpireOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn a_time_keeps_what_is_younger() {
    let repo = line(5).await;
    let main = history(&repo, "main").await;
    let limit = main[2].timestamp_ms;
    let options = ExpireOptions { older_than_ms: Some(limit), ..ExpireOptions::default() };
    repo.expire(&options).await.unwrap();
    assert_eq!(messages(&repo).await, ["3", "4", "5"]);
    // Both limits: older than the time, and not among the newest.
    let repo = line(5).await;
    let limit = history(&repo, "main").await[0].timestamp_ms + 1;
    let options = ExpireOptions {
        older_than_ms: Some(limit),
        keep_last: Some(3),
        ..ExpireOptions::default()
    };
    repo.expire(&options).await.unwrap();
    assert_eq!(messages(&repo).await, ["3", "4", "5"]);
}

#[tokio::test]
async fn detached_snapshots_go_by_age() {
    let repo = line(1).await;
    let session = repo.writable_session("main").await.unwrap();
    write(&session, "/a", "0:1", 9).await.unwrap();
    let options = CommitOptions { detached: true, ..CommitOptions::message("detached") };
    let detached = session.commit(options).await.unwrap();
    let young =
        ExpireOptions { older_than_ms: Some(detached.timestamp_ms), ..ExpireOptions::default() };
    repo.expire(&young).await.unwrap();
    assert!(messages(&repo).await.contains(&"detached".to_owned()));
    repo.expire(&keep(5)).await.unwrap();
    assert!(!messages(&repo).await.contains(&"detached".to_owned()));
}

#[tokio::test]
async fn old_references_are_dropped_on_request_but_never_the_default_branch() {
    let repo = line(3).await;
    let main = history(&repo, "main").await;
    let old = Version::Snapshot(main[2].snapshot_id.clone());
    repo.create_tag("v1", &old, false).await.unwrap();
    repo.create_branch("side", &old).await.unwrap();
    let options = ExpireOptions {
        older_than_ms: Some(main[0].timestamp_ms + 1),
        keep_last: None,
        drop_references: true,
    };
    let expired = repo.expire(&options).await.unwrap();
    assert_eq!(expired.references, ["side", "v1"]);
    let state = repo.state().await.unwrap();
    assert_eq!(state.refs.keys().collect::<Vec<_>>(), ["main"]);
    assert_eq!(state.deleted_tags, ["v1"]);
    assert_eq!(messages(&repo).await, ["3"]);
    sound(&repo).await;
}

#[tokio::test]
async fn a_writer_whose_base_expired_is_told_so() {
    let repo = line(1).await;
    let session = repo.writable_session("main").await.unwrap();
    write(&session, "/a", "0:1", 9).await.unwrap();
    commit(&repo, "main", 1).await;
    repo.expire(&keep(1)).await.unwrap();
    let error = session
        .commit(CommitOptions::message("x").with_rebase(Default::default()))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::BaseExpired { .. }), "{error}");
}

#[tokio::test]
async fn a_reader_of_an_expired_and_collected_snapshot_is_told_so() {
    let repo = line(2).await;
    let old = Version::Snapshot(history(&repo, "main").await[1].snapshot_id.clone());
    // Not a byte of it was read before.
    let session = reopen(repo.store()).await.readonly_session(&old).await.unwrap();
    let unread = reopen(repo.store()).await;
    repo.expire(&keep(1)).await.unwrap();
    collect(&repo).await.unwrap();
    match super::support::read_all(&session, "/a").await {
        Ok(values) => assert_eq!(values, [0, 1, 0]),
        Err(error) => assert!(matches!(error, Error::SnapshotExpired { .. }), "{error}"),
    }
    assert_eq!(unread.readonly_session(&old).await.unwrap_err().kind(), ErrorKind::NotFound);
}

/// The change file of a kept snapshot no longer describes the step from its new parent: the diff
/// comes from the manifests, and is exact.
#[tokio::test]
async fn diffs_across_expired_snapshots_are_exact() {
    let repo = line(1).await;
    repo.create_tag("start", &Version::Default, false).await.unwrap();
    for (chunk, value) in [(0, 5), (1, 6), (0, 0)] {
        let session = repo.writable_session("main").await.unwrap();
        write(&session, "/a", &format!("{chunk}:{}", chunk + 1), value).await.unwrap();
        session.commit(CommitOptions::message("step")).await.unwrap();
    }
    let start = Version::Tag("start".into());
    let before = repo.diff(&start, &Version::Default).await.unwrap();
    repo.expire(&keep(1)).await.unwrap();
    collect(&repo).await.unwrap();
    let repo = reopen(repo.store()).await;
    let after = repo.diff(&start, &Version::Default).await.unwrap();
    assert_eq!(before, after);
    assert_eq!(after.chunks.len(), 1);
    assert_eq!(after.chunks[0].replaced, [[1]]);
    assert!(after.chunks[0].added.is_empty() && after.chunks[0].removed.is_empty());
    let backwards = repo.diff(&Version::Default, &start).await.unwrap();
    assert_eq!(backwards.chunks, after.chunks);
}

/// Amending a tip whose parent expired still works.
#[tokio::test]
async fn a_tip_whose_parent_expired_can_be_amended() {
    let repo = line(3).await;
    let first = history(&repo, "main").await[2].snapshot_id.clone();
    repo.create_tag("v1", &Version::Snapshot(first), false).await.unwrap();
    repo.expire(&keep(1)).await.unwrap();
    let session = repo.writable_session("main").await.unwrap();
    write(&session, "/a", "0:1", 8).await.unwrap();
    let options = CommitOptions { amend: true, ..CommitOptions::message("amended") };
    session.commit(options).await.unwrap();
    collect(&repo).await.unwrap();
    sound(&repo).await;
    let diff = repo.diff(&Version::Tag("v1".into()), &Version::Default).await.unwrap();
    assert_eq!(diff.chunks[0].added, [[0], [2], [3]]);
    assert_eq!(read_at(&repo, &Version::Default, "/a").await.unwrap(), [8, 1, 2, 3]);
}
