//! Encodes chunks into memory that is used again.

use std::cell::RefCell;

use bytes::Bytes;
use chunkyard_array::Codecs;
use chunkyard_store::{Error, Pooled, Result};

/// Encodes a whole chunk of a type of fixed size. `None`: it is all fill value and need not be
/// stored.
pub fn encode_chunk(codecs: &Codecs, decoded: &[u8]) -> Result<Option<Bytes>> {
    if codecs.is_fill(decoded) {
        return Ok(None);
    }
    encode_with(|buffer| Ok(codecs.encode_into(decoded, buffer)?)).map(Some)
}

/// What `encode` appends to an empty buffer. Each thread keeps one buffer.
pub(crate) fn encode_with(encode: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<Bytes> {
    thread_local! {
        static ENCODED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    // The length is known only afterwards. The copy costs a fraction of the encoding and keeps a
    // well compressed chunk from holding the memory of a badly compressed one.
    ENCODED.with_borrow_mut(|buffer| {
        buffer.clear();
        encode(buffer)?;
        let copy = Pooled::copy_of(buffer)
            .map_err(|error| Error::store("encode", "a chunk", std::io::Error::other(error)))?;
        Ok(copy.freeze())
    })
}
