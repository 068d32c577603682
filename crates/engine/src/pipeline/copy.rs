//! The first movement: bytes verbatim.
//!
//! A chunk that cannot be decoded is not worth keeping, and its target must not look whole. So each
//! chunk is decoded once on its way, and the result is thrown away.

use bytes::Bytes;
use chunkyard_array::{ChunkIndex, Region};
use chunkyard_format::{ChunkCodecs, PackWriter, in_chunk};
use chunkyard_store::{Result, cpu};
use rayon::prelude::*;

use super::mover::{Encoded, Handling, Mover};

impl Mover {
    pub(super) async fn copy(&self, pieces: &[Region], writer: &mut dyn PackWriter) -> Result<()> {
        for batch in self.batches(pieces)? {
            let indices =
                batch.iter().map(|chunk| self.source_index(chunk)).collect::<Result<Vec<_>>>()?;
            let fetched = self.fetch(&indices).await?;
            self.check(indices, &fetched).await?;
            let chunks: Vec<Encoded> = batch
                .into_iter()
                .zip(fetched)
                .filter_map(|(chunk, bytes)| Some((chunk, bytes?)))
                .collect();
            if !chunks.is_empty() {
                writer.push(chunks).await?;
            }
        }
        Ok(())
    }

    /// Fails where a chunk does not decode.
    async fn check(&self, indices: Vec<ChunkIndex>, chunks: &[Option<Bytes>]) -> Result<()> {
        let codecs = match &self.handling {
            Handling::Opaque => return Ok(()),
            Handling::Fixed { reader, .. } | Handling::Variable { reader, .. } => {
                reader.codecs().clone()
            }
        };
        let (path, chunks) = (self.plan.source.clone(), chunks.to_vec());
        cpu(move || {
            indices.into_par_iter().zip(chunks).try_for_each(|(index, bytes)| match bytes {
                Some(bytes) => check_chunk(&codecs, &path, &index, &bytes),
                None => Ok(()),
            })
        })
        .await?
    }
}

fn check_chunk(codecs: &ChunkCodecs, path: &str, index: &[u64], bytes: &[u8]) -> Result<()> {
    let (codecs, _) = codecs.of(index)?;
    codecs.check(bytes).map_err(|error| in_chunk(path, index, error))
}
