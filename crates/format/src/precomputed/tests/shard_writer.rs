use bytes::Bytes;
use chunkyard_store::{Options, Store};

use super::*;

fn raw(sharding: Sharding) -> Sharding {
    Sharding { minishard_index_encoding: Packing::Raw, data_encoding: Packing::Raw, ..sharding }
}

/// A directory, and a store that cannot change what was written.
fn stores() -> (tempfile::TempDir, [Store; 2]) {
    let directory = tempfile::tempdir().unwrap();
    let local = Store::open(directory.path().to_str().unwrap(), &Options::default()).unwrap();
    (directory, [local, Store::unnamed(&Options::default()).unwrap()])
}

#[tokio::test]
async fn the_example_of_tensorstore_is_written_byte_for_byte() {
    let (_directory, stores) = stores();
    let mut expected: Vec<u8> = [8u64, 32, 40, 64].iter().flat_map(|n| n.to_le_bytes()).collect();
    let (first, second) = ([1, 2, 5, 6, 9, 10, 13, 14], [3, 4, 7, 8, 11, 12, 15, 16]);
    expected.extend(first);
    expected.extend([0u64, 0, 8].iter().flat_map(|n| n.to_le_bytes()));
    expected.extend(second);
    expected.extend([1u64, 32, 8].iter().flat_map(|n| n.to_le_bytes()));
    for store in stores {
        let sharding = raw(identity(0, 1, 0));
        let path = format!("1_1_1/{}", sharding.file_name(0));
        let mut writer = ShardWriter::new(store.clone(), path.clone(), sharding, 0).unwrap();
        writer.push(0, Bytes::copy_from_slice(&first)).await.unwrap();
        writer.push(1, Bytes::copy_from_slice(&second)).await.unwrap();
        let written = writer.finish().await.unwrap().unwrap();
        assert_eq!((written.chunks, written.bytes), (2, 96));
        let found = store.get("1_1_1/0.shard").await.unwrap().bytes;
        assert_eq!(found, expected);
        assert_eq!(written.crc32c, crc32c::crc32c(&found));
    }
}

#[tokio::test]
async fn a_shard_without_chunks_is_no_file() {
    let (_directory, stores) = stores();
    for store in stores {
        let writer = ShardWriter::new(store.clone(), "0.shard", identity(9, 6, 0), 0).unwrap();
        assert_eq!(writer.finish().await.unwrap(), None);
        assert!(store.head("0.shard").await.is_err());
    }
}

#[tokio::test]
async fn nothing_is_seen_of_a_shard_that_is_dropped() {
    let (_directory, stores) = stores();
    for store in stores {
        let mut writer = ShardWriter::new(store.clone(), "0.shard", identity(9, 6, 0), 0).unwrap();
        for id in 0..4 {
            writer.push(id, vec![7; 1 << 20].into()).await.unwrap();
        }
        drop(writer);
        let dir = store.list_dir("").await.unwrap();
        assert!(dir.objects.is_empty(), "{dir:?}");
    }
}

#[tokio::test]
async fn chunks_in_another_order_or_of_another_shard_are_refused() {
    let store = Store::unnamed(&Options::default()).unwrap();
    let writer = || ShardWriter::new(store.clone(), "1.shard", identity(1, 1, 1), 1).unwrap();
    for (first, second, why) in [
        (4, 4, "ascending order"),
        (5, 4, "ascending order"),
        (6, 5, "ascending order"),
        (4, 3, "belongs to shard 0"),
    ] {
        let mut writer = writer();
        writer.push(first, Bytes::new()).await.unwrap();
        let error = writer.push(second, Bytes::new()).await.unwrap_err();
        assert!(error.to_string().contains(why), "{first}, {second}: {error}");
    }
    let sharding = Sharding { minishard_bits: 21, ..identity(0, 0, 0) };
    assert!(ShardWriter::new(store, "0.shard", sharding, 0).is_err());
}

#[tokio::test]
async fn a_large_shard_waits_in_a_file_where_nothing_can_be_changed() {
    let store = Store::unnamed(&Options::default()).unwrap();
    let sharding = raw(identity(0, 2, 0));
    let mut writer = ShardWriter::new(store.clone(), "0.shard", sharding, 0).unwrap();
    let chunk = |id: u64| vec![id as u8 + 1; 13 << 20];
    for id in 0..3 {
        writer.push(id, chunk(id).into()).await.unwrap();
    }
    let written = writer.finish().await.unwrap().unwrap();
    let found = store.get("0.shard").await.unwrap().bytes;
    assert_eq!(found.len() as u64, written.bytes);
    assert_eq!(crc32c::crc32c(&found), written.crc32c);
    for id in 0..3 {
        let at = 64 + id as usize * ((13 << 20) + 24);
        assert!(found[at..at + (13 << 20)] == chunk(id), "{id}");
    }
    // The fourth minishard is empty.
    assert_eq!(found[48..64], [0; 16]);
}
