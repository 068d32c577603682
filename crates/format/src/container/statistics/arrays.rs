//! Statistics of arrays: carried on from layer to layer, at a cost in proportion to the changes.
//!
//! Every layer of ours keeps the statistics of the arrays it touches, in its [seal](crate::container::seal), so
//! they always match the layer. The statistics file beside the container is for other programs: it
//! is updated after each flush while it is small, and deleted when it is not, until the next
//! compaction writes it anew. If another program wrote the newest layer of an array, that file
//! counts.

use std::cmp::Ordering;
use std::sync::Arc;

use chunkyard_store::{Error, Result, cpu};
use futures::{StreamExt, TryStreamExt, stream};

use crate::container::bytes::footer;
use crate::container::bytes::stats_file;
use crate::container::handle::{Container, no_array};
use crate::container::layers::files::Files;
use crate::container::mapping::chunks::grid_of;
use crate::container::model::{ArrayStats, StatValue};
use crate::container::read::array_state::ArrayState;
use crate::container::read::committed::Committed;
use crate::container::statistics::{ChunkStats, compare, of_chunk};
use crate::container::write::changes::{ArrayChange, Description};

/// The statistics file is kept up to date up to this size.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Chunks that are read at once to compute statistics anew.
const READS: usize = 16;

impl Container {
    /// The statistics of an array as of the last flush, if known.
    pub async fn statistics(&self, name: &str) -> Result<Option<ArrayStats>> {
        let committed = self.open.committed();
        if committed.stack.array(name).await?.is_none() {
            return Err(no_array(name));
        }
        committed.known_statistics(name).await
    }
}

