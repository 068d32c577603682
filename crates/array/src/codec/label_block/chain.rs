//! Label blocks behind any compression: what a chain does to the bytes of a block, without its voxels.
//!
//! The common chains run directly (`codec::fast`). All others go through the codecs of `zarrs` one by one.

use std::borrow::Cow;

use zarrs::array::codec::CodecChain;
use zarrs::array::{BytesRepresentation, CodecOptions};

use crate::codec::guard::guard;
use crate::codec::labels::Labels;
use crate::{Error, Result};

/// The label block that an encoded chunk is, checked.
pub(in crate::codec) fn unpack(
    chain: &CodecChain,
    labels: &Labels,
    encoded: &[u8],
    options: &CodecOptions,
) -> Result<Vec<u8>> {
    let codecs = chain.bytes_to_bytes_codecs();
    let mut size = BytesRepresentation::BoundedSize(labels.encoded_bytes_max()? as u64);
    // What each codec decodes to: never more than it could have made of the largest block.
    let mut sizes = Vec::with_capacity(codecs.len());
    for codec in codecs {
        sizes.push(size);
        size = codec.encoded_representation(&size);
    }
    let block = guard(|| {
        codecs.iter().zip(&sizes).rev().try_fold(Cow::Borrowed(encoded), |bytes, (codec, size)| {
            codec.decode(bytes, size, options)
        })
    })
    .map_err(|failure| {
        let found = failure.to_string();
        failure.because(Error::corrupt("chunk", "a compressed label block", found))
    })?;
    labels.block_of(&block)
}

/// The encoded chunk that a label block is.
pub(in crate::codec) fn pack(
    chain: &CodecChain,
    labels: &Labels,
    block: &[u8],
    options: &CodecOptions,
) -> Result<Vec<u8>> {
    let chunk = labels.chunk_of(block)?;
    let codecs = chain.bytes_to_bytes_codecs().iter();
    let packed = guard(|| {
        codecs.clone().try_fold(Cow::Borrowed(&*chunk), |bytes, codec| codec.encode(bytes, options))
    });
    let packed =
        packed.map_err(|failure| failure.because(Error::invalid("a chunk cannot be encoded")))?;
    Ok(packed.into_owned())
}
