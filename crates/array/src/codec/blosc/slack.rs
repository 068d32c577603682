//! Room for growth inside a buffer.

use super::buffer::Buffer;
use super::header::wrong;
use crate::{Error, Result};

/// Appends `slack` zero bytes to the buffer, as a part of it, so that a larger one may take its
/// place later. `false` where that is impossible: an uncompressed buffer has its exact size.
///
/// Every reader of Blosc-1 decodes such a buffer, since the blocks are found by their offsets.
pub fn with_slack(encoded: &mut Vec<u8>, slack: usize) -> Result<bool> {
    let buffer = Buffer::parse(encoded)?;
    let (header, len) = (*buffer.header(), encoded.len());
    if header.encoded_bytes != len as u64 {
        let expected = format!("nothing after its {} bytes", header.encoded_bytes);
        return Err(wrong(expected, format!("{len} bytes")));
    }
    if header.is_stored() {
        return Ok(false);
    }
    let size = len.checked_add(slack).and_then(|size| i32::try_from(size).ok());
    let Some(size) = size else {
        return Err(Error::invalid(format!("a blosc buffer has no room for {slack} more bytes")));
    };
    encoded
        .try_reserve(slack)
        .map_err(|_| Error::OutOfMemory { what: "an encoded chunk".into(), bytes: slack })?;
    encoded.resize(len + slack, 0);
    encoded[12..16].copy_from_slice(&size.to_le_bytes());
    Ok(true)
}
