//! Damage that no writer makes by itself.

use std::sync::Arc;

use chunkyard_array::{ArraySpec, ShardEntries, ShardIndex, Sharding, codec};
use chunkyard_store::{Options, Store};

use super::*;
use crate::zarr3::Zarr3Source;

/// A shard of four chunks of four bytes, at the ranges that its index gives.
async fn shard(name: &str, ranges: [std::ops::Range<u64>; 4]) -> Report {
    let store = Store::open(&format!("memory://check-{name}"), &Options::default()).unwrap();
    let sharding = Sharding::new(&[16]);
    let chunks = ArraySpec::builder(&[16], &[4], "uint8");
    let dtype = chunkyard_array::DType::parse(&"uint8".into()).unwrap();
    let codecs = codec::parse_shorthand("none", &dtype).unwrap();
    let spec = chunks.codecs(codecs).build().unwrap();
    let document = spec.sharded(&sharding).unwrap().render();
    store.put("zarr.json", vec![document.into()]).await.unwrap();
    let index = ShardIndex::new(&sharding, &[4]).unwrap();
    let mut entries = ShardEntries::empty(&index).unwrap();
    for (at, range) in (0..).zip(ranges) {
        entries.set(&[at], range).unwrap();
    }
    let encoded = index.encode(&entries).unwrap();
    store.put("c/0", vec![vec![7; 16].into(), encoded.into()]).await.unwrap();
    let source: Arc<dyn Source> = Arc::new(Zarr3Source::open(store).await.unwrap());
    check(&source, Level::Bytes, &Meter::default()).await.unwrap()
}

#[tokio::test]
async fn chunks_one_after_another_are_sound() {
    let report = shard("sound", [0..4, 4..8, 8..12, 12..16]).await;
    assert!(report.is_sound() && report.findings.is_empty(), "{report:?}");
    assert_eq!((report.checked.chunks, report.checked.objects), (4, 1));
}

#[tokio::test]
async fn chunks_that_overlap_are_damage_although_each_decodes() {
    let report = shard("overlap", [0..4, 4..8, 6..10, 12..16]).await;
    assert_eq!((report.errors, report.checked.chunks), (1, 4));
    assert_eq!(report.findings[0].what, "two chunks share bytes: 4..8 and 6..10");
}

#[tokio::test]
async fn a_chunk_beyond_the_end_does_not_hide_the_others() {
    let report = shard("beyond", [0..4, 1 << 40..(1 << 40) + 4, 8..12, 12..15]).await;
    assert_eq!((report.errors, report.checked.chunks), (2, 2), "{report:?}");
    assert_eq!(report.findings[1].chunk, Some(vec![3]));
}
