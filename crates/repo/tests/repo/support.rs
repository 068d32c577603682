//! Helpers shared by the repository tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::{ArraySpec, Region};
use chunkyard_repo::{
    CommitOptions, Config, CreateOptions, GcOptions, GcReport, Level, OpenOptions, Repository,
    Session, Snapshot, Version,
};
use chunkyard_store::{Result, Store};

pub(crate) use chunkyard_test_support::{
    Place, directory, duplicate, memory, noise, repetitions, tick,
};

/// Creates a repository with a config.
pub(crate) async fn create(store: &Store, config: Config) -> Repository {
    let create = CreateOptions { config, ..CreateOptions::default() };
    Repository::create_in(store.clone(), OpenOptions::default(), create).await.unwrap()
}

/// Opens it anew: nothing cached.
pub(crate) async fn reopen(store: &Store) -> Repository {
    Repository::open_in(store.clone(), OpenOptions::default()).await.unwrap()
}

/// An array of bytes: one element per byte, so that data is easy to write down.
pub(crate) fn bytes_spec(shape: &[u64], chunks: &[u64]) -> ArraySpec {
    ArraySpec::builder(shape, chunks, "uint8").build().unwrap()
}

/// Writes a box of one value.
pub(crate) async fn write(
    session: &Arc<Session>,
    path: &str,
    region: &str,
    value: u8,
) -> Result<()> {
    let array = session.array(path).await?;
    let region = Region::parse(region, array.spec().shape())?;
    let count = region.num_elements() as usize;
    array.write_region(&region, Bytes::from(vec![value; count])).await
}

/// Reads a whole array of bytes.
pub(crate) async fn read_all(session: &Arc<Session>, path: &str) -> Result<Vec<u8>> {
    let array = session.array(path).await?;
    let region = Region::whole(array.spec().shape());
    Ok(array.read_region(&region).await?.to_vec())
}

/// Reads a whole array of bytes at a version.
pub(crate) async fn read_at(repo: &Repository, version: &Version, path: &str) -> Result<Vec<u8>> {
    read_all(&repo.readonly_session(version).await?, path).await
}

/// Ids of a branch, newest first.
pub(crate) async fn history(repo: &Repository, branch: &str) -> Vec<Arc<Snapshot>> {
    let state = repo.state().await.unwrap();
    let tip = state.tip(branch).unwrap().snapshot_id.clone();
    state.ancestry(&tip).cloned().collect()
}

/// Thresholds so low that a small repository has every kind of file.
pub(crate) fn tiny() -> Config {
    Config {
        inline_chunk_max: 8,
        inline_attrs_max: 64,
        own_file_min: 200,
        pack_bytes: 100,
        ..Config::default()
    }
}

/// Fills a region of an array of bytes with noise.
pub(crate) async fn write_noise(
    session: &Arc<Session>,
    path: &str,
    region: &str,
    seed: u64,
) -> Result<()> {
    let array = session.array(path).await?;
    let region = Region::parse(region, array.spec().shape())?;
    let bytes = noise(region.num_elements() as usize, seed);
    array.write_region(&region, bytes.into()).await
}

/// The whole content of one version: by path the document with its attributes, and the data of
/// arrays.
pub(crate) type Contents = BTreeMap<String, (String, Option<String>)>;

/// Reads everything a session sees.
pub(crate) async fn contents(session: &Arc<Session>) -> Result<Contents> {
    let mut contents = Contents::new();
    for node in session.tree().nodes() {
        let attributes = session.attributes(&node.path).await?;
        let attributes = serde_json::to_string(&*attributes).unwrap();
        let (document, data) = if node.is_array() {
            let array = session.array(&node.path).await?;
            let region = Region::whole(array.spec().shape());
            let document = String::from_utf8(array.spec().render()).unwrap();
            (document, Some(format!("{:?}", array.read_elements(&region).await?)))
        } else {
            ("group".to_owned(), None)
        };
        contents.insert(node.path.clone(), (format!("{document} {attributes}"), data));
    }
    Ok(contents)
}

/// The content of a repository, independent of random names: for every branch and tag all versions
/// with their messages, newest first, and the messages of all listed snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Picture {
    pub(crate) references: BTreeMap<String, Vec<(String, Contents)>>,
    pub(crate) messages: Vec<String>,
}

pub(crate) async fn picture(repo: &Repository) -> Picture {
    let state = repo.state().await.unwrap();
    let mut versions: BTreeMap<&str, (String, Contents)> = BTreeMap::new();
    for snapshot in &state.snapshots {
        let version = Version::Snapshot(snapshot.snapshot_id.clone());
        let session = repo.readonly_session(&version).await.unwrap();
        let read = contents(&session).await.unwrap();
        versions.insert(&snapshot.snapshot_id, (snapshot.message.clone(), read));
    }
    let line =
        |id: &str| state.ancestry(id).map(|s| versions[s.snapshot_id.as_str()].clone()).collect();
    let references =
        state.refs.values().map(|r| (format!("{:?} {}", r.kind, r.name), line(&r.snapshot_id)));
    let references = references.collect();
    let mut messages: Vec<_> = state.snapshots.iter().map(|s| s.message.clone()).collect();
    messages.sort();
    Picture { references, messages }
}

/// Verifies every byte and returns the number of unreferenced files.
pub(crate) async fn sound(repo: &Repository) -> u64 {
    let report = repo.verify(Level::Bytes).await.unwrap();
    assert_eq!(report.findings, [], "{:#?}", report.findings);
    report.orphan_files
}

/// Collects everything that can be collected now.
pub(crate) async fn collect(repo: &Repository) -> Result<GcReport> {
    repo.garbage_collect(&GcOptions { min_age_ms: 0, dry_run: false }).await
}

/// A repository with one array of noise, committed.
pub(crate) async fn furnished(place: Place) -> (Option<tempfile::TempDir>, Repository) {
    let (guard, store) = place.open();
    let repo = create(&store, tiny()).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/a", bytes_spec(&[8, 8], &[4, 4])).await.unwrap();
    write_noise(&session, "/a", "0:8,0:8", 1).await.unwrap();
    session.commit(CommitOptions::message("base")).await.unwrap();
    (guard, repo)
}
