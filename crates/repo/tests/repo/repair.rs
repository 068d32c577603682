//! Bringing a damaged repository back.

use chunkyard_repo::{CommitOptions, Config, Level, Repository, Version};
use chunkyard_store::{ErrorKind, Store};
use futures::TryStreamExt;

use super::support::{
    bytes_spec, create, directory, history, memory, read_at, reopen, tick, write,
};

/// Two commits on `main`, one on `side`; chunks in packs.
async fn sample(store: &Store) -> Repository {
    let config = Config { inline_chunk_max: 0, ..Config::default() };
    let repo = create(store, config).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/a", bytes_spec(&[8], &[2])).await.unwrap();
    write(&session, "/a", "0:8", 1).await.unwrap();
    session.commit(CommitOptions::message("one")).await.unwrap();
    repo.create_branch("side", &Version::branch("main")).await.unwrap();
    for (branch, region, value) in [("main", "0:2", 2), ("side", "4:6", 3)] {
        // Packs of different age, for the repair that depends on age.
        tick(store).await;
        let session = repo.writable_session(branch).await.unwrap();
        write(&session, "/a", region, value).await.unwrap();
        session.commit(CommitOptions::message(branch)).await.unwrap();
    }
    repo
}

async fn overwrite(store: &Store, path: &str, bytes: &'static [u8]) {
    store.backend().delete(&[path.to_owned()]).await.unwrap();
    store.backend().put(path, vec![bytes.into()]).await.unwrap();
}

#[tokio::test]
async fn a_damaged_published_state_is_restored_from_its_claim() {
    let (_guard, store) = directory();
    let repo = sample(&store).await;
    let before = repo.state().await.unwrap();
    overwrite(&store, "state.json", b"{\"id\":").await;
    assert_eq!(repo.state().await.unwrap_err().kind(), ErrorKind::Corrupt);
    let republished = Repository::republish(&store).await.unwrap();
    assert_eq!((republished.generation, republished.damaged_claims), (before.generation, 0));
    assert_eq!(reopen(&store).await.state().await.unwrap(), before);
}

#[tokio::test]
async fn a_state_damaged_together_with_its_claim_falls_back_to_the_one_before() {
    let (guard, store) = directory();
    let repo = sample(&store).await;
    let before = repo.state().await.unwrap();
    repo.create_tag("lost", &Version::branch("main"), false).await.unwrap();
    // In place: the published copy and its claim are one file.
    std::fs::write(guard.path().join("state.json"), b"{\"id\":").unwrap();
    let republished = Repository::republish(&store).await.unwrap();
    assert_eq!((republished.generation, republished.damaged_claims), (before.generation, 1));
    let repo = reopen(&store).await;
    assert_eq!(repo.state().await.unwrap(), before);
    let session = repo.writable_session("main").await.unwrap();
    write(&session, "/a", "6:8", 9).await.unwrap();
    session.commit(CommitOptions::message("goes on")).await.unwrap();
    assert!(repo.verify(Level::Bytes).await.unwrap().is_sound());
}

#[tokio::test]
async fn a_lost_state_is_rebuilt_from_structure_files() {
    let (_guard, local) = directory();
    for store in [memory(), local] {
        let repo = sample(&store).await;
        let before = repo.state().await.unwrap();
        let refused = Repository::rebuild_state(&store, "main").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict, "a sound state is not overwritten");

        let claims: Vec<_> = store.backend().list("g").await.unwrap().try_collect().await.unwrap();
        let mut lost: Vec<String> = claims.into_iter().map(|meta| meta.path).collect();
        lost.push("state.json".into());
        store.backend().delete(&lost).await.unwrap();
        let rebuilt = Repository::rebuild_state(&store, "main").await.unwrap();
        assert_eq!(rebuilt.snapshots, 4);
        assert_eq!(rebuilt.unreadable, Vec::<String>::new());

        let repo = reopen(&store).await;
        let after = repo.state().await.unwrap();
        assert_eq!(after.refs, before.refs);
        let main = read_at(&repo, &Version::branch("main"), "/a").await.unwrap();
        assert_eq!(main, [2, 2, 1, 1, 1, 1, 1, 1]);
        let side = read_at(&repo, &Version::branch("side"), "/a").await.unwrap();
        assert_eq!(side, [1, 1, 1, 1, 3, 3, 1, 1]);
        assert!(repo.verify(Level::Bytes).await.unwrap().is_sound());
        let session = repo.writable_session("main").await.unwrap();
        write(&session, "/a", "6:8", 9).await.unwrap();
        session.commit(CommitOptions::message("goes on")).await.unwrap();
        assert_eq!(history(&repo, "main").await.len(), 4);
    }
}

