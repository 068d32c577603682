//! `compressed_segmentation` there and back.

use proptest::prelude::*;

use super::super::bits::pack_onto;
use super::super::{Block, from_segmentation, relabel};
use super::vectors::example;
use super::{Sample, decoded, naive, sample_of, samples};
use crate::Error;

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn the_example_has_a_table_per_set_of_labels() {
    let (voxels, bytes) = example();
    let mut found = Vec::new();
    Block::parse(&bytes).unwrap().segmentation_onto([16; 3], &mut found).unwrap();
    // Labels 5, 7, 9 of the first cell at 16 + 32 words, after its values of two bits; then label 7.
    let mut expected = vec![1, 2 << 24 | 48, 16];
    expected
        .extend([[54, 54], [54, 56], [54, 56], [54, 56], [54, 56], [54, 56], [54, 56]].concat());
    expected.push(0x5555_5552);
    expected.extend([0x5555_5555; 31]);
    expected.extend([5, 0, 7, 0, 9, 0, 7, 0]);
    assert_eq!(found, words(&expected));
    let mut back = Vec::new();
    from_segmentation(&found, [16; 3], &mut back).unwrap();
    assert_eq!(back, bytes);
    assert_eq!(naive::segmentation(&Sample { size: [16; 3], voxels }, [16; 3]), found);
}

/// Two tables of which a hash cannot tell one from the other, the second one needed twice.
#[test]
fn tables_with_one_fingerprint_are_told_apart() {
    let mixed = |label: u64| {
        (2u64.rotate_left(23) ^ label).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
    };
    let (first, second) = (7, 1 << 40);
    let partner = |label: u64| mixed(first) ^ second ^ mixed(label);
    let other = (8..).find(|&label| partner(label) > label).unwrap();
    let pairs = [[first, second], [other, partner(other)], [other, partner(other)]];
    let voxels = (0..8 * 8 * 24).map(|at| pairs[at % 24 / 8][at % 2]).collect();
    let sample = Sample { size: [24, 8, 8], voxels };
    let mut found = Vec::new();
    let encoded = sample.encoded();
    Block::parse(&encoded).unwrap().segmentation_onto(sample.size, &mut found).unwrap();
    assert_eq!(found, naive::segmentation(&sample, sample.size));
}

#[test]
fn labels_listed_twice_or_without_voxels_are_not_in_a_table() {
    for count in 2..20 {
        let sample = sample_of([2, 2, 1], count, 6, count);
        let mut bytes = sample.encoded();
        relabel(&mut bytes, |label| label % 3).unwrap();
        let voxels = sample.voxels.iter().map(|label| label % 3).collect();
        let expected = naive::segmentation(&Sample { size: sample.size, voxels }, sample.size);
        let mut found = Vec::new();
        Block::parse(&bytes).unwrap().segmentation_onto(sample.size, &mut found).unwrap();
        assert!(found == expected, "{count}");
    }
    let (_, mut bytes) = example();
    bytes[96..].fill(0xaa);
    let mut found = Vec::new();
    Block::parse(&bytes).unwrap().segmentation_onto([16; 3], &mut found).unwrap();
    assert_eq!(found.len(), 4 + 8 * 8 + 8, "label 7 and nothing else");
}

#[test]
fn a_box_that_is_no_part_of_the_block_is_refused() {
    let (_, bytes) = example();
    let block = Block::parse(&bytes).unwrap();
    for extent in [[17, 16, 16], [16, 0, 16]] {
        let error = block.segmentation_onto(extent, &mut Vec::new()).unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{error}");
    }
    assert!(from_segmentation(&words(&[1]), [0, 1, 1], &mut Vec::new()).is_err());
}

#[test]
fn a_segmentation_with_positions_of_more_than_24_bits_is_refused() {
    // Cells of 512 labels each, no two with the same: 1024 words of labels, and 256 of values.
    let grid = [128, 13, 8];
    let cells = grid.iter().product::<u32>();
    let mut bytes: Vec<u8> =
        grid.into_iter().chain([cells + 511]).flat_map(u32::to_le_bytes).collect();
    bytes.extend((0..u64::from(cells) + 511).flat_map(u64::to_le_bytes));
    bytes.extend([0, 2].repeat(cells as usize));
    bytes.extend((0..cells).flat_map(|cell| cell..cell + 512).flat_map(u32::to_le_bytes));
    let mut values = Vec::new();
    pack_onto(&std::array::from_fn(|at| at as u16), 9, &mut values);
    bytes.extend(values.repeat(cells as usize));
    let (size, mut out) = (grid.map(|cells| cells * 8), vec![9; 3]);
    let block = Block::parse(&bytes).unwrap();
    let error = block.segmentation_onto(size, &mut out).unwrap_err();
    assert!(error.to_string().contains("use smaller chunks"), "{error}");
    assert_eq!(out, [9; 3]);
}

#[test]
fn segmentations_that_lie_are_corrupt() {
    let mut found = Vec::new();
    Block::parse(&example().1).unwrap().segmentation_onto([16; 3], &mut found).unwrap();
    for cut in 0..found.len() {
        let error = from_segmentation(&found[..cut], [16; 3], &mut Vec::new()).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    }
    for (head, what) in [
        ([2 << 24 | 300, 16], "label"),
        ([3 << 24 | 48, 16], "bits per voxel"),
        ([2 << 24 | 48, 40], "words of values"),
        ([32 << 24 | 48, u32::MAX], "words of values"),
        ([0xff_ffff, 0], "label 0 of a table"),
    ] {
        let mut forged = found.clone();
        forged[4..12].copy_from_slice(&words(&head));
        let error = from_segmentation(&forged, [16; 3], &mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    let error = from_segmentation(&words(&[2, 0]), [8; 3], &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("one channel"), "{error}");
}

#[test]
fn values_of_32_bits_are_read() {
    let mut bytes = vec![1, 32 << 24 | 514, 2];
    bytes.extend((0..512).map(|at| at % 3));
    bytes.extend([8, 0, 6, 0, 8, 1]);
    let mut found = Vec::new();
    from_segmentation(&words(&bytes), [8; 3], &mut found).unwrap();
    let block = Block::parse(&found).unwrap();
    assert_eq!(block.labels().collect::<Vec<_>>(), [8, 6, (1 << 32) + 8]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn blocks_go_there_and_back(sample in samples(), less in [0u32..8, 0u32..8, 0u32..8]) {
        let encoded = sample.encoded();
        let block = Block::parse(&encoded).unwrap();
        let mut found = vec![5; 4];
        block.segmentation_onto(sample.size, &mut found).unwrap();
        prop_assert!(found[4..] == naive::segmentation(&sample, sample.size));
        let mut back = Vec::new();
        from_segmentation(&found[4..], sample.size, &mut back).unwrap();
        prop_assert!(back == encoded);

        let extent: [u32; 3] = std::array::from_fn(|axis| sample.size[axis] - less[axis]);
        let mut clipped = Vec::new();
        block.segmentation_onto(extent, &mut clipped).unwrap();
        prop_assert!(clipped == naive::segmentation(&sample, extent));
        let mut back = Vec::new();
        from_segmentation(&clipped, extent, &mut back).unwrap();
        let [x_size, y_size, _] = sample.size;
        let expected: Vec<u64> = sample.voxels.iter().enumerate().map(|(at, &label)| {
            let at = at as u32;
            let place = [at % x_size, at / x_size % y_size, at / x_size / y_size];
            if place.iter().zip(extent).all(|(at, extent)| *at < extent) { label } else { 0 }
        }).collect();
        prop_assert!(decoded(&Block::parse(&back).unwrap()) == expected);
    }
}
