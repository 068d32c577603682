//! Whole stores, against what Badger itself lists.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use chunkyard_format::badger::{Badger, BadgerOptions, Entry, KeyRange};
use chunkyard_store::{Counted, Options, Store};
use chunkyard_test_support::{DVID_STORES, dvid_testdata};
use futures::TryStreamExt;

use super::{Unpacked, scanned, testdata};

/// What `testdata/badger/make` says about a store: keys, and the CRC-32C of its list of them.
#[derive(serde::Deserialize)]
struct Listed {
    keys: usize,
    crc32c: String,
}

fn hex(key: &[u8]) -> String {
    key.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// The line of each entry, from its value.
async fn lines(
    badger: &Badger,
    entries: &[Entry],
    line: impl Fn(&Entry, &[u8]) -> String,
) -> Vec<String> {
    let mut lines = vec![String::new(); entries.len()];
    let mut values = badger.values(entries.to_vec());
    while let Some(batch) = values.try_next().await.unwrap() {
        for (at, value) in batch {
            assert_eq!(value.len() as u64, entries[at].value_len);
            assert!(lines[at].is_empty(), "twice");
            lines[at] = line(&entries[at], &value);
        }
    }
    lines
}

#[tokio::test]
async fn keys_and_values_of_dvid_are_the_ones_that_badger_lists() {
    let listed = std::fs::read(dvid_testdata().join("stores/keys.json")).unwrap();
    let mut listed: HashMap<String, Listed> = serde_json::from_slice(&listed).unwrap();
    for name in DVID_STORES {
        let expected = listed.remove(name).unwrap();
        let unpacked = Unpacked::dvid(name);
        assert!(Badger::probe(&unpacked.store).await.unwrap());
        let badger = unpacked.open().await;
        let entries = scanned(&badger, KeyRange::all()).await.unwrap();
        assert!(entries.is_sorted_by(|a, b| a.key < b.key));
        let lines = lines(&badger, &entries, |entry, value| {
            format!("{} {} {:08x}\n", hex(&entry.key), value.len(), crc32c::crc32c(value))
        });
        let lines = lines.await;
        assert_eq!(lines.len(), expected.keys, "{name}");
        let crc = crc32c::crc32c(lines.concat().as_bytes());
        assert_eq!(format!("{crc:08x}"), expected.crc32c, "{name}");
        // Only the server that was copied while it ran has anything to say.
        assert_eq!(badger.cautions().is_empty(), name != "offset-live", "{:?}", badger.cautions());
        assert_eq!(badger.skipped(), []);
    }
}

/// Three levels, several versions of keys, deletions, expiry, several value logs.
#[tokio::test]
async fn every_time_of_a_store_with_levels_is_what_badger_lists() {
    let listed = std::fs::read_to_string(testdata().join("list.txt")).unwrap();
    let mut expected: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for line in listed.lines() {
        let (time, rest) = line.split_once(' ').unwrap();
        expected.entry(time.parse().unwrap()).or_default().push(rest.to_owned());
    }
    assert_eq!(expected.len(), 3);
    for name in ["none", "zstd", "v4"] {
        let unpacked = Unpacked::badger(name);
        for (time, expected) in &expected {
            let options = BadgerOptions { skip_corrupt: false, at: Some(*time) };
            let badger = Badger::open_with(&unpacked.store, &options).await.unwrap();
            assert_eq!(badger.cautions(), [""; 0]);
            let entries = scanned(&badger, KeyRange::all()).await.unwrap();
            let lines = lines(&badger, &entries, |entry, value| {
                let (key, crc) = (hex(&entry.key), crc32c::crc32c(value));
                format!("{key} {} {} {crc:08x}", entry.version, value.len())
            });
            assert_eq!(&lines.await, expected, "{name} at {time}");
        }
    }
}

#[tokio::test]
async fn ranges_and_single_keys_are_parts_of_the_whole() {
    for unpacked in [Unpacked::badger("zstd"), Unpacked::dvid("offset-live")] {
        let badger = unpacked.open().await;
        let all = scanned(&badger, KeyRange::all()).await.unwrap();
        for at in (0..all.len()).step_by(all.len() / 12) {
            let key = &all[at].key;
            assert_eq!(badger.get(key).await.unwrap().as_ref(), Some(&all[at]));
            let beyond = [key, &b"\0no such key"[..]].concat();
            assert_eq!(badger.get(&beyond).await.unwrap(), None);

            let within = KeyRange::within(key.clone()..);
            assert_eq!(scanned(&badger, within).await.unwrap(), all[at..]);
            let within = KeyRange::within(..key.clone());
            assert_eq!(scanned(&badger, within).await.unwrap(), all[..at]);
            let end = (at + 5).min(all.len() - 1);
            let within = KeyRange::within(key.clone()..=all[end].key.clone());
            assert_eq!(scanned(&badger, within).await.unwrap(), all[at..=end]);

            let prefix = &key[..key.len() - 2];
            let expected: Vec<Entry> =
                all.iter().filter(|entry| entry.key.starts_with(prefix)).cloned().collect();
            assert_eq!(scanned(&badger, KeyRange::prefix(prefix)).await.unwrap(), expected);
        }
    }
}

/// A store that is not a file system, with nothing but what was copied to it.
#[tokio::test]
async fn a_directory_in_memory_reads_the_same_without_lock_and_registry() {
    let unpacked = Unpacked::badger("none");
    let memory = Store::unnamed(&Options::default()).unwrap();
    for entry in std::fs::read_dir(&unpacked.path).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name != "KEYREGISTRY" {
            memory.put(&name, vec![unpacked.read(&name).into()]).await.unwrap();
        }
    }
    let badger = Badger::open(&memory).await.unwrap();
    let entries = scanned(&badger, KeyRange::all()).await.unwrap();
    assert_eq!(entries, unpacked.all().await);
    let there = unpacked.open().await;
    let line = |entry: &Entry, value: &[u8]| format!("{entry:?} {value:?}");
    assert_eq!(lines(&badger, &entries, line).await, lines(&there, &entries, line).await);
}

