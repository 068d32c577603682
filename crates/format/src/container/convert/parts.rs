//! The parts of an unfinished container, read as the arrays they will be.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use chunkyard_array::{ChunkIndex, Region};
use chunkyard_store::{ChunkRef, Error, Fetcher, Result, Store, Version};
use futures::{StreamExt, TryStreamExt, future, stream};

use crate::container::layers::footer_reader::Windows;
use crate::container::layers::layer::Layer;
use crate::container::layers::stack::Stack;
use crate::container::mapping;
use crate::container::mapping::chunks;
use crate::container::model::ArrayStats;
use crate::container::read::array_cache::ArrayCache;
use crate::container::read::array_state::ArrayState;
use crate::container::statistics::ChunkStats;
use crate::{ChunkStream, Dataset, Locate, Occupied, Source};

/// Which files hold the packs of each array.
#[derive(Debug, Clone, Default)]
pub(crate) struct Parts {
    files: BTreeMap<String, BTreeMap<u64, String>>,
}

impl Parts {
    /// Adds the file of a pack of the array at a path.
    pub(crate) fn add(&mut self, path: &str, pack: u64, file: String) {
        self.files.entry(mapping::name_of(path).to_owned()).or_default().insert(pack, file);
    }
}

/// An array whose parts are all open.
#[derive(Debug, Clone, Default)]
pub(crate) struct MergedParts {
    /// Its chunks; `None` if it has none.
    pub(crate) array: Option<Arc<ArrayState>>,
    /// Their statistics.
    pub(crate) statistics: ChunkStats,
}

/// An unfinished container as a source, to be read back before it is visible.
#[derive(Debug)]
pub(crate) struct PartsSource {
    store: Store,
    dataset: Dataset,
    parts: Parts,
    fetcher: Fetcher,
    open: Mutex<HashMap<String, MergedParts>>,
}

impl PartsSource {
    pub(crate) fn new(store: &Store, dataset: Dataset, parts: Parts) -> Result<Self> {
        let fetcher = Fetcher::within(store);
        Ok(Self { store: store.clone(), dataset, parts, fetcher, open: Mutex::default() })
    }

    /// An array by its name in the container.
    pub(crate) async fn merged(&self, name: &str) -> Result<MergedParts> {
        if let Some(known) = self.open.lock().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Ok(known.clone());
        }
        let merged = self.open_parts(name).await?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // Arrays are read one at a time, so only one is kept.
        open.clear();
        open.insert(name.to_owned(), merged.clone());
        Ok(merged)
    }

    async fn open_parts(&self, name: &str) -> Result<MergedParts> {
        let Some(files) = self.parts.files.get(name) else { return Ok(MergedParts::default()) };
        let windows = &Windows::new(16 << 20, |_, window| window.len());
        let layers: Vec<Arc<Layer>> = stream::iter(files.values().cloned())
            .map(|file| async move {
                let meta = self.store.head(&file).await?;
                Layer::open(&self.store, 0, &meta, windows).await.map(Arc::new)
            })
            .buffered(self.store.limits().requests.max(1))
            .try_collect()
            .await?;
        let mut statistics = ChunkStats::default();
        for layer in &layers {
            for found in layer.sealed_statistics().await?.values() {
                statistics.merge(chunk_stats(found.clone()));
            }
        }
        let base = Version { etag: None, version: None };
        let stack = Stack {
            arrays: Mutex::new(ArrayCache::new(&layers)),
            layers,
            ignored: Vec::new(),
            next: 0,
            base,
            statistics_file: Default::default(),
            dictionaries: Default::default(),
        };
        Ok(MergedParts { array: stack.array(name).await?, statistics })
    }
}

fn chunk_stats(stats: ArrayStats) -> ChunkStats {
    let non_null = stats.row_count.saturating_sub(stats.null_count);
    ChunkStats { min: stats.min, max: stats.max, non_null }
}

#[async_trait]
impl Locate for PartsSource {
    fn fetcher(&self) -> &Fetcher {
        &self.fetcher
    }

    async fn locate(&self, array: &str, chunks: &[ChunkIndex]) -> Result<Vec<Option<ChunkRef>>> {
        let Some(state) = self.merged(mapping::name_of(array)).await?.array else {
            return Ok(vec![None; chunks.len()]);
        };
        let mut references = Vec::with_capacity(chunks.len());
        for index in chunks {
            let index = chunks::trimmed(&state.described, index);
            let found = state.reference(&index).await?;
            let found = chunks::for_model(&self.fetcher, &state.described, &index, found);
            references.push(found.await?);
        }
        Ok(references)
    }
}

impl Source for PartsSource {
    fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    fn identity(&self) -> String {
        String::new()
    }

    fn chunks<'a>(&'a self, array: &'a str, within: &'a Region) -> ChunkStream<'a> {
        let all = async move {
            let grid = self.dataset.array(array)?.grid()?;
            let state = self.merged(mapping::name_of(array)).await?.array;
            let cells = chunks::occupied(state, grid.rank()).await?;
            let touches = move |index: &ChunkIndex| {
                future::ready(grid.clipped_region(index).intersect(within).is_some())
            };
            Ok::<_, Error>(cells.try_filter(touches).and_then(move |index| async move {
                let found = self.locate(array, std::slice::from_ref(&index)).await?.pop().flatten();
                Ok::<_, Error>(found.map(|reference| (index, reference)))
            }))
        };
        let found = stream::once(all).try_flatten();
        found.try_filter_map(|found| future::ready(Ok(found))).boxed()
    }

    fn occupied(&self, array: &str) -> Result<Occupied<'_>> {
        let grid = self.dataset.array(array)?.grid()?;
        let (rank, name) = (grid.rank(), mapping::name_of(array).to_owned());
        let all = async move {
            let state = self.merged(&name).await?.array;
            chunks::occupied(state, rank).await
        };
        Ok(Occupied::Cells { grid, cells: stream::once(all).try_flatten().boxed() })
    }
}
