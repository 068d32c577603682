//! The chunk that is being filled. It reuses the memory of earlier chunks: fresh memory costs more than
//! copying the rows into it.

use std::ops::Deref;

use bytes::Bytes;
use chunkyard_store::{Pooled, Result};

/// A longer chunk may never become full, so its memory grows with its rows.
const RESERVED_BYTES_MAX: usize = 16 << 20;

/// Rows of a chunk, and room for more.
#[derive(Debug, Default)]
pub(crate) struct PartialChunk {
    /// Never shorter than `len`.
    block: Option<Pooled>,
    len: usize,
}

impl PartialChunk {
    /// The first rows of a chunk.
    pub(crate) fn of(rows: &[u8]) -> Result<Self> {
        Ok(Self { block: Some(Pooled::copy_of(rows)?), len: rows.len() })
    }

    /// Adds rows to a chunk that is to be `whole` bytes long.
    pub(crate) fn push(&mut self, rows: &[u8], whole: usize) -> Result<()> {
        let end = self.len.saturating_add(rows.len());
        if self.block.as_ref().is_none_or(|block| block.len() < end) {
            let room = match whole <= RESERVED_BYTES_MAX {
                true => whole,
                false => end.saturating_mul(2).clamp(RESERVED_BYTES_MAX, whole),
            };
            let mut block = Pooled::new(room.max(end))?;
            block[..self.len].copy_from_slice(self);
            self.block = Some(block);
        }
        if let Some(place) = self.block.as_mut().and_then(|block| block.get_mut(self.len..end)) {
            place.copy_from_slice(rows);
            self.len = end;
        }
        Ok(())
    }

    /// Takes the rows out.
    pub(crate) fn take(&mut self) -> Bytes {
        let Self { block, len } = std::mem::take(self);
        block.map(|block| block.freeze().slice(..len)).unwrap_or_default()
    }
}

impl Deref for PartialChunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.block.as_ref().and_then(|block| block.get(..self.len)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_in_order_while_room_is_made_for_more() {
        for whole in [12, RESERVED_BYTES_MAX + 1] {
            let mut filling = PartialChunk::of(b"ab").unwrap();
            for rows in ["cd", "", "efgh", "ijkl"] {
                filling.push(rows.as_bytes(), whole).unwrap();
            }
            assert_eq!(&filling[..], b"abcdefghijkl");
            assert_eq!(filling.take(), "abcdefghijkl");
            assert!(filling.is_empty() && filling.take().is_empty());
        }
    }
}
