use serde_json::json;

use super::*;
use crate::{ArraySpec, Codecs};

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn encoded(dtype: &str, shape: &[u64], block: [u64; 3], decoded: &[u8]) -> Vec<u8> {
    let layout = Layout::new(dtype, shape, block).unwrap();
    let mut out = vec![7; 3];
    layout.encode_onto(decoded, &mut out).unwrap();
    let mut back = vec![0xaa; decoded.len()];
    layout.decode_into(&out[3..], &mut back).unwrap();
    assert!(back == decoded, "{dtype} {shape:?} {block:?}");
    assert!(out.len() - 3 <= layout.encoded_bytes_max().unwrap());
    out.split_off(3)
}

fn labels(labels: &[u64]) -> Vec<u8> {
    labels.iter().flat_map(|label| label.to_le_bytes()).collect()
}

#[test]
fn the_examples_of_other_implementations_are_written_byte_for_byte() {
    let mut voxels = vec![7; 16];
    voxels[0] = 9;
    let found = encoded("uint64", &[2, 2, 4], [2, 2, 2], &labels(&voxels));
    let expected = [1, 0x0100_0005, 4, 9, 9, 1, 7, 0, 9, 0, 7, 0];
    assert_eq!(found, words(&expected));
    let voxels = [0, 0, 0, 5, 5, 5, 10, 10, 10, 15, 15, 15];
    let found = encoded("uint64", &[2, 2, 3], [2, 2, 2], &labels(&voxels));
    let expected = [1, 0x0200_0005, 4, 0x0200_0005, 13, 0xfa50, 0, 0, 5, 0, 10, 0, 15, 0, 0x3210];
    assert_eq!(found, words(&expected));
}

/// A stream of numbers that looks random and is the same every time.
fn noise(count: usize, below: u64) -> impl Iterator<Item = u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    (0..count).map(move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    })
}

#[test]
fn chunks_of_any_shape_go_there_and_back() {
    for (shape, block) in [
        (&[1, 1, 1][..], [8, 8, 8]),
        (&[8, 8, 8], [8, 8, 8]),
        (&[3, 17, 9], [8, 8, 8]),
        (&[16, 5, 31], [4, 2, 16]),
        (&[2, 7, 11, 13], [8, 8, 8]),
        (&[40, 40, 41], [40, 40, 40]),
    ] {
        let count: u64 = shape.iter().product();
        for below in [1, 2, 3, 5, 200, 1 << 40] {
            let wide: Vec<u64> = noise(count as usize, below).map(|label| label * 3).collect();
            encoded("uint64", shape, block, &labels(&wide));
            let narrow: Vec<u8> =
                wide.iter().flat_map(|label| (*label as u32).to_le_bytes()).collect();
            encoded("uint32", shape, block, &narrow);
        }
    }
}

#[test]
fn a_chunk_is_the_same_by_way_of_a_label_block() {
    let spec = |codec: serde_json::Value| {
        let codecs = vec![codec, json!({"name": "gzip", "configuration": {"level": 6}})];
        let spec = ArraySpec::builder(&[16, 24, 8], &[16, 24, 8], "uint64").codecs(codecs);
        Codecs::new(&spec.build().unwrap()).unwrap()
    };
    let segmentation = json!({"name": NAME, "configuration": {"block_size": [8, 8, 8]}});
    let (segmentation, blocks) =
        (spec(segmentation), spec(json!({"name": "chunkyard.label_block"})));
    for below in [1, 2, 3, 9, 600] {
        let voxels = labels(&noise(16 * 24 * 8, below).collect::<Vec<_>>());
        let chunk = |codecs: &Codecs| {
            let mut out = Vec::new();
            codecs.encode_into(&voxels, &mut out).unwrap();
            out
        };
        assert!(segmentation.has_label_blocks() && segmentation.clips_label_blocks());
        let block = blocks.label_block(&chunk(&blocks)).unwrap();
        assert_eq!(segmentation.encode_label_block(&block).unwrap(), chunk(&segmentation));
        assert_eq!(segmentation.label_block(&chunk(&segmentation)).unwrap(), block);
    }
}

#[test]
fn a_block_size_that_cannot_be_is_refused() {
    let spec = |dtype: &str, shape: &[u64], configuration: serde_json::Value| {
        let codecs = vec![json!({"name": NAME, "configuration": configuration})];
        ArraySpec::builder(shape, shape, dtype)
            .codecs(codecs)
            .build()
            .map(|spec| Codecs::new(&spec))
    };
    for (dtype, shape, configuration, why) in [
        ("uint64", &[8, 8, 8][..], json!({}), "needs a block_size"),
        ("uint64", &[8, 8, 8], json!({"block_size": [8, 8]}), "needs a block_size"),
        ("uint64", &[8, 8, 8], json!({"block_size": [8, 8, 0]}), "1 to 65536 voxels"),
        ("uint64", &[8, 8, 8], json!({"block_size": [64, 64, 64]}), "1 to 65536 voxels"),
        ("uint16", &[8, 8, 8], json!({"block_size": [8, 8, 8]}), "uint64 or uint32"),
        ("uint64", &[8, 8], json!({"block_size": [8, 8, 8]}), "the axes z, y and x"),
    ] {
        let error = match spec(dtype, shape, configuration) {
            Ok(codecs) => codecs.unwrap_err(),
            Err(error) => error,
        };
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[test]
fn segmentations_that_lie_are_corrupt() {
    let voxels = labels(&noise(8 * 8 * 20, 5).collect::<Vec<_>>());
    let whole = encoded("uint64", &[8, 8, 20], [8, 8, 8], &voxels);
    let layout = Layout::new("uint64", &[8, 8, 20], [8, 8, 8]).unwrap();
    let mut out = vec![0; voxels.len()];
    for len in 0..whole.len() {
        if let Err(error) = layout.decode_into(&whole[..len], &mut out) {
            assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        } else {
            // The last block is clipped, so the last words of its table need not be used.
            assert!(len % 4 == 0 && out == voxels, "{len} of {}", whole.len());
        }
    }
    for (word, value, what) in [
        (0, 0, "where channel 0 begins"),
        (0, u32::MAX, "where channel 0 begins"),
        (1, 3 << 24 | 6, "bits per voxel"),
        (1, 4 << 24 | 0xff_ffff, "label"),
        (2, u32::MAX, "numbers"),
    ] {
        let mut forged = whole.clone();
        forged[word * 4..word * 4 + 4].copy_from_slice(&value.to_le_bytes());
        let error = layout.decode_into(&forged, &mut out).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}
