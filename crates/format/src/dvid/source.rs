//! One version of a store as arrays: a group for each labelmap, and in it an array for each scale.
//!
//! Blocks may lie anywhere, left of zero as well. An array begins at its least block and ends behind its greatest;
//! its origin says where that is.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use chunkyard_array::codec::{DVID_VALUE, label_block};
use chunkyard_array::{ArraySpec, Attributes, ChunkIndex, Grid, GroupSpec, Region};
use chunkyard_store::{ChunkRef, Error, Fetcher, Noun, Result};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::json;

use super::blocks::{Blocks, Clash, Found};
use super::dag::Dag;
use super::repo::Instance;
use super::store::{DvidOptions, DvidStore};
use super::url::DvidUrl;
use crate::{
    ArrayNode, Axis, ChunkStream, Dataset, Finding, Level, Locate, Node, Occupied, Severity,
    Source, Space,
};

/// Indices that cannot be read and are named.
const NOTED: usize = 1000;

/// A version of a store.
#[derive(Debug)]
pub struct DvidSource {
    store: DvidStore,
    dag: Dag,
    uuid: String,
    dataset: Dataset,
    labelmaps: Vec<Blocks>,
    /// The instance that each of them is.
    instances: Vec<Instance>,
    arrays: BTreeMap<String, Scale>,
}

/// The array of a scale.
#[derive(Debug)]
struct Scale {
    labelmap: usize,
    scale: usize,
    grid: Grid,
    /// The position of the block at the beginning of the array.
    first: [i32; 3],
}

impl DvidSource {
    /// Opens the version that a URL names. All keys of blocks are read, and no block.
    pub async fn open(url: &DvidUrl, options: &DvidOptions) -> Result<Self> {
        let store = DvidStore::open(url, options).await?;
        Self::of(store, url.uuid.as_deref(), url.data.as_deref()).await
    }

    /// A version of an open store: that of one labelmap, or of all.
    pub async fn of(store: DvidStore, uuid: Option<&str>, data: Option<&str>) -> Result<Self> {
        let (repo, version) = store.find(uuid)?;
        let repo = repo.clone();
        let chosen: Vec<&Instance> = match data {
            Some(name) => vec![repo.labelmap(Some(name))?],
            None => repo.instances.iter().filter(|instance| instance.is_labelmap()).collect(),
        };
        if chosen.is_empty() {
            repo.labelmap(None)?;
        }
        let uuid = repo.dag.get(version).map(|node| node.uuid.clone()).unwrap_or_default();
        let resolver = repo.dag.resolver(version)?;
        let mut dataset = Dataset::default();
        dataset.insert("/", Node::Group(GroupSpec::new(Attributes::new())));
        let (mut labelmaps, mut arrays) = (Vec::new(), BTreeMap::new());
        let instances: Vec<Instance> = chosen.iter().map(|instance| (*instance).clone()).collect();
        for instance in chosen {
            let blocks = store.blocks(instance, &resolver).await?;
            crate::check_node_path(&instance.name)?;
            let group = format!("/{}", instance.name);
            let about =
                json!({"uuid": uuid, "data": instance.name, "data_uuid": instance.data_uuid});
            let attributes = Attributes::from_iter([("dvid".to_owned(), about)]);
            dataset.insert(&group, Node::Group(GroupSpec::new(attributes)));
            for scale in 0..blocks.scales() {
                let Some(extent) = blocks.extent(scale) else { continue };
                let (spec, first) = array(instance, scale, extent)?;
                let node = ArrayNode::new(&spec)?;
                let path = format!("{group}/s{scale}");
                let grid = node.grid()?;
                arrays
                    .insert(path.clone(), Scale { labelmap: labelmaps.len(), scale, grid, first });
                dataset.insert(path, Node::Array(Arc::new(node)));
            }
            labelmaps.push(blocks);
        }
        Ok(Self { dag: repo.dag.clone(), store, uuid, dataset, labelmaps, instances, arrays })
    }

