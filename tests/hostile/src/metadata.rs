//! Zarr documents, with the codec chains in them.

use chunkyard_array::{
    ArraySpec, ChunkKeys, Codecs, ElementsBuf, Error, GroupSpec, parse_v2_array, parse_v2_group,
};

use crate::error::is_about_document;

/// Larger chunks than this are bound but neither encoded nor decoded: a document may ask for any.
const CHUNK_BYTES_MAX: usize = 1 << 16;

/// `zarr.json` of an array. If its codecs can be bound, they must carry a chunk.
pub(crate) fn array(data: &[u8]) {
    let spec = match ArraySpec::parse(data) {
        Ok(spec) => spec,
        Err(error) => return is_about_document(&error),
    };
    check(&spec);
    match Codecs::new(&spec) {
        Ok(codecs) => carry(&codecs),
        Err(Error::OutOfMemory { .. }) => {}
        Err(error) => is_about_document(&error),
    }
}

/// `.zarray` and, after a zero byte, `.zattrs`; read as a group too. An array that is parsed can be
/// read.
pub(crate) fn v2(data: &[u8]) {
    let mut parts = data.splitn(2, |&byte| byte == 0);
    let (document, attributes) = (parts.next().unwrap_or_default(), parts.next());
    match parse_v2_group(document, attributes) {
        Ok(spec) => assert_eq!(GroupSpec::parse(&spec.render()).expect("a group"), spec),
        Err(error) => is_about_document(&error),
    }
    match parse_v2_array(document, attributes) {
        Ok(spec) => {
            check(&spec);
            carry(&Codecs::new(&spec).expect("it was tried"));
        }
        Err(Error::OutOfMemory { .. }) => {}
        Err(error) => is_about_document(&error),
    }
}

/// Holds for the metadata of any array.
fn check(spec: &ArraySpec) {
    let rendered = spec.render();
    let again = ArraySpec::parse(&rendered).expect("a rendered document can be parsed");
    assert_eq!(again.render(), rendered);
    assert!(again.same_encoding(spec));
    match spec.unsharded() {
        Ok((chunks, Some(sharding))) => {
            let packed = chunks.sharded(&sharding).expect("removed sharding can be added again");
            assert_eq!(packed.unsharded().expect("and removed again"), (chunks, Some(sharding)));
        }
        Ok((same, None)) => assert_eq!(same, *spec),
        Err(error) => is_about_document(&error),
    }
    match ChunkKeys::new(spec) {
        Ok(keys) => {
            let index = vec![7; spec.shape().len()];
            assert_eq!(keys.parse(&keys.key(&index)), Some(index));
        }
        Err(error) => is_about_document(&error),
    }
    if let Ok(grid) = spec.grid() {
        let whole = grid.clipped_region(&vec![0; grid.rank()]);
        assert!(grid.num_chunks_in(&whole) <= 1);
    }
}

/// A chunk of the fill value goes through the codecs and comes back.
fn carry(codecs: &Codecs) {
    let Some(len) = codecs.chunk_bytes().filter(|&len| len <= CHUNK_BYTES_MAX) else { return };
    let mut chunk = vec![0; len];
    chunkyard_array::fill_slice(&mut chunk, codecs.fill_element());
    let chunk = ElementsBuf::Fixed(chunk);
    // A chain that cannot be used (a level out of range) may fail only when it is used.
    let Ok(encoded) = codecs.encode(chunk.as_ref()) else { return };
    let decoded = codecs.decode(&encoded).expect("an encoded chunk can be decoded");
    assert!(matches!(&decoded, ElementsBuf::Fixed(bytes) if bytes.len() == len));
    for hostile in [&[][..], &[0; 40], &encoded[..encoded.len() / 2]] {
        let _refused = codecs.decode(hostile).is_err();
    }
}

/// `zarr.json` of a group.
pub(crate) fn group(data: &[u8]) {
    let spec = match GroupSpec::parse(data) {
        Ok(spec) => spec,
        Err(error) => return is_about_document(&error),
    };
    let rendered = spec.render();
    let again = GroupSpec::parse(&rendered).expect("a rendered document can be parsed");
    assert_eq!(again.render(), rendered);
    assert_eq!(again.attributes(), spec.attributes());
}
