//! Small blocks whose every byte is known.

use super::super::{Block, SIZE_MAX, encode, encode_solid, encoded_bytes_max, table_of};
use super::decoded;

/// 16 × 16 × 16 voxels of label 7, but (0, 0, 0) is 9 and (1, 0, 0) is 5.
pub(super) fn example() -> (Vec<u64>, Vec<u8>) {
    let mut voxels = vec![7; 4096];
    (voxels[0], voxels[1]) = (9, 5);
    let mut bytes = Vec::new();
    for word in [2u32, 2, 2, 3, 9, 0, 5, 0, 7, 0] {
        bytes.extend(word.to_le_bytes());
    }
    for count in [3u16, 1, 1, 1, 1, 1, 1, 1] {
        bytes.extend(count.to_le_bytes());
    }
    for index in [0u32, 1, 2, 2, 2, 2, 2, 2, 2, 2] {
        bytes.extend(index.to_le_bytes());
    }
    bytes.push(0x1a);
    bytes.extend([0xaa; 127]);
    (voxels, bytes)
}

#[test]
fn the_worked_example_is_224_bytes() {
    let (voxels, bytes) = example();
    assert_eq!(bytes.len(), 224);
    let block = Block::parse(&bytes).unwrap();
    assert_eq!((block.size(), block.voxel_count()), ([16; 3], 4096));
    assert_eq!(decoded(&block), voxels);
    let mut again = vec![1, 2, 3];
    encode(&voxels, [16; 3], &mut again).unwrap();
    assert_eq!(again, [&[1, 2, 3], &bytes[..]].concat(), "encoding appends");
    assert_eq!(table_of(&bytes).unwrap().collect::<Vec<_>>(), [9, 5, 7]);
    assert_eq!(table_of(&bytes[..40]).unwrap().collect::<Vec<_>>(), [9, 5, 7]);
    assert!(table_of(&bytes[..39]).is_err());
    assert_eq!(format!("{block:?}"), "Block { size: [16, 16, 16], labels: 3, bytes: 224 }");
}

#[test]
fn a_solid_block_is_24_bytes() {
    let bytes: Vec<u8> = [8u32, 8, 8, 1, 7, 0].into_iter().flat_map(u32::to_le_bytes).collect();
    let block = Block::parse(&bytes).unwrap();
    assert_eq!(decoded(&block), vec![7; 64 * 64 * 64]);
    let (mut solid, mut encoded) = (Vec::new(), Vec::new());
    encode_solid(7, [64; 3], &mut solid).unwrap();
    encode(&vec![7u32; 64 * 64 * 64], [64; 3], &mut encoded).unwrap();
    assert_eq!((&solid, &encoded), (&bytes, &bytes));
}

#[test]
fn a_cell_without_labels_is_label_0() {
    let (_, mut bytes) = example();
    // The second cell has no index any more.
    bytes[42] = 0;
    bytes.drain(68..72);
    let block = Block::parse(&bytes).unwrap();
    let voxels = decoded(&block);
    assert_eq!((voxels[7], voxels[8], voxels[15], voxels[16]), (7, 0, 0, 7));
    assert_eq!(block.counts(), [(0, 512), (5, 1), (7, 4096 - 514), (9, 1)]);
    assert_eq!((block.label_at([8, 7, 7]), block.label_at([7, 7, 7])), (Some(0), Some(7)));
    assert_eq!(block.labels_at(&[[8, 7, 7], [0, 0, 0]]), [Some(0), Some(9)]);
    let mut canonical = Vec::new();
    block.relabel_onto(|label| label, &mut canonical).unwrap();
    let mut encoded = Vec::new();
    encode(&voxels, [16; 3], &mut encoded).unwrap();
    assert_eq!(canonical, encoded);
    canonical.clear();
    block.relabel_onto(|label| if label == 0 { 7 } else { label }, &mut canonical).unwrap();
    assert_eq!(canonical, example().1);
}

#[test]
fn bytes_after_a_block_are_given_back_or_refused() {
    let (_, bytes) = example();
    let longer = [&bytes[..], b"more"].concat();
    let (block, rest) = Block::parse_prefix(&longer).unwrap();
    assert_eq!((block.bytes(), rest), (&bytes[..], &b"more"[..]));
    let error = Block::parse(&longer).unwrap_err().to_string();
    assert_eq!(error, "label block is corrupt: expected 224 bytes, found 4 more after them");
}

#[test]
fn sizes_that_no_block_has_are_refused() {
    let mut out = Vec::new();
    for size in [[0, 8, 8], [8, 12, 8], [8, 8, SIZE_MAX + 8]] {
        assert!(encode_solid(1, size, &mut out).is_err(), "{size:?}");
        assert!(encoded_bytes_max(size).is_err(), "{size:?}");
    }
    let error = encode(&[1u64; 511], [8; 3], &mut out).unwrap_err().to_string();
    assert!(error.contains("has 512 of them, the buffer 511"), "{error}");
    assert!(out.is_empty());
    encode_solid(1, [SIZE_MAX; 3], &mut out).unwrap();
    assert_eq!(Block::parse(&out).unwrap().voxel_count(), 1 << 30);
    let error = Block::parse(&out).unwrap().decode_into(&mut [0u64; 8]).unwrap_err().to_string();
    assert!(error.contains("the buffer 8"), "{error}");
}

#[test]
fn no_block_is_longer_than_its_bound() {
    let voxels: Vec<u64> = (0..1024).collect();
    let mut out = Vec::new();
    encode(&voxels, [16, 8, 8], &mut out).unwrap();
    assert_eq!(out.len(), encoded_bytes_max([16, 8, 8]).unwrap());
    assert_eq!(decoded(&Block::parse(&out).unwrap()), voxels);
}
