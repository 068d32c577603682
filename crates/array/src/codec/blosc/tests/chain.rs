//! The codec of Zarr.

use serde_json::{Value, json};

use super::super::c::reference;
use super::super::{Compressor, Params, Shuffle};
use super::{SHUFFLES, all, encoded, field};
use crate::codec::{Codecs, Elements};
use crate::{ArraySpec, Error};

fn codec(params: &Params) -> Value {
    json!({"name": "blosc", "configuration": {
        "cname": params.compressor.name(), "clevel": params.level,
        "shuffle": params.shuffle.name(), "typesize": params.item,
        "blocksize": params.block_bytes}})
}

/// An array of one chunk of `len` bytes.
fn codecs(len: usize, before: &[Value], codec: Value) -> Codecs {
    let shape = [len as u64];
    let chain = before.iter().cloned().chain([json!({"name": "bytes"}), codec]).collect();
    let spec = ArraySpec::builder(&shape, &shape, json!("uint8")).codecs(chain).build().unwrap();
    Codecs::new(&spec).unwrap()
}

#[test]
fn chunks_are_those_of_c_blosc_by_the_direct_way_and_by_zarrs() {
    let plain = field(200_000);
    let transpose = [json!({"name": "transpose", "configuration": {"order": [0]}})];
    for params in all(5, 4) {
        for block_bytes in [0, 1000, 8192] {
            let params = Params { block_bytes, ..params };
            let expected = reference::encode(&params, &plain);
            for before in [&[][..], &transpose[..]] {
                let codecs = codecs(plain.len(), before, codec(&params));
                let chunk = codecs.encode(Elements::Fixed(&plain)).unwrap();
                assert!(chunk == expected, "{params:?} {before:?}");
                let mut found = vec![1; plain.len()];
                codecs.decode_into(&chunk, &mut found).unwrap();
                assert!(found == plain, "{params:?} {before:?}");
            }
        }
    }
}

#[test]
fn a_buffer_tells_how_it_was_made_whatever_the_metadata_say() {
    let plain = field(5000);
    let zstd = json!({"name": "blosc", "configuration": {
        "cname": "zstd", "clevel": 2, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}});
    let codecs = codecs(5000, &[], zstd);
    for params in all(5, 8) {
        let mut found = vec![1; 5000];
        codecs.decode_into(&encoded(&params, &plain), &mut found).unwrap();
        assert!(found == plain, "{params:?}");
    }
}

#[test]
fn a_chunk_is_one_buffer_and_nothing_else() {
    let plain = field(5000);
    for shuffle in SHUFFLES {
        let params = super::params(Compressor::Lz4, 5, shuffle, 4);
        let codecs = codecs(5000, &[], codec(&params));
        let good = encoded(&params, &plain);
        let (mut longer, mut later) = (good.clone(), good.clone());
        longer.push(0);
        later[0] = 4;
        for bad in [longer, later, good[..good.len() - 1].to_vec()] {
            let error = codecs.decode_into(&bad, &mut vec![0; 5000]).unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        }
    }
}

#[test]
fn the_shuffle_may_be_left_out_of_the_metadata() {
    let plain = field(5000);
    let codec = json!({"name": "blosc", "configuration": {
        "cname": "lz4", "clevel": 5, "blocksize": 0}});
    let chunk = codecs(5000, &[], codec).encode(Elements::Fixed(&plain)).unwrap();
    assert_eq!(chunk, encoded(&super::params(Compressor::Lz4, 5, Shuffle::None, 1), &plain));
}
