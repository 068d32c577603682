//! One pack as a layer of its own, in the folder of work.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_array::ChunkIndex;
use chunkyard_store::atomic::Content;
use chunkyard_store::{Error, Result, Uid, cpu};
use rayon::prelude::*;

use super::parts::Parts;
use super::sink::{PARTS, PartsTarget, PlannedArray};
use crate::container::layers::files::fresh_id;
use crate::container::layers::stack::Id;
use crate::container::mapping::chunks;
use crate::container::statistics::{ChunkStats, of_chunk};
use crate::container::write::changes::PendingChunk;
use crate::container::write::draft::{Draft, Identity, Piece};
use crate::container::write::flush::coord;
use crate::{Pack, PackWriter, Receipt};

/// A pack being filled.
pub(crate) struct PartWriter {
    target: Arc<PartsTarget>,
    planned: PlannedArray,
    pack: Pack,
    /// The list that it joins when it is complete.
    parts: Option<Arc<Mutex<Parts>>>,
    chunks: Vec<(ChunkIndex, PendingChunk)>,
}

impl PartWriter {
    pub(crate) fn new(
        target: Arc<PartsTarget>,
        planned: PlannedArray,
        pack: &Pack,
        parts: Option<Arc<Mutex<Parts>>>,
    ) -> Self {
        Self { target, planned, pack: pack.clone(), parts, chunks: Vec::new() }
    }
}

#[async_trait]
impl PackWriter for PartWriter {
    async fn push(&mut self, chunks: Vec<(ChunkIndex, Bytes)>) -> Result<()> {
        let planned = self.planned.clone();
        let waiting = cpu(move || {
            let meta = &planned.described.meta;
            chunks
                .into_par_iter()
                .map(|(mut index, bytes)| {
                    index.truncate(meta.shape.len());
                    let bytes = chunks::for_container(&planned.described, &index, bytes)?;
                    let stats = of_chunk(&meta.dtype, meta.fill_value.as_ref(), &bytes)?;
                    Ok((index, PendingChunk::new(bytes, stats, &*planned.codec)?))
                })
                .collect::<Result<Vec<_>>>()
        })
        .await??;
        self.chunks.extend(waiting);
        Ok(())
    }

    async fn close(mut self: Box<Self>) -> Result<Receipt> {
        if self.chunks.is_empty() {
            return Ok(Receipt::default());
        }
        self.chunks.sort_by(|(a, _), (b, _)| a.cmp(b));
        let PartsTarget { store, names, .. } = &*self.target;
        let file = format!("{}/{PARTS}/{}", names.work(), Uid::fresh()?);
        let PlannedArray { described, codec } = &self.planned;
        let mut draft = Draft::new(store, file.clone(), codec.clone(), 1 << 20);
        draft.begin_array(described.meta.clone(), Vec::new());
        let (name, chunks) = (&described.meta.name, self.chunks.len() as u64);
        let mut stats = ChunkStats::default();
        for (index, chunk) in self.chunks {
            stats.merge(chunk.stats());
            draft.push(&coord(name, &index)?, piece(chunk)?).await?;
        }
        let identity = Identity {
            container: fresh_id()?,
            layer: fresh_id()?,
            parent: Id::default(),
            sequence: 0,
            absorbed: Vec::new(),
            overlay_index: 0,
            base_file_hint: String::new(),
        };
        let finished =
            draft.finish(&identity, &[stats.to_array_stats(name, &described.meta.shape)]).await?;
        if let Content::Parts(parts) = finished.content {
            store.put(&file, parts).await?;
        }
        if let Some(parts) = &self.parts {
            let mut parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
            parts.add(&self.pack.array, self.pack.number, file.clone());
        }
        Ok(Receipt { chunks, bytes: finished.size, body: file.into() })
    }
}

fn piece(chunk: PendingChunk) -> Result<Piece> {
    match chunk {
        PendingChunk::Plain { bytes, .. } => Ok(Piece::Plain(bytes)),
        PendingChunk::Packed { bytes, len, codec, .. } => {
            Ok(Piece::Packed { bytes, len, codec: Some(codec) })
        }
        PendingChunk::Fill | PendingChunk::Spilled { .. } => {
            Err(Error::invalid("a chunk without bytes"))
        }
    }
}

/// The file of a pack; `None` for a pack without chunks.
pub(crate) fn file_of(receipt: &Receipt) -> Result<Option<String>> {
    if receipt.body.is_empty() {
        return Ok(None);
    }
    let file = std::str::from_utf8(&receipt.body)
        .map_err(|error| Error::invalid(format!("the receipt of a pack: {error}")))?;
    Ok(Some(file.to_owned()))
}
