//! Finding chunks in shards, with what was read of their indices kept.

use std::collections::HashMap;
use std::sync::Arc;

use chunkyard_store::{ByteCache, ChunkRef, Error, Guard, Meta, Result, Store};
use futures::stream::{self, StreamExt, TryStreamExt};

use super::shard_index::{Minishard, minishard_range};
use super::sharding::{INDEX_ENTRY_BYTES, Sharding, Slot};

/// Bound of the cache of indices, in bytes.
const CACHE_BYTES_MAX: u64 = 64 << 20;

/// The index of a shard is read as a whole if it has no more bytes than this.
const WHOLE_INDEX_BYTES_MAX: u64 = 64 << 10;

/// Reads indices of shards. What is read once is kept.
#[derive(Debug)]
pub(super) struct ShardReader {
    store: Store,
    shards: ByteCache<Arc<str>, Arc<OpenShard>>,
    minishards: ByteCache<(Arc<str>, u64), Arc<Minishard>>,
}

/// A shard that exists.
#[derive(Debug)]
struct OpenShard {
    path: Arc<str>,
    guard: Option<Guard>,
    bytes: u64,
    /// The index at its front, if it is small.
    index: Option<Vec<u8>>,
}

/// A minishard, and the shard that it is in.
type Found = (Arc<OpenShard>, Arc<Minishard>);

impl ShardReader {
    pub(super) fn new(store: Store) -> Self {
        let shards =
            ByteCache::new(CACHE_BYTES_MAX / 2, |path: &Arc<str>, shard: &Arc<OpenShard>| {
                path.len() + shard.index.as_ref().map_or(0, Vec::len) + 256
            });
        let minishards = ByteCache::new(
            CACHE_BYTES_MAX / 2,
            |(path, _): &(Arc<str>, u64), minishard: &Arc<Minishard>| {
                path.len() + minishard.weight()
            },
        );
        Self { store, shards, minishards }
    }

    /// Where chunks are in the shards of a folder, in the order asked.
    pub(super) async fn locate(
        &self,
        folder: &str,
        sharding: &Sharding,
        slots: &[Slot],
    ) -> Result<Vec<Option<ChunkRef>>> {
        let mut wanted: HashMap<(u64, u64), Option<Found>> = HashMap::new();
        let mut shards: HashMap<u64, Option<Arc<OpenShard>>> = HashMap::new();
        for slot in slots {
            wanted.entry((slot.shard, slot.minishard)).or_default();
            shards.entry(slot.shard).or_default();
        }
        let at_once = self.store.limits().requests.max(1);
        let numbers: Vec<u64> = shards.keys().copied().collect();
        let mut opened = stream::iter(numbers)
            .map(|shard| async move {
                let path: Arc<str> = format!("{folder}{}", sharding.file_name(shard)).into();
                Ok::<_, Error>((shard, self.open(sharding, path).await?))
            })
            .buffer_unordered(at_once);
        while let Some((shard, open)) = opened.try_next().await? {
            shards.insert(shard, open);
        }
        let open: Vec<_> =
            wanted.keys().filter_map(|key| Some((*key, shards.get(&key.0)?.clone()?))).collect();
        let mut read = stream::iter(open)
            .map(|(key, shard)| async move {
                let minishard = self.minishard(sharding, &shard, key.1).await?;
                Ok::<_, Error>((key, minishard.map(|minishard| (shard, minishard))))
            })
            .buffer_unordered(at_once);
        while let Some((key, found)) = read.try_next().await? {
            wanted.insert(key, found);
        }
        let place = |slot: &Slot| {
            let (shard, minishard) = wanted.get(&(slot.shard, slot.minishard))?.as_ref()?;
            Some(shard.reference(minishard.get(slot.id)?))
        };
        Ok(slots.iter().map(place).collect())
    }

    /// All chunks of a shard that was listed: their numbers, and where they are.
    pub(super) async fn all(
        &self,
        sharding: &Sharding,
        meta: &Meta,
    ) -> Result<Vec<(u64, ChunkRef)>> {
        let shard = self.open_listed(sharding, meta.path.as_str().into(), meta).await?;
        let mut all = Vec::new();
        for minishard in 0..sharding.num_minishards() {
            if let Some(found) = self.minishard(sharding, &shard, minishard).await? {
                let rows = found.rows().iter();
                all.extend(rows.map(|(id, range)| (*id, shard.reference(range.clone()))));
            }
        }
        Ok(all)
    }

    /// A shard; `None` if there is none.
    async fn open(&self, sharding: &Sharding, path: Arc<str>) -> Result<Option<Arc<OpenShard>>> {
        if let Some(known) = self.shards.get(&path) {
            return Ok(Some(known));
        }
        match self.store.head(&path).await {
            Ok(meta) => self.open_listed(sharding, path, &meta).await.map(Some),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn open_listed(
        &self,
        sharding: &Sharding,
        path: Arc<str>,
        meta: &Meta,
    ) -> Result<Arc<OpenShard>> {
        let index_bytes = sharding.index_bytes();
        if meta.size < index_bytes {
            return Err(Error::Corrupt {
                file: path.to_string(),
                what: "shard".to_owned(),
                expected: format!("an index of {index_bytes} bytes"),
                found: format!("{} bytes", meta.size),
            });
        }
        let guard = Guard::of(meta);
        let index = match index_bytes <= WHOLE_INDEX_BYTES_MAX {
            true => Some(self.read(&path, guard.as_ref(), 0..index_bytes).await?.to_vec()),
            false => None,
        };
        let open = Arc::new(OpenShard { path: path.clone(), guard, bytes: meta.size, index });
        self.shards.insert(path, open.clone());
        Ok(open)
    }

    /// The chunks of a minishard; `None` if it has none.
    async fn minishard(
        &self,
        sharding: &Sharding,
        shard: &OpenShard,
        minishard: u64,
    ) -> Result<Option<Arc<Minishard>>> {
        let key = (shard.path.clone(), minishard);
        if let Some(known) = self.minishards.get(&key) {
            return Ok(Some(known));
        }
        let at = minishard * INDEX_ENTRY_BYTES;
        let known = shard
            .index
            .as_ref()
            .and_then(|index| index.get(usize::try_from(at).ok()?..)?.first_chunk().copied());
        let entry = match known {
            Some(entry) => entry,
            None => {
                let range = at..at + INDEX_ENTRY_BYTES;
                let bytes = self.read(&shard.path, shard.guard.as_ref(), range).await?;
                bytes.first_chunk().copied().unwrap_or_default()
            }
        };
        let Some(range) = minishard_range(&shard.path, sharding, minishard, entry, shard.bytes)?
        else {
            return Ok(None);
        };
        let stored = self.read(&shard.path, shard.guard.as_ref(), range).await?;
        let parsed = Minishard::parse(&shard.path, sharding, minishard, &stored, shard.bytes)?;
        let parsed = Arc::new(parsed);
        self.minishards.insert(key, parsed.clone());
        Ok(Some(parsed))
    }

    async fn read(
        &self,
        path: &str,
        guard: Option<&Guard>,
        range: std::ops::Range<u64>,
    ) -> Result<bytes::Bytes> {
        let mut parts = self.store.get_ranges(path, std::slice::from_ref(&range), guard).await?;
        parts.pop().ok_or_else(|| Error::store("read", path, "the store returned no bytes"))
    }
}

impl OpenShard {
    fn reference(&self, range: std::ops::Range<u64>) -> ChunkRef {
        let (path, guard) = (self.path.clone(), self.guard.clone());
        ChunkRef::Object { path, range, guard, check: None }
    }
}
