//! What goes in comes out.

use proptest::prelude::*;

use super::super::{
    Compressor, DECODED_BYTES_MAX, HEADER_BYTES, Header, Params, Shuffle, decode_into, encode_onto,
    encode_onto_from, with_slack,
};
use super::{SHUFFLES, all, encoded, field, noise, params, steps};
use crate::Error;

const ITEMS: [u8; 9] = [1, 2, 3, 4, 8, 12, 16, 17, 255];

fn comes_back(params: &Params, plain: &[u8]) {
    let buffer = encoded(params, plain);
    assert!(buffer.len() <= plain.len() + HEADER_BYTES, "{} bytes, {params:?}", buffer.len());
    let mut found = vec![1; plain.len()];
    decode_into(&buffer, &mut found).unwrap();
    assert!(found == plain, "{} bytes, {params:?}", plain.len());
}

#[test]
fn small_buffers_of_every_kind_come_back() {
    for len in [0, 1, 127, 128, 1000] {
        for (plain, item, level) in kinds(len) {
            all(level, item).for_each(|params| comes_back(&params, &plain));
        }
    }
}

#[test]
fn buffers_around_the_smallest_block_come_back() {
    for len in [32_767, 32_768, 32_769] {
        for (plain, item, level) in kinds(len) {
            all(level, item).for_each(|params| comes_back(&params, &plain));
        }
    }
}

#[test]
fn large_buffers_come_back() {
    let plain = field((1 << 20) + 7);
    for item in ITEMS {
        all(0, item).chain(all(1, item)).for_each(|params| comes_back(&params, &plain));
    }
    for level in [5, 9] {
        all(level, 8).for_each(|params| comes_back(&params, &plain));
    }
}

#[test]
fn a_buffer_that_grows_is_as_if_it_were_made_at_once() {
    let same = |params: &Params, plain: &[u8], before: &[u8]| {
        let mut grown = Vec::new();
        encode_onto_from(params, plain, before, &mut grown).unwrap();
        assert!(grown == encoded(params, plain), "{params:?} from {} bytes", before.len());
    };
    for plain in [field(70_001), steps(70_001), noise(70_001)] {
        for params in all(5, 8).chain(all(0, 8)) {
            let params = Params { block_bytes: 4096, ..params };
            for had in [0, 100, 4096, 8192, 8193, 65_000, 70_001] {
                let mut before = encoded(&params, &plain[..had]);
                same(&params, &plain, &before);
                with_slack(&mut before, 1000).unwrap();
                same(&params, &plain, &before);
            }
        }
    }
}

#[test]
fn blocks_of_another_kind_of_buffer_are_not_taken_over() {
    let (plain, usual) = (steps(70_001), params(Compressor::Lz4, 5, Shuffle::Byte, 4));
    let usual = Params { block_bytes: 4096, ..usual };
    let longer = [plain.clone(), plain.clone()].concat();
    let others = [
        encoded(&Params { compressor: Compressor::Zstd, ..usual }, &plain),
        encoded(&Params { shuffle: Shuffle::None, ..usual }, &plain),
        encoded(&Params { item: 8, ..usual }, &plain),
        encoded(&Params { block_bytes: 8192, ..usual }, &plain),
        encoded(&usual, &longer),
        encoded(&usual, &plain)[..40].to_vec(),
        vec![0xff; 100],
    ];
    for before in others {
        let mut made = Vec::new();
        encode_onto_from(&usual, &plain, &before, &mut made).unwrap();
        assert!(made == encoded(&usual, &plain));
    }
}

fn kinds(len: usize) -> impl Iterator<Item = (Vec<u8>, u8, u8)> {
    ITEMS.into_iter().flat_map(move |item| {
        [0, 1, 5, 9].into_iter().flat_map(move |level| {
            [field(len), noise(len)].into_iter().map(move |plain| (plain, item, level))
        })
    })
}

