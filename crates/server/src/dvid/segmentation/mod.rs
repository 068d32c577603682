//! A labelmap at a version as the handlers see it, whatever has it.
//!
//! Positions are those of DVID, which may be negative; along z, y and x as everywhere in Chunkyard, and turned round where
//! a request is read and an answer is written. A labelmap of a repository counts from its own first voxel, and its layout
//! says where that is.

mod commit;
mod frame;
mod store;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use chunkyard_array::codec::label_block::{Block, relabel, table_of};
use chunkyard_engine::format::dvid::LabelIndex;
use chunkyard_engine::labels::{Ids, Mapping};
use chunkyard_engine::store::cpu;
use chunkyard_engine::{Error, Result};
use futures::TryStreamExt;
use futures::stream::BoxStream;
use tokio::sync::OnceCell;

use self::commit::OfRepository;
pub(crate) use self::frame::{At, Frame};
use self::store::OfStore;
use super::address::{Address, Holder};
use crate::State;

/// A mapping with more rows is not held in memory, but asked for what is needed: 20 MB.
const MAPPED_MAX: u64 = 1 << 20;
/// Rows of tables that are looked up at a time.
const ROWS_AT_ONCE: usize = 16_384;
/// Points are looked up in so many blocks at a time.
const BLOCKS_AT_ONCE: usize = 32;

/// A labelmap at a version.
#[derive(Debug)]
pub(crate) struct Segmentation {
    frame: Frame,
    holder: Held,
    mapping: OnceCell<Option<Arc<Mapping>>>,
    greatest: OnceCell<u64>,
}

#[derive(Debug)]
enum Held {
    Repository(Box<OfRepository>),
    Store(Box<OfStore>),
}

/// Pairs of numbers in batches: of body and voxels, or of supervoxel and body.
pub(crate) type Pairs<'a> = BoxStream<'a, Result<Vec<(u64, u64)>>>;

impl Segmentation {
    /// The labelmap of an address; the ones that were used last are kept open.
    pub(crate) async fn open(state: &State, address: &Address) -> Result<Arc<Self>> {
        let key = (address.place.clone(), address.version.clone(), address.path.clone());
        if let Some(known) = state.dvid().opened.get(&key) {
            return Ok(known);
        }
        let (frame, holder) = match &address.holder {
            Holder::Repository(session) => {
                let held = OfRepository::open(session, &address.path).await?;
                (held.frame()?, Held::Repository(Box::new(held)))
            }
            Holder::Store { store, instance, version, .. } => {
                let held = OfStore::open(store, instance, *version).await?;
                (held.frame(), Held::Store(Box::new(held)))
            }
        };
        let opened = Self { frame, holder, mapping: OnceCell::new(), greatest: OnceCell::new() };
        Ok(state.dvid().opened.put(key, opened))
    }

    /// Its blocks, scales and extent.
    pub(crate) fn frame(&self) -> &Frame {
        &self.frame
    }

    /// Label blocks of a scale, with supervoxels, aligned to their positions; `None` where all is label 0.
    async fn supervoxel_blocks(&self, scale: usize, at: &[At]) -> Result<Vec<Option<Vec<u8>>>> {
        match &self.holder {
            Held::Repository(held) => held.blocks(&self.frame, scale, at).await,
            Held::Store(held) => held.blocks(scale, at).await,
        }
    }

    /// Label blocks of a scale, aligned to their positions; `None` where all is label 0.
    pub(crate) async fn blocks(
        &self,
        scale: usize,
        at: &[At],
        ids: Ids,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let mut blocks = self.supervoxel_blocks(scale, at).await?;
        if ids == Ids::Bodies {
            self.to_bodies(&mut blocks).await?;
        }
        Ok(blocks)
    }

