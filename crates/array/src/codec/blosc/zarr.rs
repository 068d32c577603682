//! The codec `blosc` of Zarr: parameters from metadata, chunks that are exactly one buffer.

use zarrs::metadata::v3::MetadataV3;

use super::encode::block_bytes_asked;
use super::{Compressor, Header, Params, Shuffle};
use crate::{Error, Result};

/// How chunks are written, if the metadata describes this codec.
pub(in crate::codec) fn recognise(codec: &MetadataV3) -> Option<Params> {
    if codec.name() != "blosc" {
        return None;
    }
    let configuration = codec.configuration()?;
    let text = |key: &str| configuration.get(key).and_then(|value| value.as_str());
    // c-blosc keeps sizes in an `int`.
    let number = |key: &str| match configuration.get(key) {
        None => Some(0),
        Some(value) => u32::try_from(i32::try_from(value.as_u64()?).ok()?).ok(),
    };
    let mut params = Params {
        compressor: Compressor::parse(text("cname")?).ok()?,
        level: u8::try_from(configuration.get("clevel")?.as_u64()?).ok()?,
        shuffle: Shuffle::parse(text("shuffle").unwrap_or("noshuffle")).ok()?,
        // Blosc takes larger elements for single bytes.
        item: u8::try_from(number("typesize")?).unwrap_or(1).max(1),
        block_bytes: 0,
    };
    params.check().ok()?;
    params.block_bytes = block_bytes_asked(&params, number("blocksize")? as usize);
    Some(params)
}

/// The chunk, if it is exactly one buffer.
pub(in crate::codec) fn check(chunk: &[u8]) -> Result<&[u8]> {
    let header = Header::parse(chunk).map_err(|error| match error {
        // The codec says Blosc-1: any other format is corrupt here.
        Error::Unsupported { ref what, .. } => {
            let found = what.clone();
            Error::corrupt("chunk", "a Blosc-1 buffer", found).because(error)
        }
        error => error,
    })?;
    if header.encoded_bytes == chunk.len() as u64 {
        return Ok(chunk);
    }
    let expected = format!("a blosc buffer of {} bytes", header.encoded_bytes);
    Err(Error::corrupt("chunk", expected, chunk.len().to_string()))
}