impl Container {
    /// Bytes of the statistics file for other programs; `None` if there is none.
    pub async fn statistics_file_bytes(&self) -> Result<Option<u64>> {
        let Files { store, names, .. } = &*self.open.files;
        match store.head(&names.statistics()).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Committed {
    /// The statistics of an array in the store, from its newest layer.
    pub(crate) async fn known_statistics(&self, name: &str) -> Result<Option<ArrayStats>> {
        for layer in self.stack.layers.iter().rev() {
            let Some(position) = layer.position(name).await? else { continue };
            if layer.root.version >= 6 {
                let head = layer.parse(|view| footer::array(view, &layer.root, position)).await?;
                return Ok(head.stats);
            }
            if layer.seal.is_some() {
                return Ok(layer.sealed_statistics().await?.get(name).cloned());
            }
            let file = self.stack.statistics_file.get_or_try_init(|| async {
                let all = self.files.read_statistics_file().await?.unwrap_or_default();
                Ok::<_, Error>(all.into_iter().map(|stats| (stats.name.clone(), stats)).collect())
            });
            return Ok(file.await?.get(name).cloned());
        }
        Ok(None)
    }

    /// The statistics of an array after a change; `None` if they need chunks with an unknown codec.
    /// That is no reason to refuse the change.
    pub(crate) async fn statistics_after(
        &self,
        change: &ArrayChange,
        described: &Arc<Description>,
    ) -> Result<Option<ArrayStats>> {
        match self.statistics_with(change, described).await {
            Err(Error::Unsupported { .. }) => Ok(None),
            other => other,
        }
    }

    /// From the old statistics and the changes, unless a removed element may have been the smallest
    /// or the largest.
    async fn statistics_with(
        &self,
        change: &ArrayChange,
        described: &Arc<Description>,
    ) -> Result<Option<ArrayStats>> {
        let (name, shape) = (&described.meta.name, &described.meta.shape);
        let mut added = ChunkStats::default();
        change.chunks.values().for_each(|chunk| added.merge(chunk.stats()));
        let array = match change.fresh {
            true => None,
            false => self.stack.array(name).await?,
        };
        let Some(array) = array else { return Ok(Some(added.to_array_stats(name, shape))) };
        let known = match change.shrunk {
            true => None,
            false => self.known_statistics(name).await?,
        };
        if change.chunks.is_empty() && !change.shrunk && known.is_none() {
            // A changed attribute is no reason to read chunks: unknown statistics stay unknown.
            return Ok(None);
        }
        if let Some(known) = known {
            let indices: Vec<u64> =
                change.chunks.keys().filter_map(|index| array.position(index)).collect();
            let removed = self.statistics_of_chunks(&array, indices).await?;
            if let Some(merged) = carried_on(&known, &removed, &added) {
                return Ok(Some(merged.to_array_stats(name, shape)));
            }
        }
        // Reads all chunks that stay.
        let grid = grid_of(described)?;
        let stays = array.all().await?.into_iter().map(|(at, _)| at).filter(|&at| {
            let index = array.index(at);
            grid.contains(&index) && !change.chunks.contains_key(&index)
        });
        let mut all = self.statistics_of_chunks(&array, stays.collect()).await?;
        all.merge(added);
        Ok(Some(all.to_array_stats(name, shape)))
    }

    /// The statistics of an array in the store, computed from all of its chunks.
    pub(crate) async fn statistics_anew(&self, array: &ArrayState) -> Result<ArrayStats> {
        let all = array.all().await?.into_iter().map(|(at, _)| at).collect();
        let stats = self.statistics_of_chunks(array, all).await?;
        let meta = &array.described.meta;
        Ok(stats.to_array_stats(&meta.name, &meta.shape))
    }

    async fn statistics_of_chunks(
        &self,
        array: &ArrayState,
        positions: Vec<u64>,
    ) -> Result<ChunkStats> {
        let described = &array.described;
        let each = stream::iter(positions)
            .map(|at| async move {
                let reference = array.reference(&array.index(at)).await?;
                let Some(reference) = reference else { return Ok(ChunkStats::default()) };
                let bytes = self.files.fetcher.fetch(&[&reference]).await?.pop().flatten();
                let (bytes, described) = (bytes.unwrap_or_default(), described.clone());
                cpu(move || {
                    let meta = &described.meta;
                    of_chunk(&meta.dtype, meta.fill_value.as_ref(), &bytes)
                })
                .await?
            })
            .buffer_unordered(READS);
        each.try_fold(ChunkStats::default(), |mut all, stats| async move {
            all.merge(stats);
            Ok(all)
        })
        .await
    }

    /// Updates the statistics file for other programs, or deletes one that is too large for that.
    pub(crate) async fn update_statistics_file(
        &self,
        changed: &[ArrayStats],
        gone: &[&str],
    ) -> Result<()> {
        let (path, store) = (self.files.names.statistics(), &self.files.store);
        let mut all = match store.head(&path).await {
            Ok(meta) if meta.size > FILE_BYTES_MAX => {
                return store.delete(&[path]).await;
            }
            Ok(_) => self.files.read_statistics_file().await?.unwrap_or_default(),
            // Deleted, or never written: an incomplete file is of no use.
            Err(Error::NotFound { .. }) if self.has_older_arrays() => return Ok(()),
            Err(Error::NotFound { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        all.retain(|known| {
            !gone.contains(&known.name.as_str()) && changed.iter().all(|new| new.name != known.name)
        });
        all.extend_from_slice(changed);
        self.files.write_statistics_file(&all).await
    }

    /// Whether layers below the newest one hold arrays.
    fn has_older_arrays(&self) -> bool {
        self.stack.layers.iter().rev().skip(1).any(|layer| layer.root.arrays.len > 0)
    }
}

impl Files {
    /// The content of the statistics file; `None` if it is missing or cannot be read.
    pub(crate) async fn read_statistics_file(&self) -> Result<Option<Vec<ArrayStats>>> {
        match self.store.get(&self.names.statistics()).await {
            Ok(object) => Ok(stats_file::parse_file(&object.bytes).ok()),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the statistics file anew.
    pub(crate) async fn write_statistics_file(&self, all: &[ArrayStats]) -> Result<()> {
        let bytes = stats_file::render_file(all);
        crate::publish::publish(&self.store, vec![(self.names.statistics(), bytes.into())]).await
    }
}

/// Statistics after chunks were removed and others added; `None` if a removed element may have been
/// the smallest or the largest, and no added element is as small or as large.
fn carried_on(known: &ArrayStats, removed: &ChunkStats, added: &ChunkStats) -> Option<ChunkStats> {
    let non_null = known.row_count.checked_sub(known.null_count)?.checked_sub(removed.non_null)?;
    let lost =
        |had: &Option<StatValue>, went: &Option<StatValue>, came: &Option<StatValue>, toward| {
            let (Some(had), Some(went)) = (had, went) else { return false };
            if went != had {
                return false;
            }
            // An added element is as extreme.
            !came.as_ref().is_some_and(|came| came == had || compare(came, had) == toward)
        };
    if lost(&known.min, &removed.min, &added.min, Ordering::Less)
        || lost(&known.max, &removed.max, &added.max, Ordering::Greater)
    {
        return None;
    }
    let mut stays = ChunkStats { min: known.min.clone(), max: known.max.clone(), non_null };
    stays.merge(added.clone());
    Some(stays)
}