    /// The positions of the stored blocks of a scale from `low` up to `high` and without it, and of others perhaps.
    pub(crate) fn stored(
        &self,
        scale: usize,
        low: At,
        high: At,
    ) -> Result<BoxStream<'_, Result<At>>> {
        match &self.holder {
            Held::Repository(held) => held.stored(&self.frame, scale, low, high),
            Held::Store(held) => Ok(held.stored(scale, low, high)),
        }
    }

    /// Puts bodies into the tables of blocks.
    async fn to_bodies(&self, blocks: &mut [Option<Vec<u8>>]) -> Result<()> {
        let mut ids = BTreeSet::new();
        for block in blocks.iter().flatten() {
            ids.extend(table_of(block)?);
        }
        let ids: Vec<u64> = ids.into_iter().collect();
        let bodies = self.bodies_of(&ids).await?;
        let known: HashMap<u64, u64> = ids.into_iter().zip(bodies).collect();
        for block in blocks.iter_mut().flatten() {
            relabel(block, |label| known.get(&label).copied().unwrap_or(label))?;
        }
        Ok(())
    }

    /// The mapping in memory, if it is small enough.
    async fn mapping(&self) -> Result<Option<&Arc<Mapping>>> {
        let loaded = self.mapping.get_or_try_init(|| async {
            match &self.holder {
                Held::Repository(held) if held.map.mapping_rows_max()? > MAPPED_MAX => Ok(None),
                Held::Repository(held) => held.map.load_mapping().await.map(Arc::new).map(Some),
                Held::Store(held) => Ok::<_, Error>(Some(held.mapping.clone())),
            }
        });
        Ok(loaded.await?.as_ref())
    }

    /// What the mapping says of supervoxels: 0 of one that is retired, nothing of one that was never mapped.
    pub(crate) async fn mapped(&self, supervoxels: &[u64]) -> Result<Vec<Option<u64>>> {
        match (self.mapping().await?, &self.holder) {
            (Some(mapping), _) => Ok(supervoxels.iter().map(|id| mapping.get(*id)).collect()),
            (None, Held::Repository(held)) => {
                let mut mapped = Vec::with_capacity(supervoxels.len());
                for some in supervoxels.chunks(ROWS_AT_ONCE) {
                    mapped.extend(held.map.mapped(some).await?);
                }
                Ok(mapped)
            }
            (None, Held::Store(_)) => Ok(vec![None; supervoxels.len()]),
        }
    }

    /// The bodies of supervoxels: themselves if they were never mapped, 0 if they are retired.
    pub(crate) async fn bodies_of(&self, supervoxels: &[u64]) -> Result<Vec<u64>> {
        let mapped = self.mapped(supervoxels).await?;
        Ok(supervoxels.iter().zip(mapped).map(|(id, body)| body.unwrap_or(*id)).collect())
    }

    /// The mapping as pairs of supervoxel and body, by supervoxel.
    pub(crate) async fn mapping_rows(&self) -> Result<Pairs<'_>> {
        match &self.holder {
            Held::Repository(held) => Ok(Box::pin(held.map.mapping_rows()?)),
            Held::Store(held) => Ok(held.mapping_rows()),
        }
    }

    /// The voxels of bodies or supervoxels, in their order; 0 of those that are not there.
    pub(crate) async fn sizes(&self, labels: &[u64], ids: Ids) -> Result<Vec<u64>> {
        match (&self.holder, ids) {
            (Held::Repository(held), _) => {
                let mut sizes = Vec::with_capacity(labels.len());
                for some in labels.chunks(ROWS_AT_ONCE) {
                    match ids {
                        Ids::Bodies => {
                            let found = held.map.find_bodies(some).await?;
                            sizes.extend(found.iter().map(|row| row.map_or(0, |row| row.voxels)));
                        }
                        Ids::Supervoxels => {
                            let found = held.map.find_supervoxels(some).await?;
                            sizes.extend(found.iter().map(|row| row.map_or(0, |row| row.voxels)));
                        }
                    }
                }
                Ok(sizes)
            }
            (Held::Store(held), Ids::Bodies) => {
                let mut sizes = Vec::with_capacity(labels.len());
                for label in labels {
                    sizes.push(held.index(*label).await?.map_or(0, |index| index.voxels()));
                }
                Ok(sizes)
            }
            (Held::Store(held), Ids::Supervoxels) => {
                let bodies = self.bodies_of(labels).await?;
                let mut sizes = Vec::with_capacity(labels.len());
                for (label, body) in labels.iter().zip(bodies) {
                    let index = if body == 0 { None } else { held.index(body).await? };
                    let counts = index.iter().flat_map(|index| index.blocks.values());
                    let voxels = counts.filter_map(|counts| counts.get(label));
                    sizes.push(voxels.map(|voxels| u64::from(*voxels)).sum());
                }
                Ok(sizes)
            }
        }
    }

    /// What a body has in each block; `None` if there is no such body. An index that takes more than so many bytes as
    /// DVID packs it is refused.
    pub(crate) async fn index(&self, label: u64, bytes_max: usize) -> Result<Option<LabelIndex>> {
        if label == 0 {
            return Ok(None);
        }
        match &self.holder {
            Held::Repository(held) => held.index(&self.frame, label, bytes_max).await,
            Held::Store(held) => held.index(label).await,
        }
    }

    /// All bodies with their voxels, from an id on and in its order.
    pub(crate) fn bodies(&self, from: u64) -> Result<Pairs<'_>> {
        match &self.holder {
            Held::Repository(held) => {
                let bodies = held.map.all_bodies(from)?;
                let pairs = |rows: Vec<chunkyard_engine::labels::Body>| {
                    rows.iter().map(|row| (row.body, row.voxels)).collect()
                };
                Ok(Box::pin(bodies.map_ok(pairs)))
            }
            Held::Store(held) => Ok(held.bodies(from)),
        }
    }

    /// The greatest id of a body or a supervoxel.
    pub(crate) async fn greatest_id(&self) -> Result<u64> {
        let found = self.greatest.get_or_try_init(|| async {
            match &self.holder {
                Held::Repository(held) => held.map.greatest_id().await,
                Held::Store(held) => held.greatest_id().await,
            }
        });
        Ok(*found.await?)
    }

    /// The labels at points of a scale, in their order. What lies outside is label 0.
    pub(crate) async fn labels_at(
        &self,
        scale: usize,
        points: &[At],
        ids: Ids,
    ) -> Result<Vec<u64>> {
        let edge = self.frame.block.map(i64::from);
        let mut by_block: BTreeMap<At, Vec<usize>> = BTreeMap::new();
        for (number, point) in points.iter().enumerate() {
            let at = std::array::from_fn(|axis| point[axis].div_euclid(edge[axis]));
            by_block.entry(at).or_default().push(number);
        }
        let mut labels = vec![0; points.len()];
        let by_block: Vec<(At, Vec<usize>)> = by_block.into_iter().collect();
        for some in by_block.chunks(BLOCKS_AT_ONCE) {
            let at: Vec<At> = some.iter().map(|(at, _)| *at).collect();
            let blocks = self.supervoxel_blocks(scale, &at).await?;
            let wanted: Vec<Vec<[u32; 3]>> = some
                .iter()
                .map(|(_, numbers)| {
                    let inside = |number: &usize| {
                        let point = points.get(*number).copied().unwrap_or_default();
                        // Less than an edge, which has 32 bits.
                        [2, 1, 0].map(|axis: usize| point[axis].rem_euclid(edge[axis]) as u32)
                    };
                    numbers.iter().map(inside).collect()
                })
                .collect();
            let found = cpu(move || -> Result<Vec<Vec<u64>>> {
                let mut all = Vec::with_capacity(blocks.len());
                for (block, wanted) in blocks.iter().zip(&wanted) {
                    all.push(match block {
                        None => vec![0; wanted.len()],
                        Some(block) => {
                            let found = Block::parse(block)?.labels_at(wanted);
                            found.into_iter().map(Option::unwrap_or_default).collect()
                        }
                    });
                }
                Ok(all)
            });
            for ((_, numbers), found) in some.iter().zip(found.await??) {
                for (number, label) in numbers.iter().zip(found) {
                    if let Some(slot) = labels.get_mut(*number) {
                        *slot = label;
                    }
                }
            }
        }
        if ids == Ids::Bodies {
            labels = self.bodies_of(&labels).await?;
        }
        Ok(labels)
    }
}
