//! How far an export is, for display.

use std::sync::atomic::{AtomicU64, Ordering};

/// What is done and what lies ahead. The export advances it, a progress bar reads it; neither waits for the other.
#[derive(Debug, Default)]
pub struct Progress {
    shards: AtomicU64,
    shards_total: AtomicU64,
    weight: AtomicU64,
    weight_total: AtomicU64,
    blocks: AtomicU64,
    bytes: AtomicU64,
}

/// A look at a [`Progress`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reached {
    /// Finished shards.
    pub shards: u64,
    /// All shards, as far as they are listed.
    pub shards_total: u64,
    /// Chunks of finished shards, about.
    pub weight: u64,
    /// Chunks of all shards, about.
    pub weight_total: u64,
    /// Blocks that were written.
    pub blocks: u64,
    /// Bytes that were written.
    pub bytes: u64,
}

impl Progress {
    /// Adds shards that lie ahead, and the chunks in them.
    pub(crate) fn expect(&self, shards: u64, weight: u64) {
        self.shards_total.fetch_add(shards, Ordering::Relaxed);
        self.weight_total.fetch_add(weight, Ordering::Relaxed);
    }

    /// A shard is finished.
    pub(crate) fn finish_shard(&self, weight: u64, blocks: u64, bytes: u64) {
        self.shards.fetch_add(1, Ordering::Relaxed);
        self.weight.fetch_add(weight, Ordering::Relaxed);
        self.blocks.fetch_add(blocks, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// How far the export is.
    pub fn reached(&self) -> Reached {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Reached {
            shards: read(&self.shards),
            shards_total: read(&self.shards_total),
            weight: read(&self.weight),
            weight_total: read(&self.weight_total),
            blocks: read(&self.blocks),
            bytes: read(&self.bytes),
        }
    }
}
