//! What a commit writes does not grow with the commits before it.

use std::collections::BTreeMap;

use chunkyard_repo::{CommitOptions, Version};
use chunkyard_store::Store;
use futures::TryStreamExt;

use super::support::{
    bytes_spec, collect, create, directory, history, read_at, reopen, sound, write,
};

/// Sizes of all files of metadata. A claim is the state by another name.
async fn metadata(store: &Store) -> BTreeMap<String, u64> {
    let mut files = BTreeMap::new();
    for directory in ["s", "i", "a", ""] {
        let listed = store.backend().list(directory).await.unwrap();
        for meta in listed.try_collect::<Vec<_>>().await.unwrap() {
            if !meta.path.starts_with("c/") && !meta.path.starts_with("g/") {
                files.insert(meta.path, meta.size);
            }
        }
    }
    files
}

#[tokio::test]
async fn a_commit_writes_little_however_many_came_before() {
    let (guard, store) = directory();
    let repo = create(&store, Default::default()).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/a", bytes_spec(&[256], &[1])).await.unwrap();
    session.commit(CommitOptions::message("an array")).await.unwrap();

    let mut before = metadata(&store).await;
    let mut written = Vec::new();
    for n in 0..400u64 {
        let session = repo.writable_session("main").await.unwrap();
        write(&session, "/a", &format!("{}", n % 256), (n % 250) as u8 + 1).await.unwrap();
        session.commit(CommitOptions::message("one chunk")).await.unwrap();
        let after = metadata(&store).await;
        let new =
            after.iter().filter(|(path, _)| *path == "state.json" || !before.contains_key(*path));
        written.push(new.map(|(_, size)| size).sum::<u64>());
        before = after;
    }
    for (at, hundred) in written.chunks(100).enumerate() {
        let mean = hundred.iter().sum::<u64>() / 100;
        assert!(mean <= 16 << 10, "hundred {at}: {mean} bytes for each commit");
    }
    let claims = std::fs::read_dir(guard.path().join("g")).unwrap();
    let claimed: u64 = claims.map(|claim| claim.unwrap().metadata().unwrap().len()).sum();
    assert!(claimed < 1 << 20, "{claimed} bytes of claims");

    // Every version is still readable by a fresh program.
    let repo = reopen(&store).await;
    let all = history(&repo, "main").await;
    assert_eq!(all.len(), 402);
    let old = Version::Snapshot(all[390].snapshot_id.clone());
    let values = read_at(&repo, &old, "/a").await.unwrap();
    assert_eq!(values.iter().filter(|value| **value > 0).count(), 10);
    collect(&repo).await.unwrap();
    assert_eq!(sound(&reopen(&store).await).await, 0);
}

/// Prints how long commits take as the history grows, without judging it.
#[tokio::test]
#[ignore = "takes minutes; run by `make stress`"]
async fn stress_ten_thousand_commits() {
    let directory = tempfile::tempdir().unwrap();
    let url = directory.path().to_str().unwrap();
    let store = Store::open(url, &Default::default()).unwrap();
    let repo = create(&store, Default::default()).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/a", bytes_spec(&[256], &[1])).await.unwrap();
    session.commit(CommitOptions::message("an array")).await.unwrap();
    let mut times = Vec::new();
    for n in 0..10_000u64 {
        let began = std::time::Instant::now();
        let session = repo.writable_session("main").await.unwrap();
        write(&session, "/a", &format!("{}", n % 256), (n % 250) as u8 + 1).await.unwrap();
        session.commit(CommitOptions::message("one chunk")).await.unwrap();
        times.push(began.elapsed());
    }
    for (at, hundred) in times.chunks_mut(100).enumerate().filter(|(at, _)| at % 9 == 0) {
        hundred.sort();
        println!("commits {:>5}…: median {:?}, longest {:?}", at * 100, hundred[50], hundred[99]);
    }
    assert_eq!(history(&reopen(&store).await, "main").await.len(), 10_002);
}
