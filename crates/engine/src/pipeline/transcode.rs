//! The second movement: the same grid, other codecs or another data type. Each chunk is decoded into
//! memory of its thread, which stays in the cache, and encoded from there.

use std::cell::RefCell;

use bytes::Bytes;
use chunkyard_array::{Region, fill_region};
use chunkyard_format::{ChunkCodecs, in_chunk};
use chunkyard_store::Result;

use super::encode::Encoder;

/// Decodes and encodes one chunk; `None` when it is all fill value.
pub(super) fn transcode_chunk(
    source: &ChunkCodecs,
    encoder: &Encoder,
    path: &str,
    (index, chunk): (&[u64], &[u64]),
    bytes: &[u8],
) -> Result<Option<Bytes>> {
    thread_local! {
        static DECODED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    let (codecs, _) = source.of(index)?;
    let (target, _) = encoder.codecs.of(chunk)?;
    DECODED.with_borrow_mut(|decoded| {
        decoded.resize(codecs.chunk_bytes().unwrap_or(0), 0);
        codecs.decode_into(bytes, decoded).map_err(|error| in_chunk(path, index, error))?;
        if encoder.cast.is_some() {
            clear_padding(&encoder.codecs, chunk, decoded, &encoder.source_fill)?;
        }
        encoder.change_and_encode(&target, decoded)
    })
}

/// Sets the padding of a decoded chunk to the fill value. Values that a writer left there, or from
/// before the array shrank, are not elements and need not fit the target's type.
fn clear_padding(
    target: &ChunkCodecs,
    chunk: &[u64],
    decoded: &mut [u8],
    fill: &[u8],
) -> Result<()> {
    let whole = target.stored_region(chunk);
    let inside = target.grid().clipped_region(chunk);
    for axis in 0..whole.rank() {
        let (kept, extent) = (inside.shape()[axis], whole.shape()[axis]);
        if kept < extent {
            let (mut origin, mut shape) = (vec![0; whole.rank()], whole.shape().to_vec());
            (origin[axis], shape[axis]) = (kept, extent - kept);
            fill_region(decoded, whole.shape(), &Region::new(origin, shape)?, fill)?;
        }
    }
    Ok(())
}
