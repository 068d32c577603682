//! Verification of many arrays, many snapshots, and damaged files.

use chunkyard_repo::{CommitOptions, Config, Level, Report, Repository};
use chunkyard_store::Store;
use futures::TryStreamExt;

use super::support::{bytes_spec, create, memory, noise, reopen, tiny};

/// A commit that sets one chunk of each array.
async fn set_all(repo: &Repository, arrays: usize, seed: u64) {
    let session = repo.writable_session("main").await.unwrap();
    for at in 0..arrays {
        let path = format!("/a{at}");
        if session.node(&path).is_err() {
            session.create_array(&path, bytes_spec(&[4096], &[2048])).await.unwrap();
        }
        let chunk = noise(2048, seed + at as u64);
        session.set_chunk(&path, &[seed % 2], chunk.into()).await.unwrap();
    }
    session.commit(CommitOptions::message(format!("{seed}"))).await.unwrap();
}

async fn files(store: &Store, directory: &str) -> Vec<String> {
    let listed: Vec<_> =
        store.backend().list(directory).await.unwrap().try_collect().await.unwrap();
    listed.into_iter().map(|meta| meta.path).collect()
}

async fn verify(store: &Store) -> Report {
    reopen(store).await.verify(Level::Bytes).await.unwrap()
}

fn arrays(report: &Report) -> Vec<&str> {
    let mut arrays: Vec<_> =
        report.findings.iter().filter_map(|finding| finding.array.as_deref()).collect();
    arrays.sort_unstable();
    arrays.dedup();
    arrays
}

#[tokio::test]
async fn each_of_many_arrays_in_one_manifest_is_checked() {
    let store = memory();
    let repo = create(&store, Config::default()).await;
    set_all(&repo, 40, 0).await;
    let report = verify(&store).await;
    assert_eq!(report.findings, []);
    assert_eq!((report.checked.references, report.checked.chunk_files), (40, 1));

    let pack = files(&store, "c").await.remove(0);
    let bytes = store.backend().get(&pack).await.unwrap().bytes;
    let half = bytes.slice(..20 * 2048);
    store.backend().put(&pack, vec![half]).await.unwrap();
    let report = verify(&store).await;
    assert_eq!(arrays(&report).len(), 20, "{:?}", report.findings);
    assert!(report.findings.iter().all(|finding| finding.file == pack));
}

#[tokio::test]
async fn a_finding_names_every_snapshot_that_needs_the_file() {
    let store = memory();
    let repo = create(&store, tiny()).await;
    set_all(&repo, 1, 0).await;
    let first = files(&store, "c").await;
    set_all(&repo, 1, 1).await;
    set_all(&repo, 1, 2).await;
    store.backend().delete(&first).await.unwrap();
    let report = verify(&store).await;
    let needed: Vec<String> = repo.state().await.unwrap().snapshots[1..]
        .iter()
        .map(|snapshot| snapshot.snapshot_id.clone())
        .collect();
    let found: Vec<_> =
        report.findings.iter().map(|finding| (&finding.file, &finding.snapshots)).collect();
    assert_eq!(found, [(&first[0], &needed)]);
    assert_eq!(arrays(&report), ["/a0"]);
}

#[tokio::test]
async fn a_damaged_manifest_is_found_once_however_many_point_at_it() {
    let store = memory();
    let repo = create(&store, Config::default()).await;
    set_all(&repo, 10, 0).await;
    set_all(&repo, 10, 1).await;
    let manifest = files(&store, "i").await.remove(0);
    let mut bytes = store.backend().get(&manifest).await.unwrap().bytes.to_vec();
    bytes[100] ^= 1;
    store.backend().put(&manifest, vec![bytes.into()]).await.unwrap();
    let report = verify(&store).await;
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
    assert_eq!(report.findings[0].file, manifest);
}
