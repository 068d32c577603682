//! The wrapper of stored values.

use proptest::prelude::*;

use super::super::value::{Compression, unwrap, wrap_onto};
use crate::Error;

const ALL: [Compression; 5] = [
    Compression::None,
    Compression::Snappy,
    Compression::Lz4,
    Compression::Gzip(6),
    Compression::Gzip(0),
];

fn wrapped(plain: &[u8], compression: Compression, checksum: bool) -> Vec<u8> {
    let mut out = Vec::new();
    wrap_onto(plain, compression, checksum, &mut out).unwrap();
    out
}

#[test]
fn the_first_byte_tells_compression_and_checksum() {
    for (compression, checksum, first) in [
        (Compression::None, false, 0x00),
        (Compression::None, true, 0x08),
        (Compression::Snappy, false, 0x20),
        (Compression::Snappy, true, 0x28),
        (Compression::Gzip(6), false, 0x40),
        (Compression::Gzip(6), true, 0x40),
        (Compression::Lz4, false, 0x80),
        (Compression::Lz4, true, 0x88),
    ] {
        assert_eq!(wrapped(b"abc", compression, checksum)[0], first);
    }
    // The CRC-32 of "123456789" is well known.
    let nine = wrapped(b"123456789", Compression::None, true);
    assert_eq!(nine[..5], [0x08, 0x26, 0x39, 0xf4, 0xcb]);
    assert_eq!(wrapped(b"abc", Compression::Gzip(6), false)[1..3], [0x1f, 0x8b]);
    assert_eq!(wrapped(b"abc", Compression::Lz4, false)[1..5], [3, 0, 0, 0]);
    let mut out = vec![1];
    assert!(wrap_onto(b"abc", Compression::Gzip(10), false, &mut out).is_err());
    assert_eq!(out, [1]);
}

#[test]
fn nothing_is_nothing() {
    for compression in ALL {
        assert!(wrapped(b"", compression, true).is_empty());
    }
    assert!(unwrap(b"", 0).unwrap().is_empty());
}

#[test]
fn members_of_gzip_are_joined_and_an_old_lz4_is_not_compressed() {
    let first = wrapped(b"first, ", Compression::Gzip(9), false);
    let second = wrapped(b"second", Compression::Gzip(1), false);
    let both = [&first[..], &second[1..]].concat();
    assert_eq!(*unwrap(&both, 100).unwrap(), *b"first, second");
    assert_eq!(*unwrap(b"\x80\0\0\0\0plain", 5).unwrap(), *b"plain");
}

#[test]
fn no_more_is_unpacked_than_allowed() {
    let plain = vec![7; 100_000];
    for compression in ALL {
        let value = wrapped(&plain, compression, false);
        assert_eq!(*unwrap(&value, plain.len()).unwrap(), *plain);
        for bytes_max in [0, 1, plain.len() - 1] {
            let error = unwrap(&value, bytes_max).unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }), "{compression:?}: {error}");
        }
    }
    // Lengths that the payload cannot hold.
    for forged in [&b"\x80\xff\xff\xff\xff\0\0"[..], b"\x20\xff\xff\xff\xff\x0f\0\0"] {
        let error = unwrap(forged, usize::MAX).unwrap_err().to_string();
        assert!(error.contains("can hold"), "{error}");
    }
}

#[test]
fn formats_that_are_none_are_refused() {
    for first in 0..=255u8 {
        let known = matches!(first, 0x00 | 0x08 | 0x20 | 0x28 | 0x40 | 0x48 | 0x80 | 0x88);
        match unwrap(&[first], 100) {
            Ok(plain) => assert!(first == 0 && plain.is_empty(), "{first:#x}"),
            Err(Error::Unsupported { .. }) => assert_eq!(first, 0xa0),
            Err(Error::Corrupt { .. }) => assert!(known || first != 0xa0, "{first:#x}"),
            Err(other) => panic!("{first:#x}: {other}"),
        }
    }
}

#[test]
fn damage_is_found() {
    let plain: Vec<u8> = (0..3000u32).map(|at| ((at * at) >> 7) as u8).collect();
    for compression in ALL {
        for checksum in [false, true] {
            let value = wrapped(&plain, compression, checksum);
            let has_checksum = value[0] & 0x08 != 0 || matches!(compression, Compression::Gzip(_));
            for at in 1..value.len() {
                let cut = unwrap(&value[..at], plain.len());
                assert!(compression == Compression::None || cut.is_err(), "{compression:?} {at}");
                let mut bent = value.clone();
                bent[at] ^= 0x10;
                match unwrap(&bent, plain.len()) {
                    // Time, name and system in the head of a gzip stream are not covered.
                    Ok(found) if has_checksum => {
                        assert!(at < 12 && *found == *plain, "{compression:?} {at}");
                    }
                    Ok(_) | Err(Error::Corrupt { .. }) => {}
                    Err(other) => panic!("{other}"),
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn values_round_trip(
        plain in proptest::collection::vec(0u8..3, 0..3000),
        compression in proptest::sample::select(&ALL[..]),
        checksum in any::<bool>(),
    ) {
        let value = wrapped(&plain, compression, checksum);
        prop_assert_eq!(&*unwrap(&value, plain.len()).unwrap(), &plain[..]);
    }

    #[test]
    fn random_values_are_harmless(value in proptest::collection::vec(any::<u8>(), 0..60)) {
        match unwrap(&value, 1000) {
            Ok(plain) => prop_assert!(plain.len() <= 1000),
            Err(error) => prop_assert!(
                matches!(error, Error::Corrupt { .. } | Error::Unsupported { .. }), "{}", error
            ),
        }
    }
}

#[test]
fn chunks_of_an_array_may_be_wrapped_each_in_its_own_way() {
    use serde_json::json;

    use crate::ArraySpec;
    use crate::codec::{Codecs, DVID_VALUE, ElementsBuf};

    let codecs = vec![json!({"name": "chunkyard.label_block"}), json!({"name": DVID_VALUE})];
    let builder = ArraySpec::builder(&[16, 16, 16], &[16, 16, 16], "uint64");
    let codecs = Codecs::new(&builder.codecs(codecs).build().unwrap()).unwrap();
    let voxels: Vec<u64> = (0..16 * 16 * 16).map(|at| at / 100).collect();
    let elements: Vec<u8> = voxels.iter().flat_map(|voxel| voxel.to_le_bytes()).collect();
    let mut block = Vec::new();
    crate::codec::label_block::encode(&voxels, [16; 3], &mut block).unwrap();
    let all = [Compression::None, Compression::Snappy, Compression::Gzip(1), Compression::Lz4];
    for (compression, checksum) in all.into_iter().flat_map(|c| [(c, false), (c, true)]) {
        let mut chunk = Vec::new();
        wrap_onto(&block, compression, checksum, &mut chunk).unwrap();
        let mut out = vec![0; elements.len()];
        codecs.decode_into(&chunk, &mut out).unwrap();
        assert_eq!(out, elements, "{compression:?}");
        assert_eq!(codecs.label_block(&chunk).unwrap(), block);
        let by_zarrs = codecs.decode_by_zarrs(&chunk).unwrap();
        assert!(matches!(by_zarrs, ElementsBuf::Fixed(bytes) if bytes == elements));
        chunk.truncate(chunk.len() / 2);
        assert!(codecs.decode_into(&chunk, &mut out).is_err());
    }
    let own = codecs.encode_label_block(&block).unwrap();
    assert_eq!(own[..3], [0x40, 0x1f, 0x8b]);
    assert_eq!(codecs.label_block(&own).unwrap(), block);
}
