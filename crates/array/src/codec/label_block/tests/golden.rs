//! Blocks and values of a real DVID; testdata/label_block/README.md says where they are from.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;

use super::super::value::unwrap;
use super::super::{Block, downsample, encode, from_segmentation};
use super::{Sample, decoded, naive};

const SIZE: [u32; 3] = [64; 3];
const BYTES_MAX: usize = 1 << 22;

fn file(name: &str) -> Vec<u8> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/label_block");
    std::fs::read(root.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut out).unwrap();
    out
}

/// Blocks of a stream as `GET blocks` answers it, by position.
fn blocks(name: &str) -> BTreeMap<[i32; 3], Vec<u8>> {
    let stream = file(name);
    let (mut blocks, mut rest) = (BTreeMap::new(), &stream[..]);
    while let Some((head, after)) = rest.split_first_chunk::<16>() {
        let [x, y, z, len] =
            std::array::from_fn(|at| i32::from_le_bytes(head.as_chunks::<4>().0[at]));
        let (block, after) = after.split_at(len as usize);
        blocks.insert([x, y, z], gunzip(block));
        rest = after;
    }
    blocks
}

fn crc32(voxels: &[u64]) -> u64 {
    let mut crc = flate2::Crc::new();
    voxels.iter().for_each(|label| crc.update(&label.to_le_bytes()));
    crc.sum().into()
}

fn canonical(block: &Block<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    block.relabel_onto(|label| label, &mut out).unwrap();
    out
}

#[test]
fn voxels_are_those_that_dvid_answers() {
    let expected: serde_json::Value = serde_json::from_slice(&file("expected.json")).unwrap();
    let mut seen = 0;
    for (name, expected) in expected.as_object().unwrap() {
        let blocks = blocks(name);
        assert_eq!(blocks.len(), expected.as_object().unwrap().len());
        for ([x, y, z], bytes) in blocks {
            let block = Block::parse(&bytes).unwrap();
            let voxels = decoded(&block);
            assert_eq!(expected[&format!("{x},{y},{z}")], crc32(&voxels), "{name} {x},{y},{z}");
            assert_eq!(block.counts(), naive::counts(&voxels));
            let mut encoded = Vec::new();
            encode(&voxels, SIZE, &mut encoded).unwrap();
            assert!(canonical(&block) == encoded, "{name} {x},{y},{z}");
            // The client that stored blocks of scale 0 numbers labels as we do; DVID keeps the bytes.
            assert!(!matches!(&name[..], "basic_s0.blocks" | "many_s0.blocks") || encoded == bytes);
            let (mut there, mut back) = (Vec::new(), Vec::new());
            block.segmentation_onto(SIZE, &mut there).unwrap();
            assert!(there == naive::segmentation(&Sample { size: SIZE, voxels }, SIZE));
            from_segmentation(&there, SIZE, &mut back).unwrap();
            assert!(back == encoded);
            seen += 1;
        }
    }
    assert_eq!(seen, 19);
}

#[test]
fn a_mapped_block_has_a_label_twice() {
    let blocks = blocks("mapped_s0.blocks");
    let block = Block::parse(&blocks[&[2, 2, 3]]).unwrap();
    let labels: Vec<u64> = block.labels().collect();
    assert_eq!(labels[..2], [87, 87]);
    assert!(canonical(&block).len() < block.bytes().len());
    assert_eq!(Block::parse(&blocks[&[1, 1, 1]]).unwrap().solid_label(), Some(0));
}

#[test]
fn the_next_scale_is_what_dvid_makes_of_eight_blocks() {
    for (fine, coarse, [x, y, z]) in [
        ("basic_s0.blocks", "basic_s1.blocks", [0, 0, 0]),
        ("many_s0.blocks", "many_s1.blocks", [1, 0, 1]),
    ] {
        let (fine, coarse) = (blocks(fine), blocks(coarse));
        let octants = std::array::from_fn(|at| {
            let at = at as i32;
            let child = [2 * x + (at & 1), 2 * y + (at >> 1 & 1), 2 * z + (at >> 2)];
            fine.get(&child).map(|bytes| Block::parse(bytes).unwrap())
        });
        let mut found = Vec::new();
        downsample(octants, None, SIZE, &mut found).unwrap();
        let expected = Block::parse(&coarse[&[x, y, z]]).unwrap();
        assert!(found == canonical(&expected));
        // Nothing of the result is absent, so what was stored before does not matter.
        if octants.iter().all(Option::is_some) {
            let mut again = Vec::new();
            downsample(octants, octants[0], SIZE, &mut again).unwrap();
            assert!(again == found);
        }
    }
}

#[test]
fn the_encoder_writes_the_bytes_that_dvid_checked_in() {
    for (name, len) in [
        ("fib19-64x64x64-sample1", 22512),
        ("fib19-64x64x64-sample2", 29356),
        ("cx-64x64x64-sample1", 26396),
        ("cx-64x64x64-sample2", 8660),
    ] {
        let raw = gunzip(&file(&format!("{name}.gz")));
        let mut encoded = Vec::new();
        encode(raw.as_chunks::<8>().0, SIZE, &mut encoded).unwrap();
        assert_eq!(encoded.len(), len, "{name}");
        let voxels: Vec<u64> =
            raw.as_chunks::<8>().0.iter().map(|label| u64::from_le_bytes(*label)).collect();
        assert!(decoded(&Block::parse(&encoded).unwrap()) == voxels, "{name}");
        if name == "fib19-64x64x64-sample1" {
            assert!(encoded == gunzip(&file("fib19-64x64x64-sample1-block.gz")));
        }
    }
}

#[test]
fn stored_values_hold_blocks() {
    for (name, len) in [("value-gzip", None), ("value-lz4", Some(0x13a0))] {
        let value = file(name);
        let plain = unwrap(&value, BYTES_MAX).unwrap();
        let block = Block::parse(&plain).unwrap();
        assert_eq!(block.size(), SIZE);
        assert!(len.is_none_or(|len| plain.len() == len));
        assert!(unwrap(&value, plain.len() - 1).is_err(), "{name}");
    }
}
