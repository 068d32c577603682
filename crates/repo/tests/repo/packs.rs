//! Where encoded chunks go: into the manifest, a shared pack, or a file of their own.

use std::collections::HashSet;

use chunkyard_array::ArraySpec;
use chunkyard_repo::{CommitOptions, Config, Payload, RepackOptions, Version};
use chunkyard_store::ErrorKind;
use futures::TryStreamExt;
use serde_json::json;

use super::support::{
    Place, collect, create, directory, history, memory, noise, read_at, reopen, sound, tiny,
    write_noise,
};

fn plain(shape: &[u64], chunks: &[u64]) -> ArraySpec {
    let codecs = vec![json!({ "name": "bytes" })];
    ArraySpec::builder(shape, chunks, "uint8").codecs(codecs).build().unwrap()
}

#[tokio::test]
async fn small_chunks_share_a_file() {
    for place in Place::ALL {
        let (_guard, store) = place.open();
        let repo = create(&store, Config::default()).await;
        let session = repo.writable_session("main").await.unwrap();
        for path in ["/a", "/b"] {
            session.create_array(path, plain(&[16_000], &[1000])).await.unwrap();
            write_noise(&session, path, "0:16000", path.len() as u64).await.unwrap();
        }
        session.commit(CommitOptions::message("x")).await.unwrap();
        let files: Vec<_> = store.list("c").await.unwrap().try_collect().await.unwrap();
        assert_eq!(files.len(), 1, "32 chunks of two arrays, one file");
        let indices: Vec<_> = (0..16).map(|n| vec![n]).collect();
        let mut places = HashSet::new();
        for path in ["/a", "/b"] {
            for payload in session.locate(path, &indices).await.unwrap() {
                let Some(Payload::Native(native)) = payload else { panic!("{payload:?}") };
                assert_eq!(native.length, 1000);
                assert!(places.insert((native.file, native.offset)), "two chunks in one place");
            }
        }
        assert_eq!(sound(&reopen(&store).await).await, 0);
    }
}

#[tokio::test]
async fn size_decides_where_a_chunk_goes() {
    let repo = create(&memory(), Config::default()).await;
    let session = repo.writable_session("main").await.unwrap();
    let sizes = [512, 513, (1 << 20) - 1, 1 << 20];
    for size in sizes {
        let path = format!("/a{size}");
        session.create_array(&path, plain(&[size], &[size])).await.unwrap();
        write_noise(&session, &path, &format!("0:{size}"), size).await.unwrap();
    }
    session.commit(CommitOptions::message("x")).await.unwrap();
    let repo = reopen(repo.store()).await;
    let read = repo.readonly_session(&Version::Default).await.unwrap();
    let mut placed = Vec::new();
    for size in sizes {
        placed.extend(read.locate(&format!("/a{size}"), &[vec![0]]).await.unwrap());
    }
    assert!(matches!(&placed[0], Some(Payload::Inline { bytes }) if bytes.len() == 512));
    let file = |at: usize| match &placed[at] {
        Some(Payload::Native(native)) => (native.file.clone(), native.offset, native.length),
        other => panic!("{other:?}"),
    };
    assert_eq!(file(1).0, file(2).0, "one pack");
    assert_ne!(file(3).0, file(2).0, "its own file");
    assert_eq!((file(3).1, file(3).2), (0, 1 << 20));
    for size in sizes {
        let values = read_at(&repo, &Version::Default, &format!("/a{size}")).await.unwrap();
        assert_eq!(values, noise(size as usize, size));
    }
    sound(&repo).await;
}

#[tokio::test]
async fn inline_chunks_are_bounded_per_array_and_commit() {
    let config = Config { inline_total_max: 1000, ..Config::default() };
    let repo = create(&memory(), config).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/a", plain(&[3000], &[300])).await.unwrap();
    write_noise(&session, "/a", "0:3000", 1).await.unwrap();
    // Overwriting an inline chunk makes room again and again, and counts once.
    for seed in 2..6 {
        write_noise(&session, "/a", "0:300", seed).await.unwrap();
    }
    session.commit(CommitOptions::message("x")).await.unwrap();
    let indices: Vec<_> = (0..10).map(|n| vec![n]).collect();
    let placed = session.locate("/a", &indices).await.unwrap();
    let inline = placed.iter().filter(|p| matches!(p, Some(Payload::Inline { .. }))).count();
    assert_eq!(inline, 3);
    assert_eq!(read_at(&repo, &Version::Default, "/a").await.unwrap()[..300], noise(300, 5));
    sound(&repo).await;
}