#[tokio::test]
async fn unreadable_snapshots_are_dropped_only_if_nothing_needs_them() {
    let store = memory();
    sample(&store).await;
    let main = history(&reopen(&store).await, "main").await;
    overwrite(&store, &format!("s/{}", main[1].structure_file), b"broken").await;
    let repo = reopen(&store).await;
    assert!(!repo.verify(Level::Metadata).await.unwrap().is_sound());
    assert_eq!(repo.drop_unreadable().await.unwrap(), [main[1].snapshot_id.clone()]);
    assert!(repo.verify(Level::Bytes).await.unwrap().is_sound());

    overwrite(&store, &format!("s/{}", main[0].structure_file), b"broken").await;
    let repo = reopen(&store).await;
    let refused = repo.drop_unreadable().await.unwrap_err();
    assert!(refused.to_string().contains("main"), "{refused}");
}

#[tokio::test]
async fn chunks_whose_bytes_are_lost_become_fill_value_in_a_new_commit() {
    let store = memory();
    let repo = sample(&store).await;
    let located = repo.readonly_session(&Version::branch("main")).await.unwrap();
    let found = located.locate("/a", &[vec![0]]).await.unwrap();
    let Some(chunkyard_repo::Payload::Native(native)) = &found[0] else { panic!("{found:?}") };
    store.backend().delete(&[format!("c/{}", native.file)]).await.unwrap();
    let repo = reopen(&store).await;
    assert!(!repo.verify(Level::Existence).await.unwrap().is_sound());
    let lost = read_at(&repo, &Version::branch("main"), "/a").await.unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Corrupt, "never silently fill: {lost}");
    let forgotten = repo.forget_missing("main").await.unwrap();
    assert_eq!(forgotten.chunks, [("/a".to_owned(), vec![0])]);
    let values = read_at(&repo, &Version::branch("main"), "/a").await.unwrap();
    assert_eq!(values, [0, 0, 1, 1, 1, 1, 1, 1]);
}

#[tokio::test]
async fn a_lost_manifest_is_rebuilt_from_the_packs() {
    let store = memory();
    let repo = sample(&store).await;
    let before = read_at(&repo, &Version::branch("main"), "/a").await.unwrap();
    assert_eq!(repo.recover_references("main").await.unwrap().snapshot, None, "nothing is lost");
    let node = repo.readonly_session(&Version::branch("main")).await.unwrap().node("/a").unwrap();
    for entry in &node.inventories {
        store.backend().delete(&[format!("i/{}", entry.file)]).await.unwrap();
    }
    let repo = reopen(&store).await;
    let lost = read_at(&repo, &Version::branch("main"), "/a").await.unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Corrupt);
    let recovered = repo.recover_references("main").await.unwrap();
    assert_eq!((recovered.manifests.len(), recovered.chunks), (node.inventories.len(), 4));
    let repo = reopen(&store).await;
    let after = read_at(&repo, &Version::branch("main"), "/a").await.unwrap();
    // Chunk 2 was also written on `side`, later: the youngest of several copies counts.
    assert_eq!(after[..4], before[..4]);
    assert_eq!(after[4..6], [3, 3]);
    let node = repo.readonly_session(&Version::branch("main")).await.unwrap().node("/a").unwrap();
    assert_eq!(node.refs_count, 4);
}
