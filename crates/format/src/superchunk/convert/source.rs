//! BLZ datasets as a source of the pipeline: one of them, or a [tree](super::tree) of several.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use chunkyard_array::{ChunkIndex, GroupSpec, Region};
use chunkyard_store::{ChunkRef, Error, Fetcher, Links, Meta, Noun, Remotes, Result, Store};
use futures::future::{BoxFuture, FutureExt};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};

use super::tree::{self, Member, joined};
use crate::superchunk::committed::{Committed, View};
use crate::superchunk::handle::{Blz, BlzOptions};
use crate::superchunk::protocol::Protocol;
use crate::{ChunkStream, Dataset, Locate, Node, OpenOptions, Place, Source};
use crate::{Finding, Level};

/// Files whose heads are read at the same time.
const LOOKS: usize = 8;

/// The arrays of a BLZ dataset, or of a tree of datasets, by path.
#[derive(Debug)]
pub struct BlzSource {
    store: Store,
    members: Vec<Member>,
    dataset: Dataset,
    /// Which column of which member an array is.
    places: BTreeMap<String, (usize, usize)>,
    fetcher: Fetcher,
}

impl BlzSource {
    /// Opens the dataset or the tree at a place.
    pub async fn open(place: &Place, options: &OpenOptions) -> Result<Self> {
        let store = place.directory().clone();
        let options = BlzOptions { open: options.clone(), ..BlzOptions::default() };
        match tree::read(&store).await? {
            None => {
                let blz = Blz::open(place, options.clone()).await?;
                let member = Member { path: "/".to_owned(), folder: String::new(), blz };
                Self::new(store, vec![member], Vec::new(), &options.open)
            }
            Some(described) => {
                let members = described.open(&store, &options).await?;
                Self::new(store, members, described.groups(), &options.open)
            }
        }
    }

    /// A source of datasets in a store, and of the groups around them.
    pub(crate) fn new(
        store: Store,
        members: Vec<Member>,
        groups: Vec<(String, GroupSpec)>,
        options: &OpenOptions,
    ) -> Result<Self> {
        let mut dataset = Dataset::default();
        for (path, group) in groups {
            dataset.insert(path, Node::Group(group));
        }
        let mut places = BTreeMap::new();
        for (number, member) in members.iter().enumerate() {
            for (path, node) in member.blz.dataset()?.nodes {
                dataset.insert(joined(&member.path, &path), node);
            }
            for (at, column) in member.blz.columns().iter().enumerate() {
                places.insert(joined(&member.path, &column.path), (number, at));
            }
        }
        let remotes = Arc::new(Remotes::new(options.allowed.clone(), options.store.clone()));
        let limits = *store.limits();
        let fetcher = Fetcher::new(store.clone(), remotes, limits, true);
        Ok(Self { store, members, dataset, places, fetcher })
    }

    /// The dataset, if this is not a tree.
    pub fn blz(&self) -> Option<&Blz> {
        match self.members.as_slice() {
            [member] if member.path == "/" => Some(&member.blz),
            _ => None,
        }
    }

    fn place(&self, array: &str) -> Result<(&Member, usize)> {
        let missing = || Error::NotFound { what: Noun::Array, name: array.to_owned() };
        let (member, at) = self.places.get(array).ok_or_else(missing)?;
        Ok((self.members.get(*member).ok_or_else(missing)?, *at))
    }
}

/// The chunks of a column that are wanted.
struct RegionChunks<'a> {
    member: &'a Member,
    view: View,
    at: usize,
    /// First chunk, and the one after the last.
    chunks: std::ops::Range<u64>,
    chunklen: u64,
    per_file: u64,
    rank: usize,
}

impl<'a> RegionChunks<'a> {
    fn new(source: &'a BlzSource, array: &str, within: &Region) -> Result<Self> {
        let (member, at) = source.place(array)?;
        let rank = source.dataset.array(array)?.spec.shape().len();
        let view = member.blz.shared.current.view();
        let missing = || Error::NotFound { what: Noun::Array, name: array.to_owned() };
        let column = view.committed.columns.get(at).ok_or_else(missing)?;
        let (chunklen, per_file) = (column.chunklen.max(1), column.superchunk.max(1));
        let origin = within.origin().first().copied().unwrap_or(0);
        let end = origin.saturating_add(within.shape().first().copied().unwrap_or(1));
        let chunks = match within.num_elements() {
            0 => 0..0,
            _ => origin / chunklen..end.min(view.len).div_ceil(chunklen),
        };
        Ok(Self { member, at, chunks, chunklen, per_file, rank, view })
    }

    /// Full chunks that are wanted.
    fn full(&self) -> std::ops::Range<u64> {
        self.chunks.start..self.chunks.end.min(self.view.len / self.chunklen)
    }

    fn index(&self, chunk: u64) -> ChunkIndex {
        (0..self.rank).map(|axis| if axis == 0 { chunk } else { 0 }).collect()
    }

    /// Where the wanted chunks of a file are. Damage is reported once for a file.
    async fn in_file(&self, file: u64) -> Vec<Result<(ChunkIndex, ChunkRef)>> {
        let full = self.full();
        let first = file.saturating_mul(self.per_file).max(full.start);
        let end = file.saturating_add(1).saturating_mul(self.per_file).min(full.end);
        let mut found = Vec::new();
        for chunk in first..end {
            let reference = match self.view.find_slot(self.at, chunk).await {
                Ok((index, slot)) => {
                    index.reference(slot).map(|found| guarded(found, &index.guard))
                }
                Err(error) => {
                    found.push(Err(self.member.named(error)));
                    break;
                }
            };
            let reference = reference.map(|found| self.member.reference(found));
            found.extend(reference.map(|reference| Ok((self.index(chunk), reference))));
        }
        found
    }

