//! Strings of variable length, which HDF5 scatters over heaps.
//!
//! No bytes in the file are the encoded chunk of an array of strings, so a reference has nothing to
//! point to: the strings are collected and encoded anew, as one chunk that the reference carries
//! itself.

use bytes::Bytes;
use chunkyard_array::{Codecs, Elements};
use hdf5_reader::Hdf5File;

use super::attributes::{text, until_zero};

/// The most bytes of text in one dataset.
const TEXT_BYTES_MAX: usize = 64 << 20;

/// The only chunk of a dataset of strings.
pub(super) fn chunk(file: &Hdf5File, path: &str, codecs: &Codecs) -> Result<Bytes, String> {
    let dataset = file.dataset(path).map_err(|cause| cause.to_string())?;
    let stored = dataset.read_raw_bytes().map_err(|cause| cause.to_string())?;
    let mut bytes = Vec::new();
    let mut offsets = vec![0];
    for reference in stored.chunks_exact(dataset.vlen_reference_size()) {
        let found = dataset.resolve_vlen_reference_bytes(reference, 1);
        let found = found.map_err(|cause| cause.to_string())?;
        bytes.extend_from_slice(text(until_zero(&found))?.as_bytes());
        if bytes.len() > TEXT_BYTES_MAX {
            return Err(format!("more than {TEXT_BYTES_MAX} bytes of text"));
        }
        offsets.push(bytes.len() as u64);
    }
    let elements = Elements::Variable { bytes: &bytes, offsets: &offsets };
    codecs.encode(elements).map(Bytes::from).map_err(|cause| cause.to_string())
}
