//! One bit of one file is wrong. Whatever file and whatever bit: verification notices, and a reader
//! gets an error or the right data, never wrong data and never a panic.

use chunkyard_repo::{CommitOptions, Config, Level, OpenOptions, Repository, Severity, Version};
use chunkyard_store::{ErrorKind, Store};
use futures::TryStreamExt;
use serde_json::{Map, Value};

use super::support::{
    Contents, Place, bytes_spec, contents, create, noise, reopen, repetitions, sound, tiny,
    write_noise,
};

/// A repository with every kind of file.
async fn furnished(store: &Store, config: Config) -> Repository {
    let repo = create(store, config).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/packed", bytes_spec(&[12, 12], &[4, 4])).await.unwrap();
    session.create_array("/own", bytes_spec(&[20, 20], &[20, 20])).await.unwrap();
    session.create_array("/inline", bytes_spec(&[4], &[2])).await.unwrap();
    let note = Value::String("a long note ".repeat(20));
    session.set_attributes("/own", Map::from_iter([("note".to_owned(), note)])).unwrap();
    write_noise(&session, "/packed", "0:12,0:12", 1).await.unwrap();
    write_noise(&session, "/own", "0:20,0:20", 2).await.unwrap();
    write_noise(&session, "/inline", "0:4", 3).await.unwrap();
    session.commit(CommitOptions::message("one")).await.unwrap();
    let session = repo.writable_session("main").await.unwrap();
    write_noise(&session, "/packed", "2:6,2:6", 4).await.unwrap();
    session.erase_chunk("/packed", &[2, 2]).unwrap();
    session.commit(CommitOptions::message("two")).await.unwrap();
    repo
}

async fn all_files(store: &Store) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let listed: Vec<_> = store.list("").await.unwrap().try_collect().await.unwrap();
    for meta in listed {
        let bytes = store.get(&meta.path).await.unwrap().bytes.to_vec();
        files.push((meta.path, bytes));
    }
    files.sort();
    files
}

async fn try_everything(store: &Store) -> chunkyard_store::Result<Vec<Contents>> {
    let repo = Repository::open_in(store.clone(), OpenOptions::default()).await?;
    let mut all = Vec::new();
    for snapshot in &repo.state().await?.snapshots {
        let version = Version::Snapshot(snapshot.snapshot_id.clone());
        all.push(contents(&repo.readonly_session(&version).await?).await?);
    }
    Ok(all)
}

/// Flips a bit, looks, and flips it back.
async fn flip(store: &Store, path: &str, bytes: &[u8], at: usize, bit: u32, right: &[Contents]) {
    let what = format!("{path}, bit {bit} of byte {at} of {}", bytes.len());
    let mut flipped = bytes.to_vec();
    flipped[at] ^= 1 << bit;
    store.put(path, vec![flipped.into()]).await.unwrap();
    match Repository::open_in(store.clone(), OpenOptions::default()).await {
        Ok(repo) => {
            let report = repo.verify(Level::Bytes).await.unwrap();
            assert!(!report.is_sound(), "{what}: unnoticed");
            let named = report.findings.iter().any(|finding| {
                finding.severity == Severity::Error && path.ends_with(finding.file.as_str())
            });
            assert!(named, "{what}: {:#?}", report.findings);
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}"),
    }
    match try_everything(store).await {
        Ok(found) => assert_eq!(found, right, "{what}"),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}"),
    }
    store.put(path, vec![bytes.to_vec().into()]).await.unwrap();
}

/// The bytes of a file to try: all of a small one, both ends and a sample of a larger one.
fn sample(size: usize, count: usize, seed: u64) -> Vec<usize> {
    if size <= count {
        return (0..size).collect();
    }
    let random = noise(count * 4, seed);
    let mut picked: Vec<usize> = random
        .chunks_exact(4)
        .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize % size)
        .chain([0, 1, 2, 3, size - 9, size - 8, size - 5, size - 4, size - 1])
        .collect();
    picked.sort_unstable();
    picked.dedup();
    picked
}

