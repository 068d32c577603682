//! Stores that go away with their test.

use chunkyard_store::{Durability, Options, Store};
use futures::TryStreamExt;

use crate::bucket;

/// A fresh store in memory, or in the [bucket] if there is one.
pub fn memory() -> Store {
    Store::open(&fresh_url(), &Options::default()).unwrap()
}

fn fresh_url() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let in_memory = || format!("memory://test-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    bucket::fresh_url().unwrap_or_else(in_memory)
}

/// A directory that goes away with the test, and a store on it that skips fsync.
pub fn directory() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { durability: Durability::None, ..Options::default() };
    let store = Store::open(directory.path().to_str().unwrap(), &options).unwrap();
    (directory, store)
}

/// Like [`memory`], but it can create an object once and not replace it conditionally.
pub fn create_only() -> Store {
    let mut options = Options::default();
    options.values.insert("conditional_put".into(), "false".into());
    Store::open(&fresh_url(), &options).unwrap()
}

/// The three ways in which a repository guards its state. The last two are in memory or in the
/// [bucket].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A directory.
    Local,
    /// A store that can replace an object conditionally.
    Memory,
    /// A store that can only create an object conditionally.
    CreateOnly,
}

/// All places worth a test: with a bucket, only places in it.
pub struct AllPlaces;

impl IntoIterator for AllPlaces {
    type Item = Place;
    type IntoIter = std::vec::IntoIter<Place>;

    fn into_iter(self) -> Self::IntoIter {
        let all = [Place::Local, Place::Memory, Place::CreateOnly];
        all.into_iter().filter(|place| place.is_wanted()).collect::<Vec<_>>().into_iter()
    }
}

impl Place {
    /// All of them; with a bucket, the ones in it.
    pub const ALL: AllPlaces = AllPlaces;

    /// Whether to test here. With a bucket directories are left out: nothing about them changes.
    pub fn is_wanted(self) -> bool {
        self != Self::Local || bucket::name().is_none()
    }

    /// A fresh store; the directory goes away with the guard.
    pub fn open(self) -> (Option<tempfile::TempDir>, Store) {
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
pub fn repetitions<T>(many: T, few: T) -> T {
    if bucket::name().is_some() { few } else { many }
}

/// Waits until the next write is younger, by the store's clock, than existing files. S3 counts
/// seconds.
pub async fn tick(store: &Store) {
    let pause_ms = if store.url().starts_with("s3://") { 1100 } else { 5 };
    tokio::time::sleep(std::time::Duration::from_millis(pause_ms)).await;
}

/// The same objects in another store of the same kind.
pub async fn duplicate(from: &Store, place: Place) -> (Option<tempfile::TempDir>, Store) {
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

/// A directory that vanishes with its test, as a store.
pub struct Scratch {
    _directory: tempfile::TempDir,
    /// The store on it.
    pub store: Store,
}

impl std::ops::Deref for Scratch {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

/// A fresh directory.
pub fn scratch(durability: Durability) -> Scratch {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("root");
    let options = Options { durability, ..Options::default() };
    let store = Store::open(root.to_str().unwrap(), &options).unwrap();
    Scratch { _directory: directory, store }
}
