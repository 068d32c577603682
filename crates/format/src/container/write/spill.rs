//! Moves changes that do not fit in memory to a temporary file.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::ChunkIndex;
use chunkyard_store::Result;

use super::changes::{Changes, PendingChunk};
use crate::container::handle::OpenContainer;
use crate::container::layers::files::Files;

/// A chunk on its way out of memory.
struct Leaving {
    array: String,
    index: ChunkIndex,
    bytes: Bytes,
}

impl OpenContainer {
    /// Moves all changes that wait in memory to a temporary file.
    pub(crate) async fn spill(&self) -> Result<()> {
        let leaving: Vec<Leaving> = {
            let state = self.state();
            let arrays = state.uncommitted.changes.arrays.iter();
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
        let path: Arc<str> = self.files.temporary_path()?.into();
        let mut upload = self.files.store.begin(&path).await?;
        upload.write(leaving.iter().map(|chunk| chunk.bytes.clone()).collect()).await?;
        upload.finish().await?;
        let mut state = self.state();
        let mut at = 0;
        for Leaving { array, index, bytes } in leaving {
            let range = at..at + bytes.len() as u64;
            at = range.end;
            let change = state.uncommitted.changes.arrays.get_mut(&array);
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
        state.uncommitted.changes.recount();
        Ok(())
    }
}

impl Files {
    /// Deletes the temporary files that held changes.
    pub(crate) async fn forget_spilled(&self, changes: &Changes) {
        let chunks = changes.arrays.values().flat_map(|change| change.chunks.values());
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
