//! The rows of the label index as messages.

use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Int32Array, ListArray, RecordBatch, UInt64Array};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Schema, SchemaRef};
use chunkyard_engine::labels::Labelmap;
use chunkyard_engine::store::cpu;
use chunkyard_engine::{Error, Result};
use futures::TryStreamExt;

use super::claimed::Feed;
use super::message::{BATCH_BYTES, batch, column, item, lists, of_batch, refused};
use super::streams::HungUp;
use crate::jobs::{IndexPart, Marker, index_keys, index_table};

static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        column("body", DataType::UInt64),
        column("x", DataType::Int32),
        column("y", DataType::Int32),
        column("z", DataType::Int32),
        lists("supervoxels", DataType::UInt64),
        lists("counts", DataType::UInt32),
    ]))
});

/// The columns that are read, in this order.
const COLUMNS: [&str; 6] = ["body", "x", "y", "z", "supervoxels", "counts"];

/// The columns of `index`.
pub(super) fn schema() -> SchemaRef {
    SCHEMA.clone()
}

/// Where positions in blocks lie, along x, y and z.
#[derive(Debug, Clone, Copy)]
struct Frame {
    origin: [i64; 3],
    block: [u32; 3],
}

#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    rows: u64,
    bytes: u64,
    crc32c: u32,
}

/// Sends a part of the index; `Ok(Err(_))` if the client has hung up.
pub(super) async fn send(
    feed: &mut Feed<'_>,
    map: &Labelmap,
    part: &IndexPart,
) -> Result<Result<(), HungUp>> {
    let (mut origin, mut block) = (map.layout().origin, map.layout().block);
    origin.reverse();
    block.reverse();
    let (frame, mut sums) = (Frame { origin, block }, Sums::default());
    let mut batches = index_table(map)?.scan(&index_keys(part), Some(&COLUMNS))?;
    while let Some(some) = batches.try_next().await? {
        let rows = some.num_rows();
        // One that is too large for a message is cut by rows.
        let bytes = some.get_array_memory_size();
        let step = rows.div_ceil(bytes.div_ceil(BATCH_BYTES).max(1)).max(1);
        for from in (0..rows).step_by(step) {
            let cut = some.slice(from, step.min(rows - from));
            let encoded = cpu(move || {
                let (batch, sums) = convert(&cut, frame, sums)?;
                Ok::<_, Error>((of_batch(&batch)?, sums))
            });
            let (message, after) = encoded.await??;
            sums = after;
            if let Err(hung_up) = feed.send(message).await {
                return Ok(Err(hung_up));
            }
        }
    }
    let Sums { rows, bytes, crc32c } = sums;
    let empty = of_batch(&RecordBatch::new_empty(schema()))?;
    Ok(feed.mark(empty, Marker::Index { part: part.part, rows, bytes, crc32c }).await)
}

/// Rows of the table as rows of the stream.
fn convert(rows: &RecordBatch, frame: Frame, mut sums: Sums) -> Result<(RecordBatch, Sums)> {
    let bodies = rows.column(0).as_primitive_opt::<UInt64Type>().ok_or_else(|| wrong(rows, 0))?;
    let mut axes: Vec<Vec<i32>> = Vec::with_capacity(3);
    for axis in 0..3 {
        let at = rows.column(1 + axis).as_primitive_opt::<UInt32Type>();
        let at = at.ok_or_else(|| wrong(rows, 1 + axis))?;
        let voxel = |at: &u32| {
            let voxel =
                i128::from(*at) * i128::from(frame.block[axis]) + i128::from(frame.origin[axis]);
            i32::try_from(voxel).map_err(|_| {
                Error::unsupported(format!("voxel {voxel} in a stream, whose columns are int32"))
            })
        };
        axes.push(at.values().iter().map(voxel).collect::<Result<_>>()?);
    }
    let (ids, id_ends) = values::<UInt64Type>(rows, 4)?;
    let (counts, count_ends) = values::<UInt32Type>(rows, 5)?;
    let (mut id_from, mut count_from, mut buffer) = (0, 0, Vec::new());
    for (at, body) in bodies.values().iter().enumerate() {
        let ends = (id_ends.get(at).copied(), count_ends.get(at).copied());
        let (Some(id_end), Some(count_end)) = ends else { return Err(wrong(rows, 4)) };
        buffer.clear();
        buffer.extend_from_slice(&body.to_le_bytes());
        for axis in &axes {
            buffer.extend_from_slice(&axis.get(at).copied().unwrap_or(0).to_le_bytes());
        }
        let ids = ids.get(id_from..id_end).unwrap_or_default();
        let counts = counts.get(count_from..count_end).unwrap_or_default();
        ids.iter().for_each(|id| buffer.extend_from_slice(&id.to_le_bytes()));
        counts.iter().for_each(|count| buffer.extend_from_slice(&count.to_le_bytes()));
        sums.crc32c = crc32c::crc32c_append(sums.crc32c, &buffer);
        sums.bytes += buffer.len() as u64;
        sums.rows += 1;
        (id_from, count_from) = (id_end, count_end);
    }
    let axis = |axis: Vec<i32>| -> ArrayRef { Arc::new(Int32Array::from(axis)) };
    let mut columns: Vec<ArrayRef> =
        vec![Arc::new(UInt64Array::new(bodies.values().clone(), None))];
    columns.extend(axes.into_iter().map(axis));
    columns.push(list::<UInt64Type>(ids, &id_ends)?);
    columns.push(list::<UInt32Type>(counts, &count_ends)?);
    Ok((batch(&SCHEMA, columns)?, sums))
}

/// The values of lists, one behind the other, and where each list ends.
fn values<T: arrow_array::types::ArrowPrimitiveType>(
    rows: &RecordBatch,
    column: usize,
) -> Result<(Vec<T::Native>, Vec<usize>)> {
    let lists = rows.column(column).as_list_opt::<i32>().ok_or_else(|| wrong(rows, column))?;
    let (mut values, mut ends) = (Vec::new(), Vec::with_capacity(rows.num_rows()));
    for at in 0..lists.len() {
        let list = lists.value(at);
        let list = list.as_primitive_opt::<T>().ok_or_else(|| wrong(rows, column))?;
        values.extend_from_slice(list.values());
        ends.push(values.len());
    }
    Ok((values, ends))
}

fn list<T: arrow_array::types::ArrowPrimitiveType>(
    values: Vec<T::Native>,
    ends: &[usize],
) -> Result<ArrayRef> {
    let mut from = 0;
    let lengths = ends.iter().map(|end| end - std::mem::replace(&mut from, *end));
    let offsets = OffsetBuffer::<i32>::from_lengths(lengths);
    let values = arrow_array::PrimitiveArray::<T>::new(ScalarBuffer::from(values), None);
    let lists = ListArray::try_new(item(T::DATA_TYPE), offsets, Arc::new(values), None);
    Ok(Arc::new(lists.map_err(refused)?))
}

fn wrong(rows: &RecordBatch, column: usize) -> Error {
    Error::Corrupt {
        file: "the index of a labelmap".to_owned(),
        what: format!("column {}", COLUMNS.get(column).copied().unwrap_or_default()),
        expected: "the type that docs/formats/labels.md names".to_owned(),
        found: rows.column(column).data_type().to_string(),
    }
}
