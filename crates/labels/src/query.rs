//! Questions about bodies, supervoxels and voxels at a version.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use chunkyard_array::Region;
use chunkyard_array::codec::label_block::Block;
use chunkyard_repo::KeyRange;
use chunkyard_store::{Error, Noun, Result};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};

use crate::Labelmap;
use crate::blocks::{At, BLOCKS_AT_ONCE, voxels};
use crate::rows::{self, Body, HistoryRow, IndexRow, MappingRow, Mutation, Row, Supervoxel};
use crate::runs::{Run, Runs};

/// What the voxels of an answer are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ids {
    /// Bodies at the version.
    #[default]
    Bodies,
    /// Supervoxels, as they are stored.
    Supervoxels,
}

impl Labelmap {
    /// The labels at points z, y, x, in their order. A point outside of the volume is an error.
    pub async fn labels_at(&self, points: &[[u64; 3]], ids: Ids) -> Result<Vec<u64>> {
        let mut by_block: BTreeMap<At, Vec<usize>> = BTreeMap::new();
        for (number, point) in points.iter().enumerate() {
            if point.iter().zip(self.layout.shape).any(|(&at, extent)| at >= extent) {
                return Err(Error::invalid(format!(
                    "the point {point:?} is outside of {}, which has {:?} voxels",
                    self.path, self.layout.shape
                )));
            }
            by_block.entry(self.block_of(*point)).or_default().push(number);
        }
        let mut labels = vec![0; points.len()];
        let edge = self.layout.block;
        let blocks: Vec<_> = by_block.into_iter().collect();
        for some in blocks.chunks(BLOCKS_AT_ONCE) {
            let at: Vec<At> = some.iter().map(|(at, _)| *at).collect();
            for ((_, numbers), block) in some.iter().zip(self.blocks(0, &at).await?) {
                let Some(block) = block else { continue };
                let inside = |number: &usize| -> [u32; 3] {
                    std::array::from_fn(|axis| {
                        (points[*number][2 - axis] % u64::from(edge[2 - axis])) as u32
                    })
                };
                let places: Vec<[u32; 3]> = numbers.iter().map(inside).collect();
                let found = Block::parse(&block)?.labels_at(&places);
                for (number, label) in numbers.iter().zip(found) {
                    labels[*number] = label.unwrap_or(0);
                }
            }
        }
        if ids == Ids::Bodies {
            labels = self.bodies_of(&labels).await?;
        }
        Ok(labels)
    }

    /// The body of each supervoxel, in their order: itself if it was never mapped, 0 if it is retired.
    pub async fn bodies_of(&self, supervoxels: &[u64]) -> Result<Vec<u64>> {
        let unique: Vec<u64> =
            supervoxels.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
        let found: Vec<Option<MappingRow>> = rows::get(&self.mapping, &unique).await?;
        let known: HashMap<u64, u64> =
            found.iter().flatten().map(|row| (row.supervoxel, row.body)).collect();
        Ok(supervoxels.iter().map(|id| known.get(id).copied().unwrap_or(*id)).collect())
    }

    /// The body of a supervoxel that has voxels; an error if there is none, or if it is retired.
    pub async fn body_of(&self, supervoxel: u64) -> Result<u64> {
        match self.find_supervoxels(&[supervoxel]).await?.pop().flatten() {
            Some(found) if found.body != 0 => Ok(found.body),
            _ => {
                let name = self.what_became_of(supervoxel).await?;
                Err(Error::NotFound { what: Noun::Supervoxel, name })
            }
        }
    }

    /// A body; an error if there is none of that id, which says what became of it.
    pub async fn body(&self, body: u64) -> Result<Body> {
        match rows::get(&self.bodies, &[body]).await?.pop().flatten() {
            Some(found) => Ok(found),
            None => {
                let name = self.what_became_of(body).await?;
                Err(Error::NotFound { what: Noun::Body, name })
            }
        }
    }

    async fn what_became_of(&self, body: u64) -> Result<String> {
        let history: Vec<HistoryRow> = rows::scan(&self.history, &rows::of(body)).await?;
        Ok(match history.last() {
            Some(HistoryRow { after: 0, mutation, .. }) => {
                format!("{body} (retired by mutation {mutation})")
            }
            Some(HistoryRow { after, mutation, .. }) if *after != body => {
                format!(
                    "{body} (its supervoxel {body} belongs to body {after} since mutation {mutation})"
                )
            }
            _ => body.to_string(),
        })
    }

