//! A labelmap of a store of DVID, which is only read.

use std::sync::Arc;

use chunkyard_array::codec::label_block::{encoded_bytes_max, value};
use chunkyard_engine::format::dvid::{Blocks, Dag, DvidStore, Instance, LabelIndex, Resolver};
use chunkyard_engine::labels::Mapping;
use chunkyard_engine::labels::dvid::mapping_at;
use chunkyard_engine::store::{ChunkRef, cpu};
use chunkyard_engine::{Error, Noun, Result};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};

use super::Pairs;
use super::frame::{At, Frame};

/// Rows of a batch.
const ROWS: usize = 8192;

/// A labelmap of a store at a version.
#[derive(Debug)]
pub(super) struct OfStore {
    store: DvidStore,
    instance: Instance,
    dag: Dag,
    resolver: Resolver,
    blocks: Blocks,
    pub(super) mapping: Arc<Mapping>,
}

impl OfStore {
    /// Reads the keys of all blocks, and the mutation logs.
    pub(super) async fn open(store: &DvidStore, instance: &Instance, version: u32) -> Result<Self> {
        let has = |dag: &Dag| dag.get(version).is_some();
        let repo = store.repos().iter().find(|repo| {
            has(&repo.dag)
                && repo.instances.iter().any(|known| known.data_uuid == instance.data_uuid)
        });
        let repo = repo.ok_or_else(|| Error::NotFound {
            what: Noun::Version,
            name: format!("{version} of {}", instance.name),
        })?;
        let resolver = repo.dag.resolver(version)?;
        let blocks = store.blocks(instance, &resolver).await?;
        let mapping = mapping_at(store, repo, instance, version).await?;
        Ok(Self {
            dag: repo.dag.clone(),
            store: store.clone(),
            instance: instance.clone(),
            resolver,
            blocks,
            mapping: Arc::new(mapping),
        })
    }

    pub(super) fn frame(&self) -> Frame {
        let extent = |scale: usize| match self.blocks.extent(scale) {
            None => ([0; 3], [0; 3]),
            Some((low, high)) => (low.map(i64::from), high.map(|at| i64::from(at) + 1)),
        };
        let edge = self.instance.block.map(i64::from);
        let voxels = |at: At| std::array::from_fn(|axis| at[axis] * edge[axis]);
        let (low, high) = extent(0);
        let told = self.instance.scale_max.map_or(1, |coarsest| usize::from(coarsest) + 1);
        Frame {
            block: self.instance.block,
            scales: (0..told.max(self.blocks.scales())).map(extent).collect(),
            voxels: (voxels(low), voxels(high)),
            voxel_size: self.instance.voxel_size.unwrap_or([1.0; 3]),
            unit: self.instance.unit.clone(),
        }
    }

    pub(super) async fn blocks(&self, scale: usize, at: &[At]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut wanted: Vec<Option<ChunkRef>> = Vec::with_capacity(at.len());
        for at in at {
            let narrow = at.map(i32::try_from);
            let [Ok(z), Ok(y), Ok(x)] = narrow else {
                wanted.push(None);
                continue;
            };
            wanted.push(match self.blocks.find(scale, [z, y, x]) {
                None => None,
                Some(found) => match found.version {
                    Ok(_) => found.value,
                    Err(clash) => return Err(clash.error(&self.dag)),
                },
            });
        }
        let refs: Vec<&ChunkRef> = wanted.iter().flatten().collect();
        let mut fetched = self.store.badger().fetcher().fetch(&refs).await?.into_iter();
        let values: Vec<Option<bytes::Bytes>> = wanted
            .iter()
            .map(|wanted| wanted.as_ref().and_then(|_| fetched.next().flatten()))
            .collect();
        let [z, y, x] = self.instance.block;
        let bytes_max = encoded_bytes_max([x, y, z])?;
        cpu(move || {
            let unwrap = |block: Option<bytes::Bytes>| match block {
                None => Ok(None),
                Some(block) => Ok(Some(value::unwrap(&block, bytes_max)?.into_owned())),
            };
            values.into_iter().map(unwrap).collect()
        })
        .await?
    }

    pub(super) fn stored(&self, scale: usize, low: At, high: At) -> BoxStream<'_, Result<At>> {
        let planes = i32::try_from(low[0]).unwrap_or(if low[0] < 0 { i32::MIN } else { i32::MAX });
        let last = high[0].saturating_sub(1);
        let last = i32::try_from(last).unwrap_or(if last < 0 { i32::MIN } else { i32::MAX });
        let found = self.blocks.between(scale, planes..=last).map(|found| found.at.map(i64::from));
        let inside = move |at: &At| (0..3).all(|axis| (low[axis]..high[axis]).contains(&at[axis]));
        stream::iter(found.filter(inside).map(Ok)).boxed()
    }

    pub(super) async fn index(&self, label: u64) -> Result<Option<LabelIndex>> {
        let found = self.store.index(&self.instance, &self.resolver, label).await?;
        Ok(found.filter(|index| !index.blocks.is_empty()))
    }

    pub(super) fn mapping_rows(&self) -> Pairs<'_> {
        stream::iter(self.mapping.rows()).chunks(ROWS).map(Ok).boxed()
    }

    /// What DVID counted; 16 bytes of memory for each body.
    pub(super) fn bodies(&self, from: u64) -> Pairs<'_> {
        let listed = async move {
            let mut bodies = Vec::new();
            let mut wrong = None;
            let good = |index: LabelIndex| {
                if index.label >= from && !index.blocks.is_empty() {
                    bodies.push((index.label, index.voxels()));
                }
            };
            let bad = |label: u64, why: String| wrong = wrong.take().or(Some((label, why)));
            self.store.indices(&self.instance, &self.resolver, good, bad).await?;
            if let Some((label, why)) = wrong {
                return Err(Error::Corrupt {
                    file: self.store.url().to_owned(),
                    what: format!("index of label {label}"),
                    expected: "what DVID counted".into(),
                    found: why,
                });
            }
            bodies.sort_unstable();
            Ok::<_, Error>(stream::iter(bodies).chunks(ROWS).map(Ok))
        };
        stream::once(listed).try_flatten().boxed()
    }

    pub(super) async fn greatest_id(&self) -> Result<u64> {
        let mapped = self.mapping.rows().map(|(id, body)| id.max(body)).max().unwrap_or(0);
        let mut greatest = mapped;
        let mut bodies = self.bodies(0);
        while let Some(batch) = bodies.try_next().await? {
            greatest = batch.iter().map(|(body, _)| *body).fold(greatest, u64::max);
        }
        Ok(greatest)
    }
}
