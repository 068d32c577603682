//! Helpers of the tests of datasets.

use bytes::Bytes;
use chunkyard_array::codec::blosc;
use chunkyard_array::{OutputMemory as _, Region};
use chunkyard_format::Place;
use chunkyard_format::hostile::superchunk::bloscpack::{FileHead, Parsed};
use chunkyard_format::superchunk::{Blz, BlzOptions, Creation, Style, dtype, meta, names};
use chunkyard_store::{Options, Result, Store};

/// A place of its own in memory.
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
    try_numbers(blz, column).await.unwrap()
}

/// The same, where it may fail.
pub(crate) async fn try_numbers(blz: &Blz, column: &str) -> Result<Vec<i64>> {
    let reader = blz.reader(column)?;
    let whole = Region::whole(reader.codecs().grid().array_shape());
    let mut read = reader.read_region(&whole).await?;
    let bytes = read.as_mut_slice().to_vec();
    Ok(bytes.as_chunks().0.iter().map(|number| i64::from_le_bytes(*number)).collect())
}

/// The place of a dataset in a store.
pub(crate) fn within(store: &Store) -> Place {
    Place::within(store.clone(), "x.blz").unwrap()
}

/// The files in a folder of a dataset, without empty ones, which are removed objects.
pub(crate) async fn files(place: &Place, folder: &str) -> Vec<(String, Bytes)> {
    let store = place.directory();
    let mut found = Vec::new();
    for meta in store.list_dir(folder).await.unwrap().objects {
        let bytes = store.get(&meta.path).await.unwrap().bytes;
        found.push((meta.path, bytes));
    }
    found.retain(|(_, bytes)| !bytes.is_empty());
    found
}

/// A changed meta file with a valid checksum.
pub(crate) fn resealed(file: &[u8], from: &str, to: &str) -> Vec<u8> {
    let text = unsealed(file).replace(from, to);
    meta::seal::sealed(text.into_bytes())
}

/// A meta file without its checksum, as earlier versions wrote it.
pub(crate) fn unsealed(file: &[u8]) -> String {
    let text = std::str::from_utf8(file).unwrap();
    match text.split_once(&format!("\"{}\"", meta::SEAL)) {
        Some((body, _)) => format!("{}}}\n", body.trim_end_matches(", ")),
        None => text.to_owned(),
    }
}

/// A dataset of one column has no files that it does not need, and every file is whole on its own.
pub(crate) async fn tidy(place: &Place, chunklen: u64, superchunk: u64, what: &str) {
    let blz = open(place).await;
    let superchunk = if blz.style() == Style::Bcolz { 1 } else { superchunk };
    let (full, rest) = (blz.len() / chunklen, blz.len() % chunklen);
    let mut expected: Vec<u64> = Vec::new();
    let mut left = full;
    while left > 0 {
        expected.push(left.min(superchunk));
        left -= left.min(superchunk);
    }
    expected.extend((rest > 0).then_some(1));
    let found = files(place, "data").await;
    assert_eq!(found.len(), expected.len(), "{what} {:?}", Names(&found));
    let local = place.directory().writes_in_place();
    for (number, chunks) in expected.into_iter().enumerate() {
        let name = match blz.style() {
            Style::Bcolz => format!("data/{}", names::legacy_file(number as u64)),
            _ => format!("data/{}", names::superchunk_file(number as u64 + 1)),
        };
        let file = found.iter().find(|(path, _)| *path == name);
        let (_, bytes) = file.unwrap_or_else(|| panic!("{what}: no {name}"));
        let count = check_file(&name, bytes, what);
        // A file that is not changed in place may have chunks that do not count.
        let in_place = local && blz.style() == Style::Superchunk;
        assert!(
            count == chunks || (!in_place && count > chunks),
            "{what}: {name} {count} {chunks}"
        );
    }
}

/// The number of chunks of a file. They must follow one another up to its end, each with its digest.
pub(crate) fn check_file(name: &str, bytes: &[u8], what: &str) -> u64 {
    let parsed = FileHead::parse(name, bytes, bytes.len() as u64);
    let parsed = parsed.unwrap_or_else(|error| panic!("{what}: {error}"));
    let Parsed::Whole(layout, offsets) = parsed else { panic!("{what}: {name} is too short") };
    let mut at = layout.chunks_at as usize;
    let digest = layout.header.digest;
    let count = layout.header.chunks.unwrap();
    for slot in 0..count as usize {
        let is_there = offsets.get(slot) == Some(&Some(at as u64));
        assert!(is_there || !layout.header.has_offsets, "{what}: {name}, chunk {slot}");
        let header = blosc::Header::parse(&bytes[at..]).unwrap();
        let end = at + header.encoded_bytes as usize;
        let digest_end = end + digest.bytes();
        assert_eq!(bytes[end..digest_end], digest.of(&bytes[at..end])[..], "{what}: {name} {slot}");
        at = digest_end;
    }
    assert_eq!(at, bytes.len(), "{what}: {name} has bytes behind its last chunk");
    assert!(offsets.iter().skip(count as usize).all(Option::is_none), "{what}: {name}");
    count
}

struct Names<'a>(&'a [(String, Bytes)]);

impl std::fmt::Debug for Names<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, bytes)| (name, bytes.len()))).finish()
    }
}
