//! Damage of every kind of file: the error names file and place, or the rest is read and what is
//! missing is listed.

use chunkyard_format::badger::{Badger, Entry, KeyRange, Skipped};
use chunkyard_store::{ChunkRef, Error, ErrorKind};

use futures::TryStreamExt;

use super::{Unpacked, scanned};

/// The file that an error is about, and all that it says.
fn named(error: &Error) -> (&str, String) {
    match error {
        Error::Corrupt { file, .. } => (file, error.to_string()),
        other => panic!("{other:?}"),
    }
}

async fn refused(unpacked: &Unpacked) -> Error {
    Badger::open(&unpacked.store).await.unwrap_err()
}

/// Entries outside the keys that a part may concern.
fn without(all: &[Entry], part: &Skipped) -> Vec<Entry> {
    let (first, end) = (part.first_key.as_ref().unwrap(), part.end_key.as_ref());
    let is_hit = |key: &Vec<u8>| key >= first && end.is_none_or(|end| key < end);
    all.iter().filter(|entry| !is_hit(&entry.key)).cloned().collect()
}

#[tokio::test]
async fn a_flipped_bit_in_the_manifest() {
    let unpacked = Unpacked::dvid("basic");
    unpacked.flip("MANIFEST", 26);
    let error = refused(&unpacked).await;
    let (file, text) = named(&error);
    assert_eq!(file, "MANIFEST");
    assert!(text.contains("checksum of the record at offset 16"), "{text}");
}

/// The record that is cut off may have named the tables that are there: without them data vanishes.
#[tokio::test]
async fn a_manifest_that_is_cut_is_damage_if_there_are_tables_that_it_may_have_named() {
    let unpacked = Unpacked::dvid("edits");
    let whole = unpacked.read("MANIFEST");
    unpacked.cut("MANIFEST", whole.len() as u64 - 3);
    let error = refused(&unpacked).await;
    let (file, text) = named(&error);
    assert!(file == "MANIFEST" && text.contains("the record at offset 30"), "{text}");
    assert!(text.contains("000002.sst"), "{text}");

    let badger = unpacked.open_damaged().await;
    assert_eq!(badger.skipped()[0].error, text);
    assert_eq!(badger.skipped()[0].bytes, Some(30..whole.len() as u64 - 3));
    let cautions = badger.cautions();
    assert!(cautions[0].contains("MANIFEST is torn at offset 30"), "{cautions:?}");
    assert!(cautions[1].contains("000002.sst is not read"), "{cautions:?}");
    assert!(!scanned(&badger, KeyRange::all()).await.unwrap().is_empty());
}

/// A server that dies while it writes a record has no table for it, or still the log of what is in it.
#[tokio::test]
async fn a_manifest_that_is_torn_with_all_its_tables_is_read_as_far_as_it_goes() {
    let unpacked = Unpacked::dvid("edits");
    let all = unpacked.all().await;
    let mut manifest = unpacked.read("MANIFEST");
    let end = manifest.len();
    let change = [0x0a, 2, 0x08, 77];
    manifest.extend(4u32.to_be_bytes());
    manifest.extend(crc32c::crc32c(&change).to_be_bytes());
    manifest.extend(change);
    for len in end + 1..manifest.len() {
        unpacked.write("MANIFEST", &manifest[..len]);
        let badger = unpacked.open().await;
        let [caution] = badger.cautions() else { panic!("{:?}", badger.cautions()) };
        assert!(caution.contains(&format!("MANIFEST is torn at offset {end}")), "{caution}");
        assert_eq!(scanned(&badger, KeyRange::all()).await.unwrap(), all);
    }
}

