//! A scale as an array: its extent, and which block each chunk is.

use std::sync::Arc;

use chunkyard_array::codec::label_block;
use chunkyard_array::{ArraySpec, Grid, Region};
use chunkyard_store::dvid_http::BlockName;
use chunkyard_store::{Error, Result};
use serde_json::json;

use super::info::Info;
use crate::{ArrayNode, Axis, Space};

/// The array of a scale. Axes are z, y, x.
#[derive(Debug)]
pub(super) struct Level {
    pub(super) scale: u8,
    pub(super) node: Arc<ArrayNode>,
    pub(super) grid: Grid,
    /// The block of the first chunk.
    pub(super) first: [i32; 3],
}

impl Level {
    pub(super) fn new(info: &Info, scale: u8) -> Result<Self> {
        let mut shape = [0u64; 3];
        let mut origin = [0i64; 3];
        let mut first = [0i32; 3];
        if let Some((min, max)) = &info.extents {
            for axis in 0..3 {
                let edge = i64::from(info.block_size[axis]);
                // The block that holds the first voxel: chunks begin where blocks do.
                let block = (i64::from(min[axis]) >> scale).div_euclid(edge);
                let last = i64::from(max[axis]) >> scale;
                first[axis] = i32::try_from(block).unwrap_or(i32::MIN);
                origin[axis] = block * edge;
                shape[axis] = (last + 1 - block * edge).unsigned_abs();
            }
        }
        let zyx = |xyz: [u64; 3]| [xyz[2], xyz[1], xyz[0]];
        let chunk = zyx(info.block_size.map(u64::from));
        let codecs = vec![
            json!({"name": label_block::NAME}),
            json!({"name": "gzip", "configuration": {"level": 6}}),
        ];
        let spec = ArraySpec::builder(&zyx(shape), &chunk, "uint64").codecs(codecs).build()?;
        let axis = |(name, at): (&str, usize)| Axis {
            name: Some(name.to_owned()),
            kind: Some("space".to_owned()),
            unit: info.voxel_units[at].clone(),
            scale: info.voxel_size[at].map(|size| size * f64::from(1u32 << scale)),
        };
        let axes = [("z", 2), ("y", 1), ("x", 0)].map(axis).to_vec();
        let origin = vec![origin[2], origin[1], origin[0]];
        let space = Space { axes, translation: None, origin: Some(origin) };
        let node = ArrayNode::new(&space.render(&spec)?)?;
        let grid = node.grid()?;
        Ok(Self { scale, node: Arc::new(node), grid, first: [first[2], first[1], first[0]] })
    }

    /// The block that a chunk is.
    pub(super) fn block(&self, chunk: &[u64]) -> Option<BlockName> {
        if !self.grid.contains(chunk) {
            return None;
        }
        let at = |axis: usize| {
            let chunk = i64::try_from(*chunk.get(axis)?).ok()?;
            i32::try_from(i64::from(self.first[axis]).checked_add(chunk)?).ok()
        };
        Some(BlockName { scale: self.scale, zyx: [at(0)?, at(1)?, at(2)?] })
    }

    /// The chunk that a block is.
    pub(super) fn chunk(&self, block: [i32; 3]) -> Result<Vec<u64>> {
        let chunk: Option<Vec<u64>> = block
            .iter()
            .zip(&self.first)
            .map(|(at, first)| u64::try_from(i64::from(*at) - i64::from(*first)).ok())
            .collect();
        chunk.filter(|chunk| self.grid.contains(chunk)).ok_or_else(|| {
            Error::invalid(format!(
                "block {block:?} lies outside the array of scale {}",
                self.scale
            ))
        })
    }

    /// The chunks that hold elements of a region: first and count along each axis.
    pub(super) fn chunks_in(&self, region: &Region) -> Option<([u64; 3], [u64; 3])> {
        let cells = self.grid.cells_in(region)?;
        Some((cells.origin().try_into().ok()?, cells.shape().try_into().ok()?))
    }
}
