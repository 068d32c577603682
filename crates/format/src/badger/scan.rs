//! Keys in order: all sources merged, the newest version of each key.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use chunkyard_store::Result;
use futures::future::try_join_all;
use futures::stream::{self, BoxStream, StreamExt};

use super::key::{INTERNAL, KeyRange};
use super::source::{Head, Source, Tables};
use super::value::BadPointer;
use super::{Entry, Inner};

/// Entries of a batch.
const BATCH: usize = 1024;

/// Versions of keys that are looked at for a batch, so that a caller hears from a scan that finds
/// little.
const LOOKED_AT_MAX: usize = 64 << 10;

/// A merge of all sources.
struct Merge {
    inner: Arc<Inner>,
    range: KeyRange,
    sources: Vec<Source>,
    heap: BinaryHeap<Reverse<Head>>,
    /// The key whose newest version was taken.
    taken: Option<Vec<u8>>,
    now: u64,
}

/// The newest live version of each key in a range, in batches.
pub(super) fn scan(
    inner: Arc<Inner>,
    range: KeyRange,
    is_scan: bool,
) -> BoxStream<'static, Result<Vec<Entry>>> {
    let first = async move { Merge::new(inner, range, is_scan).await };
    let batches = async move |merge: Merge| {
        let mut merge = merge;
        let batch = merge.batch().await?;
        Ok(batch.map(|batch| (batch, merge)))
    };
    let scan = stream::once(first).map(move |merge| match merge {
        Ok(merge) => stream::try_unfold(merge, batches).boxed(),
        Err(error) => stream::once(async { Err(error) }).boxed(),
    });
    scan.flatten().boxed()
}

impl Merge {
    async fn new(inner: Arc<Inner>, range: KeyRange, is_scan: bool) -> Result<Self> {
        let memory = inner.memtables.iter().map(|table| Source::memory(table, &range));
        let tables = inner.levels.iter();
        let tables =
            tables.map(|level| Source::Tables(Box::new(Tables::new(level, &range, is_scan))));
        let mut sources: Vec<Source> = memory.chain(tables).collect();
        let heads = try_join_all(sources.iter_mut().map(|source| source.next(&inner, &range)));
        let heads = heads.await?.into_iter().enumerate();
        let ranked = heads.filter_map(|(rank, head)| Some(Reverse(Head { rank, ..head? })));
        let heap = ranked.collect();
        let now = u64::try_from(chunkyard_store::clock::now_ms() / 1000).unwrap_or(0);
        Ok(Self { inner, range, sources, heap, taken: None, now })
    }

    /// The next entries; `None` after the last.
    async fn batch(&mut self) -> Result<Option<Vec<Entry>>> {
        let mut batch = Vec::new();
        for _ in 0..LOOKED_AT_MAX {
            let Some(Reverse(head)) = self.heap.pop() else {
                return Ok((!batch.is_empty()).then_some(batch));
            };
            let rank = head.rank;
            if let Some(source) = self.sources.get_mut(rank)
                && let Some(next) = source.next(&self.inner, &self.range).await?
            {
                self.heap.push(Reverse(Head { rank, ..next }));
            }
            if let Some(entry) = self.take(head)? {
                batch.push(entry);
                if batch.len() == BATCH {
                    break;
                }
            }
        }
        Ok(Some(batch))
    }

    /// The entry of a version, if it is the one that counts.
    fn take(&mut self, head: Head) -> Result<Option<Entry>> {
        let is_hidden = head.version > self.inner.at
            || self.taken.as_ref() == Some(&head.user)
            || head.user.starts_with(INTERNAL);
        if is_hidden {
            return Ok(None);
        }
        self.taken = Some(head.user.clone());
        if head.record.is_gone(self.now) {
            return Ok(None);
        }
        match self.inner.logs.locate(head.user, head.version, head.record) {
            Ok(entry) => Ok(Some(entry)),
            Err(bad) => {
                let BadPointer { error, part, entry } = *bad;
                self.inner.damage.meet(error, part)?;
                // Without its key an older value would show.
                Ok(Some(entry))
            }
        }
    }
}