async fn no_flip_goes_unnoticed(place: Place, per_file: usize) {
    if !place.is_wanted() {
        return;
    }
    let (_guard, store) = place.open();
    sound(&furnished(&store, tiny()).await).await;
    let right = try_everything(&store).await.unwrap();
    let files = all_files(&store).await;
    for kind in ["s/", "i/", "a/", "c/", "state.json"] {
        assert!(files.iter().any(|(path, _)| path.starts_with(kind)), "no {kind} in {files:?}");
    }
    for (number, (path, bytes)) in files.iter().enumerate() {
        for at in sample(bytes.len(), per_file, number as u64) {
            let bit = (at as u32).wrapping_mul(5) % 8;
            flip(&store, path, bytes, at, bit, &right).await;
        }
    }
    sound(&reopen(&store).await).await;
}

#[tokio::test]
async fn no_flipped_bit_goes_unnoticed() {
    no_flip_goes_unnoticed(Place::Memory, repetitions(120, 12)).await;
}

#[tokio::test]
async fn no_flipped_bit_goes_unnoticed_in_a_directory_with_claims() {
    no_flip_goes_unnoticed(Place::Local, 25).await;
}

#[tokio::test]
#[ignore = "takes minutes; run by `make stress`"]
async fn no_flipped_bit_of_any_byte_goes_unnoticed() {
    for place in Place::ALL {
        no_flip_goes_unnoticed(place, usize::MAX).await;
    }
}

/// A manifest large enough to be read page by page.
#[tokio::test]
async fn no_flipped_bit_of_a_paged_manifest_goes_unnoticed() {
    let (_guard, store) = Place::Memory.open();
    let repo = create(&store, Config::default()).await;
    let session = repo.writable_session("main").await.unwrap();
    for (path, seed) in [("/a", 1), ("/b", 2)] {
        session.create_array(path, bytes_spec(&[1024, 640], &[16, 20])).await.unwrap();
        write_noise(&session, path, "0:1024,0:640", seed).await.unwrap();
    }
    session.commit(CommitOptions::message("many inline chunks")).await.unwrap();
    let files = all_files(&store).await;
    let (path, bytes) = files.iter().find(|(path, _)| path.starts_with("i/")).unwrap();
    assert!(bytes.len() > 1 << 20, "{} bytes are read whole", bytes.len());

    let right = try_everything(&store).await.unwrap();
    for at in sample(bytes.len(), 12, 7) {
        flip(&store, path, bytes, at, 3, &right).await;
    }
}

/// A file that is cut short, or missing, is noticed like one with a flipped bit.
#[tokio::test]
async fn no_truncated_or_missing_file_goes_unnoticed() {
    let (_guard, store) = Place::Memory.open();
    furnished(&store, tiny()).await;
    let right = try_everything(&store).await.unwrap();
    for (path, bytes) in all_files(&store).await {
        for left in [0, 1, bytes.len() / 2, bytes.len() - 1, usize::MAX] {
            if left == usize::MAX {
                store.delete(std::slice::from_ref(&path)).await.unwrap();
            } else {
                store.put(&path, vec![bytes[..left].to_vec().into()]).await.unwrap();
            }
            let what = format!("{left} bytes of {path}");
            if path != "state.json" {
                let report = reopen(&store).await.verify(Level::Bytes).await.unwrap();
                assert!(!report.is_sound(), "{what}");
            }
            match try_everything(&store).await {
                Ok(found) => assert_eq!(found, right, "{what}"),
                Err(error) if path == "state.json" && left == usize::MAX => {
                    assert_eq!(error.kind(), ErrorKind::NotFound, "{what}: {error}");
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}"),
            }
        }
        store.put(&path, vec![bytes.into()]).await.unwrap();
    }
    sound(&reopen(&store).await).await;
}
