//! What is done to encoded blocks, against the same on voxels.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::{Block, downsample, encode_solid, relabel};
use super::vectors::example;
use super::{Sample, decoded, naive, sample_of, samples};

/// A map that leaves some labels, merges others, and makes some 0.
fn mapped(label: u64) -> u64 {
    match label % 7 {
        0 => 0,
        1 | 2 => label / 64,
        3 => label.wrapping_add(1),
        _ => label,
    }
}

fn map(sample: &Sample, label_of: impl Fn(u64) -> u64) -> Sample {
    Sample {
        size: sample.size,
        voxels: sample.voxels.iter().map(|&label| label_of(label)).collect(),
    }
}

#[test]
fn a_point_outside_has_no_label() {
    let (_, bytes) = example();
    let block = Block::parse(&bytes).unwrap();
    assert_eq!(block.label_at([0, 0, 0]), Some(9));
    assert_eq!(block.label_at([16, 0, 0]), None);
    assert_eq!(block.labels_at(&[[1, 0, 0], [0, 16, 0], [0, 0, u32::MAX]]), [Some(5), None, None]);
}

#[test]
fn a_block_is_solid_by_its_voxels_and_not_by_its_table() {
    let (_, bytes) = example();
    assert_eq!(Block::parse(&bytes).unwrap().solid_label(), None);
    let mut merged = bytes.clone();
    assert!(relabel(&mut merged, |_| 4).unwrap());
    assert_eq!(merged[40..], bytes[40..], "only the table changes");
    assert!(!relabel(&mut merged, |_| 4).unwrap(), "nothing to change");
    let block = Block::parse(&merged).unwrap();
    assert_eq!((block.solid_label(), block.is_zero()), (Some(4), false));
    assert_eq!(block.labels().collect::<Vec<_>>(), [4, 4, 4]);
    let mut canonical = Vec::new();
    block.relabel_onto(|label| label, &mut canonical).unwrap();
    assert_eq!(canonical.len(), 24);
    // Two labels of the first cell have no voxels.
    let mut unused = bytes;
    unused[96..].fill(0xaa);
    let block = Block::parse(&unused).unwrap();
    assert_eq!((block.solid_label(), block.counts()), (Some(7), vec![(7, 4096)]));
    canonical.clear();
    block.relabel_onto(|label| label + 1, &mut canonical).unwrap();
    assert_eq!(Block::parse(&canonical).unwrap().solid_label(), Some(8));
    assert!(relabel(&mut [0; 16], |label| label).is_err());
}

/// Encoded blocks of one size.
fn eight(grid: [u32; 3], labels: u64, noisy: u64, seed: u64) -> Vec<Option<Sample>> {
    (0..8)
        .map(|at| match (seed >> (4 * at)) & 15 {
            0 => None,
            1 => Some(sample_of(grid, 1, 0, 0)),
            _ => Some(sample_of(grid, labels, noisy, seed.wrapping_add(at))),
        })
        .collect()
}

