//! The fourth movement: encoded in, encoded out. Label blocks change their compression or their labels, or become
//! Neuroglancer's `compressed_segmentation` and the reverse, and no voxel is decoded.

use bytes::Bytes;
use chunkyard_array::codec::label_block::Block;
use chunkyard_format::{ChunkCodecs, in_chunk};
use chunkyard_store::Result;

use super::encode::Encoder;

/// The chunk of the target that a chunk of the source is; `None` when it is all fill value.
pub(crate) fn rewrite_chunk(
    source: &ChunkCodecs,
    encoder: &Encoder,
    path: &str,
    (index, chunk): (&[u64], &[u64]),
    bytes: &[u8],
) -> Result<Option<Bytes>> {
    let (from, _) = source.of(index)?;
    let (to, _) = encoder.codecs.of(chunk)?;
    let mut block = from.label_block(bytes).map_err(|error| in_chunk(path, index, error))?;
    if let Some(relabel) = &encoder.relabel {
        relabel.block(&mut block)?;
    }
    let empty = to.fill_element().iter().all(|byte| *byte == 0) && Block::parse(&block)?.is_zero();
    Ok(match empty {
        true => None,
        false => Some(to.encode_label_block(&block)?.into()),
    })
}
