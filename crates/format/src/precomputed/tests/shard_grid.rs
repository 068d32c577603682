use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn boxes(grid: [u64; 3], sharding: Sharding) -> ShardBoxes {
    ShardGrid::new(grid, sharding).unwrap().boxes().unwrap()
}

#[test]
fn shards_of_the_male_cns_are_cubes_of_32_chunks() {
    let grid = ShardGrid::new(MALE_CNS, identity(9, 6, 19)).unwrap();
    let boxes = grid.boxes().unwrap();
    assert_eq!(boxes.cell(), [32; 3]);
    for (chunk, id, shard) in [
        ([31, 31, 31], 32767, 0),
        ([32, 0, 0], 32768, 1),
        ([0, 32, 0], 65536, 2),
        ([0, 0, 32], 131_072, 4),
        ([224, 192, 704], 553_418_752, 16889),
        ([1470, 1223, 2102], 11_834_938_362, 361_173),
    ] {
        assert_eq!(grid.morton().encode(chunk), id);
        assert_eq!(boxes.shard_of(chunk), shard);
        assert_eq!(grid.slot(chunk).shard, shard);
    }
    assert_eq!(boxes.origin(16889), Some([224, 192, 704]));
    assert_eq!(boxes.num_chunks(16889), 32768);
    // The last shard has what is left of the grid: 1470 is 30 behind 1440, and so on.
    assert_eq!(boxes.bounds(361_173), Some(([1440, 1216, 2080], [1471, 1224, 2103])));
    assert_eq!(boxes.num_chunks(361_173), 31 * 8 * 23);
    assert_eq!(boxes.origin(1 << 19), None);
    assert_eq!(boxes.num_chunks(u64::MAX), 0);
}

#[test]
fn a_shard_is_no_larger_than_the_grid() {
    assert_eq!(boxes([23, 20, 33], identity(9, 6, 1)).cell(), [23, 20, 32]);
    assert_eq!(boxes([12, 10, 17], identity(9, 4, 0)).cell(), [12, 10, 17]);
    assert_eq!(boxes([101, 104, 5], identity(9, 6, 2)).cell(), [64, 64, 5]);
    assert_eq!(boxes([100, 100, 100], identity(9, 4, 8)).cell(), [32, 16, 16]);
    assert_eq!(boxes([1, 1, 1], identity(9, 6, 0)).cell(), [1, 1, 1]);
}

#[test]
fn bits_that_do_not_cover_the_grid_are_refused() {
    let grid = ShardGrid::new(MALE_CNS, identity(9, 6, 18)).unwrap();
    let error = grid.boxes().unwrap_err();
    assert_eq!(error.kind(), chunkyard_store::ErrorKind::Invalid);
    assert!(error.to_string().contains("raise shard_bits to 19"), "{error}");
    let hashed = Sharding { hash: Hash::Murmur, ..identity(9, 6, 19) };
    assert!(ShardGrid::new(MALE_CNS, hashed).unwrap().boxes().is_err());
}

#[test]
fn shards_of_a_vast_grid_are_listed_as_they_are_wanted() {
    let boxes = boxes([1 << 21; 3], identity(9, 6, 48));
    assert_eq!(boxes.shards().take(3).last(), Some((2, [0, 32, 0])));
    let around = boxes.shards_within([31, 0, 0], [33, 1, 1]).collect::<Vec<_>>();
    assert_eq!(around, [(0, [0, 0, 0]), (1, [32, 0, 0])]);
}

#[test]
fn bits_at_the_limits_do_not_overflow() {
    let one = boxes([1 << 22, 1 << 21, 1 << 21], identity(64, 0, 0));
    assert_eq!(one.shards().collect::<Vec<_>>(), [(0, [0; 3])]);
    assert_eq!(one.origin(1), None);
    // 2^64 of them.
    assert_eq!(one.num_chunks(0), u64::MAX);
    let each = boxes([1 << 22, 1 << 21, 1 << 21], identity(0, 0, 64));
    assert_eq!(each.cell(), [1; 3]);
    assert!(each.origin(u64::MAX).is_some());
    assert!(boxes([0, 4, 4], identity(0, 0, 4)).shards().next().is_none());
}

proptest! {
    #[test]
    fn each_chunk_is_in_one_box_and_that_is_its_shard(
        grid in [1u64..10, 1u64..10, 1u64..10],
        preshift in 0u32..5,
        minishard in 0u32..4,
    ) {
        let sharding = identity(preshift, minishard, 12);
        let grid = ShardGrid::new(grid, sharding).unwrap();
        let boxes = grid.boxes().unwrap();
        let mut by_shard: BTreeMap<u64, Vec<_>> = BTreeMap::new();
        for (id, chunk) in grid.morton().walk([0; 3], grid.morton().grid()) {
            by_shard.entry(grid.slot(chunk).shard).or_default().push((id, chunk));
        }
        let listed: Vec<_> = boxes.shards().collect();
        prop_assert_eq!(
            listed.iter().map(|(shard, _)| *shard).collect::<Vec<_>>(),
            by_shard.keys().copied().collect::<Vec<_>>()
        );
        for (shard, origin) in listed {
            prop_assert_eq!(boxes.origin(shard), Some(origin));
            prop_assert_eq!(boxes.num_chunks(shard), by_shard[&shard].len() as u64);
            // In ascending order of codes the minishards come one after the other.
            let chunks: Vec<_> = boxes.chunks(shard).collect();
            prop_assert_eq!(&chunks, &by_shard[&shard]);
            let slots: Vec<_> = chunks.iter().map(|(id, _)| sharding.slot(*id)).collect();
            prop_assert!(slots.is_sorted());
        }
        for shard in 0..1 << 12 {
            prop_assert_eq!(boxes.origin(shard).is_some(), by_shard.contains_key(&shard));
        }
    }
}
