//! The documents and indices of Neuroglancer's volumes.

use chunkyard_engine::format::hostile::precomputed::{
    Info, Minishard, SegmentProperties, ShardGrid, sharding,
};
use chunkyard_engine::repo::hostile::FILE;

use crate::error::is_about_bytes;

/// Chunks that are numbered there and back.
const CHUNKS: usize = 64;

/// What a volume says of itself is what makes it, and its geometry holds together.
pub(crate) fn info(data: &[u8]) {
    let info = match Info::parse(FILE, data) {
        Ok(info) => info,
        Err(error) => return is_about_bytes(&error),
    };
    let again = Info::parse(FILE, &info.render()).expect("what was rendered");
    assert_eq!(again, info);
    for scale in info.scales.iter().take(8) {
        let grid = match ShardGrid::of(scale) {
            Ok(Some(grid)) => grid,
            Ok(None) => continue,
            Err(error) => return is_about_bytes(&error),
        };
        let Ok(boxes) = grid.boxes() else { continue };
        for (shard, origin) in boxes.shards().take(8) {
            assert_eq!(boxes.origin(shard), Some(origin));
            for (id, chunk) in boxes.chunks(shard).take(CHUNKS) {
                assert_eq!(grid.morton().decode(id), Some(chunk));
                assert_eq!((grid.slot(chunk).shard, boxes.shard_of(chunk)), (shard, shard));
            }
        }
    }
}

/// Properties of segments are what makes them.
pub(crate) fn properties(data: &[u8]) {
    match SegmentProperties::parse(FILE, data) {
        Err(error) => is_about_bytes(&error),
        Ok(properties) => {
            // Numbers and tags that no writer makes are read and not written.
            let Ok(bytes) = properties.render() else { return };
            assert_eq!(
                SegmentProperties::parse(FILE, &bytes).expect("what was rendered"),
                properties
            );
        }
    }
}

/// A byte for the sharding, then the index of a minishard: each chunk lies in the object and is found.
pub(crate) fn minishard(data: &[u8]) {
    const OBJECT_BYTES: u64 = 1 << 40;
    let Some((&choice, index)) = data.split_first() else { return };
    let sharding = sharding(choice);
    let parsed = match Minishard::parse(FILE, &sharding, 0, index, OBJECT_BYTES) {
        Ok(parsed) => parsed,
        Err(error) => return is_about_bytes(&error),
    };
    for (id, range) in parsed.rows() {
        assert!(range.start <= range.end && range.end <= OBJECT_BYTES);
        assert_eq!(parsed.get(*id), Some(range.clone()));
        assert_eq!(sharding.slot(*id).minishard, 0);
    }
}
