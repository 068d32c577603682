//! The fourth movement: encoded in, encoded out. Label blocks change their compression or their labels, or become
//! Neuroglancer's `compressed_segmentation` and the reverse, and no voxel is decoded.

use bytes::Bytes;
use chunkyard_array::Region;
use chunkyard_array::codec::label_block::Block;
use chunkyard_format::{ChunkCodecs, PackWriter, Reader, in_chunk};
use chunkyard_store::{Result, cpu};
use rayon::prelude::*;

use super::damage::or_leave_out;
use super::encode::Encoder;
use super::mover::{Encoded, Mover};

impl Mover {
    pub(super) async fn rewrite(
        &self,
        pieces: &[Region],
        writer: &mut dyn PackWriter,
        reader: &Reader,
        encoder: &Encoder,
    ) -> Result<()> {
        for batch in self.batches(pieces)? {
            let indices =
                batch.iter().map(|chunk| self.source_index(chunk)).collect::<Result<Vec<_>>>()?;
            let fetched = self.fetch(&indices).await?;
            let work: Vec<_> = batch.into_iter().zip(indices).zip(fetched).collect();
            let (source, encoder) = (reader.codecs().clone(), encoder.clone());
            let (path, damage) = (self.plan.source.clone(), self.damage.clone());
            let rewritten: Vec<Encoded> = cpu(move || {
                work.into_par_iter()
                    .filter_map(|((chunk, index), bytes)| Some((chunk, index, bytes?)))
                    .filter_map(|(chunk, index, bytes)| {
                        let made =
                            rewrite_chunk(&source, &encoder, &path, (&index, &chunk), &bytes);
                        let made = or_leave_out(damage.as_deref(), &path, &index, made);
                        Some(made.transpose()?.map(|bytes| (chunk, bytes)))
                    })
                    .collect::<Result<_>>()
            })
            .await??;
            if !rewritten.is_empty() {
                writer.push(rewritten).await?;
            }
        }
        Ok(())
    }
}

/// The chunk of the target that a chunk of the source is; `None` when it is all fill value.
fn rewrite_chunk(
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
