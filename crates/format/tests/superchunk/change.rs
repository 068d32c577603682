//! Changes of existing rows.

use std::collections::BTreeMap;

use bytes::Bytes;
use chunkyard_array::Region;
use chunkyard_format::Place;
use chunkyard_format::superchunk::{Blz, BlzOptions, Style};
use chunkyard_store::ErrorKind;

use super::support::{creation, files, local, memory, numbers, open, rows, try_numbers};

fn mutable() -> BlzOptions {
    BlzOptions { mutable: true, ..BlzOptions::default() }
}

async fn with_rows(place: &Place, slack: u64, count: i64) -> Blz {
    let mut wanted = creation("<i8", 10, 3);
    wanted.slack = slack;
    let blz = Blz::create(place, &wanted, mutable()).await.unwrap();
    blz.append(vec![rows(0..count)]).await.unwrap();
    blz.flush().await.unwrap();
    blz
}

async fn change(blz: &Blz, start: u64, new: std::ops::Range<i64>) -> chunkyard_store::Result<()> {
    let region = Region::new([start], [(new.end - new.start) as u64])?;
    blz.writer("/")?.write_region(&region, rows(new)).await
}

/// A handle that dropped its own rows and looks again finds its own commit, and no conflict.
#[tokio::test]
async fn rows_can_be_changed_after_own_rows_were_given_up() {
    for style in [Style::Superchunk, Style::Document, Style::Bcolz] {
        for text in ["<i8", "[('a', '<i8'), ('b', '<i8')]"] {
            let (_temp, place) = local();
            let mut wanted = creation(text, 10, 3);
            wanted.style = style;
            let blz = Blz::create(&place, &wanted, mutable()).await.unwrap();
            let paths: Vec<_> = blz.columns().iter().map(|column| column.path.clone()).collect();
            let more = |numbers: std::ops::Range<i64>| {
                paths.iter().map(|_| rows(numbers.clone())).collect::<Vec<_>>()
            };
            blz.append(more(0..25)).await.unwrap();
            blz.flush().await.unwrap();
            blz.append(more(25..27)).await.unwrap();
            blz.discard().await;
            for path in &paths {
                let region = Region::new([3], [2]).unwrap();
                let writer = blz.writer(path).unwrap();
                let changed = writer.write_region(&region, rows(90..92)).await;
                changed.unwrap_or_else(|error| panic!("{style:?} {text}: {error}"));
            }
            blz.flush().await.unwrap();
            for path in &paths {
                let read = numbers(&open(&place).await, path).await;
                assert_eq!((read.len(), &read[..6]), (25, &[0, 1, 2, 90, 91, 5][..]));
            }
        }
    }
}

/// A chunk that was not full at the last commit is now full and changed. Its first rows count already, so
/// others see their old values until the next commit, and forever if there is none.
#[tokio::test]
async fn a_change_of_a_chunk_that_was_filled_since_the_commit_waits_for_the_next() {
    let (_temp, local) = local();
    for place in [memory(), local] {
        let mut wanted = creation("<i8", 7, 1);
        wanted.slack = 0;
        let blz = Blz::create(&place, &wanted, mutable()).await.unwrap();
        blz.append(vec![rows(0..6)]).await.unwrap();
        blz.flush().await.unwrap();
        blz.resize(11).await.unwrap();
        change(&blz, 0, 90..91).await.unwrap();
        blz.append(vec![rows(50..70)]).await.unwrap();
        assert_eq!(numbers(&open(&place).await, "/").await, [0, 1, 2, 3, 4, 5]);
        blz.discard().await;
        assert_eq!(numbers(&open(&place).await, "/").await, [0, 1, 2, 3, 4, 5]);
        change(&blz, 0, 90..91).await.unwrap();
        blz.flush().await.unwrap();
        assert_eq!(numbers(&open(&place).await, "/").await, [90, 1, 2, 3, 4, 5]);
    }
}

#[tokio::test]
async fn rows_cannot_be_changed_unless_opened_mutable() {
    let (_temp, local) = local();
    for place in [memory(), local] {
        with_rows(&place, 0, 95).await;
        let refused = open(&place).await.writer("/").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
        assert!(refused.to_string().contains("mutable"), "{refused}");
    }
}

/// A full file stays the same, whatever rows are added and cut off behind it.
#[tokio::test]
async fn full_files_never_change_by_adding_and_cutting_off() {
    let (_temp, local) = local();
    for place in [memory(), local] {
        let blz = with_rows(&place, 0, 95).await;
        let sealed = |all: Vec<(String, Bytes)>| -> BTreeMap<String, Bytes> {
            all.into_iter().filter(|(name, _)| name.contains("__1__")).collect()
        };
        let before = sealed(files(&place, "data").await);
        for len in [200, 31, 30, 64, 33, 150] {
            blz.resize(len).await.unwrap();
            blz.flush().await.unwrap();
            assert_eq!(sealed(files(&place, "data").await), before);
        }
    }
}

#[tokio::test]
async fn a_chunk_with_room_is_changed_where_it_is() {
    let (_temp, place) = local();
    let blz = with_rows(&place, 64, 95).await;
    let before = place.directory().head("data/__1__.bin").await.unwrap();
    let mut expected: Vec<i64> = (0..95).collect();
    expected[13] = -1;
    change(&blz, 13, -1..0).await.unwrap();
    assert_eq!(numbers(&blz, "/").await, expected);
    assert_eq!(numbers(&open(&place).await, "/").await, (0..95).collect::<Vec<_>>());
    blz.flush().await.unwrap();
    assert_eq!(numbers(&open(&place).await, "/").await, expected);
    let after = place.directory().head("data/__1__.bin").await.unwrap();
    let inode = |etag: Option<String>| etag.unwrap().split('-').next().unwrap().to_owned();
    assert_eq!((inode(before.etag), before.size), (inode(after.etag), after.size));
    assert!(place.directory().head("meta/journal").await.is_err());
}

#[tokio::test]
async fn a_stale_handle_gets_a_conflict_and_undoes_no_change() {
    let (_temp, local) = local();
    for place in [memory(), local] {
        let blz = with_rows(&place, 0, 95).await;
        let reader = open(&place).await;
        let other = Blz::open(&place, mutable()).await.unwrap();
        change(&blz, 0, 500..590).await.unwrap();
        blz.flush().await.unwrap();
        let expected: Vec<i64> = (500..590).chain(90..95).collect();
        // The old rows or the new ones, or an error that says why.
        match try_numbers(&reader, "/").await {
            Ok(found) => assert_eq!(found, expected),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
        }
        reader.refresh().await.unwrap();
        assert_eq!(numbers(&reader, "/").await, expected);
        let lost = change(&other, 91, 7..8).await.unwrap_err();
        assert_eq!(lost.kind(), ErrorKind::Conflict, "{lost}");
        change(&other, 91, 7..8).await.unwrap();
        other.flush().await.unwrap();
        let now = numbers(&open(&place).await, "/").await;
        assert_eq!((now[0], now[90], now[91], now.len()), (500, 90, 7, 95));
    }
}
