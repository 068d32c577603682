use chunkyard_store::{Error, ErrorKind, Result};

use super::super::shard_index::{Minishard, minishard_range};
use super::*;

fn rows(rows: &[[u64; 3]]) -> Vec<u8> {
    let row = |at: usize| rows.iter().flat_map(move |row| row[at].to_le_bytes());
    row(0).chain(row(1)).chain(row(2)).collect()
}

fn parse(sharding: Sharding, bytes: &[u8]) -> Result<Minishard> {
    Minishard::parse("0.shard", &sharding, 0, bytes, 1000)
}

fn raw() -> Sharding {
    Sharding { minishard_index_encoding: Packing::Raw, ..identity(3, 1, 0) }
}

fn entry(start: u64, end: u64) -> [u8; 16] {
    let mut entry = [0; 16];
    entry[..8].copy_from_slice(&start.to_le_bytes());
    entry[8..].copy_from_slice(&end.to_le_bytes());
    entry
}

#[test]
fn chunks_are_found_by_their_numbers() {
    let found = parse(raw(), &rows(&[[2, 0, 10], [3, 4, 0], [11, 0, 7]])).unwrap();
    assert_eq!(found.get(2), Some(32..42));
    assert_eq!(found.get(5), Some(46..46));
    assert_eq!(found.get(16), Some(46..53));
    assert_eq!(found.get(3), None);
    assert_eq!(parse(raw(), &[]).unwrap().rows().len(), 0);
}

#[test]
fn indices_that_lie_are_corrupt() {
    let corrupt = |error: Error| assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    for bytes in [
        vec![0; 23],
        vec![0; 32],
        rows(&[[2, 0, 1], [0, 0, 1]]),
        rows(&[[8, 0, 1]]),
        rows(&[[2, u64::MAX, 1]]),
        rows(&[[2, 0, 969]]),
        rows(&[[2, 0, 1], [u64::MAX, 0, 1]]),
        rows(&[[2, 1, u64::MAX]]),
    ] {
        corrupt(parse(raw(), &bytes).unwrap_err());
    }
    corrupt(parse(identity(3, 1, 0), b"no gzip").unwrap_err());
    for (start, end) in [(5, 4), (0, 969), (u64::MAX - 3, u64::MAX), (0, u64::MAX)] {
        corrupt(minishard_range("0.shard", &raw(), 0, entry(start, end), 1000).unwrap_err());
    }
    let range =
        |start, end| minishard_range("0.shard", &raw(), 0, entry(start, end), 1000).unwrap();
    assert_eq!(range(0, 968), Some(32..1000));
    assert_eq!(range(u64::MAX, u64::MAX), None);
}
