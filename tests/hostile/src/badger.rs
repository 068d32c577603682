//! Files of a Badger directory, below their checksums.

use bytes::Bytes;
use chunkyard_engine::format::hostile::badger::{
    Compression, Parsed, count_table_entries, log_entry, parse_manifest, replay,
};
use chunkyard_engine::repo::hostile::FILE;

use crate::error::is_about_bytes;

/// Manifests: as they are, and with checksums that do not matter.
pub(crate) fn manifest(data: &[u8]) {
    for check in [true, false] {
        match parse_manifest(FILE, data, check) {
            Err(error) => is_about_bytes(&error),
            Ok(manifest) => {
                // Everything before a torn record counts, and nothing else.
                let whole = manifest.torn_at.map_or(data.len(), |torn| torn as usize);
                let again = parse_manifest(FILE, &data[..whole], check).expect("the whole records");
                assert_eq!((again.tables, again.torn_at), (manifest.tables, None));
            }
        }
    }
}

/// Tables: index and blocks. The first byte says how blocks are compressed.
pub(crate) fn table(data: &[u8]) {
    let Some((compression, table)) = data.split_first() else { return };
    let compression = match compression % 3 {
        0 => Compression::None,
        1 => Compression::Snappy,
        _ => Compression::Zstd,
    };
    match count_table_entries(FILE, &Bytes::copy_from_slice(table), compression) {
        Err(error) => is_about_bytes(&error),
        // An entry has a key of 8 bytes, which blocks share, and four bytes of its own in the list.
        Ok(count) if compression == Compression::None => assert!(count < data.len() as u64),
        Ok(_) => {}
    }
}

/// Entries of value logs and memtable logs.
pub(crate) fn entry(data: &[u8]) {
    let Parsed::Entry(entry) = log_entry(data) else { return };
    assert!(entry.len <= data.len() && entry.key.len() + entry.value.len() + 9 <= entry.len);
    assert!(!entry.key.is_empty());
    // Nothing behind an entry has a part in it.
    assert_eq!(log_entry(&data[..entry.len]), Parsed::Entry(entry));
    assert_eq!(log_entry(&data[..entry.len - 1]), Parsed::Short);
    let crc = crc32c::crc32c(&data[..entry.len - 4]).to_be_bytes();
    assert_eq!(entry.is_intact, data[entry.len - 4..entry.len] == crc);
}

/// Memtable logs, as they are and with the checksum of every entry made right.
pub(crate) fn memtable(data: &[u8]) {
    check_memtable(data);
    let (mut right, mut at) = (data.to_vec(), 0);
    while let Parsed::Entry(entry) = log_entry(&right[at..]) {
        let end = at + entry.len;
        let crc = crc32c::crc32c(&right[at..end - 4]).to_be_bytes();
        right[end - 4..end].copy_from_slice(&crc);
        at = end;
    }
    check_memtable(&right);
}

fn check_memtable(data: &[u8]) {
    let whole = replay(FILE, data, usize::MAX);
    let parts = replay(FILE, data, 50);
    match (whole, parts) {
        (Ok((whole, torn)), Ok((parts, _))) => {
            assert_eq!(whole, parts, "the size of reads shows");
            let key = |entry: &(Vec<u8>, u64, Bytes)| (entry.0.clone(), u64::MAX - entry.1);
            assert!(whole.is_sorted_by(|a, b| key(a) < key(b)));
            assert!(torn.is_none_or(|at| at <= data.len() as u64 + 20));
        }
        (Err(whole), Err(parts)) => {
            is_about_bytes(&whole);
            assert_eq!(whole.to_string(), parts.to_string());
        }
        (whole, parts) => panic!("the size of reads shows: {whole:?}, {parts:?}"),
    }
}
