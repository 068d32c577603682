//! Sessions: what one collects, what forks bring back, and how it ends.

use chunkyard_repo::{ChangeSet, CommitOptions, ConflictKind, Fork, Repository, Version};
use chunkyard_store::fault::{Fault, Mode, Plan};
use chunkyard_store::{Error, ErrorKind};
use futures::FutureExt;
use serde_json::Map;

use super::support::{
    Place, bytes_spec, create, history, memory, noise, read_all, read_at, reopen, sound, tiny,
    write, write_noise,
};

async fn prepared() -> Repository {
    let repo = create(&memory(), tiny()).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/a", bytes_spec(&[64], &[16])).await.unwrap();
    write_noise(&session, "/a", "0:64", 1).await.unwrap();
    session.commit(CommitOptions::message("base")).await.unwrap();
    repo
}

/// What another machine receives and sends back.
fn by_wire<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

#[tokio::test]
async fn forks_on_other_machines_come_back_as_one_commit() {
    let repo = prepared().await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/new", bytes_spec(&[64], &[16])).await.unwrap();
    write_noise(&session, "/new", "0:16", 2).await.unwrap();
    let mut changes: Vec<ChangeSet> = Vec::new();
    for n in 1..4u64 {
        let fork: Fork = by_wire(&session.fork().await.unwrap());
        // Another process: nothing shared but the store.
        let elsewhere = reopen(repo.store()).await;
        let worker = elsewhere.open_fork(fork).await.unwrap();
        assert_eq!(read_all(&worker, "/new").await.unwrap()[..16], noise(16, 2));
        let region = format!("{}:{}", n * 16, n * 16 + 16);
        write_noise(&worker, "/new", &region, 10 + n).await.unwrap();
        write_noise(&worker, "/a", &region, 20 + n).await.unwrap();
        assert!(worker.commit(CommitOptions::message("no")).await.is_err());
        assert!(worker.create_group("/g", Map::new()).is_err());
        changes.push(by_wire(&worker.into_changes().await.unwrap()));
        assert!(write_noise(&worker, "/new", &region, 9).await.is_err(), "closed");
    }
    for change in &changes {
        session.merge(change.clone()).unwrap();
    }
    session.merge(changes[0].clone()).unwrap(); // a task that was run twice
    session.commit(CommitOptions::message("together")).await.unwrap();
    let repo = reopen(repo.store()).await;
    let new = read_at(&repo, &Version::Default, "/new").await.unwrap();
    let old = read_at(&repo, &Version::Default, "/a").await.unwrap();
    assert_eq!((&new[..16], &old[..16]), (&noise(16, 2)[..], &noise(64, 1)[..16]));
    for n in 1..4usize {
        assert_eq!(new[n * 16..n * 16 + 16], noise(16, 10 + n as u64));
        assert_eq!(old[n * 16..n * 16 + 16], noise(16, 20 + n as u64));
    }
    assert_eq!(history(&repo, "main").await.len(), 3);
    sound(&repo).await;
}

#[tokio::test]
async fn a_chunk_written_twice_by_workers_of_one_session_is_a_conflict() {
    let repo = prepared().await;
    let session = repo.writable_session("main").await.unwrap();
    let first = repo.open_fork(session.fork().await.unwrap()).await.unwrap();
    let second = repo.open_fork(session.fork().await.unwrap()).await.unwrap();
    let third = repo.open_fork(session.fork().await.unwrap()).await.unwrap();
    write_noise(&first, "/a", "0:16", 2).await.unwrap();
    write_noise(&second, "/a", "0:16", 3).await.unwrap();
    write_noise(&third, "/a", "0:16", 2).await.unwrap();
    session.merge(first.into_changes().await.unwrap()).unwrap();
    let Err(Error::Conflict { conflicts, .. }) =
        session.merge(second.into_changes().await.unwrap())
    else {
        panic!("no conflict");
    };
    assert_eq!(
        (conflicts[0].kind, &conflicts[0].chunks[..]),
        (ConflictKind::Chunk, &[vec![0]][..])
    );
    // The same bytes from a task that was given out twice are no conflict.
    session.merge(third.into_changes().await.unwrap()).unwrap();
    session.commit(CommitOptions::message("x")).await.unwrap();
    assert_eq!(read_at(&repo, &Version::Default, "/a").await.unwrap()[..16], noise(16, 2));
    sound(&repo).await;
}

