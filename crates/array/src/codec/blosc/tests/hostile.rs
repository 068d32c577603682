//! Buffers that lie.

use proptest::prelude::*;

use super::super::{Compressor, Header, Params, Shuffle, decode_into, decode_range};
use super::{all, encoded, field, params};
use crate::Error;

#[test]
fn a_header_that_lies_is_corrupt() {
    let plain = field(200_000);
    let lies: &[(usize, &[u8])] = &[
        (0, &[1]),
        (0, &[6]),
        (3, &[0]),
        (4, &[0xff; 4]),
        (4, &[0; 4]),
        (8, &[0; 4]),
        (8, &[0xff; 4]),
        (8, &[1, 0, 0, 0]),
        (12, &[1, 0, 0, 0]),
        (12, &[0xff; 4]),
        (16, &[0xff; 4]),
        (2, &[0x93]),
        (2, &[0x81]),
    ];
    let good = encoded(&params(Compressor::Zstd, 2, Shuffle::Byte, 4), &plain);
    for (at, bytes) in lies {
        let mut bad = good.clone();
        bad[*at..at + bytes.len()].copy_from_slice(bytes);
        let error = decode_into(&bad, &mut vec![0; plain.len()]).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{at} {bytes:?}: {error}");
    }
    for params in all(2, 4) {
        let good = encoded(&params, &plain);
        for len in (0..good.len().min(200)).chain([good.len() - 1]) {
            assert!(decode_into(&good[..len], &mut vec![0; plain.len()]).is_err());
        }
    }
}

#[test]
fn a_header_that_promises_more_than_a_buffer_can_hold_is_corrupt() {
    // Nothing is denser than zeros in Zstandard.
    let plain = vec![0; 100 << 20];
    let dense = params(Compressor::Zstd, 9, Shuffle::None, 1);
    let dense = encoded(&Params { block_bytes: plain.len(), ..dense }, &plain);
    let header = Header::parse(&dense).unwrap();
    assert!(header.decoded_bytes > 8192 * header.encoded_bytes, "{header:?}");
    let mut found = vec![1; plain.len()];
    decode_into(&dense, &mut found).unwrap();
    assert!(found == plain);

    let promise = [2, 1, 0x90, 1, 0, 0, 0, 64, 0, 0, 0, 64, 20, 0, 0, 0, 0, 0, 0, 0];
    let error = Header::parse(&promise).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("what 20 bytes can hold"), "{error}");
}

#[test]
fn what_is_not_blosc_1_is_named() {
    let good = encoded(&params(Compressor::Zstd, 2, Shuffle::Byte, 4), &field(1000));
    for (at, byte, named) in [
        (0, 3, "Blosc2"),
        (0, 5, "Blosc2"),
        (1, 2, "version 2 of zstd"),
        (2, 0x95, "flags"),
        (2, 0x99, "flags"),
        (2, 0xb1, "compressor 5"),
    ] {
        let mut other = good.clone();
        other[at] = byte;
        let error = Header::parse(&other).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains(named), "{error}");
    }
}

#[test]
fn a_length_that_was_not_expected_is_refused() {
    for params in all(5, 4) {
        let buffer = encoded(&params, &field(1000));
        for len in [0, 999, 1001] {
            assert!(decode_into(&buffer, &mut vec![0; len]).is_err(), "{len} {params:?}");
        }
    }
}

proptest! {
    #[test]
    fn flipped_bytes_never_panic(
        compressor in proptest::sample::select(&Compressor::ALL[..]),
        shuffle in proptest::sample::select(&super::SHUFFLES[..]),
        flips in proptest::collection::vec((0usize..3000, any::<u8>()), 1..4),
        cut in prop_oneof![4 => Just(usize::MAX), 1 => 0usize..3000],
    ) {
        let plain = field(20_000);
        let params = Params { compressor, level: 2, shuffle, item: 4, block_bytes: 4096 };
        let mut buffer = encoded(&params, &plain);
        for (at, byte) in flips {
            let at = at % buffer.len();
            buffer[at] = byte;
        }
        buffer.truncate(cut);
        // Blosc has no checksum: other elements are possible, a panic is not.
        let whole = decode_into(&buffer, &mut vec![0; plain.len()]);
        let some = decode_range(&buffer, 5000..9000, &mut vec![0; 4000]);
        for error in [whole.err(), some.err()].into_iter().flatten() {
            prop_assert!(!matches!(error, Error::OutOfMemory { .. }), "{}", error);
        }
    }

    #[test]
    fn any_bytes_behind_a_header_never_panic(
        flags: u8,
        item: u8,
        sizes: [u8; 2],
        body in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        let (decoded, block) = (u32::from(sizes[0]) * 8, u32::from(sizes[1]) * 8);
        let mut buffer = vec![2, 1, flags & !8, item];
        for size in [decoded, block, 16 + body.len() as u32] {
            buffer.extend_from_slice(&size.to_le_bytes());
        }
        buffer.extend_from_slice(&body);
        let mut out = vec![0; decoded as usize];
        // Only that it returns.
        drop(decode_into(&buffer, &mut out));
    }
}
