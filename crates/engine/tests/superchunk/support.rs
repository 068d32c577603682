//! What the tests of datasets share.

use bytes::Bytes;
use chunkyard_array::{OutputMemory as _, Region};
use chunkyard_engine::format::Place;
use chunkyard_engine::format::superchunk::{Blz, BlzOptions, Creation, dtype};
use chunkyard_engine::store::Options;

/// A place in memory that nobody else has.
pub(crate) fn memory() -> Place {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    Place::new(&format!("memory://superchunk-{number}/x.blz"), &Options::default()).unwrap()
}

/// A place in a directory that is deleted with the first part.
pub(crate) fn local() -> (tempfile::TempDir, Place) {
    let temp = tempfile::tempdir().unwrap();
    let url = temp.path().join("x.blz");
    let place = Place::new(url.to_str().unwrap(), &Options::default()).unwrap();
    (temp, place)
}

/// A dataset of rows of a NumPy type, with short chunks and files.
pub(crate) fn creation(dtype_text: &str, chunklen: u64, superchunk: u64) -> Creation {
    let mut creation = Creation::new(dtype::parse(dtype_text).unwrap(), &[]);
    creation.wish.chunklen = Some(chunklen);
    creation.wish.superchunk = Some(superchunk);
    creation
}

pub(crate) async fn open(place: &Place) -> Blz {
    Blz::open(place, BlzOptions::default()).await.unwrap()
}

/// Numbers as rows of `<i8`.
pub(crate) fn rows(numbers: std::ops::Range<i64>) -> Bytes {
    numbers.flat_map(i64::to_le_bytes).collect::<Vec<u8>>().into()
}

/// All rows of a column of `<i8`.
pub(crate) async fn numbers(blz: &Blz, column: &str) -> Vec<i64> {
    let reader = blz.reader(column).unwrap();
    let whole = Region::whole(&[blz.len()]);
    let mut read = reader.read_region(&whole).await.unwrap();
    let bytes = read.as_mut_slice().to_vec();
    bytes.as_chunks().0.iter().map(|number| i64::from_le_bytes(*number)).collect()
}
