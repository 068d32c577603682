//! Badger directories that DVID and Badger itself wrote, whole and damaged.

mod damage;
mod golden;
mod values;

use std::path::{Path, PathBuf};

use chunkyard_format::badger::{Badger, BadgerOptions, Entry, KeyRange};
use chunkyard_store::{Options, Result, Store};
use chunkyard_test_support::{dvid_store, unpack_store};
use futures::TryStreamExt;

/// A directory that goes away with its test.
struct Unpacked {
    _directory: tempfile::TempDir,
    path: PathBuf,
    store: Store,
}

impl Unpacked {
    fn new(directory: tempfile::TempDir) -> Self {
        let path = directory.path().join("data/badger");
        let store = Store::open(path.to_str().unwrap(), &Options::default()).unwrap();
        Self { _directory: directory, path, store }
    }

    /// Of a store that DVID wrote.
    fn dvid(name: &str) -> Self {
        Self::new(dvid_store(name))
    }

    /// Of a store that Badger wrote.
    fn badger(name: &str) -> Self {
        Self::new(unpack_store(&testdata().join(format!("{name}.store"))))
    }

    fn read(&self, file: &str) -> Vec<u8> {
        std::fs::read(self.path.join(file)).unwrap()
    }

    fn write(&self, file: &str, bytes: &[u8]) {
        std::fs::write(self.path.join(file), bytes).unwrap();
    }

    /// Flips a bit of a file, without reading all of a sparse one.
    fn flip(&self, file: &str, at: u64) {
        use std::os::unix::fs::FileExt;
        let file = std::fs::File::options().read(true).write(true).open(self.path.join(file));
        let (file, mut byte) = (file.unwrap(), [0]);
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 1], at).unwrap();
    }

    fn cut(&self, file: &str, len: u64) {
        let file = std::fs::File::options().write(true).open(self.path.join(file)).unwrap();
        file.set_len(len).unwrap();
    }

    async fn open(&self) -> Badger {
        Badger::open(&self.store).await.unwrap()
    }

    async fn open_damaged(&self) -> Badger {
        let options = BadgerOptions { skip_corrupt: true, at: None };
        Badger::open_with(&self.store, &options).await.unwrap()
    }

    async fn all(&self) -> Vec<Entry> {
        scanned(&self.open().await, KeyRange::all()).await.unwrap()
    }
}

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/badger")
}

async fn scanned(badger: &Badger, range: KeyRange) -> Result<Vec<Entry>> {
    Ok(badger.scan(range).try_collect::<Vec<_>>().await?.concat())
}
