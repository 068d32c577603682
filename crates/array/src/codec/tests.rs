//! Round trips over types and chains, and tampered bytes.

use serde_json::{Value, json};

use super::{Codecs, Elements, ElementsBuf};
use crate::{ArraySpec, Error, Grid, Output, Region};

const SHAPE: [u64; 2] = [4, 6];

fn bytes(endian: &str) -> Value {
    json!({"name": "bytes", "configuration": {"endian": endian}})
}

fn zstd() -> Value {
    json!({"name": "zstd", "configuration": {"level": 3, "checksum": false}})
}

fn lz4() -> Value {
    json!({"name": "numcodecs.lz4", "configuration": {"acceleration": 1}})
}

fn blosc(cname: &str, shuffle: &str) -> Value {
    let configuration =
        json!({"cname": cname, "clevel": 5, "shuffle": shuffle, "typesize": 4, "blocksize": 0});
    json!({"name": "blosc", "configuration": configuration})
}

fn sharded(inner: Value, location: &str) -> Value {
    let configuration = json!({
        "chunk_shape": [2, 3], "codecs": inner,
        "index_codecs": [bytes("little"), {"name": "crc32c"}], "index_location": location,
    });
    json!([{"name": "sharding_indexed", "configuration": configuration}])
}

/// Chains without loss that take every type of fixed size.
fn chains() -> Vec<Value> {
    let transpose = json!({"name": "transpose", "configuration": {"order": [1, 0]}});
    let level = |name: &str| json!({"name": name, "configuration": {"level": 5}});
    let checked = json!({"name": "zstd", "configuration": {"level": -1, "checksum": true}});
    let shuffle = json!({"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}});
    vec![
        json!([bytes("little")]),
        json!([bytes("big")]),
        json!([bytes("little"), zstd()]),
        json!([bytes("little"), {"name": "crc32c"}]),
        json!([bytes("little"), zstd(), {"name": "crc32c"}]),
        json!([bytes("little"), checked]),
        json!([bytes("big"), zstd()]),
        json!([transpose, bytes("little"), zstd()]),
        json!([transpose, bytes("big"), level("gzip"), "crc32c"]),
        json!([bytes("little"), level("gzip")]),
        json!([bytes("little"), level("numcodecs.zlib")]),
        json!([bytes("little"), level("numcodecs.bz2")]),
        json!([bytes("little"), lz4()]),
        json!([bytes("little"), lz4(), level("gzip")]),
        json!([bytes("little"), shuffle, zstd()]),
        json!([bytes("little"), zstd(), level("gzip"), zstd()]),
        json!([bytes("little"), blosc("lz4", "shuffle")]),
        json!([bytes("little"), blosc("zstd", "shuffle")]),
        json!([bytes("little"), blosc("zstd", "bitshuffle")]),
        json!([bytes("little"), blosc("zstd", "noshuffle"), {"name": "crc32c"}]),
        json!([bytes("little"), blosc("blosclz", "noshuffle"), {"name": "crc32c"}]),
        json!([bytes("little"), {"name": "numcodecs.adler32"}]),
        json!([bytes("little"), {"name": "numcodecs.fletcher32"}]),
        sharded(json!([bytes("little"), zstd()]), "end"),
        sharded(json!([transpose, bytes("big"), level("gzip")]), "start"),
        sharded(json!([bytes("little"), blosc("lz4", "shuffle")]), "end"),
    ]
}

fn codecs_of(dtype: &Value, chain: &Value) -> crate::Result<Codecs> {
    let spec = ArraySpec::builder(&SHAPE, &SHAPE, dtype.clone())
        .codecs(chain.as_array().unwrap().clone())
        .build()?;
    Codecs::new(&spec)
}

fn sample(len: usize) -> Vec<u8> {
    // A stretch of zeros, so that a shard has an inner chunk to leave out; then noise.
    (0..len).map(|i| if i < len / 4 { 0 } else { (i * i / 3 + i / 7) as u8 }).collect()
}

#[test]
fn every_type_of_fixed_size_round_trips_through_every_chain() {
    let time = json!({"unit": "ns", "scale_factor": 1});
    let dtypes = [
        json!("int8"),
        json!("int16"),
        json!("int32"),
        json!("int64"),
        json!("uint8"),
        json!("uint16"),
        json!("uint32"),
        json!("uint64"),
        json!("float16"),
        json!("bfloat16"),
        json!("float32"),
        json!("float64"),
        json!("complex64"),
        json!("complex128"),
        json!("r24"),
        json!({"name": "numpy.datetime64", "configuration": time}),
        json!({"name": "numpy.timedelta64", "configuration": time}),
    ];
    for dtype in &dtypes {
        for chain in chains() {
            let codecs =
                codecs_of(dtype, &chain).unwrap_or_else(|e| panic!("{dtype} {chain}: {e}"));
            let decoded = sample(codecs.chunk_bytes().unwrap());
            let encoded = codecs.encode(Elements::Fixed(&decoded)).unwrap();
            let found = codecs.decode(&encoded).unwrap_or_else(|e| panic!("{dtype} {chain}: {e}"));
            assert_eq!(found, ElementsBuf::Fixed(decoded.clone()), "{dtype} {chain}");

            let mut appended = vec![7; 3];
            codecs.encode_into(&decoded, &mut appended).unwrap();
            assert_eq!(appended.split_at(3), (&[7; 3][..], &encoded[..]), "{dtype} {chain}");
            let mut out = vec![0; decoded.len()];
            codecs.decode_into(&encoded, &mut out).unwrap();
            assert_eq!(out, decoded, "{dtype} {chain}");
        }
    }
}

#[test]
fn boolean_chunks_round_trip() {
    for chain in chains() {
        let codecs = codecs_of(&json!("bool"), &chain).unwrap();
        let decoded: Vec<u8> = (0..24).map(|i| u8::from(i % 5 == 1)).collect();
        let encoded = codecs.encode(Elements::Fixed(&decoded)).unwrap();
        assert_eq!(codecs.decode(&encoded).unwrap(), ElementsBuf::Fixed(decoded), "{chain}");
    }
}

#[test]
fn codecs_for_some_types_round_trip() {
    let packbits = json!([{"name": "packbits"}]);
    let pcodec = json!([{"name": "numcodecs.pcodec", "configuration": {
        "level": 8, "mode_spec": "auto", "delta_spec": "auto", "paging_spec": "equal_pages_up_to",
        "delta_encoding_order": null, "equal_pages_up_to": 262_144,
    }}]);
    let reshape = json!({"name": "reshape", "configuration": {"shape": [[0, 1]]}});
    let reshaped = json!([reshape, bytes("little"), zstd()]);
    for (dtype, chain) in [
        (json!("bool"), packbits.clone()),
        (json!("uint16"), packbits),
        (json!("float64"), pcodec.clone()),
        (json!("uint32"), pcodec),
        (json!("float32"), reshaped),
    ] {
        let codecs = codecs_of(&dtype, &chain).unwrap_or_else(|e| panic!("{dtype} {chain}: {e:?}"));
        let decoded: Vec<u8> = (0..codecs.chunk_bytes().unwrap()).map(|i| (i % 2) as u8).collect();
        let encoded = codecs.encode(Elements::Fixed(&decoded)).unwrap();
        assert_eq!(codecs.decode(&encoded).unwrap(), ElementsBuf::Fixed(decoded), "{chain}");
    }
    let bitround = json!([{"name": "bitround", "configuration": {"keepbits": 3}}, bytes("little")]);
    let codecs = codecs_of(&json!("float32"), &bitround).unwrap();
    let ones = 1.0f32.to_le_bytes().repeat(24);
    let encoded = codecs.encode(Elements::Fixed(&ones)).unwrap();
    assert_eq!(codecs.decode(&encoded).unwrap(), ElementsBuf::Fixed(ones));
}

#[test]
fn regions_read_by_views_equal_the_array() {
    let array_shape = [7, 15];
    let grid = Grid::new(&array_shape, &SHAPE).unwrap();
    for chain in chains() {
        let codecs = codecs_of(&json!("uint32"), &chain).unwrap();
        let chunk_of = |index: &[u64]| {
            let mut decoded = sample(codecs.chunk_bytes().unwrap());
            decoded.rotate_left((index[0] * 8 + index[1] * 20) as usize);
            decoded
        };
        let whole = Region::whole(&array_shape);
        let mut array = vec![0; whole.num_bytes(4).unwrap()];
        for index in grid.chunks_in(&whole) {
            let place = grid.clipped_region(&index);
            let part = Region::whole(place.shape());
            crate::copy_region(
                &chunk_of(&index),
                &SHAPE,
                &part,
                &mut array,
                &array_shape,
                place.origin(),
                4,
            )
            .unwrap();
        }
        for text in [":", "1:6,2:13", "3,:", ":,7", "4:7,0:6", "0:4,6:12", "2:2,:"] {
            let region = Region::parse(text, &array_shape).unwrap();
            let expected = Elements::Fixed(&array).gather(&array_shape, &region).unwrap();
            let memory = vec![0xEE; region.num_bytes(4).unwrap()];
            let mut output = Output::new(memory, region.shape(), 4).unwrap();
            for (index, mut view) in output.views(&grid, &region).unwrap() {
                let encoded = codecs.encode(Elements::Fixed(&chunk_of(&index))).unwrap();
                codecs.decode_view(&encoded, &mut view).unwrap();
            }
            let found = ElementsBuf::Fixed(output.into_memory().unwrap());
            assert_eq!(found, expected, "{text} {chain}");
        }
    }
}

#[test]
fn a_chunk_is_decoded_once_for_all_its_views() {
    let values: Vec<u8> = (0..24u32).flat_map(u32::to_le_bytes).collect();
    let grid = Grid::new(&SHAPE, &SHAPE).unwrap();
    for chain in chains() {
        let Ok(codecs) = codecs_of(&json!("uint32"), &chain) else { continue };
        let encoded = codecs.encode(Elements::Fixed(&values)).unwrap();
        let (mut views, mut outputs) = (Vec::new(), Vec::new());
        for columns in [0..2, 2..5, 5..6] {
            let shape = [4, columns.end - columns.start];
            let region = Region::new(vec![0, columns.start], shape.to_vec()).unwrap();
            let memory = vec![0xff; region.num_bytes(4).unwrap()];
            let mut output = Output::new(memory, &shape, 4).unwrap();
            views.extend(output.views(&grid, &region).unwrap().map(|(_, view)| view));
            outputs.push((columns, output));
        }
        codecs.decode_views(&encoded, &mut views).unwrap();
        drop(views);
        for (columns, output) in outputs {
            let expected: Vec<u8> = (0..4u32)
                .flat_map(|row| columns.clone().map(move |column| row * 6 + column as u32))
                .flat_map(u32::to_le_bytes)
                .collect();
            assert_eq!(output.into_memory().unwrap(), expected, "{chain}");
        }
        let other = Grid::new(&SHAPE, &[4, 3]).unwrap();
        let mut output = Output::new(vec![0; 96], &SHAPE, 4).unwrap();
        let views = output.views(&other, &Region::whole(&SHAPE)).unwrap();
        let mut views: Vec<_> = views.map(|(_, view)| view).collect();
        assert!(codecs.decode_views(&encoded, &mut views).is_err(), "views of other chunks");
    }
}

fn words() -> ElementsBuf {
    let words: Vec<String> = (0..24).map(|i| "né".repeat(i * 5 % 7)).collect();
    let mut offsets = vec![0];
    offsets.extend(words.iter().scan(0, |end, word| {
        *end += word.len() as u64;
        Some(*end)
    }));
    ElementsBuf::Variable { bytes: words.concat().into_bytes(), offsets }
}

fn variable_chains() -> Vec<(Value, Value)> {
    let gzip = json!({"name": "gzip", "configuration": {"level": 1}});
    vec![
        (json!("string"), json!([{"name": "vlen-utf8"}])),
        (json!("string"), json!([{"name": "vlen-utf8"}, zstd()])),
        (json!("string"), json!([{"name": "vlen-utf8"}, gzip, {"name": "crc32c"}])),
        (json!("string"), sharded(json!([{"name": "vlen-utf8"}, zstd()]), "end")),
        (json!("bytes"), json!([{"name": "vlen-bytes"}, blosc("lz4", "noshuffle")])),
        (json!("bytes"), json!([{"name": "vlen-bytes"}, lz4()])),
    ]
}

#[test]
fn strings_and_bytes_round_trip() {
    for (dtype, chain) in variable_chains() {
        let codecs = codecs_of(&dtype, &chain).unwrap();
        assert_eq!((codecs.item_size(), codecs.chunk_bytes()), (None, None));
        let encoded = codecs.encode(words().as_ref()).unwrap();
        assert_eq!(codecs.decode(&encoded).unwrap(), words(), "{chain}");
        assert!(codecs.encode(Elements::Fixed(&[0; 24])).is_err());
        assert!(codecs.decode_into(&encoded, &mut []).is_err());
    }
}

#[test]
fn strings_that_are_not_utf8_are_corrupt() {
    let plain = json!([{"name": "vlen-bytes"}]);
    let (raw, text) = (json!("bytes"), json!("string"));
    let bytes = [0xff; 24];
    let offsets: Vec<u64> = (0..=24).collect();
    let elements = Elements::Variable { bytes: &bytes, offsets: &offsets };
    let encoded = codecs_of(&raw, &plain).unwrap().encode(elements).unwrap();
    let strings = codecs_of(&text, &json!([{"name": "vlen-utf8"}])).unwrap();
    assert!(matches!(strings.decode(&encoded), Err(Error::Corrupt { .. })));
}

/// Decodes arbitrary bytes; the result must be a chunk or a clean error.
fn decode_hostile(codecs: &Codecs, encoded: &[u8]) -> bool {
    match codecs.decode(encoded) {
        Ok(ElementsBuf::Fixed(decoded)) => assert_eq!(Some(decoded.len()), codecs.chunk_bytes()),
        Ok(elements) => elements.as_ref().check(24).unwrap(),
        Err(Error::Corrupt { .. }) => return false,
        Err(other) => panic!("not a corruption: {other:?}"),
    }
    true
}

#[test]
fn tampered_chunks_never_panic() {
    let fixed = chains().into_iter().map(|chain| (json!("uint32"), chain));
    for (dtype, chain) in fixed.chain(variable_chains()) {
        let codecs = codecs_of(&dtype, &chain).unwrap();
        let decoded = match codecs.chunk_bytes() {
            Some(len) => ElementsBuf::Fixed(sample(len)),
            None => words(),
        };
        let encoded = codecs.encode(decoded.as_ref()).unwrap();
        for at in 0..encoded.len() {
            assert!(!decode_hostile(&codecs, &encoded[..at]) || at + 8 > encoded.len());
            for flip in [0x01, 0x80, 0xff] {
                let mut tampered = encoded.clone();
                tampered[at] ^= flip;
                decode_hostile(&codecs, &tampered);
            }
        }
        decode_hostile(&codecs, &[&encoded[..], &[0; 9]].concat());
        decode_hostile(&codecs, &[0xff; 64]);
    }
}

#[test]
fn a_forged_size_allocates_nothing() {
    // A zstd frame header that promises 2^62 bytes, then one empty raw block.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xe0];
    frame.extend_from_slice(&(1u64 << 62).to_le_bytes());
    frame.extend_from_slice(&[1, 0, 0]);
    let transpose = json!({"name": "transpose", "configuration": {"order": [1, 0]}});
    for (dtype, chain) in [
        (json!("uint32"), json!([bytes("little"), zstd()])),
        (json!("uint32"), json!([transpose, bytes("little"), zstd()])),
        (json!("string"), json!([{"name": "vlen-utf8"}, zstd()])),
    ] {
        let codecs = codecs_of(&dtype, &chain).unwrap();
        assert!(matches!(codecs.decode(&frame), Err(Error::Corrupt { .. })), "{chain}");
    }
}

#[test]
fn a_bomb_stops_at_the_size_of_the_chunk() {
    let transpose = json!({"name": "transpose", "configuration": {"order": [1, 0]}});
    for name in ["gzip", "numcodecs.zlib", "numcodecs.bz2", "numcodecs.lz4", "zstd"] {
        let compress = match name {
            "zstd" => zstd(),
            _ => json!({"name": name, "configuration": {"level": 9}}),
        };
        let big = ArraySpec::builder(&[1 << 24], &[1 << 24], "uint8")
            .codecs(vec![json!("bytes"), compress.clone()])
            .build()
            .unwrap();
        let bomb = Codecs::new(&big).unwrap().encode(Elements::Fixed(&vec![0; 1 << 24])).unwrap();
        let chain = json!([transpose, bytes("little"), compress]);
        let error = codecs_of(&json!("uint32"), &chain).unwrap().decode(&bomb).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{name}: {error}");
    }
}

#[test]
fn an_index_that_points_outside_its_shard_is_corrupt() {
    let plain = json!([bytes("little")]);
    let mut chain = sharded(plain, "end");
    chain[0]["configuration"]["index_codecs"] = json!([bytes("little")]);
    let codecs = codecs_of(&json!("uint8"), &chain).unwrap();
    for (offset, len) in [(0, u64::MAX), (u64::MAX, 1), (u64::MAX - 1, 6), (60, 6), (1 << 40, 6)] {
        let index: Vec<u8> =
            [offset, len].repeat(4).into_iter().flat_map(|n: u64| n.to_le_bytes()).collect();
        let error = codecs.decode(&index).unwrap_err();
        assert!(error.to_string().contains("index of a shard"), "{error}");
    }
    let missing = codecs.decode(&[0xff; 64]).unwrap();
    assert_eq!(missing, ElementsBuf::Fixed(vec![0; 24]), "nothing stored is the fill value");
}

#[test]
fn chunks_of_another_size_are_refused() {
    let codecs = codecs_of(&json!("uint32"), &json!([bytes("little"), zstd()])).unwrap();
    assert!(codecs.encode(Elements::Fixed(&[0; 95])).is_err());
    assert!(codecs.decode_into(&[], &mut [0; 95]).is_err());
    let offsets = [0u64; 25];
    assert!(codecs.encode(Elements::Variable { bytes: &[], offsets: &offsets }).is_err());
    let other = Grid::new(&[8], &[4]).unwrap();
    let region = Region::whole(&[8]);
    let mut output = Output::new(vec![0; 32], &[8], 4).unwrap();
    let (_, mut view) = output.views(&other, &region).unwrap().next().unwrap();
    assert!(codecs.decode_view(&[], &mut view).is_err());
}

#[test]
fn a_chain_takes_chunks_of_another_shape() {
    for chain in chains() {
        let codecs = codecs_of(&json!("uint32"), &chain).unwrap();
        let clipped = match codecs.with_chunk_shape(&[2, 5]) {
            Ok(clipped) => clipped,
            Err(error) => {
                assert!(error.to_string().contains("do not divide"), "{chain}: {error}");
                codecs.with_chunk_shape(&[2, 3]).unwrap()
            }
        };
        let decoded = sample(clipped.chunk_bytes().unwrap());
        let encoded = clipped.encode(Elements::Fixed(&decoded)).unwrap();
        assert_eq!(clipped.decode(&encoded).unwrap(), ElementsBuf::Fixed(decoded), "{chain}");
        assert_eq!(codecs.with_chunk_shape(&SHAPE).unwrap().chunk_shape(), SHAPE);
        for wrong in [&[24][..], &[4, 0], &[1, 4, 6]] {
            assert!(codecs.with_chunk_shape(wrong).is_err(), "{chain} {wrong:?}");
        }
    }
}

#[test]
fn a_chunk_of_fill_values_is_recognised() {
    let spec = ArraySpec::builder(&SHAPE, &SHAPE, "float32").fill_value("0x7fc00001").build();
    let codecs = Codecs::new(&spec.unwrap()).unwrap();
    let element = 0x7fc0_0001u32.to_le_bytes();
    assert_eq!(codecs.fill_element(), element);
    assert!(codecs.is_fill(&element.repeat(24)));
    assert!(!codecs.is_fill(&f32::NAN.to_le_bytes().repeat(24)), "another NaN");
}

#[test]
fn what_cannot_be_read_is_said_at_once() {
    let refused = |dtype: Value, chain: Value| codecs_of(&dtype, &chain).unwrap_err().to_string();
    assert!(refused(json!("uint8"), json!([bytes("little"), "rot13"])).contains("rot13"));
    assert!(refused(json!("uint8"), json!([bytes("little"), "rot13"])).contains("not supported"));
    assert!(refused(json!("uint8"), json!([zstd()])).contains("is not valid"));
    for key in ["typesize", "blocksize"] {
        let mut codec = blosc("lz4", "bitshuffle");
        codec["configuration"][key] = json!(1u64 << 32);
        assert!(refused(json!("uint32"), json!([bytes("little"), codec])).contains("not valid"));
    }
    let uneven = {
        let mut chain = sharded(json!([bytes("little")]), "end");
        chain[0]["configuration"]["chunk_shape"] = json!([3, 3]);
        chain
    };
    assert!(refused(json!("uint8"), uneven).contains("do not divide"));
    let huge = ArraySpec::builder(&[1 << 62, 4], &[1 << 62, 4], "float64").build().unwrap();
    assert!(Codecs::new(&huge).unwrap_err().to_string().contains("does not fit in memory"));
}
