//! Chunks in any order become shards, which keep them in one.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_array::ChunkIndex;
use chunkyard_store::{Error, Result, Store};

use super::shard_grid::ShardGrid;
use super::shard_writer::ShardWriter;
use super::sharding::Slot;
use super::source::OpenScale;
use super::spool::Spool;
use crate::worker_packs::receipt;
use crate::{PackWriter, Receipt};

/// The shards of one pack.
pub(super) struct ShardFiles {
    store: Store,
    scale: Arc<OpenScale>,
    /// By number, what has come of each shard.
    drafts: BTreeMap<u64, Draft>,
}

/// Chunks of a shard that wait for the others: those before them in the file may yet come.
#[derive(Default)]
struct Draft {
    spool: Spool,
    rows: Vec<(Slot, Range<u64>)>,
}

impl ShardFiles {
    pub(super) fn new(store: Store, scale: Arc<OpenScale>) -> Self {
        Self { store, scale, drafts: BTreeMap::new() }
    }
}

fn sharded(scale: &OpenScale) -> Result<&ShardGrid> {
    scale.sharded().ok_or_else(|| Error::invalid("this scale has no shards"))
}

#[async_trait]
impl PackWriter for ShardFiles {
    async fn push(&mut self, chunks: Vec<(ChunkIndex, Bytes)>) -> Result<()> {
        let scale = self.scale.clone();
        let grid = sharded(&scale)?;
        for (index, bytes) in chunks {
            let slot = grid.slot(scale.chunk(&index));
            let draft = self.drafts.entry(slot.shard).or_default();
            let range = draft.spool.append(bytes).await?;
            draft.rows.push((slot, range));
        }
        Ok(())
    }

    async fn close(mut self: Box<Self>) -> Result<Receipt> {
        let scale = self.scale.clone();
        let grid = sharded(&scale)?;
        let (mut chunks, mut bytes, mut paths) = (0, 0, Vec::new());
        while let Some((shard, mut draft)) = self.drafts.pop_first() {
            draft.rows.sort_unstable_by_key(|(slot, _)| *slot);
            let path = scale.shard_path(grid, shard);
            let mut writer = ShardWriter::new(self.store.clone(), path, *grid.sharding(), shard)?;
            for (slot, range) in draft.rows {
                writer.push(slot.id, draft.spool.read(range).await?).await?;
            }
            if let Some(written) = writer.finish().await? {
                chunks += written.chunks;
                bytes += written.bytes;
                paths.push(written.path);
            }
        }
        Ok(receipt(chunks, bytes, &paths))
    }
}
