use super::*;

const LABELS: Encoding = Encoding::CompressedSegmentation { block: [8; 3] };

fn bits(sharding: Sharding) -> (u32, u32, u32) {
    (sharding.preshift_bits, sharding.minishard_bits, sharding.shard_bits)
}

#[test]
fn ours_has_shards_of_32768_chunks() {
    let ours = |grid| Sharding::for_grid(grid, &LABELS).unwrap();
    assert_eq!(ours(MALE_CNS), identity(9, 6, 19));
    assert_eq!(bits(ours([92, 77, 132])), (9, 6, 7));
    assert_eq!(bits(ours([32, 32, 32])), (9, 6, 0));
    assert_eq!(bits(ours([8, 8, 8])), (9, 0, 0));
    assert_eq!(bits(ours([16, 8, 8])), (9, 1, 0));
    assert_eq!(bits(ours([1, 1, 1])), (0, 0, 0));
    assert_eq!(
        Sharding::for_grid([1; 3], &Encoding::Jpeg { quality: None }).unwrap().data_encoding,
        Packing::Raw
    );
}

#[test]
fn tensorstore_is_followed() {
    let chunk = [64; 3];
    let like = |grid, wish: ShardWish| {
        Sharding::like_tensorstore(grid, chunk, &wish, &LABELS).unwrap().map(bits)
    };
    let shape = |extent| ShardWish { shape: [Some(extent); 3], elements: None };
    let elements = |elements| ShardWish { shape: [None; 3], elements: Some(elements) };
    assert_eq!(like(MALE_CNS, shape(2048)), Some((9, 6, 19)));
    assert_eq!(like(MALE_CNS, elements(1 << 33)), Some((9, 6, 19)));
    assert_eq!(like([92, 77, 132], shape(2048)), Some((9, 6, 7)));
    assert_eq!(like([8, 8, 8], shape(256)), Some((6, 0, 3)));
    assert_eq!(like(MALE_CNS, ShardWish::default()), None);
}
