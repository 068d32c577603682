//! Branches and tags.

use chunkyard_repo::{CommitOptions, Config, Mode, ReferenceKind, Repository, Version};
use chunkyard_store::{Error, ErrorKind};

use super::support::{Place, bytes_spec, create, history, memory, read_at, reopen, sound, write};

async fn with_versions(repo: &Repository, values: &[u8]) -> Vec<String> {
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/a", bytes_spec(&[1], &[1])).await.unwrap();
    let mut ids =
        vec![session.commit(CommitOptions::message("a")).await.unwrap().snapshot_id.clone()];
    for value in values {
        ids.push(set(repo, "main", *value).await);
    }
    ids
}

async fn set(repo: &Repository, branch: &str, value: u8) -> String {
    let session = repo.writable_session(branch).await.unwrap();
    write(&session, "/a", "0:1", value).await.unwrap();
    session.commit(CommitOptions::message(value.to_string())).await.unwrap().snapshot_id.clone()
}

async fn value(repo: &Repository, version: &Version) -> u8 {
    read_at(repo, version, "/a").await.unwrap()[0]
}

#[tokio::test]
async fn branches_grow_apart() {
    for place in Place::ALL {
        let (_guard, store) = place.open();
        let repo = create(&store, Config::default()).await;
        let ids = with_versions(&repo, &[1, 2]).await;
        repo.create_branch("side", &Version::Snapshot(ids[1].clone())).await.unwrap();
        set(&repo, "side", 3).await;
        set(&repo, "main", 4).await;
        let repo = reopen(&store).await;
        assert_eq!(value(&repo, &Version::branch("side")).await, 3);
        assert_eq!(value(&repo, &Version::branch("main")).await, 4);
        assert_eq!(value(&repo, &Version::Named(ids[2][..8].to_owned())).await, 2);
        assert_eq!(history(&repo, "side").await.len(), 4);
        repo.delete_branch("side").await.unwrap();
        let error = repo.writable_session("side").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        sound(&repo).await;
    }
}

#[tokio::test]
async fn a_tag_never_moves_and_its_name_is_never_used_again() {
    let repo = create(&memory(), Config::default()).await;
    let ids = with_versions(&repo, &[1, 2]).await;
    let (one, two) = (Version::Snapshot(ids[1].clone()), Version::Snapshot(ids[2].clone()));
    repo.create_tag("v1", &one, false).await.unwrap();
    let exists = |result: Result<_, Error>| matches!(result, Err(Error::AlreadyExists { .. }));
    assert!(exists(repo.create_tag("v1", &two, false).await));
    assert!(exists(repo.create_tag("v1", &two, true).await), "reuse is for deleted ones");
    assert!(exists(repo.create_branch("v1", &two).await), "one namespace");
    assert_eq!(repo.writable_session("v1").await.unwrap_err().kind(), ErrorKind::NotFound);
    let error = repo.reset_branch("v1", &two, None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    set(&repo, "main", 9).await;
    assert_eq!(value(&repo, &Version::Tag("v1".into())).await, 1);

    repo.delete_tag("v1").await.unwrap();
    assert!(exists(repo.create_tag("v1", &one, false).await));
    repo.create_tag("v1", &two, true).await.unwrap();
    assert_eq!(value(&repo, &Version::Named("v1".into())).await, 2);
    repo.delete_tag("v1").await.unwrap();
    assert_eq!(repo.delete_tag("v1").await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_reset_can_require_the_current_target() {
    let repo = create(&memory(), Config::default()).await;
    let ids = with_versions(&repo, &[1, 2]).await;
    let one = Version::Snapshot(ids[1].clone());
    let error = repo.reset_branch("main", &one, Some(&ids[1])).await.unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }), "{error}");
    assert_eq!(value(&repo, &Version::Default).await, 2);
    repo.reset_branch("main", &one, Some(&ids[2])).await.unwrap();
    assert_eq!(value(&repo, &Version::Default).await, 1);
    // The way back: the snapshot is listed until it expires.
    repo.reset_branch("main", &Version::Snapshot(ids[2].clone()), None).await.unwrap();
    assert_eq!(value(&repo, &Version::Default).await, 2);
}

