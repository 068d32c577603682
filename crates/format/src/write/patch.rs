//! Builds one chunk from its old content and the new values, and encodes it.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::OnceLock;

use bytes::Bytes;
use chunkyard_array::{Footprint, Region, fill_slice};
use chunkyard_store::Result;

use super::Writer;
use crate::encode_chunk;

/// The values to write.
#[derive(Debug)]
pub(super) enum Values {
    /// An element for each place.
    Each(Bytes),
    /// The same element everywhere; and the encoded form of an unclipped chunk of nothing else.
    One { element: Bytes, chunk: OnceLock<Option<Bytes>> },
}

impl Values {
    pub(super) fn one(element: Bytes) -> Self {
        Self::One { element, chunk: OnceLock::new() }
    }

    /// Bytes that were given.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Each(bytes) | Self::One { element: bytes, .. } => bytes.len(),
        }
    }
}

impl Writer {
    /// Builds and encodes one chunk, into which values of `shape` are written; `None` when it is
    /// all fill value. Without an old chunk, elements that are not written hold the fill value.
    pub(super) fn patch(
        &self,
        index: &[u64],
        footprint: &Footprint,
        old: Option<&Bytes>,
        shape: &[u64],
        values: &Values,
    ) -> Result<Option<Bytes>> {
        thread_local! {
            static CHUNK: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        let item_size = self.reader.item_size()?;
        let (codecs, clipped) = self.reader.codecs().of(index)?;
        let codecs = &codecs;
        let footprint = &*match clipped {
            true => Cow::Owned(footprint.clone().clipped(codecs.chunk_shape())?),
            false => Cow::Borrowed(footprint),
        };
        let whole = footprint.is_whole_chunk();
        match values {
            Values::Each(given) => {
                if let Some(elements) = footprint.whole_chunk(given, shape, item_size)? {
                    return encode_chunk(codecs, elements);
                }
            }
            Values::One { chunk, .. } => {
                if let Some(known) = chunk.get().filter(|_| whole && !clipped) {
                    return Ok(known.clone());
                }
            }
        }
        let size = Region::whole(footprint.chunk_shape()).num_bytes(item_size)?;
        CHUNK.with_borrow_mut(|buffer| {
            buffer.resize(size, 0);
            match old {
                Some(old) => codecs
                    .decode_into(old, buffer)
                    .map_err(|error| self.reader.in_chunk(index, error))?,
                None if !whole => fill_slice(buffer, codecs.fill_element()),
                None => {}
            }
            match values {
                Values::Each(given) => footprint.scatter(given, shape, buffer, item_size)?,
                Values::One { element, .. } => footprint.scatter_one(element, shape, buffer)?,
            }
            let encoded = encode_chunk(codecs, buffer)?;
            if let Values::One { chunk, .. } = values
                && whole
                && !clipped
            {
                // Another thread may have been first, with the same bytes.
                return Ok(chunk.get_or_init(|| encoded).clone());
            }
            Ok(encoded)
        })
    }
}
