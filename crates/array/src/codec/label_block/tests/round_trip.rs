//! Voxels become the canonical bytes and come back.

use proptest::prelude::*;

use super::super::{Block, encode, encode_part};
use super::{Sample, decoded, naive, sample_of, samples};

#[test]
fn cells_of_every_width_round_trip() {
    for count in [1, 2, 3, 4, 5, 8, 9, 16, 17, 18, 32, 33, 64, 65, 128, 129, 256, 257, 511, 512] {
        let cell = (0..512u64).map(|at| (at * 7 % count).wrapping_mul(0x1_0000_0001));
        let voxels = (0..1024u64).map(|at| if at % 16 < 8 { 3 } else { 0 });
        let mut sample = Sample { size: [16, 8, 8], voxels: voxels.collect() };
        for (at, label) in cell.enumerate() {
            sample.voxels[at / 8 * 16 + at % 8 + 8] = label;
        }
        let encoded = sample.encoded();
        assert_eq!(encoded, naive::encode(&sample), "{count}");
        assert_eq!(decoded(&Block::parse(&encoded).unwrap()), sample.voxels, "{count}");
    }
}

#[test]
fn every_shape_of_grid_round_trips() {
    for grid in [[1, 1, 1], [5, 1, 1], [1, 5, 1], [1, 1, 5], [2, 3, 4], [4, 3, 2]] {
        let sample = sample_of(grid, 30, 5, 1);
        let encoded = sample.encoded();
        assert_eq!(encoded, naive::encode(&sample), "{grid:?}");
        assert_eq!(decoded(&Block::parse(&encoded).unwrap()), sample.voxels, "{grid:?}");
    }
}

#[test]
fn small_labels_fit_in_four_bytes_and_others_do_not() {
    let narrow: Vec<u32> = (0..512).map(|at| at % 5 * 0x3fff_ffff).collect();
    let mut encoded = Vec::new();
    encode(&narrow, [8; 3], &mut encoded).unwrap();
    let block = Block::parse(&encoded).unwrap();
    let mut out = vec![1u32; 512];
    block.decode_into(&mut out).unwrap();
    assert_eq!(out, narrow);
    let wide: Vec<u64> = narrow.iter().map(|&label| u64::from(label) << 1).collect();
    let mut encoded = Vec::new();
    encode(&wide, [8; 3], &mut encoded).unwrap();
    let error = Block::parse(&encoded).unwrap().decode_into(&mut out).unwrap_err().to_string();
    assert!(error.contains("labels of 4 bytes, found label"), "{error}");
    let mut solid = Vec::new();
    super::super::encode_solid(1 << 32, [8; 3], &mut solid).unwrap();
    assert!(Block::parse(&solid).unwrap().decode_into(&mut out).is_err());
}

#[test]
fn a_part_of_more_voxels_is_encoded_as_if_it_were_all() {
    let whole = sample_of([3, 2, 2], 60, 4, 9);
    let [x, y, z] = whole.size.map(|n| n as usize);
    let (part, at) = ([16, 8, 8], 5);
    let rows = (0..8).flat_map(|z| (0..8).map(move |row| at + (z * y + row) * x));
    let voxels = rows.flat_map(|from| whole.voxels[from..from + 16].to_vec()).collect();
    let mut found = Vec::new();
    encode_part(&whole.voxels[at..], [x, x * y], part, &mut found).unwrap();
    assert_eq!(found, Sample { size: part, voxels }.encoded());
    for strides in [[x, x * y + 1], [usize::MAX, 0], [0, usize::MAX]] {
        let size = [8, 16, z as u32];
        let end = whole.voxels.len() - ((z - 1) * x * y + 15 * x + 8);
        let error = encode_part(&whole.voxels[end..], strides, size, &mut found).unwrap_err();
        assert!(error.to_string().contains("does not lie in"), "{strides:?}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn voxels_round_trip_by_canonical_bytes(sample in samples()) {
        let encoded = sample.encoded();
        prop_assert!(encoded == naive::encode(&sample));
        let block = Block::parse(&encoded).unwrap();
        prop_assert_eq!(block.size(), sample.size);
        prop_assert!(decoded(&block) == sample.voxels);
        let mut bytes = vec![[9u8; 8]; sample.voxels.len()];
        block.decode_into(&mut bytes).unwrap();
        prop_assert!(bytes.iter().zip(&sample.voxels).all(|(b, v)| u64::from_le_bytes(*b) == *v));
        let mut again = Vec::new();
        encode(&bytes, sample.size, &mut again).unwrap();
        prop_assert!(again == encoded);
    }
}
