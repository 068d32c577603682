//! Our buffers equal c-blosc's, and we read c-blosc's buffers.

use super::super::c::reference;
use super::super::encode::block_bytes_asked;
use super::super::{Compressor, Header, Params, Shuffle, decode_into};
use super::{all, encoded, field, noise, params};

#[test]
fn our_buffers_are_those_of_c_blosc() {
    for len in [0, 1, 100, 127, 128, 129, 1000, 4096, 32_767, 32_768, 65_537, 300_001] {
        for plain in [field(len), noise(len), vec![0; len]] {
            for item in [1, 2, 4, 7, 8, 16, 17, 255] {
                for params in all(5, item) {
                    let expected = reference::encode(&params, &plain);
                    assert!(encoded(&params, &plain) == expected, "{len} bytes, {params:?}");
                }
            }
        }
    }
}

#[test]
fn our_buffers_are_those_of_c_blosc_at_every_level() {
    let plain = field(1 << 19);
    for level in 0..=9 {
        for params in all(level, 4) {
            let expected = reference::encode(&params, &plain);
            assert!(encoded(&params, &plain) == expected, "{params:?}");
        }
    }
}

#[test]
fn our_buffers_are_those_of_c_blosc_where_noise_begins_late() {
    // Some streams find room and others do not; what is left at the end decides.
    for len in [5000, 70_000] {
        for quiet in [10, 500, 1500, 2500, 4000] {
            let mut plain = noise(len);
            plain[..quiet].fill(0);
            for params in all(5, 4).chain(all(9, 8)) {
                let expected = reference::encode(&params, &plain);
                assert!(encoded(&params, &plain) == expected, "{len} {quiet} {params:?}");
            }
        }
    }
}

#[test]
fn our_buffers_are_those_of_c_blosc_with_a_given_block_size() {
    let plain = field(200_000);
    for asked in [1, 200, 256, 1000, 4096, 65_536, 300_000] {
        for item in [1, 3, 4, 8, 16, 100] {
            for ours in all(5, item) {
                let theirs = Params { block_bytes: asked, ..ours };
                let ours = Params { block_bytes: block_bytes_asked(&ours, asked), ..ours };
                let expected = reference::encode(&theirs, &plain);
                assert!(encoded(&ours, &plain) == expected, "{theirs:?}");
            }
        }
    }
}

#[test]
fn c_blosc_reads_blocks_that_it_would_not_make() {
    let plain = field(200_000);
    for block_bytes in [128, 1000, 4096, 50_000] {
        for params in all(5, 8) {
            let buffer = encoded(&Params { block_bytes, ..params }, &plain);
            assert_eq!(Header::parse(&buffer).unwrap().block_bytes, block_bytes as u64);
            let mut found = vec![1; plain.len()];
            reference::decode_into(&buffer, &mut found);
            assert!(found == plain, "{block_bytes} {params:?}");
            found.fill(1);
            decode_into(&buffer, &mut found).unwrap();
            assert!(found == plain, "{block_bytes} {params:?}");
        }
    }
}

#[test]
fn the_worked_example_of_the_format_is_made_and_read() {
    let plain: Vec<u8> = (0..1024_i32).flat_map(i32::to_le_bytes).collect();
    let buffer = encoded(&params(Compressor::Lz4, 5, Shuffle::Byte, 4), &plain);
    let head = [2, 1, 0x21, 4, 0, 0x10, 0, 0, 0, 0x10, 0, 0, 0x67, 1, 0, 0];
    assert_eq!(buffer[..16], head);
    let stream = [0x14, 0, 0, 0, 0x0d, 1, 0, 0, 0xff, 0xf1, 0, 1, 2, 3];
    assert_eq!(buffer[16..30], stream);
    assert_eq!(buffer.len(), 359);
    let lengths = [0x14, 0x125, 0x143, 0x155].map(|at: usize| buffer[at]);
    assert_eq!(lengths, [0x0d, 26, 14, 14]);
    let mut found = vec![1; plain.len()];
    decode_into(&buffer, &mut found).unwrap();
    assert_eq!(found, plain);
}
