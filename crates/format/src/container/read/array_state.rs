//! One array, put together from the layers of a container.
//!
//! The newest layer that names the array describes it. Each chunk comes from the newest layer that has
//! it. A tombstone ends the search, and so does a layer that means another array by the name: of
//! another type, or with other chunks.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, MutexGuard, PoisonError};

use chunkyard_array::ChunkIndex;
use chunkyard_store::{Block, ChunkRef, Error, Result};

use super::ambiguous::Ambiguous;
use super::array_cache::{ArrayCache, AttributeBudget};
use super::attributes::{LayerAttributes, attributes};
use crate::container::bytes::archive::Table;
use crate::container::bytes::footer;
use crate::container::layers::layer::Layer;
use crate::container::layers::stack::Stack;
use crate::container::model::{ArrayMeta, ChunkAddress};
use crate::container::write::changes::Description;

/// Tables up to this length are read whole when the first chunk is looked up.
const TABLE_LEN_MAX: u64 = 32 << 10;

/// Chunks that are parsed in one go.
const BATCH: u64 = 16 << 10;

/// An array of a stack of layers.
#[derive(Debug)]
pub(crate) struct ArrayState {
    /// Its description.
    pub(crate) described: Arc<Description>,
    /// Attributes that may mean something else.
    pub(crate) mixed: Vec<Ambiguous>,
    /// Chunks along each axis.
    grid: Vec<u64>,
    /// Where chunks are, newest layer first.
    tables: Vec<(Arc<Layer>, Table)>,
    chunk_table: tokio::sync::OnceCell<ChunkTable>,
}

/// Where a chunk is.
#[derive(Debug, Clone)]
pub(crate) struct ChunkLocation {
    /// The layer.
    pub(crate) layer: Arc<Layer>,
    /// The part of a block in that layer.
    pub(crate) address: ChunkAddress,
}

/// Chunks of all layers in one table, so that a lookup is one step however many layers there are.
#[derive(Debug, Default)]
struct ChunkTable {
    /// By position in the grid: the number of the table, and the address.
    overlay: HashMap<u64, (u32, ChunkAddress)>,
    /// Long sorted tables, which are searched where they are.
    sorted: Vec<u32>,
}

impl Stack {
    /// An array; `None` if it never existed or was deleted.
    pub(crate) async fn array(&self, name: &str) -> Result<Option<Arc<ArrayState>>> {
        let before = {
            let arrays = self.arrays();
            if let Some(known) = arrays.get(name) {
                return Ok(Some(known));
            }
            arrays.budget()
        };
        let mut budget = before;
        let found = ArrayState::open(self, name, &mut budget).await?;
        Ok(found.map(|state| self.arrays().keep(name, state, budget.taken_since(before))))
    }

    fn arrays(&self) -> MutexGuard<'_, ArrayCache> {
        self.arrays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The names of all arrays that are not deleted, sorted.
    pub(crate) async fn names(&self) -> Result<Vec<String>> {
        let mut seen: HashMap<String, bool> = HashMap::new();
        for layer in self.layers.iter().rev() {
            for (name, deleted) in layer.names().await? {
                seen.entry(name).or_insert(deleted);
            }
        }
        let mut names: Vec<String> =
            seen.into_iter().filter(|(_, deleted)| !deleted).map(|(name, _)| name).collect();
        names.sort_unstable();
        Ok(names)
    }
}

impl Stack {
    /// Every chunk that any layer has under a name, tombstones or not: a reader of 0.9 may find them
    /// all, because it does not stop at a tombstone.
    pub(crate) async fn every_index(&self, name: &str) -> Result<BTreeSet<ChunkIndex>> {
        let mut all = BTreeSet::new();
        for layer in &self.layers {
            let Some(position) = layer.position(name).await? else { continue };
            let head = layer.parse(|view| footer::array(view, &layer.root, position)).await?;
            let rank = head.meta.shape.len();
            let mut at = 0;
            while at < head.chunks.len {
                let range = at..(at + BATCH).min(head.chunks.len);
                let batch =
                    layer.parse(|view| footer::chunks(view, &head.chunks, rank, range.clone()));
                let index = |coord: Vec<u32>| coord.into_iter().map(u64::from).collect();
                all.extend(batch.await?.into_iter().map(|entry| index(entry.coord)));
                at = range.end;
            }
        }
        Ok(all)
    }

