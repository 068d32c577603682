//! HDF5 files: whatever their content, every chunk that is found lies within the file.

use chunkyard_engine::format::hdf5::fuzzing;

pub(crate) fn check(data: &[u8]) {
    let Ok(found) = fuzzing::read(data) else { return };
    for (offset, length) in found.chunks {
        let end = offset.checked_add(length).expect("a chunk has an end");
        assert!(end <= data.len() as u64, "a chunk at {offset} of {length} bytes");
    }
}
