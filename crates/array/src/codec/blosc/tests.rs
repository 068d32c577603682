//! Against c-blosc, both ways, and against bytes that lie.

use proptest::prelude::*;
use serde_json::json;

use super::{Blosc, decode_into, decode_into_together, decode_some, is_ours};
use crate::codec::{Codecs, Elements};
use crate::{ArraySpec, Error};

/// c-blosc as `zarrs` calls it: a chain that starts with something our own path does not take.
fn c_blosc(cname: &str, clevel: u8, shuffle: &str, item: u64, decoded: usize) -> Codecs {
    let blosc = json!({"name": "blosc", "configuration": {
        "cname": cname, "clevel": clevel, "shuffle": shuffle, "typesize": item, "blocksize": 0}});
    let transpose = json!({"name": "transpose", "configuration": {"order": [0]}});
    let shape = [decoded as u64];
    let spec = ArraySpec::builder(&shape, &shape, json!("uint8"))
        .codecs(vec![transpose, json!({"name": "bytes"}), blosc])
        .build()
        .unwrap();
    Codecs::new(&spec).unwrap()
}

fn ours(level: u8, shuffle: bool, item: u8) -> Blosc {
    Blosc { level, shuffle, item, block_bytes: 0 }
}

/// A field with some noise: compressible, but not trivially.
fn field(len: usize) -> Vec<u8> {
    let value = |i: usize| (i as f32 / 50.0).sin() + ((i * 7919) % 13) as f32 * 1e-4;
    (0..len.div_ceil(4)).flat_map(|i| value(i).to_le_bytes()).take(len).collect()
}

fn noise(len: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(|_| next()).collect()
}

#[test]
fn c_blosc_reads_what_we_write() {
    for len in [1, 4, 127, 128, 1000, 65_536, 65_537, 300_000] {
        for decoded in [field(len), noise(len), vec![0; len]] {
            for (level, shuffle, item) in [
                (0, true, 4),
                (1, true, 4),
                (2, true, 8),
                (2, false, 1),
                (3, true, 3),
                (5, true, 16),
            ] {
                let mut encoded = Vec::new();
                ours(level, shuffle, item).encode_onto(&decoded, &mut encoded).unwrap();
                let mut found = vec![1; len];
                c_blosc("zstd", 5, "shuffle", 4, len).decode_into(&encoded, &mut found).unwrap();
                assert_eq!(found, decoded, "{len} bytes, {level} {shuffle} {item}");
                found.fill(1);
                decode_into(&encoded, &mut found).unwrap();
                assert_eq!(found, decoded, "{len} bytes, {level} {shuffle} {item}");
                assert!(encoded.len() <= len + 16, "{} for {len} bytes", encoded.len());
            }
        }
    }
}

#[test]
fn we_read_what_c_blosc_writes() {
    for cname in ["zstd", "lz4", "lz4hc"] {
        for (shuffle, item) in
            [("noshuffle", 1), ("shuffle", 2), ("shuffle", 4), ("shuffle", 7), ("shuffle", 8)]
        {
            for len in [1, 100, 129, 4096, 65_536, 70_001, 1 << 20] {
                for decoded in [field(len), noise(len)] {
                    let codecs = c_blosc(cname, 5, shuffle, item, len);
                    let encoded = codecs.encode(Elements::Fixed(&decoded)).unwrap();
                    assert!(is_ours(&encoded));
                    let mut found = vec![1; len];
                    decode_into(&encoded, &mut found).unwrap();
                    assert!(found == decoded, "{cname} {shuffle} {item} {len}");
                }
            }
        }
    }
}

#[test]
fn our_buffers_are_as_large_as_those_of_c_blosc() {
    let decoded = field(1 << 20);
    for level in 1..=9 {
        let mut encoded = Vec::new();
        ours(level, true, 4).encode_onto(&decoded, &mut encoded).unwrap();
        let theirs = c_blosc("zstd", level, "shuffle", 4, decoded.len())
            .encode(Elements::Fixed(&decoded))
            .unwrap();
        assert_eq!(encoded[..16], theirs[..16], "headers at level {level}");
        assert_eq!(encoded, theirs, "level {level}");
    }
}