    /// Bodies that are there, of the ones asked for; aligned to them.
    pub async fn find_bodies(&self, bodies: &[u64]) -> Result<Vec<Option<Body>>> {
        rows::get(&self.bodies, bodies).await
    }

    /// Supervoxels that are known, retired ones too; aligned to the ids asked for.
    pub async fn find_supervoxels(&self, ids: &[u64]) -> Result<Vec<Option<Supervoxel>>> {
        rows::get(&self.supervoxels, ids).await
    }

    /// All bodies by id, or those from one on.
    pub fn all_bodies(&self, from: u64) -> Result<BoxStream<'static, Result<Vec<Body>>>> {
        let range = KeyRange::From(vec![from.into()]);
        let batches = self.bodies.scan(&range, None)?;
        Ok(batches.map(|batch| Body::parse(&batch?)).boxed())
    }

    /// The rows of the index that a body has.
    pub(crate) async fn index_of(&self, body: u64) -> Result<Vec<IndexRow>> {
        rows::scan(&self.index, &rows::of(body)).await
    }

    /// The supervoxels of a body, by id.
    pub async fn supervoxels_of(&self, body: u64) -> Result<Vec<Supervoxel>> {
        self.body(body).await?;
        let index = self.index_of(body).await?;
        let ids: BTreeSet<u64> =
            index.iter().flat_map(|row| row.parts.iter().map(|part| part.supervoxel)).collect();
        let ids: Vec<u64> = ids.into_iter().collect();
        let found = self.find_supervoxels(&ids).await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// The blocks that a body is in, with the number of its voxels in each, by position.
    pub async fn blocks_of(&self, body: u64) -> Result<Vec<([u32; 3], u64)>> {
        self.body(body).await?;
        let index = self.index_of(body).await?;
        let voxels = |row: &IndexRow| row.parts.iter().map(|part| u64::from(part.voxels)).sum();
        Ok(index.iter().map(|row| (row.key.1, voxels(row))).collect())
    }

    /// The voxels of a body, or of one of its supervoxels, as runs along x.
    pub async fn sparse_volume(&self, body: u64, supervoxel: Option<u64>) -> Result<Runs> {
        self.body(body).await?;
        let mut runs: Vec<Run> = Vec::new();
        let index = self.index_of(body).await?;
        for some in index.chunks(BLOCKS_AT_ONCE) {
            let at: Vec<At> = some.iter().map(|row| row.key.1).collect();
            for (row, block) in some.iter().zip(self.blocks(0, &at).await?) {
                let wanted: HashSet<u64> = row
                    .parts
                    .iter()
                    .map(|part| part.supervoxel)
                    .filter(|id| supervoxel.is_none_or(|only| only == *id))
                    .collect();
                if !wanted.is_empty() {
                    self.runs_of_block(row.key.1, block.as_deref(), &wanted, &mut runs)?;
                }
            }
        }
        Ok(Runs::new(runs))
    }

    fn runs_of_block(
        &self,
        at: At,
        block: Option<&[u8]>,
        wanted: &HashSet<u64>,
        runs: &mut Vec<Run>,
    ) -> Result<()> {
        let edge = self.layout.block;
        let decoded = voxels(block, self.layout.block_voxels())?;
        let origin: [u64; 3] =
            std::array::from_fn(|axis| u64::from(at[axis]) * u64::from(edge[axis]));
        for (row, labels) in decoded.chunks_exact(edge[2] as usize).enumerate() {
            let (z, y) = ((row as u64) / u64::from(edge[1]), (row as u64) % u64::from(edge[1]));
            let mut x = 0;
            for same in labels.chunk_by(|a, b| wanted.contains(a) == wanted.contains(b)) {
                if same.first().is_some_and(|label| wanted.contains(label)) {
                    let start = [origin[0] + z, origin[1] + y, origin[2] + x];
                    runs.push(Run { start, length: same.len() as u64 });
                }
                x += same.len() as u64;
            }
        }
        Ok(())
    }

    /// The bodies, or supervoxels, that have voxels in a box, by id.
    pub async fn labels_in(&self, region: &Region, ids: Ids) -> Result<Vec<u64>> {
        let array = self.array(0)?;
        array.reader().check(region)?;
        let edge = self.layout.block.map(u64::from);
        let (start, end) = (region.origin(), region.end());
        // A box may have more blocks than fit in memory.
        let mut blocks = self.candidates_in(region)?.try_chunks(BLOCKS_AT_ONCE);
        let mut found = BTreeSet::new();
        while let Some(some) = blocks.try_next().await.map_err(|error| error.1)? {
            for (at, block) in some.iter().zip(self.blocks(0, &some).await?) {
                let Some(block) = block else { continue };
                let origin: [u64; 3] = std::array::from_fn(|axis| u64::from(at[axis]) * edge[axis]);
                let inside = (0..3).all(|axis| {
                    start[axis] <= origin[axis] && origin[axis] + edge[axis] <= end[axis]
                });
                if inside {
                    found
                        .extend(Block::parse(&block)?.counts().into_iter().map(|(label, _)| label));
                    continue;
                }
                let decoded = voxels(Some(&block), self.layout.block_voxels())?;
                let low = |axis: usize| start[axis].saturating_sub(origin[axis]).min(edge[axis]);
                let high = |axis: usize| end[axis].saturating_sub(origin[axis]).min(edge[axis]);
                for z in low(0)..high(0) {
                    for y in low(1)..high(1) {
                        let row = ((z * edge[1] + y) * edge[2]) as usize;
                        found.extend(&decoded[row + low(2) as usize..row + high(2) as usize]);
                    }
                }
            }
        }
        found.remove(&0);
        let mut labels: Vec<u64> = found.into_iter().collect();
        if ids == Ids::Bodies {
            labels = self.bodies_of(&labels).await?;
            labels.sort_unstable();
            labels.dedup();
        }
        Ok(labels)
    }

    /// The positions of blocks that a box meets, all stored ones among them.
    fn candidates_in(&self, region: &Region) -> Result<BoxStream<'_, Result<At>>> {
        if region.is_empty() {
            return Ok(stream::empty().boxed());
        }
        let edge = self.layout.block.map(u64::from);
        let (start, end) = (region.origin(), region.end());
        let low = std::array::from_fn(|axis| start[axis] / edge[axis]);
        let high = std::array::from_fn(|axis| end[axis].div_ceil(edge[axis]));
        self.blocks_between(0, low, high)
    }

    /// The block that a voxel is in.
    pub(crate) fn block_of(&self, point: [u64; 3]) -> At {
        // The volume has fewer than 2^32 blocks along each axis.
        std::array::from_fn(|axis| (point[axis] / u64::from(self.layout.block[axis])) as u32)
    }

    /// The log: mutations from an id on, oldest first.
    pub fn mutations(&self, from: u64) -> Result<BoxStream<'static, Result<Vec<Mutation>>>> {
        let batches = self.mutations.scan(&KeyRange::From(vec![from.into()]), None)?;
        Ok(batches.map(|batch| Mutation::parse(&batch?)).boxed())
    }

    /// One mutation.
    pub async fn mutation(&self, mutation: u64) -> Result<Mutation> {
        let found = rows::get(&self.mutations, &[mutation]).await?.pop().flatten();
        found.ok_or_else(|| Error::NotFound { what: Noun::Mutation, name: mutation.to_string() })
    }

    /// Which mutations decided where a supervoxel belongs, oldest first, each with the body before it and
    /// after it.
    pub async fn blame(&self, supervoxel: u64) -> Result<Vec<(Mutation, u64, u64)>> {
        let rows: Vec<HistoryRow> = rows::scan(&self.history, &rows::of(supervoxel)).await?;
        if rows.is_empty() && self.find_supervoxels(&[supervoxel]).await?.pop().flatten().is_none()
        {
            return Err(Error::NotFound { what: Noun::Supervoxel, name: supervoxel.to_string() });
        }
        let ids: Vec<u64> = rows.iter().map(|row| row.mutation).collect();
        let found: Vec<Option<Mutation>> = rows::get(&self.mutations, &ids).await?;
        let pairs = rows.iter().zip(found);
        let known = |(row, mutation): (&HistoryRow, Option<Mutation>)| {
            mutation.map(|mutation| (mutation, row.before, row.after))
        };
        Ok(pairs.filter_map(known).collect())
    }

    /// How many bodies there are. Reads their keys.
    pub async fn count_of_bodies(&self) -> Result<u64> {
        self.bodies.count(&KeyRange::All).await
    }

    /// The voxels of all bodies.
    pub async fn count_of_voxels(&self) -> Result<u64> {
        let mut batches = self.bodies.scan(&KeyRange::All, Some(&["voxels"]))?;
        let mut count = 0u64;
        while let Some(batch) = batches.try_next().await? {
            count = rows::u64s(&batch, "voxels")?.iter().fold(count, |a, &b| a.saturating_add(b));
        }
        Ok(count)
    }
}
