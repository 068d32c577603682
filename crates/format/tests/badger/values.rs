//! Values in value logs: fetched with everything that is checked about them.

use chunkyard_format::badger::{Badger, Entry, KeyRange};
use chunkyard_store::{ChunkRef, Error};
use futures::TryStreamExt;

use super::{Unpacked, scanned};

/// Where in which log the value of an entry is, if it is in one.
fn place(entry: &Entry) -> Option<(String, u64, u64)> {
    match &entry.value {
        Some(ChunkRef::Object { path, range, .. }) => {
            Some((path.to_string(), range.start, range.end))
        }
        _ => None,
    }
}

async fn fetch(badger: &Badger, entry: &Entry) -> Result<bytes::Bytes, Error> {
    let mut fetched = badger.fetcher().fetch(&[entry.value.as_ref().unwrap()]).await?;
    Ok(fetched.pop().unwrap().unwrap())
}

/// The file and the part of it that an error is about.
fn named(error: Error) -> (String, String) {
    match error {
        Error::Corrupt { file, what, .. } => (file, what),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_bit_anywhere_in_an_entry_is_noticed_and_named() {
    let unpacked = Unpacked::badger("none");
    let badger = unpacked.open().await;
    let all = unpacked.all().await;
    let entry = all.iter().find(|entry| place(entry).is_some()).unwrap();
    let (file, start, end) = place(entry).unwrap();
    let value = fetch(&badger, entry).await.unwrap();
    assert_eq!(value.len() as u64, entry.value_len);
    // Key with its time, three numbers, two bytes of meta.
    let head = entry.key.len() as u64 + 8 + 4 + 2;
    for at in [
        start - head,     // meta
        start - head + 2, // length of the key
        start - 17,       // key
        start - 1,        // time
        start,            // value
        end - 1,          // value
        end,              // checksum
        end + 3,          // checksum
    ] {
        unpacked.flip(&file, at);
        let (named_file, what) = named(fetch(&badger, entry).await.unwrap_err());
        assert_eq!((named_file, what), (file.clone(), format!("checksum of bytes {start}..{end}")));
        unpacked.flip(&file, at);
    }
    assert_eq!(fetch(&badger, entry).await.unwrap(), value);
}

#[tokio::test]
async fn a_whole_entry_of_another_key_is_a_bad_pointer() {
    let unpacked = Unpacked::badger("none");
    let all = unpacked.all().await;
    let entry = all.iter().find(|entry| place(entry).is_some()).unwrap();
    let (file, start, end) = place(entry).unwrap();
    let mut log = unpacked.read(&file);
    let head = entry.key.len() + 8 + 2 + 4;
    let (from, to) = (start as usize - head, end as usize);
    // The entry is as long as before, and has its own checksum.
    log[start as usize - 9] ^= 1;
    let crc = crc32c::crc32c(&log[from..to]);
    log[to..to + 4].copy_from_slice(&crc.to_be_bytes());
    unpacked.write(&file, &log);
    let (named_file, what) = named(fetch(&unpacked.open().await, entry).await.unwrap_err());
    assert_eq!(named_file, file);
    assert_eq!(what, format!("key and lengths of bytes {start}..{end}"));
}

#[tokio::test]
async fn values_come_in_the_order_of_the_logs_and_each_once() {
    let unpacked = Unpacked::badger("zstd");
    let badger = unpacked.open().await;
    let all = unpacked.all().await;
    let batches = badger.values(all.clone()).try_collect::<Vec<_>>().await.unwrap().concat();
    let places: Vec<_> = batches.iter().map(|(at, _)| place(&all[*at])).collect();
    assert!(places.is_sorted());
    assert!(places.first().unwrap().is_none() && places.last().unwrap().is_some());
    let mut seen: Vec<usize> = batches.iter().map(|(at, _)| *at).collect();
    seen.sort();
    assert_eq!(seen, (0..all.len()).collect::<Vec<_>>());
}

#[tokio::test]
async fn damaged_values_are_errors_or_left_out_and_listed() {
    let unpacked = Unpacked::badger("zstd");
    let all = unpacked.all().await;
    let hit: Vec<usize> =
        (0..all.len()).filter(|at| place(&all[*at]).is_some()).step_by(50).collect();
    for at in &hit {
        let (file, start, _) = place(&all[*at]).unwrap();
        unpacked.flip(&file, start);
    }
    let badger = unpacked.open().await;
    let error = badger.values(all.clone()).try_collect::<Vec<_>>().await.unwrap_err();
    assert!(named(error).0.ends_with(".vlog"));

    let badger = unpacked.open_damaged().await;
    assert_eq!(scanned(&badger, KeyRange::all()).await.unwrap(), all);
    let values = badger.values(all.clone()).try_collect::<Vec<_>>().await.unwrap().concat();
    let mut missing: Vec<usize> = (0..all.len()).collect();
    missing.retain(|at| !values.iter().any(|(found, _)| found == at));
    assert_eq!(missing, hit);
    let mut listed: Vec<_> = badger.skipped().into_iter().map(|part| part.first_key).collect();
    listed.sort();
    let keys: Vec<_> = hit.iter().map(|at| Some(all[*at].key.clone())).collect();
    assert_eq!(listed, keys);
}
