//! The first movement: bytes verbatim.
//!
//! A chunk that cannot be decoded is not worth keeping, and its target must not look whole. So each
//! chunk is decoded once on its way, and the result is thrown away.

use bytes::Bytes;
use chunkyard_array::{ChunkIndex, Region};
use chunkyard_format::{ChunkCodecs, PackWriter, in_chunk};
use chunkyard_store::{Result, cpu};
use rayon::prelude::*;

use super::damage::or_leave_out;
use super::mover::{Encoded, Handling, Mover};

impl Mover {
    pub(super) async fn copy(&self, pieces: &[Region], writer: &mut dyn PackWriter) -> Result<()> {
        for batch in self.batches(pieces)? {
            let indices =
                batch.iter().map(|chunk| self.source_index(chunk)).collect::<Result<Vec<_>>>()?;
            let fetched = self.fetch(&indices).await?;
            let sound = self.check(indices, fetched).await?;
            let chunks: Vec<Encoded> = batch
                .into_iter()
                .zip(sound)
                .filter_map(|(chunk, bytes)| Some((chunk, bytes?)))
                .collect();
            if !chunks.is_empty() {
                writer.push(chunks).await?;
            }
        }
        Ok(())
    }

    /// The chunks, all of which decode: a damaged one is an error, or is left out if damage is.
    async fn check(
        &self,
        indices: Vec<ChunkIndex>,
        chunks: Vec<Option<Bytes>>,
    ) -> Result<Vec<Option<Bytes>>> {
        let codecs = match &self.handling {
            Handling::Opaque => return Ok(chunks),
            Handling::Fixed { reader, .. } | Handling::Variable { reader, .. } => {
                reader.codecs().clone()
            }
        };
        let (path, damage) = (self.plan.source.clone(), self.damage.clone());
        cpu(move || {
            let sound = |(index, bytes): (ChunkIndex, Option<Bytes>)| {
                let Some(bytes) = bytes else { return Ok(None) };
                let checked = check_chunk(&codecs, &path, &index, &bytes).map(|()| Some(bytes));
                or_leave_out(damage.as_deref(), &path, &index, checked)
            };
            indices.into_par_iter().zip(chunks).map(sound).collect()
        })
        .await?
    }
}

fn check_chunk(codecs: &ChunkCodecs, path: &str, index: &[u64], bytes: &[u8]) -> Result<()> {
    let (codecs, _) = codecs.of(index)?;
    codecs.check(bytes).map_err(|error| in_chunk(path, index, error))
}