#[test]
fn a_header_tells_how_a_buffer_was_made() {
    let plain = steps(5000);
    for params in all(5, 4) {
        let header = Header::parse(&encoded(&params, &plain)).unwrap();
        let expected = match params.compressor {
            Compressor::Lz4Hc => Compressor::Lz4,
            other => other,
        };
        assert_eq!((header.compressor(), header.shuffle()), (expected, params.shuffle));
        assert_eq!((header.item, header.decoded_bytes), (4, 5000));
        assert!(!header.is_stored());
    }
    let stored = encoded(&params(Compressor::Lz4, 0, Shuffle::None, 4), &plain);
    assert!(Header::parse(&stored).unwrap().is_stored());
}

#[test]
fn names_are_understood_and_others_are_explained() {
    for compressor in Compressor::ALL {
        assert_eq!(Compressor::parse(compressor.name()).unwrap(), compressor);
    }
    for shuffle in SHUFFLES {
        assert_eq!(Shuffle::parse(shuffle.name()).unwrap(), shuffle);
    }
    assert!(Compressor::parse("lzma").unwrap_err().to_string().contains("blosclz, lz4"));
    assert!(Shuffle::parse("2").unwrap_err().to_string().contains("bitshuffle"));
}

#[test]
fn impossible_parameters_are_refused() {
    for bad in [
        params(Compressor::Lz4, 10, Shuffle::None, 1),
        params(Compressor::Lz4, 5, Shuffle::None, 0),
    ] {
        let error = encode_onto(&bad, &[0; 100], &mut Vec::new()).unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{error}");
    }
    assert_eq!(DECODED_BYTES_MAX, 0x7fff_ffff - 16);
}

#[test]
fn a_buffer_is_appended_to_other_bytes() {
    let plain = field(1000);
    for params in all(5, 4) {
        let mut out = b"before".to_vec();
        encode_onto(&params, &plain, &mut out).unwrap();
        assert_eq!(out[..6], *b"before");
        assert_eq!(out[6..], encoded(&params, &plain));
    }
}

#[test]
fn slack_is_inside_a_buffer_and_does_not_matter() {
    let plain = steps(100_000);
    for params in all(5, 4) {
        let mut buffer = encoded(&params, &plain);
        let before = buffer.len();
        assert!(with_slack(&mut buffer, 1000).unwrap());
        assert_eq!(buffer.len(), before + 1000);
        assert_eq!(Header::parse(&buffer).unwrap().encoded_bytes, buffer.len() as u64);
        let mut found = vec![1; plain.len()];
        decode_into(&buffer, &mut found).unwrap();
        assert!(found == plain, "{params:?}");
        found.fill(1);
        super::super::c::reference::decode_into(&buffer, &mut found);
        assert!(found == plain, "{params:?}");
        assert!(with_slack(&mut buffer, i32::MAX as usize).is_err());
        buffer.push(0);
        assert!(with_slack(&mut buffer, 1).is_err());
    }
    let mut stored = encoded(&params(Compressor::Zstd, 5, Shuffle::Byte, 4), &noise(1000));
    assert!(!with_slack(&mut stored, 1000).unwrap());
    assert_eq!(stored.len(), 1016);
}

#[test]
fn bytes_after_a_buffer_are_no_part_of_it() {
    let plain = field(10_000);
    for params in all(0, 4).take(1).chain(all(5, 4)) {
        let mut buffer = encoded(&params, &plain);
        buffer.extend_from_slice(b"the next chunk");
        let mut found = vec![1; plain.len()];
        decode_into(&buffer, &mut found).unwrap();
        assert!(found == plain, "{params:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_come_back(
        plain in proptest::collection::vec(0u8..4, 0..5000),
        compressor in proptest::sample::select(&Compressor::ALL[..]),
        shuffle in proptest::sample::select(&SHUFFLES[..]),
        item in 1u8..20,
        level in 0u8..6,
        block_bytes in prop_oneof![Just(0usize), 1usize..3000],
    ) {
        comes_back(&Params { compressor, level, shuffle, item, block_bytes }, &plain);
    }
}
