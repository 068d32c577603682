//! Bytes that lie.

use proptest::prelude::*;

use super::super::{Block, downsample, from_segmentation, relabel};
use super::vectors::example;
use super::{decoded, sample_of};
use crate::Error;

/// Takes bytes through everything. What can be parsed can be used in every way.
fn run(bytes: &[u8]) -> bool {
    let table = super::super::table_of(bytes);
    let block = match Block::parse(bytes) {
        Ok(block) => block,
        Err(Error::Corrupt { .. }) => {
            drop(table);
            drop(relabel(&mut bytes.to_vec(), |label| label ^ 1));
            return false;
        }
        Err(other) => panic!("not about the bytes: {other}"),
    };
    assert_eq!(table.unwrap().len(), block.labels().len());
    if block.voxel_count() > 1 << 16 {
        return true;
    }
    let voxels = decoded(&block);
    let total: u64 = block.counts().iter().map(|(_, count)| count).sum();
    assert_eq!(total as usize, voxels.len());
    assert_eq!(block.label_at([1, 1, 1]), block.labels_at(&[[1, 1, 1]])[0]);
    assert_eq!(block.solid_label(), voxels.iter().all(|&v| v == voxels[0]).then_some(voxels[0]));
    let (mut canonical, mut half, mut segmentation) = (Vec::new(), Vec::new(), Vec::new());
    block.relabel_onto(|label| label, &mut canonical).unwrap();
    assert_eq!(decoded(&Block::parse(&canonical).unwrap()), voxels);
    downsample([Some(block); 8], Some(block), block.size(), &mut half).unwrap();
    Block::parse(&half).unwrap();
    block.segmentation_onto(block.size(), &mut segmentation).unwrap();
    let mut back = Vec::new();
    from_segmentation(&segmentation, block.size(), &mut back).unwrap();
    assert_eq!(back, canonical);
    true
}

#[test]
fn every_cut_is_refused_and_every_flip_is_harmless() {
    let noisy = sample_of([2, 1, 1], 40, 3, 9).encoded();
    for bytes in [example().1, noisy] {
        assert!(run(&bytes));
        for at in 0..bytes.len() {
            assert!(!run(&bytes[..at]), "{at}");
            for flip in [0x01, 0x80] {
                let mut bent = bytes.clone();
                bent[at] ^= flip;
                run(&bent);
            }
        }
        assert!(!run(&[&bytes[..], &[0]].concat()));
    }
}

#[test]
fn numbers_out_of_range_are_named() {
    let (_, bytes) = example();
    let refused = |at: usize, with: &[u8]| {
        let mut forged = bytes.clone();
        forged[at..at + with.len()].copy_from_slice(with);
        Block::parse(&forged).unwrap_err().to_string()
    };
    assert!(refused(0, &[0]).contains("1 to 128 cells along each axis, found [0, 2, 2]"));
    assert!(refused(8, &[129]).contains("found [2, 2, 129]"));
    assert!(refused(12, &[0]).contains("1 to 4096 labels"));
    // 2^29 labels of 8 bytes are 0 bytes in the arithmetic of 32 bits.
    assert!(refused(12, &[0, 0, 0, 0x20]).contains("found 536870912"));
    assert!(refused(12, &[0, 0x10, 0, 0]).contains("4096 labels of the table from byte 16 on"));
    assert!(refused(40, &[1, 2]).contains("at most 512 labels per cell, found 513 in cell 0"));
    assert!(refused(40, &[0, 2]).contains("519 indices of labels of cells from byte 56 on"));
    assert!(refused(40, &[2]).contains("expected"), "one index too few, and other values");
    assert!(refused(56, &[3]).contains("indices into a table of 3 labels, found 3"));
    assert!(refused(223, &[0xab]).contains("values below 3 in cell 0, found a larger one"));
    let short = Block::parse(&bytes[..12]).unwrap_err().to_string();
    assert!(short.contains("a head of 16 bytes, found 12 bytes"), "{short}");
    let short = Block::parse(&bytes[..23]).unwrap_err().to_string();
    assert!(short.contains("3 labels of the table from byte 16 on, found 23 bytes in all"));
}

#[test]
fn a_large_grid_takes_no_memory() {
    // 2^30 voxels of one label are 24 bytes; of two labels, the counts alone must be there.
    let mut head: Vec<u8> = [128u32, 128, 128, 1].into_iter().flat_map(u32::to_le_bytes).collect();
    head.extend([0; 8]);
    let block = Block::parse(&head).unwrap();
    assert_eq!((block.voxel_count(), block.is_zero()), (1 << 30, true));
    head[12] = 2;
    head.extend([0; 8]);
    assert!(Block::parse(&head).is_err());
    assert!(from_segmentation(&[1, 0, 0, 0], [1024; 3], &mut Vec::new()).is_err());
}

proptest! {
    #[test]
    fn random_sections_are_harmless(
        counts in proptest::collection::vec(0u16..6, 8),
        indices in proptest::collection::vec(0u32..5, 48),
        values in proptest::collection::vec(any::<u8>(), 8 * 192),
        labels in proptest::collection::vec(0u64..4, 5),
    ) {
        let mut bytes: Vec<u8> = [2u32, 2, 2, 5].into_iter().flat_map(u32::to_le_bytes).collect();
        bytes.extend(labels.iter().flat_map(|label| label.to_le_bytes()));
        bytes.extend(counts.iter().flat_map(|count| count.to_le_bytes()));
        let total: usize = counts.iter().map(|&count| usize::from(count)).sum();
        bytes.extend(indices[..total].iter().flat_map(|index| index.to_le_bytes()));
        let width = |count: u16| [0, 0, 1, 2, 2, 3][usize::from(count)];
        for (cell, &count) in counts.iter().enumerate() {
            // Values that are too large in some cells of three and five.
            let keep = if count == 3 && cell % 4 != 0 { 0x55 } else { 0xff };
            let own = &values[cell * 192..cell * 192 + 64 * width(count)];
            bytes.extend(own.iter().map(|value| if count == 5 { 0x24 } else { value & keep }));
        }
        run(&bytes);
    }
}
