//! Less than a whole buffer.

use proptest::prelude::*;

use super::super::{
    Compressor, Params, Shuffle, decode_into, decode_into_together, decode_range, decode_some,
};
use super::{all, encoded, field, noise, params, steps};
use crate::Error;

#[test]
fn any_range_is_as_in_the_whole() {
    let plain = field(100_003);
    for params in all(5, 8).chain(all(0, 4).take(1)) {
        let buffer = encoded(&Params { block_bytes: 8192, ..params }, &plain);
        for range in
            [0..0, 0..1, 8191..8193, 8192..16_384, 5..100_003, 100_003..100_003, 0..100_003]
        {
            let mut found = vec![1; range.len()];
            decode_range(&buffer, range.clone(), &mut found).unwrap();
            assert!(found == plain[range.clone()], "{range:?} {params:?}");
        }
    }
}

#[test]
fn a_range_that_does_not_fit_is_refused() {
    let buffer = encoded(&params(Compressor::Lz4, 5, Shuffle::Byte, 4), &field(1000));
    #[expect(clippy::reversed_empty_ranges, reason = "such a range is what is refused")]
    for (range, len) in [(0..1001, 1001), (0..10, 9), (20..10, 0), (usize::MAX..usize::MAX, 0)] {
        let error = decode_range(&buffer, range, &mut vec![0; len]).unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{error}");
    }
}

#[test]
fn a_range_is_read_past_damage_in_other_blocks() {
    let plain = steps(100_000);
    for params in all(5, 4) {
        let mut buffer = encoded(&Params { block_bytes: 10_000, ..params }, &plain);
        // The offset of the second block.
        buffer[20..24].fill(0xff);
        assert!(decode_into(&buffer, &mut vec![0; plain.len()]).is_err());
        let mut found = vec![1; 10_000];
        decode_range(&buffer, 30_000..40_000, &mut found).unwrap();
        assert!(found == plain[30_000..40_000], "{params:?}");
    }
}

#[test]
fn blocks_may_lie_in_any_order() {
    let plain = steps(40_000);
    for params in all(5, 4) {
        let buffer = encoded(&Params { block_bytes: 10_000, ..params }, &plain);
        let starts: Vec<usize> = (0..4).map(|block| start_of(&buffer, block)).collect();
        let ends: Vec<usize> = starts[1..].iter().copied().chain([buffer.len()]).collect();
        let mut other = buffer[..32].to_vec();
        for block in [2, 0, 3, 1] {
            let at = other.len() as u32;
            other[16 + 4 * block..][..4].copy_from_slice(&at.to_le_bytes());
            other.extend_from_slice(&buffer[starts[block]..ends[block]]);
        }
        let mut found = vec![1; plain.len()];
        decode_into(&other, &mut found).unwrap();
        assert!(found == plain, "{params:?}");
    }
}

fn start_of(buffer: &[u8], block: usize) -> usize {
    u32::from_le_bytes(*buffer[16 + 4 * block..].first_chunk().unwrap()) as usize
}

#[test]
fn only_the_wanted_blocks_are_decoded() {
    let plain = steps(1 << 20);
    for params in all(2, 4) {
        let buffer = encoded(&Params { block_bytes: 64 << 10, ..params }, &plain);
        let mut found = vec![7; plain.len()];
        decode_some(&buffer, &mut found, |block_bytes| {
            assert_eq!(block_bytes, 64 << 10);
            Ok(vec![3, 15])
        })
        .unwrap();
        for (block, (found, plain)) in
            found.chunks(64 << 10).zip(plain.chunks(64 << 10)).enumerate()
        {
            match block {
                3 | 15 => assert!(found == plain, "{params:?}"),
                _ => assert!(found.iter().all(|&byte| byte == 7)),
            }
        }
    }
}

#[test]
fn many_threads_decode_the_same_as_one() {
    for plain in [field(1 << 20), field((1 << 20) + 5), noise(1 << 20), field(100_000)] {
        for params in all(2, 4) {
            let mut buffer = encoded(&Params { block_bytes: 64 << 10, ..params }, &plain);
            let mut found = vec![7; plain.len()];
            decode_into_together(&buffer, &mut found).unwrap();
            assert!(found == plain, "{params:?}");
            let middle = buffer.len() / 2;
            buffer.truncate(middle);
            assert!(decode_into_together(&buffer, &mut found).is_err());
        }
    }
}

proptest! {
    #[test]
    fn ranges_of_any_bytes_come_back(
        plain in proptest::collection::vec(0u8..4, 1..5000),
        compressor in proptest::sample::select(&Compressor::ALL[..]),
        item in 1u8..20,
        block_bytes in 1usize..3000,
        ends: (usize, usize),
    ) {
        let params = Params { compressor, level: 3, shuffle: Shuffle::Bit, item, block_bytes };
        let buffer = encoded(&params, &plain);
        let (one, other) = (ends.0 % (plain.len() + 1), ends.1 % (plain.len() + 1));
        let range = one.min(other)..one.max(other);
        let mut found = vec![9; range.len()];
        decode_range(&buffer, range.clone(), &mut found).unwrap();
        prop_assert_eq!(found, &plain[range]);
    }
}
