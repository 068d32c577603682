//! Badger directories that a real DVID wrote, whole and damaged.

mod golden;

use chunkyard_format::badger::{Badger, Entry, KeyRange};
use chunkyard_store::{Options, Result, Store};
use chunkyard_test_support::dvid_store;
use futures::TryStreamExt;

/// An unpacked store, and the Badger directory in it.
fn unpacked(name: &str) -> (tempfile::TempDir, Store) {
    let directory = dvid_store(name);
    let badger = directory.path().join("data/badger");
    let store = Store::open(badger.to_str().unwrap(), &Options::default()).unwrap();
    (directory, store)
}

async fn scanned(badger: &Badger, range: KeyRange) -> Result<Vec<Entry>> {
    Ok(badger.scan(range).try_collect::<Vec<_>>().await?.concat())
}
