//! Arrays whose chunks are label blocks.

use serde_json::{Value, json};

use super::super::{Block, NAME};
use super::{decoded, sample_of};
use crate::{ArraySpec, Codecs, Elements, ElementsBuf, Error, Output, Region};

fn zstd() -> Value {
    json!({"name": "zstd", "configuration": {"level": 3, "checksum": false}})
}

fn blosc() -> Value {
    json!({"name": "blosc", "configuration": {
        "cname": "lz4", "clevel": 5, "shuffle": "noshuffle", "blocksize": 0}})
}

fn shard(inner: Vec<Value>) -> Value {
    let index =
        json!([{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]);
    json!({"name": "sharding_indexed", "configuration": {
        "chunk_shape": [8, 8, 16], "codecs": inner, "index_codecs": index, "index_location": "end"}})
}

/// What may come after the codec, or around it.
fn chains() -> Vec<Vec<Value>> {
    let block = || json!({"name": NAME});
    let gzip = || json!({"name": "gzip", "configuration": {"level": 5}});
    vec![
        vec![block()],
        vec![json!({"name": NAME, "configuration": {}})],
        vec![block(), zstd()],
        vec![block(), json!({"name": "numcodecs.lz4", "configuration": {"acceleration": 1}})],
        vec![block(), zstd(), json!({"name": "crc32c"})],
        vec![block(), json!({"name": "crc32c"})],
        vec![block(), gzip()],
        vec![block(), blosc()],
        vec![block(), gzip(), zstd()],
        vec![json!({"name": "transpose", "configuration": {"order": [2, 0, 1]}}), block(), zstd()],
        vec![shard(vec![block(), zstd(), json!({"name": "crc32c"})])],
    ]
}

fn codecs(dtype: &str, shape: &[u64], chain: Vec<Value>) -> crate::Result<Codecs> {
    Codecs::new(&ArraySpec::builder(shape, shape, dtype).codecs(chain).build()?)
}

const SHAPE: [u64; 3] = [8, 16, 32];

fn voxels(item: usize) -> Vec<u8> {
    let sample = sample_of([4, 2, 1], 9, 2, 3);
    sample.voxels.iter().flat_map(|label| label.to_le_bytes()[..item].to_vec()).collect()
}

#[test]
fn chunks_round_trip_through_every_chain() {
    for chain in chains() {
        for (dtype, item) in [("uint64", 8), ("uint32", 4)] {
            let codecs = codecs(dtype, &SHAPE, chain.clone()).unwrap();
            let plain = voxels(item);
            let encoded = codecs.encode(Elements::Fixed(&plain)).unwrap();
            assert_eq!(
                codecs.decode(&encoded).unwrap(),
                ElementsBuf::Fixed(plain.clone()),
                "{chain:?}"
            );
            assert!(!codecs.is_plain());
            codecs.check(&encoded).unwrap();
            let mut appended = vec![3; 5];
            codecs.encode_into(&plain, &mut appended).unwrap();
            assert_eq!(appended[5..], encoded);
            let mut generic = codecs.decode_by_zarrs(&encoded).unwrap();
            assert_eq!(generic.as_ref(), Elements::Fixed(&plain), "{chain:?}");
            generic = codecs.decode_by_zarrs(&appended[5..]).unwrap();
            assert_eq!(generic, ElementsBuf::Fixed(plain));
        }
    }
}

#[test]
fn a_chunk_is_a_block_with_x_last() {
    let codecs = codecs("uint64", &SHAPE, vec![json!({"name": NAME})]).unwrap();
    let sample = sample_of([4, 2, 1], 9, 2, 3);
    let encoded = codecs.encode(Elements::Fixed(&voxels(8))).unwrap();
    assert_eq!(encoded, sample.encoded());
    let block = Block::parse(&encoded).unwrap();
    assert_eq!((block.size(), decoded(&block)), ([32, 16, 8], sample.voxels));
}

#[test]
fn a_part_of_a_chunk_is_read_through_a_view() {
    for chain in chains() {
        let spec =
            ArraySpec::builder(&[8, 32, 64], &SHAPE, "uint64").codecs(chain).build().unwrap();
        let (grid, codecs) = (spec.grid().unwrap(), Codecs::new(&spec).unwrap());
        let encoded = codecs.encode(Elements::Fixed(&voxels(8))).unwrap();
        let region = Region::parse("1:7,10:20,30:40", spec.shape()).unwrap();
        let memory = vec![0xee; region.num_bytes(8).unwrap()];
        let mut output = Output::new(memory, region.shape(), 8).unwrap();
        for (_, mut view) in output.views(&grid, &region).unwrap() {
            codecs.decode_view(&encoded, &mut view).unwrap();
        }
        let found = output.into_memory().unwrap();
        let sample = sample_of([4, 2, 1], 9, 2, 3);
        let label = |z: usize, y: usize, x: usize| sample.voxels[(z * 16 + y % 16) * 32 + x % 32];
        let expected: Vec<u8> = (1..7)
            .flat_map(|z| (10..20).flat_map(move |y| (30..40).map(move |x| (z, y, x))))
            .flat_map(|(z, y, x)| label(z, y, x).to_le_bytes())
            .collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn arrays_that_have_no_label_blocks_are_refused() {
    let refused = |dtype: &str, shape: &[u64], chain: Vec<Value>| match codecs(dtype, shape, chain)
        .unwrap_err()
    {
        Error::Invalid { what, .. } => what,
        other => panic!("{other}"),
    };
    let chain = || vec![json!({"name": NAME}), zstd()];
    assert!(refused("float64", &SHAPE, chain()).contains("uint64 or uint32, not float64"));
    assert!(refused("uint64", &[8, 8], chain()).contains("axes z, y and x, not with 2"));
    assert!(refused("uint64", &[8, 8, 12], chain()).contains("multiple of 8"));
    assert!(refused("uint64", &[8, 8, 1032], chain()).contains("from 8 to 1024"));
    assert!(refused("uint64", &[8, 8, 1 << 33], chain()).contains("from 8 to 1024"));
    let configured = json!({"name": NAME, "configuration": {"axes": "xyz"}});
    assert!(refused("uint64", &SHAPE, vec![configured]).contains("is not valid"));
    let turned = json!({"name": "transpose", "configuration": {"order": [2, 1, 0]}});
    assert!(codecs("uint8", &SHAPE, vec![turned, json!({"name": NAME})]).is_err());
    let inner = shard(vec![json!({"name": NAME})]);
    assert!(refused("int64", &SHAPE, vec![inner]).contains("not int64"));
}

#[test]
fn tampered_chunks_are_corrupt_or_chunks() {
    for chain in chains() {
        let codecs = codecs("uint32", &SHAPE, chain.clone()).unwrap();
        let encoded = codecs.encode(Elements::Fixed(&voxels(4))).unwrap();
        let check = |bytes: &[u8]| match codecs.decode(bytes) {
            Ok(ElementsBuf::Fixed(found)) => assert_eq!(found.len(), 8 * 16 * 32 * 4),
            Err(Error::Corrupt { .. }) => {}
            other => panic!("{chain:?}: {other:?}"),
        };
        for at in (0..encoded.len()).step_by(3) {
            check(&encoded[..at]);
            let mut bent = encoded.clone();
            bent[at] ^= 0x81;
            check(&bent);
        }
        check(&[0xff; 64]);
    }
}

#[test]
fn blocks_of_another_size_or_with_larger_labels_are_corrupt() {
    let chain = || vec![json!({"name": NAME})];
    let wide = codecs("uint64", &SHAPE, chain()).unwrap();
    let encoded = wide.encode(Elements::Fixed(&voxels(8))).unwrap();
    let turned = codecs("uint64", &[32, 16, 8], chain()).unwrap();
    let error = turned.decode(&encoded).unwrap_err().to_string();
    assert!(error.contains("expected [8, 16, 32] voxels, found [32, 16, 8]"), "{error}");
    let narrow = codecs("uint32", &SHAPE, chain()).unwrap();
    let error = narrow.decode(&encoded).unwrap_err().to_string();
    assert!(error.contains("labels of 4 bytes"), "{error}");
}

#[test]
fn a_bomb_stops_at_the_size_of_the_largest_block() {
    let codecs = codecs("uint64", &[8, 8, 8], vec![json!({"name": NAME}), zstd()]).unwrap();
    let bomb = zstd::encode_all(&vec![0; 1 << 22][..], 3).unwrap();
    assert!(matches!(codecs.decode(&bomb), Err(Error::Corrupt { .. })));
    // A frame that does not say how long it is, as streams are written.
    let plain = super::sample_of([1, 1, 1], 5, 1, 1);
    let bytes: Vec<u8> = plain.voxels.iter().flat_map(|label| label.to_le_bytes()).collect();
    let mut frame = Vec::new();
    let mut encoder = zstd::Encoder::new(&mut frame, 3).unwrap();
    std::io::Write::write_all(&mut encoder, &plain.encoded()).unwrap();
    encoder.finish().unwrap();
    assert_eq!(codecs.decode(&frame).unwrap(), ElementsBuf::Fixed(bytes));
}
