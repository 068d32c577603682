//! Fetched chunks that are kept until a second sink has had them, in its own order.
//!
//! An Arrow shard wants blocks by z, y and x, a shard of a volume by their numbers. While there is memory, a shard is fetched
//! once; of a larger one the second sink fetches again.

use bytes::Bytes;
use chunkyard_format::precomputed::Morton;

use super::blocks::Fetched;
use super::budget::{Budget, Taken};

/// Chunks of a batch that is made of what is kept.
const BATCH_CHUNKS: usize = 128;

/// Chunks of a shard, as long as they fit.
#[derive(Debug)]
pub(super) struct Held<'a> {
    batches: Option<Vec<(Fetched, Taken)>>,
    bytes: u64,
    budget: &'a Budget,
}

impl<'a> Held<'a> {
    /// Nothing yet; with `wanted` not set it stays so.
    pub(super) fn new(wanted: bool, budget: &'a Budget) -> Self {
        Self { batches: wanted.then(Vec::new), bytes: 0, budget }
    }

    /// Keeps a batch.
    pub(super) fn keep(&mut self, fetched: &Fetched) {
        let Some(batches) = &mut self.batches else { return };
        let bytes = fetched.bytes() as u64;
        self.bytes += bytes;
        let fits = self.bytes <= self.budget.share_bytes();
        match self.budget.try_take(bytes).filter(|_| fits) {
            Some(taken) => batches.push((fetched.clone(), taken)),
            None => self.batches = None,
        }
    }

    /// All that was kept, in the order of its numbers, batch by batch; `None` if it did not fit.
    pub(super) fn in_order(
        self,
        numbers: &Morton,
    ) -> Option<Box<dyn Iterator<Item = Fetched> + Send>> {
        let (mut stored, mut made) = (Vec::new(), Vec::new());
        let mut taken = Vec::new();
        for (batch, room) in self.batches? {
            taken.push(room);
            match batch {
                Fetched::Stored(chunks) => stored.extend(chunks),
                Fetched::Made(chunks) => made.extend(chunks),
            }
        }
        match made.is_empty() {
            true => Some(rearranged(stored, numbers, taken, Fetched::Stored)),
            false => Some(rearranged(made, numbers, taken, Fetched::Made)),
        }
    }
}

/// Chunks in the order of their numbers, batch by batch, with the room that they take.
fn rearranged(
    mut chunks: Vec<([u64; 3], Bytes)>,
    numbers: &Morton,
    taken: Vec<Taken>,
    batch: fn(Vec<([u64; 3], Bytes)>) -> Fetched,
) -> Box<dyn Iterator<Item = Fetched> + Send> {
    chunks.sort_by_cached_key(|(at, _)| numbers.encode(*at));
    let mut chunks = chunks.into_iter();
    Box::new(std::iter::from_fn(move || {
        let _taken = &taken;
        let some: Vec<_> = chunks.by_ref().take(BATCH_CHUNKS).collect();
        (!some.is_empty()).then(|| batch(some))
    }))
}
