//! What the repository tests share.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::{ArraySpec, Region};
use chunkyard_engine::Result;
use chunkyard_engine::repo::{
    Config, CreateOptions, OpenOptions, Repository, Session, Snapshot, Version,
};
use chunkyard_engine::store::{Durability, Options, Store};

/// A fresh in-memory store.
pub(crate) fn memory() -> Store {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let url = format!("memory://repo-test-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    Store::open(&url, &Options::default()).unwrap()
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