fn check_downsample(samples: &[Option<Sample>], base: Option<&Sample>, size: [u32; 3]) {
    let encoded: Vec<Option<Vec<u8>>> =
        samples.iter().map(|sample| sample.as_ref().map(Sample::encoded)).collect();
    let blocks: [Option<Block<'_>>; 8] =
        std::array::from_fn(|at| encoded[at].as_ref().map(|bytes| Block::parse(bytes).unwrap()));
    let base_bytes = base.map(Sample::encoded);
    let base_block = base_bytes.as_ref().map(|bytes| Block::parse(bytes).unwrap());
    let mut found = Vec::new();
    downsample(blocks, base_block, size, &mut found).unwrap();
    let voxels: Vec<_> =
        samples.iter().map(|sample| sample.as_ref().map(|sample| sample.voxels.clone())).collect();
    let voxels = naive::downsample(&voxels, base.map(|base| &base.voxels), size);
    assert!(found == naive::encode(&Sample { size, voxels }));
}

#[test]
fn zeros_do_not_vote_and_the_smaller_label_wins_a_tie() {
    // Per row of two by two by two: labels of a cell, and what wins.
    let eights: [([u64; 8], u64); 9] = [
        ([0, 0, 0, 0, 0, 0, 0, 9], 9),
        ([0; 8], 0),
        ([5, 5, 5, 5, 3, 3, 3, 3], 3),
        ([3, 3, 3, 3, 5, 5, 5, 5], 3),
        ([5, 5, 5, 3, 3, 3, 0, 0], 3),
        ([5, 5, 5, 5, 5, 3, 3, 3], 5),
        ([1, 2, 3, 4, 5, 6, 7, 8], 1),
        ([8, 7, 7, 1, 2, 3, 4, 5], 7),
        ([8, 0, 0, 0, 0, 0, 7, 7], 7),
    ];
    for (labels, winner) in eights {
        let mut voxels = vec![0; 512];
        for (at, label) in labels.into_iter().enumerate() {
            voxels[at / 4 * 64 + at / 2 % 2 * 8 + at % 2] = label;
        }
        let mut samples = vec![None; 8];
        samples[7] = Some(Sample { size: [8; 3], voxels });
        check_downsample(&samples, None, [8; 3]);
        let encoded = samples[7].as_ref().map(Sample::encoded).unwrap();
        let mut blocks = [None; 8];
        blocks[7] = Some(Block::parse(&encoded).unwrap());
        let mut found = Vec::new();
        downsample(blocks, None, [8; 3], &mut found).unwrap();
        assert_eq!(Block::parse(&found).unwrap().label_at([4, 4, 4]), Some(winner), "{labels:?}");
    }
}

#[test]
fn votes_for_a_label_that_is_listed_twice_are_added() {
    let sample = sample_of([2, 2, 2], 12, 6, 5);
    let mut bytes = sample.encoded();
    relabel(&mut bytes, |label| label % 3).unwrap();
    let block = Block::parse(&bytes).unwrap();
    let mut found = Vec::new();
    downsample([Some(block); 8], None, sample.size, &mut found).unwrap();
    let voxels = vec![Some(map(&sample, |label| label % 3).voxels); 8];
    let expected = naive::downsample(&voxels, None, sample.size);
    assert_eq!(decoded(&Block::parse(&found).unwrap()), expected);
}

#[test]
fn eight_solid_blocks_make_a_solid_block_and_sizes_must_agree() {
    let mut solid = Vec::new();
    encode_solid(6, [16; 3], &mut solid).unwrap();
    let block = Block::parse(&solid).unwrap();
    let mut found = Vec::new();
    downsample([Some(block); 8], None, [16; 3], &mut found).unwrap();
    assert_eq!(found, solid);
    found.clear();
    downsample([None; 8], Some(block), [16; 3], &mut found).unwrap();
    assert_eq!(found, solid);
    let error = downsample([Some(block); 8], None, [16, 16, 8], &mut found).unwrap_err();
    assert!(error.to_string().contains("found one of [16, 16, 16]"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn questions_are_answered_as_by_voxels(sample in samples(), seed in any::<u64>()) {
        let encoded = sample.encoded();
        let block = Block::parse(&encoded).unwrap();
        let counts = naive::counts(&sample.voxels);
        prop_assert_eq!(block.counts(), counts.clone());
        let labels: BTreeSet<u64> = block.labels().collect();
        prop_assert!(labels.into_iter().eq(counts.iter().map(|(label, _)| *label)));
        let solid = if let [(label, _)] = counts[..] { Some(label) } else { None };
        prop_assert_eq!(block.solid_label(), solid);
        prop_assert_eq!(block.is_zero(), solid == Some(0));
        let [x_size, y_size, _] = sample.size.map(|n| n as usize);
        let mut noise = super::Noise(seed);
        let points: Vec<[u32; 3]> =
            (0..200).map(|_| sample.size.map(|n| noise.below(n.into()) as u32)).collect();
        let expected: Vec<_> = points
            .iter()
            .map(|at| at.map(|at| at as usize))
            .map(|[x, y, z]| Some(sample.voxels[(z * y_size + y) * x_size + x]))
            .collect();
        prop_assert_eq!(block.labels_at(&points), expected.clone());
        let one_by_one: Vec<_> = points.iter().map(|&at| block.label_at(at)).collect();
        prop_assert_eq!(one_by_one, expected);
    }

    #[test]
    fn labels_are_replaced_with_and_without_merging(sample in samples()) {
        let expected = map(&sample, mapped);
        let encoded = sample.encoded();
        let mut quick = encoded.clone();
        relabel(&mut quick, mapped).unwrap();
        let block = Block::parse(&quick).unwrap();
        prop_assert!(decoded(&block) == expected.voxels);
        prop_assert_eq!(block.counts(), naive::counts(&expected.voxels));
        let canonical = naive::encode(&expected);
        let (mut at_once, mut after, mut same) = (Vec::new(), Vec::new(), Vec::new());
        Block::parse(&encoded).unwrap().relabel_onto(mapped, &mut at_once).unwrap();
        block.relabel_onto(|label| label, &mut after).unwrap();
        prop_assert!(at_once == canonical && after == canonical);
        Block::parse(&encoded).unwrap().relabel_onto(|label| label, &mut same).unwrap();
        prop_assert!(same == encoded);
    }

    #[test]
    fn eight_blocks_are_voted_into_one(
        grid in [1u32..4, 1u32..3, 1u32..3],
        labels in prop_oneof![1u64..4, 2u64..20, 20u64..300],
        noisy in 0u64..4,
        seed in any::<u64>(),
        with_base in any::<bool>(),
    ) {
        let samples = eight(grid, labels, noisy, seed);
        let base = with_base.then(|| sample_of(grid, labels, noisy, !seed));
        check_downsample(&samples, base.as_ref(), grid.map(|cells| cells * 8));
    }
}
