//! HDF5 files: whatever their content, every chunk that is found lies within the file.

use chunkyard_engine::format::hostile::read_hdf5;

pub(crate) fn check(data: &[u8]) {
    let Ok(found) = read_hdf5(data) else { return };
    for (offset, length) in found.chunks {
        let end = offset.checked_add(length).expect("a chunk has an end");
        assert!(end <= data.len() as u64, "a chunk at {offset} of {length} bytes");
    }
}