/// Lengths are guarded by no checksum of their own.
#[tokio::test]
async fn no_flipped_bit_of_the_manifest_goes_unnoticed() {
    for unpacked in [Unpacked::dvid("edits"), Unpacked::badger("zstd")] {
        let all = unpacked.all().await;
        let whole = unpacked.read("MANIFEST");
        for bit in 0..whole.len() * 8 {
            let mut bent = whole.clone();
            bent[bit / 8] ^= 1 << (bit % 8);
            unpacked.write("MANIFEST", &bent);
            match Badger::open(&unpacked.store).await {
                Err(error) => assert_eq!(named(&error).0, "MANIFEST", "bit {bit}"),
                Ok(badger) => {
                    assert_eq!(badger.cautions(), [""; 0], "bit {bit}");
                    assert_eq!(scanned(&badger, KeyRange::all()).await.unwrap(), all, "bit {bit}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_table_that_is_missing() {
    let unpacked = Unpacked::badger("zstd");
    let all = unpacked.all().await;
    std::fs::remove_file(unpacked.path.join("000008.sst")).unwrap();
    let error = refused(&unpacked).await;
    let (file, text) = named(&error);
    assert_eq!(file, "000008.sst");
    assert!(text.contains("which MANIFEST names"), "{text}");

    let badger = unpacked.open_damaged().await;
    let found = scanned(&badger, KeyRange::all()).await.unwrap();
    // It had the last two transactions; what they wrote over shows again.
    let newest = |entries: &[Entry]| entries.iter().map(|entry| entry.version).max();
    assert_eq!((newest(&all), newest(&found)), (Some(120), Some(100)));
    let skipped = badger.skipped();
    assert_eq!((skipped.len(), &*skipped[0].file, &skipped[0].bytes), (1, "000008.sst", &None));
    assert_eq!(skipped[0].error, text);
}

#[tokio::test]
async fn a_manifest_that_names_a_file_that_never_was() {
    let unpacked = Unpacked::dvid("basic");
    let change = [0x0a, 2, 0x08, 77];
    let mut manifest = unpacked.read("MANIFEST");
    manifest.extend(4u32.to_be_bytes());
    manifest.extend(crc32c::crc32c(&change).to_be_bytes());
    manifest.extend(change);
    unpacked.write("MANIFEST", &manifest);
    let error = refused(&unpacked).await;
    let (file, text) = named(&error);
    assert!(file == "000077.sst" && text.contains("MANIFEST"), "{text}");
}

#[tokio::test]
async fn a_flipped_bit_in_the_index_of_a_table() {
    let unpacked = Unpacked::dvid("basic");
    let size = unpacked.read("000001.sst").len() as u64;
    for (at, what) in [(size - 200, "checksum of the index"), (size - 2, "its footer")] {
        unpacked.flip("000001.sst", at);
        let error = refused(&unpacked).await;
        let (file, text) = named(&error);
        assert!(file == "000001.sst" && text.contains(what), "{text}");
        let badger = unpacked.open_damaged().await;
        assert_eq!(scanned(&badger, KeyRange::all()).await.unwrap(), []);
        assert_eq!(badger.skipped()[0].error, text);
        unpacked.flip("000001.sst", at);
    }
    assert_eq!(unpacked.all().await.len(), 2087);
}

#[tokio::test]
async fn a_flipped_bit_in_a_block_of_a_table() {
    for unpacked in [Unpacked::dvid("basic"), Unpacked::badger("zstd"), Unpacked::badger("none")] {
        let all = unpacked.all().await;
        let table = match unpacked.path.join("000001.sst").exists() {
            true => "000001.sst",
            false => "000008.sst",
        };
        unpacked.flip(table, 5000);
        let badger = unpacked.open().await;
        let error = scanned(&badger, KeyRange::all()).await.unwrap_err();
        let (file, text) = named(&error);
        assert!(file == table && text.contains("block at offset"), "{text}");

        let badger = unpacked.open_damaged().await;
        let found = scanned(&badger, KeyRange::all()).await.unwrap();
        let skipped = badger.skipped();
        assert_eq!((skipped.len(), &*skipped[0].file), (1, table));
        let bytes = skipped[0].bytes.clone().unwrap();
        assert!(bytes.contains(&5000), "{bytes:?}");
        assert!(text.contains(&format!("offset {}", bytes.start)), "{text}");
        // Everything else is there; of the keys concerned, other tables may have older versions.
        let outside = without(&all, &skipped[0]);
        assert!(outside.len() < all.len());
        assert_eq!(without(&found, &skipped[0]), outside);
        // The same damage is listed once, however often it is met.
        scanned(&badger, KeyRange::all()).await.unwrap();
        assert_eq!(badger.skipped(), skipped);
    }
}

/// The kinds of checksum and of compression are bytes like others.
#[tokio::test]
async fn a_flipped_bit_at_the_end_of_a_block_or_a_table_is_damage() {
    for unpacked in [Unpacked::badger("zstd"), Unpacked::badger("none")] {
        let all = unpacked.all().await;
        let table = unpacked.read("000008.sst");
        let size = table.len();
        // Where the first block ends is what an error about it says.
        unpacked.flip("000008.sst", 100);
        let badger = unpacked.open_damaged().await;
        scanned(&badger, KeyRange::all()).await.unwrap();
        let end = badger.skipped()[0].bytes.clone().unwrap().end as usize;
        let places = (0..5).chain(end - 13..end).chain(size - 13..size);
        for (place, bit) in places.flat_map(|place| (0..8).map(move |bit| (place, bit))) {
            let mut bent = table.clone();
            bent[place] ^= 1 << bit;
            unpacked.write("000008.sst", &bent);
            let found = match Badger::open(&unpacked.store).await {
                Ok(badger) => scanned(&badger, KeyRange::all()).await,
                Err(error) => Err(error),
            };
            match found {
                Ok(found) => assert_eq!(found, all, "byte {place} bit {bit}"),
                Err(error) => assert_eq!(named(&error).0, "000008.sst", "byte {place} bit {bit}"),
            }
        }
    }
}

#[tokio::test]
async fn a_value_log_that_is_cut() {
    let unpacked = Unpacked::dvid("basic");
    let all = unpacked.all().await;
    let kept = 300_000;
    unpacked.cut("000001.vlog", kept);
    let badger = unpacked.open().await;
    let error = scanned(&badger, KeyRange::all()).await.unwrap_err();
    let (file, text) = named(&error);
    assert_eq!(file, "000001.vlog");
    assert!(text.contains("the entry at offset") && text.contains("bytes 20..300000"), "{text}");

    let badger = unpacked.open_damaged().await;
    let found = scanned(&badger, KeyRange::all()).await.unwrap();
    // All keys are there, and those whose values are lost have none.
    let lost = |entry: &Entry| match &entry.value {
        Some(ChunkRef::Object { range, .. }) if range.end + 4 > kept => {
            Entry { value: None, value_len: 0, ..entry.clone() }
        }
        _ => entry.clone(),
    };
    assert_eq!(found, all.iter().map(lost).collect::<Vec<_>>());
    let lost = found.iter().filter(|entry| entry.value.is_none()).count();
    assert_eq!(badger.skipped().len(), lost);
    let values = badger.values(found).try_collect::<Vec<_>>().await.unwrap().concat();
    assert_eq!(values.len(), all.len() - lost);

    std::fs::remove_file(unpacked.path.join("000001.vlog")).unwrap();
    let error = scanned(&unpacked.open().await, KeyRange::all()).await.unwrap_err();
    let (file, text) = named(&error);
    assert!(file == "000001.vlog" && text.contains("no such file"), "{text}");
}

/// Where the entries of a memtable log begin, and the end of the last.
fn entries_of(log: &[u8]) -> Vec<usize> {
    use chunkyard_format::hostile::badger::{Parsed, log_entry};
    let mut starts = vec![20];
    while let Some(Parsed::Entry(entry)) = log.get(*starts.last().unwrap()..).map(log_entry) {
        starts.push(starts.last().unwrap() + entry.len);
    }
    starts
}

#[tokio::test]
async fn a_flipped_bit_in_a_memtable_log() {
    let unpacked = Unpacked::dvid("offset-live");
    let all = unpacked.all().await;
    let starts = entries_of(&unpacked.read("00001.mem"));
    let start = starts[starts.len() / 2];
    unpacked.flip("00001.mem", start as u64 + 12);
    let error = refused(&unpacked).await;
    let (file, text) = named(&error);
    assert!(file == "00001.mem" && text.contains(&format!("at offset {start}:")), "{text}");

    let badger = unpacked.open_damaged().await;
    let found = scanned(&badger, KeyRange::all()).await.unwrap();
    assert!(!found.is_empty() && found.len() < all.len());
    assert_eq!(badger.skipped()[0].error, text);
}

/// A length that changed moves the end of its entry: the log does not end there all the same.
#[tokio::test]
async fn no_flipped_bit_of_a_memtable_log_before_its_end_goes_unnoticed() {
    use chunkyard_format::hostile::badger::replay;
    let unpacked = Unpacked::dvid("offset-live");
    let log = unpacked.read("00001.mem");
    let starts = entries_of(&log);
    let last = *starts.last().unwrap();
    // Some zeros of the many that follow.
    let entries = &log[20..last + 200];
    let whole = replay("00001.mem", entries, usize::MAX).unwrap();
    assert_eq!(whole.1, None);
    let middle = starts.len() / 2;
    for at in [0, 1, middle, middle + 1] {
        for bit in (starts[at] - 20) * 8..(starts[at + 1] - 20) * 8 {
            let mut bent = entries.to_vec();
            bent[bit / 8] ^= 1 << (bit % 8);
            let error = replay("00001.mem", &bent, 1 << 16).unwrap_err();
            let (file, text) = named(&error);
            let place = format!("at offset {}:", starts[at]);
            assert!(file == "00001.mem" && text.contains(&place), "bit {bit}: {text}");
        }
    }
    // In the whole file, and its head.
    let all = unpacked.all().await;
    for at in [7, 0, starts[middle] as u64 + 2, starts[middle] as u64 + 3] {
        unpacked.flip("00001.mem", at);
        assert_eq!(named(&refused(&unpacked).await).0, "00001.mem", "{at}");
        let badger = unpacked.open_damaged().await;
        let found = scanned(&badger, KeyRange::all()).await.unwrap();
        assert_eq!(found == all, at < 20, "{at}");
        assert_eq!(badger.skipped().len(), 1);
        unpacked.flip("00001.mem", at);
    }
    unpacked.flip("00001.mem", 12);
    assert_eq!(unpacked.all().await, all);
}

#[tokio::test]
async fn a_memtable_log_that_is_cut_is_damage_and_is_read_up_to_there() {
    let unpacked = Unpacked::dvid("offset-live");
    let all = unpacked.all().await;
    let newest = all.iter().map(|entry| entry.version).max().unwrap();
    let starts = entries_of(&unpacked.read("00001.mem"));
    let start = starts[starts.len() / 2];
    unpacked.cut("00001.mem", start as u64 + 7);
    let error = refused(&unpacked).await;
    let (file, text) = named(&error);
    assert_eq!(file, "00001.mem");
    let (at, end) = (format!("at offset {start}:"), format!("end of the file at {}", start + 7));
    assert!(text.contains(&at) && text.contains(&end), "{text}");

    let badger = unpacked.open_damaged().await;
    assert_eq!(badger.skipped()[0].error, text);
    let found = scanned(&badger, KeyRange::all()).await.unwrap();
    let last = found.iter().map(|entry| entry.version).max().unwrap();
    assert!(!found.is_empty() && last < newest);
    // A key that was written once, and early, is what it was.
    for entry in all.iter().filter(|entry| entry.version <= last) {
        assert_eq!(badger.get(&entry.key).await.unwrap().as_ref(), Some(entry));
    }
}

/// A server that died leaves zeros behind what it had written.
#[tokio::test]
async fn a_memtable_log_of_a_server_that_died_is_read_as_far_as_it_goes() {
    let unpacked = Unpacked::dvid("offset-live");
    let log = unpacked.read("00001.mem");
    let starts = entries_of(&log);
    let torn = starts[starts.len() / 2] + 7;
    unpacked.cut("00001.mem", torn as u64);
    unpacked.cut("00001.mem", log.len() as u64);
    let badger = unpacked.open().await;
    assert!(!scanned(&badger, KeyRange::all()).await.unwrap().is_empty());
    let caution = badger.cautions().iter().find(|text| text.contains("00001.mem")).unwrap();
    let at = caution.split("torn at offset ").nth(1).unwrap().split(' ').next().unwrap();
    let at: usize = at.parse().unwrap();
    // Where the last whole transaction ends.
    assert!(at <= torn && starts.contains(&at), "{caution}");
    assert!(caution.contains("is missing"), "{caution}");
}

#[tokio::test]
async fn encrypted_stores_are_not_supported() {
    let unpacked = Unpacked::dvid("basic");
    let registry = unpacked.read("KEYREGISTRY");
    let other = [&registry[..16], b"3fj29vm20sk1"].concat();
    for bytes in [&other[..], &[&registry[..], &[0; 40]].concat()] {
        unpacked.write("KEYREGISTRY", bytes);
        let error = refused(&unpacked).await;
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("encrypted"), "{error}");
    }
    // A bit of a plain one makes no encrypted one.
    let mut bent = registry.clone();
    bent[20] ^= 1;
    for bytes in [&bent[..], b"", &registry[..27]] {
        unpacked.write("KEYREGISTRY", bytes);
        assert_eq!(named(&refused(&unpacked).await).0, "KEYREGISTRY");
        assert!(
            !scanned(&unpacked.open_damaged().await, KeyRange::all()).await.unwrap().is_empty()
        );
    }
    unpacked.write("KEYREGISTRY", &registry);
    let change = [0x0a, 4, 0x08, 77, 0x20, 5];
    let mut manifest = unpacked.read("MANIFEST");
    manifest.extend(6u32.to_be_bytes());
    manifest.extend(crc32c::crc32c(&change).to_be_bytes());
    manifest.extend(change);
    unpacked.write("MANIFEST", &manifest);
    let error = refused(&unpacked).await;
    assert_eq!(error.kind(), ErrorKind::Unsupported);

    let live = Unpacked::dvid("offset-live");
    // Without the registry a key may be meant.
    std::fs::remove_file(live.path.join("KEYREGISTRY")).unwrap();
    live.flip("00001.mem", 7);
    assert_eq!(refused(&live).await.kind(), ErrorKind::Unsupported);
    let mut manifest = unpacked.read("MANIFEST");
    manifest[7] = 7;
    unpacked.write("MANIFEST", &manifest);
    let error = refused(&unpacked).await;
    assert!(error.to_string().contains("version 7"), "{error}");
}
