//! From decoded elements of the source to an encoded chunk of the target.

use std::cell::RefCell;

use bytes::Bytes;
use chunkyard_array::{Cast, Codecs, Region, contiguous_bytes, copy_region, fill_slice};
use chunkyard_format::{ChunkCodecs, encode_chunk};
use chunkyard_store::Result;

use super::relabel::Relabel;

/// Relabels, casts and encodes. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Encoder {
    pub(crate) codecs: ChunkCodecs,
    /// What becomes of labels, before the cast.
    pub(crate) relabel: Option<Relabel>,
    pub(crate) cast: Option<Cast>,
    /// Fill value of the source, which its padding is made of.
    pub(crate) source_fill: Vec<u8>,
}

impl Encoder {
    /// Encodes the target chunk `index` out of decoded elements of the source, which fill the box
    /// `place` of the target array. `None` when it is all fill value.
    pub(crate) fn encode(
        &self,
        index: &[u64],
        elements: &[u8],
        place: &Region,
    ) -> Result<Option<Bytes>> {
        thread_local! {
            static CHUNK: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        let item_size = self.source_fill.len();
        let chunk = self.codecs.stored_region(index);
        let (codecs, _) = self.codecs.of(index)?;
        let Some(part) = chunk.intersect(place) else { return Ok(None) };
        let given = part.relative_to(place.origin())?;
        if part == chunk
            && let Some(elements) = contiguous_bytes(elements, place.shape(), &given, item_size)?
        {
            return self.change_and_encode(&codecs, elements);
        }
        let size = chunk.num_bytes(item_size)?;
        CHUNK.with_borrow_mut(|buffer| {
            buffer.resize(size, 0);
            if part != chunk {
                fill_slice(buffer, &self.source_fill);
            }
            let at = part.relative_to(chunk.origin())?;
            let (to, shape) = (at.origin(), chunk.shape());
            copy_region(elements, place.shape(), &given, buffer, shape, to, item_size)?;
            self.change_and_encode(&codecs, buffer)
        })
    }

    /// Relabels, casts and encodes a chunk that is complete.
    pub(super) fn change_and_encode(
        &self,
        codecs: &Codecs,
        decoded: &[u8],
    ) -> Result<Option<Bytes>> {
        thread_local! {
            static LABELS: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        let Some(relabel) = &self.relabel else { return self.cast_and_encode(codecs, decoded) };
        LABELS.with_borrow_mut(|labels| {
            relabel.elements_into(decoded, labels);
            self.cast_and_encode(codecs, labels)
        })
    }

    fn cast_and_encode(&self, codecs: &Codecs, decoded: &[u8]) -> Result<Option<Bytes>> {
        thread_local! {
            static CAST: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        let Some(cast) = &self.cast else { return encode_chunk(codecs, decoded) };
        CAST.with_borrow_mut(|buffer| {
            buffer.resize(codecs.chunk_bytes().unwrap_or(0), 0);
            cast.apply(decoded, buffer)?;
            encode_chunk(codecs, buffer)
        })
    }
}
