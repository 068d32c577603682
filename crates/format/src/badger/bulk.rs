//! Many values in the order in which they are stored.
//!
//! Keys are in the order of the voxels, values in the order in which they were written. Fetched key by
//! key they cost a read each; sorted by file and offset, neighbours come in large reads.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_store::{ChunkRef, Error, ErrorKind, Result};
use futures::stream::{self, BoxStream, StreamExt};

use super::damage::Skipped;
use super::{Badger, Entry};

/// Bytes of a batch, as they are stored.
const BATCH_BYTES: u64 = 8 << 20;

/// Values of a batch.
const BATCH_VALUES: usize = 16 << 10;

/// Batches under way at once.
const BATCHES: usize = 4;

/// Where a value is, as it sorts.
fn place(entry: &Entry) -> (Option<&Arc<str>>, u64) {
    match &entry.value {
        Some(ChunkRef::Object { path, range, .. }) => (Some(path), range.start),
        _ => (None, 0),
    }
}

/// Positions in `entries`, in the order in which they are stored, in batches of bounded size.
fn batches(entries: &[Entry]) -> Vec<Vec<usize>> {
    let there = entries.iter().enumerate().filter(|(_, entry)| entry.value.is_some());
    let mut order: Vec<(usize, &Entry)> = there.collect();
    order.sort_by_key(|(_, entry)| place(entry));
    let mut batches: Vec<Vec<usize>> = Vec::new();
    let mut bytes = 0u64;
    for (at, entry) in order {
        let more = entry.value.as_ref().and_then(ChunkRef::stored_len).unwrap_or_default();
        bytes = bytes.saturating_add(more);
        match batches.last_mut() {
            Some(last) if bytes <= BATCH_BYTES && last.len() < BATCH_VALUES => last.push(at),
            _ => {
                bytes = more;
                batches.push(vec![at]);
            }
        }
    }
    batches
}

impl Badger {
    /// The values of entries, each with its position in `entries`, in the order in which they are
    /// stored. At most a few batches of 8 MiB are in memory, besides a value that is larger.
    ///
    /// A value of a batch keeps all of the batch in memory. Values that are damaged are an error, or
    /// are left out and [listed](Badger::skipped). Entries without a value are left out.
    pub fn values(&self, entries: Vec<Entry>) -> BoxStream<'static, Result<Vec<(usize, Bytes)>>> {
        let (badger, entries) = (self.clone(), Arc::new(entries));
        let batches = batches(&entries);
        let limits = self.fetcher().limits();
        let under_way = (limits.bytes_in_flight as u64 / BATCH_BYTES).clamp(1, BATCHES as u64);
        let fetch = move |batch: Vec<usize>| {
            let (badger, entries) = (badger.clone(), entries.clone());
            async move { badger.batch(&entries, batch).await }
        };
        stream::iter(batches).map(fetch).buffered(under_way as usize).boxed()
    }

    async fn batch(&self, entries: &[Entry], batch: Vec<usize>) -> Result<Vec<(usize, Bytes)>> {
        let wanted = |at: &usize| entries.get(*at).and_then(|entry| entry.value.as_ref());
        let refs: Vec<&ChunkRef> = batch.iter().filter_map(wanted).collect();
        let error = match self.fetcher().fetch(&refs).await {
            Ok(values) => {
                let values = values.into_iter().map(Option::unwrap_or_default);
                return Ok(batch.into_iter().zip(values).collect());
            }
            Err(error) => error,
        };
        if !self.inner.damage.skips() || error.kind() != ErrorKind::Corrupt {
            return Err(error);
        }
        // Some value is damaged, the others are wanted.
        let mut values = Vec::with_capacity(batch.len());
        for at in batch {
            let Some(entry) = entries.get(at) else { continue };
            let Some(value) = &entry.value else { continue };
            match self.fetcher().fetch(&[value]).await {
                Ok(mut value) => values.push((at, value.pop().flatten().unwrap_or_default())),
                Err(error) => self.skip_value(entry, error)?,
            }
        }
        Ok(values)
    }

    fn skip_value(&self, entry: &Entry, error: Error) -> Result<()> {
        let Some(ChunkRef::Object { path, range, .. }) = &entry.value else { return Err(error) };
        let part = Skipped {
            bytes: Some(range.clone()),
            first_key: Some(entry.key.clone()),
            end_key: Some([&entry.key, &[0][..]].concat()),
            ..Skipped::file(path)
        };
        self.inner.damage.meet(error, part)
    }
}