    /// The last chunk, if it is not full: filled up, and compressed like all others.
    async fn last(&self) -> Option<Result<(ChunkIndex, ChunkRef)>> {
        let chunk = self.full().end.max(self.chunks.start);
        if chunk >= self.chunks.end {
            return None;
        }
        let found = self.member.blz.shared.locate_chunk(&self.view, self.at, chunk, true).await;
        Some(match found {
            Ok(reference) => Ok((self.index(chunk), self.member.reference(reference))),
            Err(error) => Err(self.member.named(error)),
        })
    }
}

/// The reference with a guard, which shows whether the object is still the same.
fn guarded(reference: ChunkRef, known: &Option<chunkyard_store::Guard>) -> ChunkRef {
    match reference {
        ChunkRef::Object { path, range, check, .. } => {
            ChunkRef::Object { path, range, check, guard: known.clone() }
        }
        ChunkRef::Remote { url, range, check, .. } => {
            ChunkRef::Remote { url, range, check, guard: known.clone() }
        }
        other => other,
    }
}

#[async_trait]
impl Locate for BlzSource {
    fn fetcher(&self) -> &Fetcher {
        &self.fetcher
    }

    async fn locate(&self, array: &str, chunks: &[ChunkIndex]) -> Result<Vec<Option<ChunkRef>>> {
        let (member, at) = self.place(array)?;
        let shared = &member.blz.shared;
        let view = shared.current.view();
        let mut found = Vec::with_capacity(chunks.len());
        for index in chunks {
            let chunk = index.first().copied().unwrap_or(0);
            // Compressed, because a copy of chunks keeps it as it is.
            let located = shared.locate_chunk(&view, at, chunk, true).await;
            found.push(Some(member.reference(located.map_err(|error| member.named(error))?)));
        }
        Ok(found)
    }

    async fn explain(&self, mut error: Error) -> Error {
        for member in &self.members {
            error = member.blz.shared.explain_change(error).await;
        }
        error
    }
}

impl Source for BlzSource {
    fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    fn identity(&self) -> String {
        let each = self.members.iter().map(|member| {
            let committed = member.blz.shared.current.committed();
            let Committed { sizes, version, columns, .. } = &*committed;
            let said = format!("{sizes:?} {version:?} {columns:?}");
            let generation = sizes.generation.unwrap_or(0);
            format!("{}:{generation}:{:08x}", member.path, crc32c::crc32c(said.as_bytes()))
        });
        each.collect::<Vec<_>>().join(" ")
    }

    fn chunks<'a>(&'a self, array: &'a str, within: &'a Region) -> ChunkStream<'a> {
        let all = async move {
            let wanted = Arc::new(RegionChunks::new(self, array, within)?);
            let (full, per_file) = (wanted.full(), wanted.per_file);
            let files = match full.is_empty() {
                true => 0..0,
                false => full.start / per_file..full.end.div_ceil(per_file),
            };
            let each = wanted.clone();
            let in_files = stream::iter(files)
                .map(move |file| {
                    let wanted = each.clone();
                    async move { wanted.in_file(file).await }
                })
                .buffered(LOOKS)
                .flat_map(stream::iter);
            let last = stream::once(async move { wanted.last().await });
            Ok::<_, Error>(in_files.chain(last.filter_map(|last| async move { last })))
        };
        stream::once(all).try_flatten().boxed()
    }

    fn cautions(&self) -> Vec<String> {
        self.members.iter().flat_map(|member| member.blz.cautions()).collect()
    }

    fn inspect(&self, level: Level) -> BoxStream<'_, Result<Finding>> {
        stream::iter(&self.members)
            .then(move |member| async move {
                let findings = member.blz.shared.current.committed().inspect(level).await?;
                let named = findings.into_iter().map(|finding| {
                    let array = finding.array.map(|array| joined(&member.path, &array));
                    let file = format!("{}{}", member.folder, finding.file);
                    Ok(Finding { array, file, ..finding })
                });
                Ok::<_, Error>(stream::iter(named.collect::<Vec<_>>()))
            })
            .try_flatten()
            .boxed()
    }

    fn unchecked_files(&self) -> Vec<String> {
        let each = self.members.iter().flat_map(|member| {
            let files = member.blz.shared.current.committed().unchecked_files().into_iter();
            files.map(|file| format!("{}{file}", member.folder))
        });
        each.collect()
    }

    fn origin<'a>(
        &'a self,
        array: &'a str,
        chunk: &'a ChunkIndex,
    ) -> BoxFuture<'a, Result<Option<ChunkRef>>> {
        async move {
            let (member, at) = self.place(array)?;
            let view = member.blz.shared.current.view();
            let found = view.find(at, chunk.first().copied().unwrap_or(0)).await;
            Ok(Some(member.reference(found.map_err(|error| member.named(error))?)))
        }
        .boxed()
    }

    fn strays(&self) -> BoxStream<'_, Result<Meta>> {
        let listing = async move {
            let objects = self.store.list_links("", Links::Skip).await?;
            Ok::<_, Error>(objects.try_filter(|meta| {
                let owned = Protocol::of(&self.store).is_removed(meta)
                    || tree::is_hierarchy(&meta.path)
                    || self.members.iter().any(|member| member.owns(&meta.path));
                std::future::ready(!owned)
            }))
        };
        stream::once(listing).try_flatten().boxed()
    }
}
