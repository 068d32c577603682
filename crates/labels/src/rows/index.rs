//! The index: which supervoxels of a body are in a block, how many voxels of each, and where.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::Schema;
use chunkyard_array::codec::label_block::Extent;
use chunkyard_repo::Table;
use chunkyard_store::{Error, Result};

use super::{Bounds, Row, batch, found, list_column, lists, u32s, u64_column, u64s, wrong};

/// Bits of a position inside a block.
const POSITION_BITS: u32 = 10;
const POSITION: u64 = (1 << POSITION_BITS) - 1;

/// A body in a block: the position of the block along z, y and x.
pub(crate) type BlockKey = (u64, [u32; 3]);
/// The supervoxels of one body in one block, by id.
pub(crate) type Parts = Vec<Part>;

/// What a block has of a supervoxel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) supervoxel: u64,
    pub(crate) voxels: u32,
    /// Least and greatest position inside the block along z, y, x, ten bits each.
    packed: u64,
}

impl Part {
    pub(crate) fn new(extent: &Extent) -> Self {
        let pack = |low: u64, at: u32| low << POSITION_BITS | u64::from(at);
        let axes = extent.min.iter().rev().chain(extent.max.iter().rev());
        // A block has at most 1024 voxels along an axis, so 2^30 in all.
        Self {
            supervoxel: extent.label,
            voxels: extent.voxels as u32,
            packed: axes.fold(0, |low, &at| pack(low, at)),
        }
    }

    /// The box in the volume.
    pub(crate) fn bounds(&self, at: [u32; 3], block: [u32; 3]) -> Bounds {
        let origin: [u64; 3] =
            std::array::from_fn(|axis| u64::from(at[axis]) * u64::from(block[axis]));
        let field =
            |number: usize| self.packed >> (POSITION_BITS as usize * (5 - number)) & POSITION;
        Bounds {
            start: std::array::from_fn(|axis| origin[axis] + field(axis)),
            end: std::array::from_fn(|axis| origin[axis] + field(3 + axis) + 1),
        }
    }
}

/// A row of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexRow {
    pub(crate) key: BlockKey,
    pub(crate) parts: Parts,
}

impl Row for IndexRow {
    fn batch(rows: &[Self], schema: &Arc<Schema>) -> Result<RecordBatch> {
        let mut columns = key_columns(rows.iter().map(|row| row.key));
        columns.push(list_column::<UInt64Type>(
            rows.iter().map(|row| row.parts.iter().map(|part| part.supervoxel).collect()),
        ));
        columns.push(list_column::<UInt32Type>(
            rows.iter().map(|row| row.parts.iter().map(|part| part.voxels).collect()),
        ));
        columns.push(list_column::<UInt64Type>(
            rows.iter().map(|row| row.parts.iter().map(|part| part.packed).collect()),
        ));
        batch(schema, columns)
    }

    fn parse(batch: &RecordBatch) -> Result<Vec<Self>> {
        let bodies = u64s(batch, "body")?;
        let (z, y, x) = (u32s(batch, "z")?, u32s(batch, "y")?, u32s(batch, "x")?);
        let (ids, counts) = (lists(batch, "supervoxels")?, lists(batch, "counts")?);
        let boxes = lists(batch, "boxes")?;
        let mut rows = Vec::with_capacity(bodies.len());
        for (at, &body) in bodies.iter().enumerate() {
            let (ids, counts, boxes) = (ids.value(at), counts.value(at), boxes.value(at));
            let typed = (
                ids.as_primitive_opt::<UInt64Type>(),
                counts.as_primitive_opt::<UInt32Type>(),
                boxes.as_primitive_opt::<UInt64Type>(),
            );
            let (Some(ids), Some(counts), Some(boxes)) = typed else {
                return Err(wrong("supervoxels", "lists of another type"));
            };
            if ids.len() != counts.len() || ids.len() != boxes.len() {
                return Err(wrong("supervoxels", "lists of different lengths in one row"));
            }
            let parts = ids.values().iter().zip(counts.values()).zip(boxes.values());
            let part = |((&supervoxel, &voxels), &packed)| Part { supervoxel, voxels, packed };
            rows.push(Self {
                key: (body, [z[at], y[at], x[at]]),
                parts: parts.map(part).collect(),
            });
        }
        Ok(rows)
    }
}

impl IndexRow {
    /// The rows of some bodies in some blocks; aligned to the keys.
    pub(crate) async fn get(table: &Table, keys: &[BlockKey]) -> Result<Vec<Option<Self>>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let keys = batch(&table.spec().key_schema(), key_columns(keys.iter().copied()))?;
        found(table.get(keys).await?)
    }

    /// Deletes the rows of some bodies in some blocks.
    pub(crate) async fn delete(table: &Table, keys: &[BlockKey]) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        let keys = batch(&table.spec().key_schema(), key_columns(keys.iter().copied()))?;
        table.delete(keys).await
    }
}

/// Puts parts into a row, in the order of their ids. A supervoxel cannot be in two bodies.
pub(crate) fn insert(row: &mut Parts, parts: impl IntoIterator<Item = Part>) -> Result<()> {
    for part in parts {
        match row.binary_search_by_key(&part.supervoxel, |known| known.supervoxel) {
            Err(at) => row.insert(at, part),
            Ok(_) => {
                return Err(Error::Corrupt {
                    file: super::super::layout::INDEX.into(),
                    what: format!("supervoxel {}", part.supervoxel),
                    expected: "one body in each block".into(),
                    found: "two".into(),
                });
            }
        }
    }
    Ok(())
}

fn key_columns(keys: impl Iterator<Item = BlockKey> + Clone) -> Vec<ArrayRef> {
    let axis = |axis: usize| -> ArrayRef {
        Arc::new(UInt32Array::from_iter_values(keys.clone().map(move |(_, at)| at[axis])))
    };
    vec![u64_column(keys.clone().map(|(body, _)| body)), axis(0), axis(1), axis(2)]
}
