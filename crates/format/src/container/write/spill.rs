//! Moves changes that do not fit in memory to a temporary file.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::ChunkIndex;
use chunkyard_store::Result;

use super::changes::{Changes, PendingChunk};
use crate::container::handle::{Inner, temporary_path};

/// A chunk on its way out of memory.
struct Leaving {
    array: String,
    index: ChunkIndex,
    bytes: Bytes,
}

impl Inner {
    /// Moves all changes that wait in memory to a temporary file.
    pub(crate) async fn spill(&self) -> Result<()> {
        let leaving: Vec<Leaving> = {
            let state = self.state();
            let arrays = state.pending.arrays.iter();
            let chunks = arrays.flat_map(|(name, change)| {
                change.chunks.iter().filter_map(move |(index, chunk)| match chunk {
                    PendingChunk::Plain { bytes, .. } | PendingChunk::Packed { bytes, .. } => {
                        Some(Leaving {
                            array: name.clone(),
                            index: index.clone(),
                            bytes: bytes.clone(),
                        })
                    }
                    PendingChunk::Fill | PendingChunk::Spilled { .. } => None,
                })
            });
            chunks.collect()
        };
        if leaving.is_empty() {
            return Ok(());
        }
        let path: Arc<str> = temporary_path(&self.store, &self.names)?.into();
        let mut upload = self.store.begin(&path).await?;
        upload.write(leaving.iter().map(|chunk| chunk.bytes.clone()).collect()).await?;
        upload.finish().await?;
        let mut state = self.state();
        let mut at = 0;
        for Leaving { array, index, bytes } in leaving {
            let range = at..at + bytes.len() as u64;
            at = range.end;
            let change = state.pending.arrays.get_mut(&array);
            let Some(chunk) = change.and_then(|change| change.chunks.get_mut(&index)) else {
                continue;
            };
            let stats = chunk.stats();
            // A chunk that was written again meanwhile stays.
            let moved = match chunk {
                PendingChunk::Plain { bytes: now, .. } if now.as_ptr() == bytes.as_ptr() => {
                    (None, bytes.len() as u64)
                }
                PendingChunk::Packed { bytes: now, len, codec, .. }
                    if now.as_ptr() == bytes.as_ptr() =>
                {
                    (Some(codec.clone()), *len)
                }
                _ => continue,
            };
            let (codec, len) = moved;
            *chunk = PendingChunk::Spilled { path: path.clone(), range, len, codec, stats };
        }
        state.pending.recount();
        Ok(())
    }

    /// Deletes the temporary files that held changes.
    pub(crate) async fn forget_spilled(&self, pending: &Changes) {
        let chunks = pending.arrays.values().flat_map(|change| change.chunks.values());
        let mut paths: Vec<String> = chunks
            .filter_map(|chunk| match chunk {
                PendingChunk::Spilled { path, .. } => Some(path.to_string()),
                _ => None,
            })
            .collect();
        paths.sort_unstable();
        paths.dedup();
        // If that fails, rubbish stays in the folder of work in progress.
        self.store.delete(&paths).await.ok();
    }
}
