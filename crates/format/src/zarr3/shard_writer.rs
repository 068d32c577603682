//! Writing shards: chunks are written as they come, the index at the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_array::{ChunkIndex, ShardEntries};
use chunkyard_store::{Error, Result, Store, Upload};

use super::source::{ObjectNames, Sharded};
use crate::worker_packs::receipt;
use crate::{PackWriter, Receipt};

/// The shards of one pack.
pub(super) struct ShardWriter {
    store: Store,
    names: Arc<ObjectNames>,
    open: BTreeMap<ChunkIndex, OpenShard>,
    chunks: u64,
    bytes: u64,
}

/// A shard being written.
struct OpenShard {
    path: String,
    entries: ShardEntries,
    /// Bytes so far; the first chunk begins after an index at the start.
    length: u64,
    body: Body,
}

enum Body {
    /// The index comes last: chunks are already being written.
    Streamed(Box<dyn Upload>),
    /// The index comes first, and gives the places of all chunks: so they wait.
    Held(Vec<Bytes>),
}

impl ShardWriter {
    pub(super) fn new(store: Store, names: Arc<ObjectNames>) -> Self {
        Self { store, names, open: BTreeMap::new(), chunks: 0, bytes: 0 }
    }
}

impl OpenShard {
    async fn begin(store: &Store, path: String, sharded: &Sharded) -> Result<Self> {
        let index = &sharded.index;
        let (body, length) = match index.at_start() {
            true => (Body::Held(Vec::new()), index.encoded_bytes()),
            false => (Body::Streamed(store.begin(&path).await?), 0),
        };
        Ok(Self { path, entries: ShardEntries::empty(index)?, length, body })
    }

    async fn add(&mut self, chunks: Vec<(ChunkIndex, Bytes)>) -> Result<()> {
        let mut parts = Vec::with_capacity(chunks.len());
        for (cell, bytes) in chunks {
            let end = self.length + bytes.len() as u64;
            self.entries.set(&cell, self.length..end)?;
            self.length = end;
            parts.push(bytes);
        }
        match &mut self.body {
            Body::Streamed(upload) => upload.write(parts).await,
            Body::Held(held) => {
                held.extend(parts);
                Ok(())
            }
        }
    }

    async fn close(self, sharded: &Sharded, store: &Store) -> Result<(String, u64)> {
        let index = Bytes::from(sharded.index.encode(&self.entries)?);
        match self.body {
            Body::Streamed(mut upload) => {
                let length = self.length + index.len() as u64;
                upload.write(vec![index]).await?;
                upload.finish().await?;
                Ok((self.path, length))
            }
            Body::Held(held) => {
                let parts = std::iter::once(index).chain(held).collect();
                store.put(&self.path, parts).await?;
                Ok((self.path, self.length))
            }
        }
    }
}

#[async_trait]
impl PackWriter for ShardWriter {
    async fn push(&mut self, chunks: Vec<(ChunkIndex, Bytes)>) -> Result<()> {
        let names = self.names.clone();
        let sharded = sharded(&names)?;
        let mut by_shard: BTreeMap<ChunkIndex, Vec<(ChunkIndex, Bytes)>> = BTreeMap::new();
        for (chunk, bytes) in chunks {
            self.chunks += 1;
            let cell = sharded.cell_of(&chunk);
            by_shard.entry(sharded.shard_of(&chunk)).or_default().push((cell, bytes));
        }
        for (shard, chunks) in by_shard {
            if !self.open.contains_key(&shard) {
                let path = names.path(&shard);
                let open = OpenShard::begin(&self.store, path, sharded).await?;
                self.open.insert(shard.clone(), open);
            }
            if let Some(open) = self.open.get_mut(&shard) {
                open.add(chunks).await?;
            }
        }
        Ok(())
    }

    async fn close(mut self: Box<Self>) -> Result<Receipt> {
        let names = self.names.clone();
        let sharded = sharded(&names)?;
        let mut paths = Vec::with_capacity(self.open.len());
        for (_, open) in std::mem::take(&mut self.open) {
            let (path, length) = open.close(sharded, &self.store).await?;
            self.bytes += length;
            paths.push(path);
        }
        Ok(receipt(self.chunks, self.bytes, &paths))
    }
}

fn sharded(names: &ObjectNames) -> Result<&Sharded> {
    names.sharded.as_ref().ok_or_else(|| Error::invalid("this array has no shards"))
}