#[tokio::test]
async fn reading_changes_nothing_and_takes_few_reads() {
    let unpacked = Unpacked::dvid("basic");
    let files = || {
        let files = std::fs::read_dir(&unpacked.path).unwrap().map(|file| {
            let file = file.unwrap();
            let meta = file.metadata().unwrap();
            (file.file_name(), meta.len(), meta.modified().unwrap())
        });
        let mut files: Vec<_> = files.collect();
        files.sort();
        files
    };
    let before = files();
    let (store, counted) = Counted::wrap(&unpacked.store);
    let badger = Badger::open(&store).await.unwrap();
    let opened = counted.take();
    // The manifest, the key registry and the index of one table.
    assert!(opened.gets <= 4, "{opened:?}");
    let entries = scanned(&badger, KeyRange::all()).await.unwrap();
    let scanning = counted.take();
    assert!(scanning.gets <= 2 && scanning.puts == 0, "{scanning:?}");
    let values = badger.values(entries).try_collect::<Vec<_>>().await.unwrap();
    assert_eq!(values.concat().len(), 2087);
    let fetching = counted.take();
    // All of the value log lies close together.
    assert!(fetching.gets <= 2, "{fetching:?}");
    assert_eq!(files(), before);
}

#[tokio::test]
async fn other_places_are_no_badger_directories() {
    let store = Store::unnamed(&Options::default()).unwrap();
    assert!(!Badger::probe(&store).await.unwrap());
    for bytes in ["Bdg", "Manifest-Version: 1.0"] {
        store.put("MANIFEST", vec![bytes.into()]).await.unwrap();
        assert!(!Badger::probe(&store).await.unwrap());
    }
    store.put("MANIFEST", vec!["Bdgr\0\0\0\x08".into()]).await.unwrap();
    assert!(Badger::probe(&store).await.unwrap());
    let empty = Badger::open(&store).await.unwrap();
    assert_eq!(scanned(&empty, KeyRange::all()).await.unwrap(), []);
}