    /// Whether a layer may have chunks under a name that are outside an array of this shape.
    pub(crate) async fn reaches_beyond(&self, name: &str, shape: &[u64]) -> Result<bool> {
        for layer in &self.layers {
            let Some(position) = layer.position(name).await? else { continue };
            let head = layer.parse(|view| footer::array(view, &layer.root, position)).await?;
            // A layer holds no chunks outside the shape that it gives the array.
            let beyond = head.meta.shape.iter().zip(shape).any(|(&had, &has)| u64::from(had) > has);
            if head.chunks.len > 0 && (beyond || head.meta.shape.len() != shape.len()) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl ArrayState {
    async fn open(stack: &Stack, name: &str, budget: &mut AttributeBudget) -> Result<Option<Self>> {
        let mut state: Option<Self> = None;
        let mut stored = Vec::new();
        for layer in stack.layers.iter().rev() {
            let Some(position) = layer.position(name).await? else { continue };
            let head = layer.parse(|view| footer::array(view, &layer.root, position)).await?;
            let table = (layer.clone(), head.chunks);
            match &mut state {
                _ if head.meta.deleted => break,
                None => {
                    check(layer, &head.meta)?;
                    let mut meta = head.meta;
                    stored.push(LayerAttributes {
                        layer,
                        pairs: std::mem::take(&mut meta.attributes),
                    });
                    let grid = grid(&meta);
                    let described = Arc::new(Description { meta, attributes: Vec::new() });
                    let (tables, chunk_table) = (vec![table], tokio::sync::OnceCell::new());
                    state = Some(Self { described, mixed: Vec::new(), grid, tables, chunk_table });
                }
                Some(state) => {
                    let meta = &state.described.meta;
                    let same = meta.dtype == head.meta.dtype
                        && meta.chunk_shape == head.meta.chunk_shape
                        && meta.shape.len() == head.meta.shape.len();
                    if !same {
                        break;
                    }
                    state.tables.push(table);
                    stored.push(LayerAttributes { layer, pairs: head.meta.attributes });
                }
            }
        }
        if let Some(state) = &mut state {
            let (attributes, mut mixed) = attributes(&stored, budget).await?;
            for other in stack.read_otherwise(&stored, &attributes).await? {
                if mixed.iter().all(|known| known.key != other.key) {
                    mixed.push(other);
                }
            }
            state.mixed = mixed;
            let meta = state.described.meta.clone();
            state.described = Arc::new(Description { meta, attributes });
            state.tables.retain(|(_, table)| table.len > 0);
        }
        Ok(state)
    }

    /// Where a chunk is; `None` if it was never written.
    pub(crate) async fn find(&self, coord: &[u64]) -> Result<Option<ChunkLocation>> {
        let Some(at) = self.position(coord) else { return Ok(None) };
        let chunk_table = self.chunk_table.get_or_try_init(|| self.chunk_table()).await?;
        let hit = chunk_table.overlay.get(&at);
        for &table in &chunk_table.sorted {
            if hit.is_some_and(|(newer, _)| *newer < table) {
                break;
            }
            let Some((layer, entries)) = self.tables.get(table as usize) else { continue };
            let coord = coord_of(at, &self.grid);
            let found = layer.parse(|view| footer::find_chunk(view, entries, &coord, at)).await?;
            if let Some(address) = found {
                return Ok(Some(ChunkLocation { layer: layer.clone(), address }));
            }
        }
        Ok(hit.and_then(|(table, address)| {
            let (layer, _) = self.tables.get(*table as usize)?;
            Some(ChunkLocation { layer: layer.clone(), address: *address })
        }))
    }

    /// All chunks within the array, in row-major order, each with its place.
    pub(crate) async fn all(&self) -> Result<Vec<(u64, ChunkLocation)>> {
        let mut found: Vec<(u64, u32, ChunkAddress)> = Vec::new();
        for (number, (layer, table)) in (0_u32..).zip(&self.tables) {
            self.each(layer, table, |at, address| found.push((at, number, address))).await?;
        }
        // Of the same chunk the newest layer comes first, and within a table the first entry.
        found.sort_by_key(|(at, table, _)| (*at, *table));
        found.dedup_by_key(|(at, _, _)| *at);
        let place = |(at, table, address): (u64, u32, ChunkAddress)| {
            let (layer, _) = self.tables.get(table as usize)?;
            Some((at, ChunkLocation { layer: layer.clone(), address }))
        };
        Ok(found.into_iter().filter_map(place).collect())
    }

    /// The positions of all chunks within the array; a chunk that several layers have comes several
    /// times.
    pub(crate) async fn positions(&self) -> Result<Vec<u64>> {
        let mut found = Vec::new();
        for (layer, table) in &self.tables {
            self.each(layer, table, |at, _| found.push(at)).await?;
        }
        Ok(found)
    }

    /// Where a chunk is, as the fetcher takes it; `None` if it was never written.
    pub(crate) async fn reference(&self, index: &ChunkIndex) -> Result<Option<ChunkRef>> {
        let Some(found) = self.find(index).await? else { return Ok(None) };
        let block = found.layer.block_ref(found.address.block).await?;
        self.slice(&found, block, index).map(Some)
    }

    /// A chunk as a slice of its block. Fails if it does not lie within the block.
    pub(crate) fn slice(
        &self,
        found: &ChunkLocation,
        block: Arc<Block>,
        index: &ChunkIndex,
    ) -> Result<ChunkRef> {
        let start = u64::from(found.address.offset);
        let end = start + u64::from(found.address.size);
        if end > block.len {
            return Err(Error::Corrupt {
                file: block.path.to_string(),
                what: format!("chunk {index:?} of {:?}", self.described.meta.name),
                expected: format!(
                    "bytes within the {} of block {}",
                    block.len, found.address.block
                ),
                found: format!("{start}..{end}"),
            });
        }
        Ok(ChunkRef::Slice { block, within: start..end })
    }

    /// The chunk at a position in the grid.
    pub(crate) fn index(&self, at: u64) -> ChunkIndex {
        coord_of(at, &self.grid).into_iter().map(u64::from).collect()
    }

    /// Position of a chunk in the grid; `None` outside.
    pub(crate) fn position(&self, coord: &[u64]) -> Option<u64> {
        linear(coord.iter().copied(), &self.grid)
    }

    async fn chunk_table(&self) -> Result<ChunkTable> {
        let mut chunk_table = ChunkTable::default();
        for (number, (layer, table)) in (0_u32..).zip(&self.tables) {
            if table.len > TABLE_LEN_MAX && layer.chunks_sorted() {
                chunk_table.sorted.push(number);
                continue;
            }
            self.each(layer, table, |at, address| {
                chunk_table.overlay.entry(at).or_insert((number, address));
            })
            .await?;
        }
        Ok(chunk_table)
    }

    /// Calls back for each chunk of a table that lies within the array.
    async fn each(
        &self,
        layer: &Layer,
        table: &Table,
        mut call: impl FnMut(u64, ChunkAddress),
    ) -> Result<()> {
        let rank = self.grid.len();
        let mut at = 0;
        while at < table.len {
            let range = at..(at + BATCH).min(table.len);
            // A parser that lacks bytes begins its batch again, so nothing is passed on before its end.
            let batch = layer
                .parse(|view| {
                    let mut batch = Vec::new();
                    footer::chunk_flat(view, table, rank, range.clone(), &mut |coord, address| {
                        if let Some(at) = linear(coord.iter().map(|&c| c.into()), &self.grid) {
                            batch.push((at, address));
                        }
                    })?;
                    Ok(batch)
                })
                .await?;
            batch.into_iter().for_each(|(at, address)| call(at, address));
            at = range.end;
        }
        Ok(())
    }
}

/// Refuses an array that makes no sense.
fn check(layer: &Layer, meta: &ArrayMeta) -> Result<()> {
    if meta.chunk_shape.len() == meta.shape.len() {
        return Ok(());
    }
    Err(Error::Corrupt {
        file: layer.path.to_string(),
        what: format!("shape of the chunks of {:?}", meta.name),
        expected: format!("{} extents", meta.shape.len()),
        found: meta.chunk_shape.len().to_string(),
    })
}

/// Chunks along each axis of an array.
pub(crate) fn grid(meta: &ArrayMeta) -> Vec<u64> {
    let extents = meta.shape.iter().zip(&meta.chunk_shape);
    extents.map(|(&extent, &chunk)| u64::from(extent.div_ceil(chunk.max(1)))).collect()
}

/// Position of a chunk in a grid, row-major; `None` outside.
pub(crate) fn linear(coord: impl ExactSizeIterator<Item = u64>, grid: &[u64]) -> Option<u64> {
    if coord.len() != grid.len() {
        return None;
    }
    coord.zip(grid).try_fold(0_u64, |at, (c, &count)| {
        if c >= count {
            return None;
        }
        at.checked_mul(count)?.checked_add(c)
    })
}

/// The chunk at a position in a grid.
pub(crate) fn coord_of(mut at: u64, grid: &[u64]) -> Vec<u32> {
    let mut coord = vec![0; grid.len()];
    for (c, &count) in coord.iter_mut().zip(grid).rev() {
        let count = count.max(1);
        *c = u32::try_from(at % count).unwrap_or(u32::MAX);
        at /= count;
    }
    coord
}
