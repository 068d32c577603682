//! Helpers shared by the repository tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::{ArraySpec, Region};
use chunkyard_engine::Result;
use chunkyard_engine::repo::{
    CommitOptions, Config, CreateOptions, GcOptions, GcReport, Level, OpenOptions, Repository,
    Session, Snapshot, Version,
};
use chunkyard_engine::store::{Durability, Options, Store};
use futures::TryStreamExt;

use crate::bucket;

/// A fresh store in memory, or in the [bucket] if there is one.
pub(crate) fn memory() -> Store {
    Store::open(&fresh_url(), &Options::default()).unwrap()
}

fn fresh_url() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let in_memory = || format!("memory://repo-test-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    bucket::fresh_url().unwrap_or_else(in_memory)
}

/// A directory that goes away with the test, and a store on it that skips fsync.
pub(crate) fn directory() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { durability: Durability::None, ..Options::default() };
    let store = Store::open(directory.path().to_str().unwrap(), &options).unwrap();
    (directory, store)
}

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

/// Like [`memory`], but it can create an object once and not replace it conditionally.
pub(crate) fn create_only() -> Store {
    let mut options = Options::default();
    options.values.insert("conditional_put".into(), "false".into());
    Store::open(&fresh_url(), &options).unwrap()
}

/// The three ways in which a repository guards its state. The last two are in memory or in the
/// [bucket].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Local,
    Memory,
    CreateOnly,
}

/// All places worth a test: with a bucket, only places in it.
pub(crate) struct AllPlaces;

impl IntoIterator for AllPlaces {
    type Item = Place;
    type IntoIter = std::vec::IntoIter<Place>;

    fn into_iter(self) -> Self::IntoIter {
        let all = [Place::Local, Place::Memory, Place::CreateOnly];
        all.into_iter().filter(|place| place.is_wanted()).collect::<Vec<_>>().into_iter()
    }
}

impl Place {
    pub(crate) const ALL: AllPlaces = AllPlaces;

    /// Whether to test here. With a bucket directories are left out: nothing about them changes.
    pub(crate) fn is_wanted(self) -> bool {
        self != Self::Local || bucket::name().is_none()
    }

    /// A fresh store; the directory goes away with the guard.
    pub(crate) fn open(self) -> (Option<tempfile::TempDir>, Store) {
        match self {
            Self::Local => {
                let (guard, store) = directory();
                (Some(guard), store)
            }
            Self::Memory => (None, memory()),
            Self::CreateOnly => (None, create_only()),
        }
    }
}

/// `many` repetitions in memory, `few` over a network.
pub(crate) fn repetitions<T>(many: T, few: T) -> T {
    if bucket::name().is_some() { few } else { many }
}

/// Waits until the next write is younger, by the store's clock, than existing files. S3 counts
/// seconds.
pub(crate) async fn tick(store: &Store) {
    let pause_ms = if store.url().starts_with("s3://") { 1100 } else { 5 };
    tokio::time::sleep(std::time::Duration::from_millis(pause_ms)).await;
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

/// Bytes that no codec makes smaller, the same for the same seed.
pub(crate) fn noise(count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..count).map(step).collect()
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

/// The same repository in another store of the same kind.
pub(crate) async fn duplicate(from: &Store, place: Place) -> (Option<tempfile::TempDir>, Store) {
    let (guard, to) = place.open();
    if let Some(directory) = &guard {
        copy_directory(std::path::Path::new(from.url()), directory.path());
        return (guard, to);
    }
    let listed: Vec<_> = from.list("").await.unwrap().try_collect().await.unwrap();
    for meta in listed {
        let bytes = from.get(&meta.path).await.unwrap().bytes;
        to.put(&meta.path, vec![bytes]).await.unwrap();
    }
    (guard, to)
}

fn copy_directory(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_directory(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
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