    /// The open store.
    pub fn store(&self) -> &DvidStore {
        &self.store
    }

    /// The UUID of the version.
    pub fn uuid(&self) -> &str {
        &self.uuid
    }

    fn scale(&self, path: &str) -> Result<(&Scale, &Blocks)> {
        let missing = || Error::NotFound { what: Noun::Array, name: path.to_owned() };
        let scale = self.arrays.get(path).ok_or_else(missing)?;
        Ok((scale, self.labelmaps.get(scale.labelmap).ok_or_else(missing)?))
    }

    /// The blocks that two parents changed.
    fn clashes(&self) -> Vec<Finding> {
        let clashes = self.arrays.iter().flat_map(|(path, scale)| {
            let blocks = self.labelmaps.get(scale.labelmap);
            let clashes = blocks.map(|blocks| blocks.conflicts()).unwrap_or_default();
            let own = |clash: &&Clash| usize::from(clash.block.scale) == scale.scale;
            clashes.iter().filter(own).map(|clash| Finding {
                severity: Severity::Error,
                file: self.store.url().to_owned(),
                what: clash.error(&self.dag).to_string(),
                snapshots: Vec::new(),
                array: Some(path.clone()),
                chunk: Some(scale.index(clash.block.at)),
            })
        });
        clashes.collect()
    }

    /// Reads all label indices. Damage to their keys and values is [left out](Source::left_out) or an error.
    async fn inspect_indices(&self) -> Result<Vec<Finding>> {
        let resolver = self.dag.resolver(self.dag.find(Some(&self.uuid))?)?;
        let mut found = Vec::new();
        for instance in &self.instances {
            let bad = |label: u64, why: String| {
                if found.len() < NOTED {
                    found.push(Finding {
                        severity: Severity::Note,
                        file: self.store.url().to_owned(),
                        what: format!("the index of label {label} of {:?}: {why}", instance.name),
                        snapshots: Vec::new(),
                        array: None,
                        chunk: None,
                    });
                }
            };
            self.store.indices(instance, &resolver, |_| {}, bad).await?;
        }
        Ok(found)
    }

    fn value(&self, found: Found) -> Result<Option<ChunkRef>> {
        match found.version {
            Ok(_) => Ok(found.value),
            Err(clash) => Err(clash.error(&self.dag)),
        }
    }
}

impl Scale {
    /// The index of the chunk that a block is.
    fn index(&self, at: [i32; 3]) -> ChunkIndex {
        let offset =
            |axis: usize| (i64::from(at[axis]) - i64::from(self.first[axis])).max(0) as u64;
        (0..3).map(offset).collect()
    }

    /// The block that a chunk is.
    fn block(&self, index: &[u64]) -> Option<[i32; 3]> {
        let &[z, y, x] = index else { return None };
        let mut at = self.first;
        for (at, offset) in at.iter_mut().zip([z, y, x]) {
            *at = i32::try_from(i64::from(*at).checked_add(i64::try_from(offset).ok()?)?).ok()?;
        }
        Some(at)
    }
}

/// The array of a scale, and the block at its beginning.
fn array(
    instance: &Instance,
    scale: usize,
    (low, high): ([i32; 3], [i32; 3]),
) -> Result<(ArraySpec, [i32; 3])> {
    let chunk = instance.block.map(u64::from);
    let blocks = |axis: usize| (i64::from(high[axis]) - i64::from(low[axis]) + 1).max(1) as u64;
    let shape: [u64; 3] = std::array::from_fn(|axis| blocks(axis) * chunk[axis]);
    let codecs = vec![json!({"name": label_block::NAME}), json!({"name": DVID_VALUE})];
    let spec = ArraySpec::builder(&shape, &chunk, "uint64").fill_value(0).codecs(codecs).build()?;
    // More than 60 halvings leave nothing of a voxel's size to be exact about.
    let factor = (1u64 << scale.min(60)) as f64;
    let axis = |number: usize| Axis {
        name: Some(["z", "y", "x"][number].to_owned()),
        kind: Some("space".to_owned()),
        unit: instance.unit.clone(),
        scale: instance.voxel_size.map(|size| size[number] * factor),
    };
    let origin = (0..3).map(|axis| i64::from(low[axis]) * i64::from(instance.block[axis]));
    let space = Space {
        axes: (0..3).map(axis).collect(),
        translation: None,
        origin: Some(origin.collect()),
    };
    Ok((space.render(&spec)?, low))
}

