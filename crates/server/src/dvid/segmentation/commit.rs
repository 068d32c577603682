//! A labelmap of a repository.

use std::collections::BTreeMap;
use std::sync::Arc;

use chunkyard_engine::format::dvid::LabelIndex;
use chunkyard_engine::labels::Labelmap;
use chunkyard_engine::repo::Session;
use chunkyard_engine::store::clock;
use chunkyard_engine::{Error, Noun, Result};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};

use super::frame::{At, Frame};

/// What a supervoxel in a block takes as DVID packs an index, about.
const ROW_BYTES: usize = 24;

/// A labelmap of a repository at a version.
#[derive(Debug)]
pub(super) struct OfRepository {
    pub(super) map: Labelmap,
}

impl OfRepository {
    pub(super) async fn open(session: &Arc<Session>, path: &str) -> Result<Self> {
        Ok(Self { map: Labelmap::open(session, path).await? })
    }

    /// Blocks of DVID begin at multiples of their size at every scale. Where the labelmap begins elsewhere, positions
    /// count from its first voxel.
    pub(super) fn frame(&self) -> Result<Frame> {
        let layout = self.map.layout();
        let coarsest = layout.scales.saturating_sub(1);
        let fits = |axis: usize| {
            let step = i64::from(layout.block[axis]).checked_shl(u32::try_from(coarsest).ok()?)?;
            (step >> coarsest == i64::from(layout.block[axis])).then_some(step)
        };
        let on_grid =
            (0..3).all(|axis| fits(axis).is_some_and(|step| layout.origin[axis] % step == 0));
        let origin = if on_grid { layout.origin } else { [0; 3] };
        let whole = |axis: usize, start: i64| {
            let extent = i64::try_from(layout.shape[axis]).ok()?;
            start.checked_add(extent).filter(|end| i32::try_from(*end).is_ok())
        };
        let mut end = [0; 3];
        for axis in 0..3 {
            let far = || {
                Error::unsupported(format!(
                    "positions of DVID have 32 bits; {} begins at {origin:?} and has {:?} voxels",
                    self.map.path(),
                    layout.shape
                ))
            };
            i32::try_from(origin[axis]).map_err(|_| far())?;
            end[axis] = whole(axis, origin[axis]).ok_or_else(far)?;
        }
        let scale = |scale: usize| {
            let first: At = std::array::from_fn(|axis| {
                (origin[axis] >> scale).div_euclid(i64::from(layout.block[axis]))
            });
            let count = layout.blocks_at(scale);
            // The extent in voxels has 32 bits.
            (first, std::array::from_fn(|axis| first[axis] + count[axis] as i64))
        };
        Ok(Frame {
            block: layout.block,
            scales: (0..layout.scales).map(scale).collect(),
            voxels: (origin, end),
            voxel_size: layout.voxel_size,
            unit: layout.unit.clone(),
        })
    }

    pub(super) async fn blocks(
        &self,
        frame: &Frame,
        scale: usize,
        at: &[At],
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let (first, end) = frame.scales.get(scale).copied().unwrap_or_default();
        let inside = |at: &At| (0..3).all(|axis| (first[axis]..end[axis]).contains(&at[axis]));
        let own = |at: &At| -> [u32; 3] {
            std::array::from_fn(|axis| u32::try_from(at[axis] - first[axis]).unwrap_or(u32::MAX))
        };
        let known: Vec<[u32; 3]> = at.iter().filter(|at| inside(at)).map(own).collect();
        let mut fetched = self.map.blocks(scale, &known).await?.into_iter();
        Ok(at.iter().map(|at| if inside(at) { fetched.next().flatten() } else { None }).collect())
    }

    pub(super) fn stored(
        &self,
        frame: &Frame,
        scale: usize,
        low: At,
        high: At,
    ) -> Result<BoxStream<'_, Result<At>>> {
        let (first, _) = frame.scales.get(scale).copied().unwrap_or_default();
        let own = |at: At| {
            std::array::from_fn(|axis| {
                u64::try_from(at[axis].saturating_sub(first[axis])).unwrap_or(0)
            })
        };
        let found = self.map.blocks_between(scale, own(low), own(high))?;
        let back = move |at: [u32; 3]| -> At {
            std::array::from_fn(|axis| first[axis] + i64::from(at[axis]))
        };
        Ok(found.map_ok(back).boxed())
    }

    pub(super) async fn index(
        &self,
        frame: &Frame,
        label: u64,
        bytes_max: usize,
    ) -> Result<Option<LabelIndex>> {
        let Some(body) = self.map.find_bodies(&[label]).await?.pop().flatten() else {
            return Ok(None);
        };
        let (first, _) = frame.scales.first().copied().unwrap_or_default();
        let mut index = LabelIndex { label, mutation: body.mutation, ..LabelIndex::default() };
        let mut rows = 0usize;
        let mut batches = self.map.body_blocks(label)?;
        while let Some(batch) = batches.try_next().await? {
            for block in batch {
                rows += 1 + block.supervoxels.len();
                if rows.saturating_mul(ROW_BYTES) > bytes_max {
                    return Err(Error::invalid(format!(
                        "the index of body {label} takes more than the {bytes_max} bytes that an answer may have"
                    )));
                }
                // Positions have 32 bits, see `frame`.
                let at =
                    std::array::from_fn(|axis| (first[axis] + i64::from(block.at[axis])) as i32);
                let counts: BTreeMap<u64, u32> = block.supervoxels.into_iter().collect();
                index.blocks.insert(at, counts);
            }
        }
        if body.mutation != 0 {
            match self.map.mutation(body.mutation).await {
                Ok(found) => {
                    index.time = clock::text(found.time_ms);
                    index.user = found.user;
                }
                Err(Error::NotFound { what: Noun::Mutation, .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some(index))
    }
}