#[tokio::test]
async fn a_pack_is_sealed_when_it_is_full() {
    let config = Config { pack_bytes: 10_000, ..Config::default() };
    let repo = create(&memory(), config).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/a", plain(&[50_000], &[1000])).await.unwrap();
    write_noise(&session, "/a", "0:50000", 1).await.unwrap();
    session.commit(CommitOptions::message("x")).await.unwrap();
    let files: Vec<_> = repo.store().list("c").await.unwrap().try_collect().await.unwrap();
    assert_eq!(files.len(), 5);
    sound(&repo).await;
}

#[tokio::test]
async fn chunk_files_fan_out_on_file_systems_only() {
    let (_guard, local) = directory();
    for (store, slashes) in [(local, 2), (memory(), 1)] {
        let repo = create(&store, tiny()).await;
        let session = repo.writable_session("main").await.unwrap();
        session.create_array("/a", plain(&[64], &[16])).await.unwrap();
        write_noise(&session, "/a", "0:64", 1).await.unwrap();
        session.commit(CommitOptions::message("x")).await.unwrap();
        let files: Vec<_> = store.list("c").await.unwrap().try_collect().await.unwrap();
        assert!(!files.is_empty());
        for meta in files {
            assert_eq!(meta.path.matches('/').count(), slashes, "{}", meta.path);
        }
    }
}

#[tokio::test]
async fn an_empty_chunk_is_refused() {
    let repo = create(&memory(), Config::default()).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/a", plain(&[4], &[4])).await.unwrap();
    let error = session.set_chunk("/a", &[0], Default::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let error = session.set_chunk("/a", &[1], "x".into()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "outside the grid");
    let error = session.set_chunk("/a", &[0, 0], "x".into()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "another rank");
}

/// Most of a pack is overwritten; the live chunks move out, and the pack can go.
#[tokio::test]
async fn repacking_frees_packs_that_are_mostly_dead() {
    for place in Place::ALL {
        let (_guard, store) = place.open();
        let repo = create(&store, Config { inline_chunk_max: 0, ..Config::default() }).await;
        let session = repo.writable_session("main").await.unwrap();
        session.create_array("/a", plain(&[16_000], &[1000])).await.unwrap();
        write_noise(&session, "/a", "0:16000", 1).await.unwrap();
        session.commit(CommitOptions::message("one")).await.unwrap();
        let session = repo.writable_session("main").await.unwrap();
        write_noise(&session, "/a", "0:12000", 2).await.unwrap();
        session.commit(CommitOptions::message("two")).await.unwrap();
        let before = read_at(&repo, &Version::Default, "/a").await.unwrap();

        let report = repo.repack("main", &RepackOptions::default()).await.unwrap();
        assert_eq!((report.packs, report.chunks, report.bytes), (1, 4, 4000));
        let tip = history(&repo, "main").await[0].clone();
        assert_eq!(report.snapshot.as_deref(), Some(&*tip.snapshot_id));
        assert_eq!(tip.properties["maintenance"], true);
        let parent = Version::Snapshot(tip.parent_snapshot_id.clone().unwrap());
        assert!(repo.diff(&parent, &Version::Default).await.unwrap().is_empty());
        let again = repo.repack("main", &RepackOptions::default()).await.unwrap();
        assert_eq!(again.snapshot, None, "nothing is left to do");

        let keep = chunkyard_repo::ExpireOptions { keep_last: Some(1), ..Default::default() };
        repo.expire(&keep).await.unwrap();
        collect(&repo).await.unwrap();
        let repo = reopen(&store).await;
        assert_eq!(read_at(&repo, &Version::Default, "/a").await.unwrap(), before);
        assert_eq!(sound(&repo).await, 0);
        let files: Vec<_> = store.list("c").await.unwrap().try_collect().await.unwrap();
        assert_eq!(files.len(), 2, "the first pack is gone");
    }
}