#[async_trait]
impl Locate for DvidSource {
    async fn locate(&self, array: &str, chunks: &[ChunkIndex]) -> Result<Vec<Option<ChunkRef>>> {
        let (scale, blocks) = self.scale(array)?;
        let one = |index: &ChunkIndex| {
            let found = scale.block(index).and_then(|at| blocks.find(scale.scale, at));
            found.map_or(Ok(None), |found| self.value(found))
        };
        chunks.iter().map(one).collect()
    }

    fn fetcher(&self) -> &Fetcher {
        self.store.badger().fetcher()
    }
}

impl Source for DvidSource {
    fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    fn identity(&self) -> String {
        let newest = self.labelmaps.iter().map(Blocks::newest).max().unwrap_or_default();
        format!("{} {} written by {newest}", self.store.url(), self.uuid)
    }

    fn chunks<'a>(&'a self, array: &'a str, within: &'a Region) -> ChunkStream<'a> {
        let (scale, blocks) = match self.scale(array) {
            Ok(known) => known,
            Err(error) => return stream::once(async { Err(error) }).boxed(),
        };
        let Some(cells) = scale.grid.cells_in(within) else { return stream::empty().boxed() };
        let first = scale.block(cells.origin()).map_or(i32::MIN, |at| at[0]);
        let depth = cells.shape().first().copied().unwrap_or_default().max(1);
        let last = i64::from(first).saturating_add(i64::try_from(depth - 1).unwrap_or(i64::MAX));
        let last = i32::try_from(last).unwrap_or(i32::MAX);
        let found = blocks.between(scale.scale, first..=last).filter_map(move |found| {
            let index = scale.index(found.at);
            scale.grid.clipped_region(&index).intersect(within)?;
            match self.value(found) {
                Ok(value) => value.map(|value| Ok((index, value))),
                Err(error) => Some(Err(error)),
            }
        });
        stream::iter(found).boxed()
    }

    fn occupied(&self, array: &str) -> Result<Occupied<'_>> {
        let (scale, blocks) = self.scale(array)?;
        let cells = blocks.positions(scale.scale).map(|(at, _)| Ok(scale.index(at)));
        Ok(Occupied::Cells { grid: scale.grid.clone(), cells: stream::iter(cells).boxed() })
    }

    fn codecs_elsewhere(&self, _array: &str) -> Option<String> {
        Some("label_block+zstd:3".to_owned())
    }

    fn cautions(&self) -> Vec<String> {
        let mut cautions = self.store.cautions().to_vec();
        for blocks in &self.labelmaps {
            if blocks.strange() > 0 {
                cautions.push(format!("{} keys of blocks of an unknown form", blocks.strange()));
            }
            if !blocks.conflicts().is_empty() {
                cautions.push(format!(
                    "{} blocks were changed by two parents of a version and cannot be read",
                    blocks.conflicts().len()
                ));
            }
        }
        cautions
    }

    fn inspect(&self, level: Level) -> stream::BoxStream<'_, Result<Finding>> {
        let found = async move {
            let mut found = self.clashes();
            if level >= Level::Bytes {
                found.extend(self.inspect_indices().await?);
            }
            // What was met until now: by opening, by the chunks, by the indices.
            found.extend(self.left_out());
            Ok::<_, Error>(stream::iter(found.into_iter().map(Ok)))
        };
        stream::once(found).try_flatten().boxed()
    }

    fn left_out(&self) -> Vec<Finding> {
        self.store.left_out()
    }
}