#[tokio::test]
async fn a_time_names_the_newest_version_that_is_not_younger() {
    let repo = create(&memory(), Config::default()).await;
    with_versions(&repo, &[1, 2, 3]).await;
    let main = history(&repo, "main").await;
    let at = |time_ms| Version::AsOf { branch: "main".into(), time_ms };
    for (n, snapshot) in main.iter().take(3).enumerate() {
        assert_eq!(value(&repo, &at(snapshot.timestamp_ms)).await, 3 - n as u8);
    }
    assert_eq!(value(&repo, &at(i64::MAX)).await, 3);
    let before = at(main.last().unwrap().timestamp_ms - 1);
    assert_eq!(repo.readonly_session(&before).await.unwrap_err().kind(), ErrorKind::NotFound);
    let error = repo.readonly_session(&at(5)).await.unwrap_err().to_string();
    assert!(error.contains("on main at or before 1970-01-01 00:00:00.005Z"), "{error}");
    let increasing = main.windows(2).all(|pair| pair[0].timestamp_ms > pair[1].timestamp_ms);
    assert!(increasing, "time goes on along a history");
}

#[tokio::test]
async fn the_default_branch_cannot_be_deleted() {
    let repo = create(&memory(), Config::default()).await;
    assert_eq!(repo.delete_branch("main").await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(repo.delete_branch("nope").await.unwrap_err().kind(), ErrorKind::NotFound);
    repo.create_tag("v1", &Version::Default, false).await.unwrap();
    assert_eq!(repo.delete_branch("v1").await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(repo.delete_tag("main").await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn unsound_names_are_refused() {
    let repo = create(&memory(), Config::default()).await;
    let long = "x".repeat(256);
    for name in ["", ".", "..", "/a", "a/", "a\nb", "a\0b", "a\u{7f}b", &long] {
        let error = repo.create_branch(name, &Version::Default).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{name:?}");
        let error = repo.create_tag(name, &Version::Default, false).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{name:?}");
    }
    for name in ["a/b", "ünïcode", "with space", "...", &long[..255]] {
        repo.create_branch(name, &Version::Default).await.unwrap();
        let session = repo.writable_session(name).await.unwrap();
        session.create_group("/g", Default::default()).unwrap();
        session.commit(CommitOptions::message("x")).await.unwrap();
    }
    let state = reopen(repo.store()).await.state().await.unwrap();
    assert_eq!(state.refs.len(), 6);
    assert!(state.refs.values().all(|r| r.kind == ReferenceKind::Branch));
}

#[tokio::test]
async fn an_ambiguous_or_too_short_id_is_refused() {
    let repo = create(&memory(), Config::default()).await;
    let ids = with_versions(&repo, &[1]).await;
    let error = repo.readonly_session(&Version::Snapshot(ids[0][..3].into())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let session = repo.readonly_session(&Version::Snapshot(ids[0][..10].into())).await.unwrap();
    assert_eq!(session.snapshot().snapshot_id, ids[0]);
}

#[tokio::test]
async fn a_read_only_repository_takes_no_changes() {
    let repo = create(&memory(), Config::default()).await;
    with_versions(&repo, &[1]).await;
    let session = repo.writable_session("main").await.unwrap();
    write(&session, "/a", "0:1", 2).await.unwrap();
    repo.set_mode(Mode::ReadOnly, Some("moving house".into())).await.unwrap();
    let refused = session.commit(CommitOptions::message("x")).await.unwrap_err();
    assert!(refused.to_string().contains("moving house"), "{refused}");
    assert!(repo.writable_session("main").await.is_err());
    assert!(repo.create_tag("v1", &Version::Default, false).await.is_err());
    assert!(super::support::collect(&repo).await.is_err());
    assert_eq!(value(&repo, &Version::Default).await, 1);
    repo.set_mode(Mode::Online, None).await.unwrap();
    session.commit(CommitOptions::message("x")).await.unwrap();
    assert_eq!(value(&repo, &Version::Default).await, 2);
}
