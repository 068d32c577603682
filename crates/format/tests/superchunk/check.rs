//! What a check reports for a damaged dataset.

use std::path::Path;
use std::sync::Arc;

use chunkyard_format::superchunk::{Blz, BlzOptions, BlzSource};
use chunkyard_format::{Level, Meter, OpenOptions, Place, Report, Source, check};

use super::support::{creation, local, numbers, open, resealed, rows};

/// 95 rows in chunks of 10, four to a file: three files and a tail.
async fn dataset() -> (tempfile::TempDir, Place) {
    let (temp, place) = local();
    let blz = Blz::create(&place, &creation("<i8", 10, 4), BlzOptions::default()).await.unwrap();
    blz.append(vec![rows(0..95)]).await.unwrap();
    blz.flush().await.unwrap();
    (temp, place)
}

async fn report(place: &Place, level: Level) -> Report {
    let source = BlzSource::open(place, &OpenOptions::default()).await.unwrap();
    let source: Arc<dyn Source> = Arc::new(source);
    check(&source, level, &Meter::default()).await.unwrap()
}

fn path(place: &Place, name: &str) -> std::path::PathBuf {
    Path::new(place.url()).join(name)
}

/// Damages a file, and expects these words in the report.
async fn expect(name: &str, level: Level, damage: impl Fn(Vec<u8>) -> Vec<u8>, words: &[&str]) {
    let (_temp, place) = dataset().await;
    assert!(report(&place, Level::Bytes).await.is_sound());
    let file = path(&place, name);
    let damaged = damage(std::fs::read(&file).unwrap());
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, damaged).unwrap();
    let found = report(&place, level).await;
    assert!(!found.is_sound(), "{name}");
    let said = format!("{:?}", found.findings);
    for word in words {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[tokio::test]
async fn a_sound_dataset_has_no_findings() {
    let (_temp, place) = dataset().await;
    let found = report(&place, Level::Bytes).await;
    assert_eq!((found.findings.len(), found.errors), (0, 0), "{:?}", found.findings);
    assert_eq!((found.checked.arrays, found.checked.chunks), (1, 10));
}

#[tokio::test]
async fn a_changed_byte_fails_the_checksum() {
    let flip = |mut bytes: Vec<u8>| {
        let at = bytes.len() - 10;
        bytes[at] ^= 1;
        bytes
    };
    expect("data/__2__.bin", Level::Bytes, flip, &["data/__2__.bin", "adler32"]).await;
}

#[tokio::test]
async fn a_torn_tail_is_named() {
    let tear = |bytes: Vec<u8>| bytes[..bytes.len() - 20].to_vec();
    expect("data/__4__.bin", Level::Existence, tear, &["data/__4__.bin"]).await;
}

#[tokio::test]
async fn sizes_that_contradict_themselves_are_named() {
    let change = |bytes: Vec<u8>| resealed(&bytes, "\"nbytes\": 760", "\"nbytes\": 761");
    let words = ["meta/sizes", "nbytes: expected 760, found 761"];
    expect("meta/sizes", Level::State, change, &words).await;
}

#[tokio::test]
async fn a_missing_file_is_named() {
    let (_temp, place) = dataset().await;
    std::fs::remove_file(path(&place, "data/__2__.bin")).unwrap();
    let found = report(&place, Level::Existence).await;
    assert_eq!(found.errors, 1, "{:?}", found.findings);
    let said = format!("{:?}", found.findings);
    assert!(said.contains("data/__2__.bin") && said.contains("no such file"), "{said}");
}

#[tokio::test]
async fn leftovers_of_writers_are_a_note() {
    let (_temp, place) = dataset().await;
    std::fs::write(path(&place, "data/.tmp-1"), b"half").unwrap();
    std::fs::write(path(&place, "data/__9__.bin"), b"old").unwrap();
    let mut bytes = std::fs::read(path(&place, "data/__3__.bin")).unwrap();
    bytes.extend(b"torn");
    std::fs::write(path(&place, "data/__3__.bin"), bytes).unwrap();
    let found = report(&place, Level::Bytes).await;
    assert!(found.is_sound(), "{:?}", found.findings);
    assert_eq!(found.orphan_files, 2, "{:?}", found.findings);
    let said = format!("{:?}", found.findings);
    assert!(said.contains("4 bytes behind its last chunk"), "{said}");
}

#[tokio::test]
async fn a_full_file_in_the_place_of_the_tail_is_a_note() {
    let (_temp, place) = local();
    let options = BlzOptions::default();
    let blz = Blz::create(&place, &creation("<i8", 10, 3), options).await.unwrap();
    blz.append(vec![rows(0..45)]).await.unwrap();
    blz.flush().await.unwrap();
    // Enough rows to fill a file with the name of the tail; none of them is committed.
    blz.append(vec![rows(45..145)]).await.unwrap();
    drop(blz);
    let found = report(&place, Level::Bytes).await;
    assert!(found.is_sound(), "{:?}", found.findings);
    let said = format!("{:?}", found.findings);
    assert!(said.contains("in the place of the tail"), "{said}");
    assert_eq!(numbers(&open(&place).await, "/").await, (0..45).collect::<Vec<_>>());
}
