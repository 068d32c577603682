//! Zarr documents, with the codec chains in them.

use chunkyard_array::{ArraySpec, Codecs, ElementsBuf, Error, GroupSpec};

use crate::error::is_about_document;

/// Larger chunks than this are bound but neither encoded nor decoded: a document may ask for any.
const CHUNK_BYTES_MAX: usize = 1 << 16;

/// `zarr.json` of an array. Where its codecs can be bound, they must carry a chunk.
pub(crate) fn array(data: &[u8]) {
    let spec = match ArraySpec::parse(data) {
        Ok(spec) => spec,
        Err(error) => return is_about_document(&error),
    };
    let rendered = spec.render();
    let again = ArraySpec::parse(&rendered).expect("what was rendered can be parsed");
    assert_eq!(again.render(), rendered);
    if let Ok(grid) = spec.grid() {
        let whole = grid.clipped_region(&vec![0; grid.rank()]);
        assert!(grid.num_chunks_in(&whole) <= 1);
    }
    match Codecs::new(&spec) {
        Ok(codecs) => carry(&codecs),
        Err(Error::OutOfMemory { .. }) => {}
        Err(error) => is_about_document(&error),
    }
}

/// A chunk of the fill value goes through the codecs and comes back.
fn carry(codecs: &Codecs) {
    let Some(len) = codecs.chunk_bytes().filter(|&len| len <= CHUNK_BYTES_MAX) else { return };
    let mut chunk = vec![0; len];
    chunkyard_array::fill_slice(&mut chunk, codecs.fill_element());
    let chunk = ElementsBuf::Fixed(chunk);
    // A chain that cannot be used (a level out of range) may say so when it is used.
    let Ok(encoded) = codecs.encode(chunk.as_ref()) else { return };
    let decoded = codecs.decode(&encoded).expect("what was encoded can be decoded");
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
    let again = GroupSpec::parse(&rendered).expect("what was rendered can be parsed");
    assert_eq!(again.render(), rendered);
    assert_eq!(again.attributes(), spec.attributes());
}
