//! Gives fuzzers direct access to the parser, below the bridge. The bridge contains panics; here they
//! come through. Not part of the interface, and free to change.

use chunkyard_array::Codecs;
use hdf5_reader::Hdf5File;

use super::metadata::Chunks;
use super::{contents, text};

/// The result of reading a file.
#[derive(Debug, Default)]
pub struct Found {
    /// How many arrays there are.
    pub arrays: usize,
    /// Offset and length of every chunk; data in one piece is one entry.
    pub chunks: Vec<(u64, u64)>,
    /// Arrays of text that could be read.
    pub texts: usize,
}

/// Reads a file that is in memory; the error says why it is refused.
pub fn read(bytes: &[u8]) -> Result<Found, String> {
    let file = Hdf5File::from_vec(bytes.to_vec()).map_err(|cause| cause.to_string())?;
    let contents = contents::read(&file)?;
    let mut found = Found { arrays: contents.arrays.len(), ..Found::default() };
    for array in &contents.arrays {
        let said = |cause: chunkyard_array::Error| cause.to_string();
        let codecs = Codecs::new(&array.spec).map_err(said)?;
        match &array.chunks {
            Chunks::Fill | Chunks::Inline(_) => {}
            Chunks::Slabs { start, bytes } => {
                let count = array.spec.grid().map_err(said)?.num_chunks();
                found.chunks.push((*start, bytes.saturating_mul(count)));
            }
            Chunks::Stored { table, .. } => {
                let stored = table.numbers().filter_map(|number| table.find(number));
                found.chunks.extend(stored.map(|(stored, _)| (stored.start, stored.bytes)));
            }
            Chunks::Text => {
                found.texts += usize::from(text::chunk(&file, &array.hard_path, &codecs).is_ok());
            }
        }
    }
    Ok(found)
}
