//! From references to bytes: all formats fetch their chunks here.
//!
//! All references of a call are on their way together, whichever store they are in: ranges
//! coalesced by [`Store::fetch`]'s rules, whole files several to a call, and no more calls under
//! way at once than the limits say. Bytes are checked against the checksum in their reference or
//! the one right behind them, which comes along in the same read, as do bytes before them that it
//! covers. Chunks in packed blocks are
//! unpacked; see [`slices`](super::slices).

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt, TryStreamExt};
use futures::{FutureExt, TryFutureExt};

use super::backend::Kind;
use super::checksum::{self, Checked, Mismatch};
use super::fetch::plan;
use super::group::{Group, Shares};
use super::local::check_range;
use super::slices::{self, Blocks, Slices};
use super::{Block, ChunkRef, Limits, Remotes, Store};
use crate::error::{Error, Result};

/// The most files that are read by one call, one after the other, on a file system.
const FILES_PER_CALL_MAX: usize = 64;

/// How many calls share the objects of a store that takes many names in one.
const BULK_CALLS: usize = 4;

/// Fewer objects than this are not spread over several such calls.
const OBJECTS_PER_CALL_MIN: usize = 32;

/// Default bound on the unpacked blocks that are kept.
const BLOCK_CACHE_BYTES: u64 = 64 << 20;

/// Fetches what formats locate. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Fetcher {
    store: Store,
    remotes: Arc<Remotes>,
    limits: Limits,
    check: bool,
    blocks: Blocks,
}

impl Fetcher {
    /// Fetches from `store`, and from other stores as far as `remotes` allows. With `check`, bytes
    /// are compared with the checksums that references carry or that lie behind them.
    pub fn new(store: Store, remotes: Arc<Remotes>, limits: Limits, check: bool) -> Self {
        Self { store, remotes, limits, check, blocks: Blocks::new(BLOCK_CACHE_BYTES) }
    }

    /// The same fetcher with a bound of its own on the unpacked blocks that it keeps: 64 MiB
    /// otherwise, nothing with 0. Clones share what is kept.
    #[must_use]
    pub fn with_block_cache(self, bytes_max: u64) -> Self {
        Self { blocks: Blocks::new(bytes_max), ..self }
    }

    /// Fetches from `store` only, within its limits, and checks every checksum.
    pub fn within(store: &Store) -> Self {
        let nowhere = Remotes::new(Vec::new(), super::Options::default());
        Self::new(store.clone(), Arc::new(nowhere), *store.limits(), true)
    }

    /// The store that references without a URL are in.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The places that references with a URL may be in.
    pub fn remotes(&self) -> &Remotes {
        &self.remotes
    }

    /// How much is under way at once.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The bytes of chunks, in the order of the references. `None` only for a
    /// [whole object](ChunkRef::Whole) that is not there.
    ///
    /// Results may be slices of a larger read and keep all of it alive. Copy what you keep for
    /// long.
    pub async fn fetch(&self, refs: &[&ChunkRef]) -> Result<Vec<Option<Bytes>>> {
        self.fetch_named(refs, |at| match refs.get(at) {
            Some(ChunkRef::Object { range, .. } | ChunkRef::Remote { range, .. }) => {
                format!("bytes {}..{}", range.start, range.end)
            }
            _ => "the chunk".to_owned(),
        })
        .await
    }

    /// Like [`Fetcher::fetch`]; where a checksum does not match, `name` names the reference.
    pub async fn fetch_named(
        &self,
        refs: &[&ChunkRef],
        name: impl Fn(usize) -> String,
    ) -> Result<Vec<Option<Bytes>>> {
        let mut answer = vec![None; refs.len()];
        let (mut ranges, mut whole, mut slices) = (Vec::new(), Vec::new(), Slices::default());
        let mut here = 0;
        for (at, &reference) in refs.iter().enumerate() {
            match reference {
                ChunkRef::Whole { path } => whole.push((at, path.clone())),
                ChunkRef::Inline(bytes) => {
                    answer[at] = Some(bytes.clone());
                    here += 1;
                }
                ChunkRef::Object { range, .. } | ChunkRef::Remote { range, .. } => {
                    // An empty range needs no bytes, and is no fill value either.
                    answer[at] = Some(Bytes::new());
                    ranges.push((at, reference, self.with_check(reference, range)));
                }
                ChunkRef::Slice { block, within } => {
                    answer[at] = self.blocks.slice(block, within);
                    if answer[at].is_some() {
                        here += 1;
                    } else if let Some(range) = self.range_of(block, within)? {
                        answer[at] = Some(Bytes::new());
                        ranges.push((at, reference, range));
                    } else {
                        slices.add(at, block, within)?;
                    }
                }
            }
        }
        if here == refs.len() {
            return Ok(answer);
        }
        let mut waves = slices.waves();
        let mut wave = waves.next().unwrap_or_default();
        loop {
            // Blocks come along with everything else, behind it in the answer.
            let mut all = std::mem::take(&mut ranges);
            answer.resize(refs.len() + wave.len(), Some(Bytes::new()));
            for (at, wanted) in (refs.len()..).zip(&wave) {
                all.push((at, &wanted.packed, wanted.block.range.clone()));
            }
            self.run(&all, std::mem::take(&mut whole), &mut answer).await?;
            let packed = answer.split_off(refs.len());
            slices::deliver(wave, packed, &self.blocks, self.check, &mut answer).await?;
            let Some(next) = waves.next() else { break };
            wave = next;
        }
        if self.check {
            check(refs, &mut answer, name).await?;
        }
        Ok(answer)
    }