#[tokio::test]
async fn a_fork_may_overwrite_chunks_written_before_it() {
    let repo = prepared().await;
    let session = repo.writable_session("main").await.unwrap();
    write_noise(&session, "/a", "0:32", 2).await.unwrap();
    let fork = repo.open_fork(session.fork().await.unwrap()).await.unwrap();
    write_noise(&fork, "/a", "0:16", 3).await.unwrap();
    write_noise(&session, "/a", "16:32", 4).await.unwrap();
    session.merge(fork.into_changes().await.unwrap()).unwrap();
    let values = read_all(&session, "/a").await.unwrap();
    assert_eq!((&values[..16], &values[16..32]), (&noise(16, 3)[..], &noise(16, 4)[..]));
    // After the fork both wrote chunk 2.
    let fork = repo.open_fork(session.fork().await.unwrap()).await.unwrap();
    write_noise(&fork, "/a", "32:48", 5).await.unwrap();
    write_noise(&session, "/a", "32:48", 6).await.unwrap();
    let error = session.merge(fork.into_changes().await.unwrap()).unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }), "{error}");
}

#[tokio::test]
async fn a_change_set_of_another_session_or_for_a_removed_array_is_refused() {
    let repo = prepared().await;
    let (one, two) = (
        repo.writable_session("main").await.unwrap(),
        repo.writable_session("main").await.unwrap(),
    );
    let fork = repo.open_fork(one.fork().await.unwrap()).await.unwrap();
    write_noise(&fork, "/a", "0:16", 2).await.unwrap();
    let changes = fork.into_changes().await.unwrap();
    assert_eq!(two.merge(changes.clone()).unwrap_err().kind(), ErrorKind::Invalid);
    one.delete("/a").unwrap();
    assert_eq!(one.merge(changes).unwrap_err().kind(), ErrorKind::Conflict);
}

/// A future of a write is dropped at each of its awaits; the commit that follows is whole.
#[tokio::test]
async fn a_write_that_was_abandoned_leaves_no_missing_chunk() {
    for place in [Place::Memory, Place::Local] {
        for n in 0..6 {
            let (_guard, store) = place.open();
            let repo = create(&store, tiny()).await;
            let session = repo.writable_session("main").await.unwrap();
            session.create_array("/a", bytes_spec(&[1600], &[16])).await.unwrap();
            session.commit(CommitOptions::message("base")).await.unwrap();
            let stall = Mode::Stall(std::time::Duration::from_secs(600));
            let (stalled, fault) = Fault::wrap(&store, Plan::new(n, stall));
            let repo = Repository::open_in(stalled, Default::default()).await.unwrap();
            let session = repo.writable_session("main").await.unwrap();
            let write = write_noise(&session, "/a", "0:1600", 2);
            let limit = std::time::Duration::from_millis(300);
            let abandoned = tokio::time::timeout(limit, write).await.is_err();
            assert_eq!(abandoned, fault.fired());
            write_noise(&session, "/a", "0:16", 3).await.unwrap();
            session.commit(CommitOptions::message("after")).await.unwrap();
            let repo = reopen(&store).await;
            sound(&repo).await;
            let values = read_at(&repo, &Version::Default, "/a").await.unwrap();
            assert_eq!(values[..16], noise(16, 3));
            for (found, written) in values.chunks(16).zip(noise(1600, 2).chunks(16)).skip(1) {
                assert!(found == written || found == [0; 16], "half a chunk");
            }
        }
    }
}

/// A failed put is an error of the write, and the commit puts again what was not confirmed.
#[tokio::test]
async fn a_put_that_failed_is_repeated_by_the_commit() {
    let store = memory();
    create(&store, tiny()).await;
    for n in 0..3 {
        let (faulty, fault) = Fault::wrap(&store, Plan::new(n, Mode::FailOnce));
        let repo = Repository::open_in(faulty, Default::default()).await.unwrap();
        let session = repo.writable_session("main").await.unwrap();
        let path = format!("/a{n}");
        session.create_array(&path, bytes_spec(&[640], &[16])).await.unwrap();
        write_noise(&session, &path, "0:640", 2).await.unwrap_err();
        assert!(fault.fired());
        write_noise(&session, &path, "0:640", 2).await.unwrap();
        session.commit(CommitOptions::message("x")).await.unwrap();
        let repo = reopen(&store).await;
        assert_eq!(read_at(&repo, &Version::Default, &path).await.unwrap(), noise(640, 2));
        sound(&repo).await;
    }
}

