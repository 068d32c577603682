//! What the movements that keep the grid have in common: each chunk of the source becomes one of the target, on compute
//! threads.

use bytes::Bytes;
use chunkyard_array::Region;
use chunkyard_format::{ChunkCodecs, PackWriter, Reader};
use chunkyard_store::{Result, cpu};
use rayon::prelude::*;

use super::damage::or_leave_out;
use super::encode::Encoder;
use super::mover::{Encoded, Mover};

/// Makes the chunk of the target out of the bytes of the one in the source, given the path of the source, for messages,
/// and the indices in source and target; `None` when it is all fill value.
type Change = fn(&ChunkCodecs, &Encoder, &str, (&[u64], &[u64]), &[u8]) -> Result<Option<Bytes>>;

impl Mover {
    pub(super) async fn chunk_by_chunk(
        &self,
        pieces: &[Region],
        writer: &mut dyn PackWriter,
        (reader, encoder): (&Reader, &Encoder),
        change: Change,
    ) -> Result<()> {
        for batch in self.batches(pieces)? {
            let indices =
                batch.iter().map(|chunk| self.source_index(chunk)).collect::<Result<Vec<_>>>()?;
            let fetched = self.fetch(&indices).await?;
            let work: Vec<_> = batch.into_iter().zip(indices).zip(fetched).collect();
            let (source, encoder) = (reader.codecs().clone(), encoder.clone());
            let (path, damage) = (self.plan.source.clone(), self.damage.clone());
            let changed: Vec<Encoded> = cpu(move || {
                work.into_par_iter()
                    .filter_map(|((chunk, index), bytes)| Some((chunk, index, bytes?)))
                    .filter_map(|(chunk, index, bytes)| {
                        let changed = change(&source, &encoder, &path, (&index, &chunk), &bytes);
                        let changed = or_leave_out(damage.as_deref(), &path, &index, changed);
                        Some(changed.transpose()?.map(|bytes| (chunk, bytes)))
                    })
                    .collect::<Result<_>>()
            })
            .await??;
            if !changed.is_empty() {
                writer.push(changed).await?;
            }
        }
        Ok(())
    }
}
