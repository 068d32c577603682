//! The parser alone, below the bridge: the bridge contains panics, here they come through.

use chunkyard_array::Codecs;
use hdf5_reader::Hdf5File;

use super::metadata::Chunks;
use super::{contents, text};

/// The content of an HDF5 file, as far as a hostile one can bend it.
#[derive(Debug, Default)]
pub struct Hdf5Content {
    /// How many arrays there are.
    pub arrays: usize,
    /// Offset and length of every chunk; data in one piece is one entry.
    pub chunks: Vec<(u64, u64)>,
    /// Arrays of text that could be read.
    pub texts: usize,
}

/// Reads an HDF5 file that is in memory; the error says why it is refused.
pub fn read_hdf5(bytes: &[u8]) -> Result<Hdf5Content, String> {
    let file = Hdf5File::from_vec(bytes.to_vec()).map_err(|cause| cause.to_string())?;
    let contents = contents::read(&file)?;
    let mut found = Hdf5Content { arrays: contents.arrays.len(), ..Hdf5Content::default() };
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
