//! Existing data under version control, by reference.

use std::path::Path;
use std::sync::Arc;

use chunkyard_array::{ArraySpec, Region};
use chunkyard_engine::format::{CreateOptions, OpenOptions, Place, Reader, Source};
use chunkyard_engine::open::{format_named, open};
use chunkyard_engine::pipeline::{Linked, Plan, RunOptions, Wishes, link, run};
use chunkyard_engine::repo::{self, CommitOptions, Repository};
use chunkyard_engine::{Error, Meter, Result};

const SHAPE: [u64; 2] = [50, 70];

fn values() -> Vec<u8> {
    (0..50 * 70u16).flat_map(u16::to_le_bytes).collect()
}

/// A Zarr hierarchy with one array `/a/t`, whose first chunk row is missing.
async fn zarr(root: &Path, shards: Option<Vec<u64>>) -> String {
    let made = root.join("made");
    let none = repo::OpenOptions::default();
    let repo = Repository::create(made.to_str().unwrap(), none, repo::CreateOptions::default());
    let session = repo.await.unwrap().writable_session("main").await.unwrap();
    let spec = ArraySpec::builder(&SHAPE, &[10, 10], "uint16").build().unwrap();
    let array = session.create_array("/a/t", spec).await.unwrap();
    let lower = Region::new([10, 0], [40, 70]).unwrap();
    array.write_region(&lower, values()[10 * 70 * 2..].to_vec().into()).await.unwrap();
    session.commit(CommitOptions::message("sample")).await.unwrap();
    let source = open(made.to_str().unwrap(), &OpenOptions::default()).await.unwrap().source;
    let format = format_named("zarr3").unwrap();
    let wishes = Wishes { shards: Some(shards), ..Wishes::default() };
    let plan = Plan::new(&source, &wishes, format, "").await.unwrap();
    let target = root.join("data.zarr").to_str().unwrap().to_owned();
    let place = Place::new(&target, &Default::default()).unwrap();
    let sink = format.create(&place, plan.dataset.clone(), CreateOptions::default()).await.unwrap();
    run(&source, sink, &plan, &RunOptions::default()).await.unwrap();
    target
}

async fn link_to(source: &str, repo: &Path) -> Result<Linked> {
    let from = Place::new(source, &Default::default()).unwrap();
    let source = open(source, &OpenOptions::default()).await.unwrap().source;
    let place = Place::new(repo.to_str().unwrap(), &Default::default()).unwrap();
    let options = CreateOptions { message: Some("link".into()), ..CreateOptions::default() };
    link(&source, &from, &place, &Wishes::default(), "", options, &Meter::default()).await
}

async fn read(repo: &Path, allowed: &str) -> Result<Vec<u8>> {
    let options = OpenOptions { allowed: vec![allowed.to_owned()], ..OpenOptions::default() };
    let source: Arc<dyn Source> = open(repo.to_str().unwrap(), &options).await.unwrap().source;
    let reader = Reader::new(&source, "/a/t").unwrap();
    Ok(reader.read_region(&Region::whole(&SHAPE)).await?.to_vec())
}

fn expected() -> Vec<u8> {
    let mut values = values();
    values[..10 * 70 * 2].fill(0);
    values
}

#[tokio::test]
async fn linked_chunks_are_read_where_they_are_if_that_is_allowed() {
    for (shards, references) in [(None, 28), (Some(vec![20, 30]), 28)] {
        let directory = tempfile::tempdir().unwrap();
        let (root, repo) = (directory.path(), directory.path().join("repo"));
        let source = zarr(root, shards).await;
        let linked = link_to(&source, &repo).await.unwrap();
        assert_eq!((linked.arrays, linked.chunks, linked.copied), (1, references, (0, 0)));
        let allowed = format!("file://{}", root.display());
        assert_eq!(read(&repo, &allowed).await.unwrap(), expected());
        let refused = read(&repo, "file:///elsewhere").await.unwrap_err();
        assert!(refused.to_string().contains("data.zarr"), "{refused}");
        let own: u64 = std::fs::read_dir(repo.join("c")).map_or(0, |found| found.count() as u64);
        assert_eq!(own, 0, "no chunk is copied");
    }
}

#[tokio::test]
async fn a_source_that_changed_after_it_was_linked_is_an_error_and_never_stale_data() {
    let directory = tempfile::tempdir().unwrap();
    let (root, repo) = (directory.path(), directory.path().join("repo"));
    let source = zarr(root, Some(vec![20, 30])).await;
    link_to(&source, &repo).await.unwrap();
    let shard = Path::new(&source).join("a/t/c/1/1");
    let bytes = std::fs::read(&shard).unwrap();
    std::fs::remove_file(&shard).unwrap();
    std::fs::write(&shard, bytes).unwrap();
    let allowed = root.to_str().unwrap();
    let error = read(&repo, allowed).await.unwrap_err();
    assert!(matches!(error, Error::VirtualSourceChanged { .. }), "{error}");
}

#[tokio::test]
async fn linking_twice_is_refused_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (root, repo) = (directory.path(), directory.path().join("repo"));
    let source = zarr(root, None).await;
    link_to(&source, &repo).await.unwrap();
    let error = link_to(&source, &repo).await.unwrap_err();
    assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
    let history = Repository::open(repo.to_str().unwrap(), repo::OpenOptions::default());
    assert_eq!(history.await.unwrap().state().await.unwrap().snapshots.len(), 2);
}
