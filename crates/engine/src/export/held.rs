//! Fetched chunks that are kept until a second sink has had them, in its own order.
//!
//! An Arrow shard wants blocks by z, y and x, a shard of a volume by their numbers. What fits is fetched once; of a larger shard
//! the second sink fetches again.

use std::collections::HashMap;

use bytes::Bytes;

use super::blocks::Fetched;

/// Bytes that are kept of a shard.
const HELD_BYTES_MAX: usize = 32 << 20;
/// Chunks of a batch that is made of what is kept.
const BATCH_CHUNKS: usize = 128;

/// Chunks of a shard, as long as they fit.
#[derive(Debug)]
pub(super) struct Held {
    batches: Option<Vec<Fetched>>,
    bytes: usize,
}

impl Held {
    /// Nothing yet; with `wanted` not set it stays so.
    pub(super) fn new(wanted: bool) -> Self {
        Self { batches: wanted.then(Vec::new), bytes: 0 }
    }

    /// Keeps a batch.
    pub(super) fn keep(&mut self, fetched: &Fetched) {
        let Some(batches) = &mut self.batches else { return };
        self.bytes += fetched.bytes();
        match self.bytes > HELD_BYTES_MAX {
            true => self.batches = None,
            false => batches.push(fetched.clone()),
        }
    }

    /// All that was kept, in another order, batch by batch; `None` if it did not fit.
    pub(super) fn in_order(
        self,
        order: impl Iterator<Item = [u64; 3]> + Send + 'static,
    ) -> Option<Box<dyn Iterator<Item = Fetched> + Send>> {
        let (mut stored, mut made) = (HashMap::new(), HashMap::new());
        for batch in self.batches? {
            match batch {
                Fetched::Stored(chunks) => stored.extend(chunks),
                Fetched::Made(chunks) => made.extend(chunks),
            }
        }
        if made.is_empty() {
            return Some(rearranged::<Bytes>(stored, order, Fetched::Stored));
        }
        Some(rearranged::<Vec<u8>>(made, order, Fetched::Made))
    }
}

/// Chunks in an order, batch by batch.
fn rearranged<T: Send + 'static>(
    mut chunks: HashMap<[u64; 3], T>,
    mut order: impl Iterator<Item = [u64; 3]> + Send + 'static,
    batch: impl Fn(Vec<([u64; 3], T)>) -> Fetched + Send + 'static,
) -> Box<dyn Iterator<Item = Fetched> + Send> {
    Box::new(std::iter::from_fn(move || {
        let mut some = Vec::new();
        while some.len() < BATCH_CHUNKS {
            let Some(at) = order.next() else { break };
            some.extend(chunks.remove(&at).map(|chunk| (at, chunk)));
        }
        (!some.is_empty()).then(|| batch(some))
    }))
}