#[test]
fn what_c_blosc_alone_understands_is_left_to_it() {
    let decoded = field(5000);
    for (cname, shuffle) in [
        ("blosclz", "shuffle"),
        ("zlib", "noshuffle"),
        ("snappy", "shuffle"),
        ("zstd", "bitshuffle"),
    ] {
        let encoded =
            c_blosc(cname, 5, shuffle, 4, 5000).encode(Elements::Fixed(&decoded)).unwrap();
        assert!(!is_ours(&encoded), "{cname} {shuffle}");
        // An array whose metadata say zstd still reads them: a buffer tells how it was made.
        let spec = ArraySpec::builder(&[1250], &[1250], json!("float32"))
            .codecs(vec![
                json!({"name": "bytes", "configuration": {"endian": "little"}}),
                json!({"name": "blosc", "configuration": {"cname": "zstd", "clevel": 2,
                    "shuffle": "shuffle", "typesize": 4, "blocksize": 0}}),
            ])
            .build()
            .unwrap();
        let mut found = vec![1; 5000];
        Codecs::new(&spec).unwrap().decode_into(&encoded, &mut found).unwrap();
        assert_eq!(found, decoded);
    }
}

#[test]
fn only_the_wanted_blocks_are_decoded() {
    let decoded = field(1 << 20);
    let mut encoded = Vec::new();
    ours(2, true, 4).encode_onto(&decoded, &mut encoded).unwrap();
    let mut found = vec![7; decoded.len()];
    decode_some(&encoded, &mut found, |block_bytes| {
        assert_eq!(block_bytes, 64 << 10);
        Ok(vec![3, 15])
    })
    .unwrap();
    for (block, (found, decoded)) in
        found.chunks(64 << 10).zip(decoded.chunks(64 << 10)).enumerate()
    {
        match block {
            3 | 15 => assert_eq!(found, decoded),
            _ => assert!(found.iter().all(|&byte| byte == 7)),
        }
    }
}

#[test]
fn many_threads_decode_the_same_as_one() {
    for decoded in [field(1 << 20), field((1 << 20) + 5), noise(1 << 20), field(100_000)] {
        let mut encoded = Vec::new();
        ours(2, true, 4).encode_onto(&decoded, &mut encoded).unwrap();
        let mut found = vec![7; decoded.len()];
        decode_into_together(&encoded, &mut found).unwrap();
        assert!(found == decoded);
        let middle = encoded.len() / 2;
        encoded.truncate(middle);
        assert!(decode_into_together(&encoded, &mut found).is_err());
    }
}

#[test]
fn a_header_that_lies_is_corrupt() {
    let decoded = field(200_000);
    let mut good = Vec::new();
    ours(2, true, 4).encode_onto(&decoded, &mut good).unwrap();
    let lies: &[(usize, &[u8])] = &[
        (0, &[3]),
        (3, &[0]),
        (4, &[0xff; 4]),
        (4, &[0; 4]),
        (8, &[0; 4]),
        (8, &[0xff; 4]),
        (8, &[1, 0, 0, 0]),
        (12, &[1, 0, 0, 0]),
        (16, &[0xff; 4]),
        (2, &[0x93]),
        (2, &[0x81]),
    ];
    for (at, bytes) in lies {
        let mut bad = good.clone();
        bad[*at..at + bytes.len()].copy_from_slice(bytes);
        let mut out = vec![0; decoded.len()];
        let error = decode_into(&bad, &mut out).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{at} {bytes:?}: {error}");
    }
    for len in 0..good.len().min(200) {
        assert!(decode_into(&good[..len], &mut vec![0; decoded.len()]).is_err());
    }
}

proptest! {
    #[test]
    fn any_bytes_round_trip(
        decoded in proptest::collection::vec(0u8..4, 0..5000),
        item in 1u8..20,
        shuffle: bool,
        level in 0u8..6,
        block_bytes in prop_oneof![Just(0usize), 1usize..3000],
    ) {
        let blosc = Blosc { level, shuffle, item, block_bytes };
        let mut encoded = Vec::new();
        blosc.encode_onto(&decoded, &mut encoded).unwrap();
        let mut found = vec![9; decoded.len()];
        decode_into(&encoded, &mut found).unwrap();
        prop_assert_eq!(found, decoded);
    }

    #[test]
    fn flipped_bytes_never_panic(at in 0usize..3000, byte: u8) {
        let decoded = field(20_000);
        let mut encoded = Vec::new();
        ours(2, true, 4).encode_onto(&decoded, &mut encoded).unwrap();
        let at = at % encoded.len();
        encoded[at] = byte;
        // Blosc has no checksum: other elements are possible, a panic is not.
        if let Err(error) = decode_into(&encoded, &mut vec![0; decoded.len()]) {
            prop_assert!(matches!(error, Error::Corrupt { .. }), "{}", error);
        }
    }
}