    /// What to read for a chunk: its range, the digest behind it and the bytes before it that the
    /// digest covers, so that neighbours stay one read.
    fn with_check(&self, reference: &ChunkRef, range: &Range<u64>) -> Range<u64> {
        let Some(check) = reference.check().filter(|_| self.check) else { return range.clone() };
        // A reversed range stays as it is, and is refused later.
        match range.start <= range.end {
            true => {
                let start = range.start.saturating_sub(check.bytes_before() as u64);
                start..range.end.saturating_add(check.bytes_behind() as u64)
            }
            false => range.clone(),
        }
    }

    /// The range of a chunk in a block that needs neither unpacking nor checking: then only the
    /// chunk is read.
    fn range_of(&self, block: &Block, within: &Range<u64>) -> Result<Option<Range<u64>>> {
        match block.plain(within)? {
            Some(ChunkRef::Object { range, .. }) if block.crc32c.is_none() || !self.check => {
                Ok(Some(range))
            }
            _ => Ok(None),
        }
    }

    /// Ranges of chunks, each relative to its reference, in the order given. Only ranges in packed
    /// blocks are checked: parts that a caller decodes carry checksums of their own.
    pub async fn fetch_within(&self, refs: &[(&ChunkRef, Range<u64>)]) -> Result<Vec<Bytes>> {
        let mut answer = vec![Some(Bytes::new()); refs.len()];
        let mut ranges = Vec::with_capacity(refs.len());
        let mut slices = Vec::new();
        for (at, (reference, within)) in refs.iter().enumerate() {
            let length = check_range(place(reference), within, reference.len().unwrap_or(u64::MAX));
            let length = length?;
            match reference {
                ChunkRef::Inline(bytes) => {
                    // Cannot overflow: the range lies within these bytes.
                    let start = usize::try_from(within.start).unwrap_or(usize::MAX);
                    answer[at] = Some(bytes.slice(start..start + length));
                }
                ChunkRef::Whole { .. } => ranges.push((at, *reference, within.clone())),
                ChunkRef::Object { range, .. } | ChunkRef::Remote { range, .. } => {
                    let within = range.start + within.start..range.start + within.end;
                    ranges.push((at, *reference, within));
                }
                ChunkRef::Slice { block, within: chunk } => {
                    block.check(chunk)?;
                    let within = chunk.start + within.start..chunk.start + within.end;
                    slices.push((at, ChunkRef::Slice { block: block.clone(), within }));
                }
            }
        }
        self.run(&ranges, Vec::new(), &mut answer).await?;
        let wanted: Vec<&ChunkRef> = slices.iter().map(|(_, slice)| slice).collect();
        for ((at, _), bytes) in slices.iter().zip(self.fetch(&wanted).await?) {
            answer[*at] = bytes;
        }
        Ok(answer.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// Fills in the answers to ranges and to whole objects.
    async fn run(
        &self,
        ranges: &[(usize, &ChunkRef, Range<u64>)],
        whole: Vec<(usize, Arc<str>)>,
        answer: &mut [Option<Bytes>],
    ) -> Result<()> {
        let groups = self.groups(ranges).await?;
        let mut calls: Vec<BoxFuture<'_, Result<Shares>>> = Vec::new();
        for group in &groups {
            for job in plan(&group.requests, group.store.kind())? {
                let bytes = job.run(&**group.store.backend(), &group.requests);
                let shares = bytes.map_ok(|bytes| group.shares(bytes));
                calls.push(shares.map_err(|error| group.explain(error)).boxed());
            }
        }
        let each = self.files_per_call(whole.len());
        calls.extend(whole.chunks(each).map(|part| self.whole(part).boxed()));
        let mut done = stream::iter(calls).buffer_unordered(self.limits.requests.max(1));
        while let Some(shares) = done.try_next().await? {
            for (at, bytes) in shares {
                if let Some(place) = answer.get_mut(at) {
                    *place = bytes;
                }
            }
        }
        Ok(())
    }

    /// Sorts ranges by the store they are in.
    async fn groups(&self, ranges: &[(usize, &ChunkRef, Range<u64>)]) -> Result<Vec<Group>> {
        let mut groups = vec![Group::new(self.store.clone(), false)];
        let mut elsewhere: HashMap<&str, (usize, Arc<str>)> = HashMap::new();
        for (url, store, path) in self.resolve(ranges).await? {
            // There are few stores, one per allowed place.
            let known = groups.iter().position(|group| group.elsewhere && group.is_in(&store));
            let group = known.unwrap_or(groups.len());
            if known.is_none() {
                groups.push(Group::new(store, true));
            }
            elsewhere.insert(url, (group, path));
        }
        for (at, reference, range) in ranges {
            let (group, path, guard) = match reference {
                ChunkRef::Whole { path } => (0, path, &None),
                ChunkRef::Object { path, guard, .. } => (0, path, guard),
                ChunkRef::Slice { block, .. } => (0, &block.path, &block.guard),
                ChunkRef::Remote { url, guard, .. } => match elsewhere.get(&**url) {
                    Some((group, path)) => (*group, path, guard),
                    None => continue,
                },
                ChunkRef::Inline(_) => continue,
            };
            if let Some(group) = groups.get_mut(group) {
                group.push(*at, path, range, guard);
            }
        }
        Ok(groups)
    }

    /// Where the objects elsewhere are, each asked once.
    async fn resolve<'a>(
        &self,
        ranges: &[(usize, &'a ChunkRef, Range<u64>)],
    ) -> Result<Vec<(&'a str, Store, Arc<str>)>> {
        let urls = ranges.iter().filter_map(|(_, reference, _)| match reference {
            ChunkRef::Remote { url, .. } => Some(&**url),
            _ => None,
        });
        let urls: HashSet<&'a str> = urls.collect();
        let mut calls: Vec<BoxFuture<'_, Result<_>>> = Vec::with_capacity(urls.len());
        for url in urls {
            let resolved = self.remotes.resolve(url);
            calls.push(resolved.map_ok(move |(store, path)| (url, store, path.into())).boxed());
        }
        stream::iter(calls).buffer_unordered(self.limits.requests.max(1)).try_collect().await
    }

    /// Whole objects, one after the other.
    async fn whole(&self, objects: &[(usize, Arc<str>)]) -> Result<Shares> {
        let paths: Vec<Arc<str>> = objects.iter().map(|(_, path)| path.clone()).collect();
        let found = self.store.get_all(&paths).await?;
        Ok(objects.iter().map(|(at, _)| *at).zip(found).collect())
    }

    /// Each call reads several of many files, because a call costs a task; but there are enough
    /// calls to keep every thread busy until the end.
    fn files_per_call(&self, files: usize) -> usize {
        match self.store.kind() {
            Kind::Local => {
                files.div_ceil(self.limits.threads.max(1) * 4).clamp(1, FILES_PER_CALL_MAX)
            }
            // Several large requests at once, and small ones only where there is little to ask for.
            _ => {
                let most = self.store.objects_per_call().max(1);
                files.div_ceil(BULK_CALLS).clamp(most.min(OBJECTS_PER_CALL_MIN), most)
            }
        }
    }
}

/// The object that a reference names.
fn place(reference: &ChunkRef) -> &str {
    match reference {
        ChunkRef::Whole { path } | ChunkRef::Object { path, .. } => path,
        ChunkRef::Slice { block, .. } => &block.path,
        ChunkRef::Remote { url, .. } => url,
        ChunkRef::Inline(_) => "an inline chunk",
    }
}

/// Compares bytes with the checksums in their references or read along with them, and cuts the
/// latter off.
async fn check(
    refs: &[&ChunkRef],
    answer: &mut [Option<Bytes>],
    name: impl Fn(usize) -> String,
) -> Result<()> {
    let mut checked = Vec::new();
    for (at, (reference, bytes)) in refs.iter().zip(answer).enumerate() {
        // The packed bytes of a block are checked already.
        let (Some(check), Some(bytes)) = (reference.check(), bytes) else { continue };
        let behind = bytes.split_off(bytes.len().saturating_sub(check.bytes_behind()));
        let before = bytes.split_to(check.bytes_before().min(bytes.len()));
        checked.push(Checked { at, check, before, bytes: bytes.clone(), behind });
    }
    match checksum::first_mismatch(checked).await? {
        None => Ok(()),
        Some(Mismatch { at, kind, expected, found }) => Err(Error::Corrupt {
            file: refs.get(at).map_or("", |reference| place(reference)).to_owned(),
            what: format!("{kind} of {}", name(at)),
            expected,
            found,
        }),
    }
}
