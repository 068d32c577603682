//! Whole stores, against what Badger itself lists.

use std::fmt::Write;

use chunkyard_format::badger::{Badger, KeyRange};
use chunkyard_test_support::{DVID_STORES, dvid_testdata};
use futures::TryStreamExt;

use super::{scanned, unpacked};

/// What `make/badger_scan` says about a store: keys, and the CRC-32C of its list of them.
#[derive(serde::Deserialize)]
struct Listed {
    keys: usize,
    crc32c: String,
}

#[tokio::test]
async fn keys_and_values_are_the_ones_that_badger_lists() {
    let listed = std::fs::read(dvid_testdata().join("stores/keys.json")).unwrap();
    let mut listed: std::collections::HashMap<String, Listed> =
        serde_json::from_slice(&listed).unwrap();
    for name in DVID_STORES {
        let expected = listed.remove(name).unwrap();
        let (_directory, store) = unpacked(name);
        assert!(Badger::probe(&store).await.unwrap());
        let badger = Badger::open(&store).await.unwrap();
        let entries = scanned(&badger, KeyRange::all()).await.unwrap();
        assert!(entries.is_sorted_by(|a, b| a.key < b.key));
        let mut lines = vec![String::new(); entries.len()];
        let mut values = badger.values(entries.clone());
        while let Some(batch) = values.try_next().await.unwrap() {
            for (at, value) in batch {
                assert_eq!(value.len() as u64, entries[at].value_len);
                assert!(lines[at].is_empty());
                for byte in &entries[at].key {
                    write!(lines[at], "{byte:02x}").unwrap();
                }
                writeln!(lines[at], " {} {:08x}", value.len(), crc32c::crc32c(&value)).unwrap();
            }
        }
        assert_eq!(lines.len(), expected.keys, "{name}");
        let crc = crc32c::crc32c(lines.concat().as_bytes());
        assert_eq!(format!("{crc:08x}"), expected.crc32c, "{name}");
    }
}