#[tokio::test]
async fn an_empty_commit_is_refused_unless_asked_for() {
    let repo = prepared().await;
    let session = repo.writable_session("main").await.unwrap();
    let error = session.commit(CommitOptions::message("x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    // A group that comes and goes is nothing either.
    session.create_group("/g", Map::new()).unwrap();
    session.delete("/g").unwrap();
    assert!(session.commit(CommitOptions::message("x")).await.is_err());
    let options = CommitOptions { allow_empty: true, ..CommitOptions::message("x") };
    session.commit(options).await.unwrap();
    assert_eq!(history(&repo, "main").await.len(), 3);
    sound(&repo).await;
}

#[tokio::test]
async fn a_committed_session_takes_no_more_changes() {
    let repo = prepared().await;
    let session = repo.writable_session("main").await.unwrap();
    write_noise(&session, "/a", "0:16", 2).await.unwrap();
    session.commit(CommitOptions::message("x")).await.unwrap();
    assert_eq!(
        write_noise(&session, "/a", "0:16", 3).await.unwrap_err().kind(),
        ErrorKind::Invalid
    );
    assert!(session.commit(CommitOptions::message("y")).await.is_err());
    assert!(session.fork().await.is_err());
    // It still reads what it committed.
    assert_eq!(read_all(&session, "/a").await.unwrap()[..16], noise(16, 2));
    let reader = repo.readonly_session(&Version::Default).await.unwrap();
    assert!(reader.create_group("/g", Map::new()).is_err());
    assert!(reader.commit(CommitOptions::message("z")).await.is_err());
}

/// No change is accepted while a commit is under way: it would be lost silently.
#[tokio::test]
async fn a_session_that_is_being_committed_takes_no_changes() {
    let store = memory();
    create(&store, tiny()).await;
    let stall = Mode::Stall(std::time::Duration::from_millis(100));
    let (stalled, _) = Fault::wrap(&store, Plan::new(0, stall));
    let repo = Repository::open_in(stalled, Default::default()).await.unwrap();
    let session = repo.writable_session("main").await.unwrap();
    session.create_group("/g", Map::new()).unwrap();
    let mut commit = Box::pin(session.commit(CommitOptions::message("x")));
    assert!(commit.as_mut().now_or_never().is_none());
    assert_eq!(session.create_group("/h", Map::new()).unwrap_err().kind(), ErrorKind::Invalid);
    commit.await.unwrap();
    sound(&reopen(&store).await).await;
}

#[tokio::test]
async fn an_amended_tip_is_replaced() {
    let repo = prepared().await;
    let base = history(&repo, "main").await[0].snapshot_id.clone();
    let session = repo.writable_session("main").await.unwrap();
    write_noise(&session, "/a", "0:16", 2).await.unwrap();
    let first = session.commit(CommitOptions::message("typo")).await.unwrap();
    let session = repo.writable_session("main").await.unwrap();
    write_noise(&session, "/a", "16:32", 3).await.unwrap();
    let amend = CommitOptions { amend: true, ..CommitOptions::message("right") };
    let second = session.commit(amend.clone()).await.unwrap();
    assert_eq!(second.parent_snapshot_id.as_deref(), Some(&*base));
    let state = repo.state().await.unwrap();
    assert!(state.snapshot(&first.snapshot_id).is_none());
    let values = read_at(&repo, &Version::Default, "/a").await.unwrap();
    assert_eq!((&values[..16], &values[16..32]), (&noise(16, 2)[..], &noise(16, 3)[..]));
    let diff = repo.diff(&Version::Snapshot(base), &Version::Default).await.unwrap();
    assert_eq!(diff.chunks[0].replaced, [[0], [1]]);
    // Only the message.
    let session = repo.writable_session("main").await.unwrap();
    session.commit(CommitOptions { message: "righter".into(), ..amend }).await.unwrap();
    let line: Vec<_> = history(&repo, "main").await.iter().map(|s| s.message.clone()).collect();
    assert_eq!(line[..2], ["righter", "base"]);
    assert_eq!(read_at(&repo, &Version::Default, "/a").await.unwrap(), values);
    sound(&repo).await;
}

#[tokio::test]
async fn an_amendment_that_would_change_what_others_name_is_refused() {
    let amend = CommitOptions { amend: true, ..CommitOptions::message("amended") };
    let repo = create(&memory(), tiny()).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_group("/g", Map::new()).unwrap();
    let error = session.commit(amend.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "the first snapshot");
    session.commit(CommitOptions::message("one")).await.unwrap();

    repo.create_tag("v1", &Version::Default, false).await.unwrap();
    let session = repo.writable_session("main").await.unwrap();
    session.create_group("/h", Map::new()).unwrap();
    assert_eq!(session.commit(amend.clone()).await.unwrap_err().kind(), ErrorKind::Conflict);
    session.commit(CommitOptions { force: true, ..amend.clone() }).await.unwrap();
    let tagged = repo.readonly_session(&Version::Tag("v1".into())).await.unwrap();
    assert!(tagged.node("/h").is_err(), "the tag stays where it was");

    // The branch moved: an amendment means the tip that the caller saw, so there is no rebase.
    let late = repo.writable_session("main").await.unwrap();
    write_group(&repo, "/i").await;
    late.create_group("/j", Map::new()).unwrap();
    let rebased = CommitOptions { rebase: Some(Default::default()), ..amend };
    assert_eq!(late.commit(rebased).await.unwrap_err().kind(), ErrorKind::Conflict);
    sound(&repo).await;
}

async fn write_group(repo: &Repository, path: &str) {
    let session = repo.writable_session("main").await.unwrap();
    session.create_group(path, Map::new()).unwrap();
    session.commit(CommitOptions::message(path)).await.unwrap();
}

#[tokio::test]
async fn a_detached_commit_moves_no_branch() {
    let repo = prepared().await;
    let session = repo.writable_session("main").await.unwrap();
    write_noise(&session, "/a", "0:16", 2).await.unwrap();
    write_group(&repo, "/g").await; // the branch moves meanwhile, which does not matter
    let options = CommitOptions { detached: true, ..CommitOptions::message("aside") };
    let aside = session.commit(options).await.unwrap();
    assert_eq!(history(&repo, "main").await.len(), 3);
    let version = Version::Snapshot(aside.snapshot_id.clone());
    assert_eq!(read_at(&repo, &version, "/a").await.unwrap()[..16], noise(16, 2));
    assert_eq!(read_at(&repo, &Version::Default, "/a").await.unwrap(), noise(64, 1));
    assert!(repo.readonly_session(&version).await.unwrap().node("/g").is_err());
    sound(&repo).await;
}

/// Amending replaces the tip, detaching leaves it alone: both together make no sense.
#[tokio::test]
async fn a_detached_amendment_is_refused() {
    let repo = prepared().await;
    let session = repo.writable_session("main").await.unwrap();
    write_noise(&session, "/a", "0:16", 2).await.unwrap();
    let options = CommitOptions { detached: true, amend: true, ..CommitOptions::message("x") };
    assert_eq!(session.commit(options).await.unwrap_err().kind(), ErrorKind::Invalid);
    session.commit(CommitOptions::message("x")).await.unwrap();
}

/// An array is deleted while a handle to it exists: writing through the handle must fail, not spoil
/// the session.
#[tokio::test]
async fn a_deleted_array_takes_no_chunks() {
    let repo = prepared().await;
    let session = repo.writable_session("main").await.unwrap();
    let array = session.array("/a").await.unwrap();
    session.delete("/a").unwrap();
    let region = chunkyard_array::Region::new(vec![0], vec![16]).unwrap();
    let error = array.write_region(&region, noise(16, 2).into()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    session.commit(CommitOptions::message("gone")).await.unwrap();
    sound(&repo).await;
}

#[tokio::test]
async fn the_status_of_a_session_says_what_it_changed() {
    let repo = prepared().await;
    let session = repo.writable_session("main").await.unwrap();
    assert!(session.status().await.unwrap().is_empty());
    write(&session, "/a", "0:16", 7).await.unwrap();
    session.erase_chunk("/a", &[3]).unwrap();
    session.create_array("/b", bytes_spec(&[16], &[16])).await.unwrap();
    write(&session, "/b", "0:16", 7).await.unwrap();
    let status = session.status().await.unwrap();
    assert_eq!(status.added[0].path, "/b");
    let a = status.chunks.iter().find(|changes| changes.path == "/a").unwrap();
    assert_eq!((&a.replaced, &a.removed), (&vec![vec![0]], &vec![vec![3]]));
    let before = history(&repo, "main").await[0].snapshot_id.clone();
    session.commit(CommitOptions::message("x")).await.unwrap();
    let diff = repo.diff(&Version::Snapshot(before), &Version::Default).await.unwrap();
    assert_eq!(diff, status);
}
