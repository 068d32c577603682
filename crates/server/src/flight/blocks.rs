//! The rows of shards as messages.

use std::sync::{Arc, LazyLock};

use arrow_array::{
    ArrayRef, BinaryArray, Int32Array, ListArray, RecordBatch, StringArray, UInt8Array,
    UInt32Array, UInt64Array,
};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_flight::FlightData;
use arrow_schema::{DataType, Schema, SchemaRef};
use chunkyard_engine::export::{BlockRow, Exporter, Shard};
use chunkyard_engine::store::cpu;
use chunkyard_engine::{Error, Result};

use super::claimed::Feed;
use super::message::{BATCH_BYTES, batch, column, item, lists, of_batch, refused};
use super::streams::HungUp;
use crate::jobs::Marker;

static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        column("scale", DataType::UInt8),
        column("shard_id", DataType::UInt64),
        column("morton", DataType::UInt64),
        column("x", DataType::Int32),
        column("y", DataType::Int32),
        column("z", DataType::Int32),
        lists("labels", DataType::UInt64),
        lists("supervoxels", DataType::UInt64),
        column("data", DataType::Binary),
        column("nbytes", DataType::UInt32),
        column("raw_nbytes", DataType::UInt32),
        column("codec", DataType::Utf8),
        column("crc32c", DataType::UInt32),
    ]))
});

/// The columns of `blocks`.
pub(super) fn schema() -> SchemaRef {
    SCHEMA.clone()
}

/// What was sent of a shard so far.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    rows: u64,
    bytes: u64,
    crc32c: u32,
}

/// Sends a shard; `Ok(Err(_))` if the client has hung up.
pub(super) async fn send(
    feed: &mut Feed<'_>,
    exporter: &Exporter,
    shard: &Shard,
) -> Result<Result<(), HungUp>> {
    let too_many = |_| Error::unsupported("more than 256 scales in a stream");
    let scale = u8::try_from(shard.scale).map_err(too_many)?;
    let codec = exporter.codec(shard.scale)?;
    let (number, mut sums) = (shard.number, Sums::default());
    let mut rows = exporter.rows(shard)?;
    while let Some(some) = rows.next().await? {
        let mut ahead = some.into_iter().peekable();
        while ahead.peek().is_some() {
            // As many as make a message; the others wait as they are.
            let (mut group, mut bytes) = (Vec::new(), 0);
            while bytes < BATCH_BYTES
                && let Some(row) = ahead.next()
            {
                bytes += row.data.len() + (row.labels.len() + row.supervoxels.len()) * 8;
                group.push(row);
            }
            let encoded = cpu(move || encode(scale, number, codec, group, sums));
            let (message, after) = encoded.await??;
            sums = after;
            if let Err(hung_up) = feed.send(message).await {
                return Ok(Err(hung_up));
            }
        }
    }
    let Sums { rows, bytes, crc32c } = sums;
    let marker = Marker::Blocks { scale: shard.scale, shard: number, rows, bytes, crc32c };
    let empty = of_batch(&RecordBatch::new_empty(schema()))?;
    Ok(feed.mark(empty, marker).await)
}

fn encode(
    scale: u8,
    shard: u64,
    codec: &str,
    rows: Vec<BlockRow>,
    mut sums: Sums,
) -> Result<(FlightData, Sums)> {
    let mut crcs = Vec::with_capacity(rows.len());
    for row in &rows {
        let crc = crc32c::crc32c(&row.data);
        sums.crc32c = crc32c::crc32c_combine(sums.crc32c, crc, row.data.len());
        sums.rows += 1;
        sums.bytes += row.data.len() as u64;
        crcs.push(crc);
    }
    let axis = |axis: usize| -> ArrayRef {
        Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.origin[axis])))
    };
    let nbytes = rows.iter().map(|row| u32::try_from(row.data.len()).unwrap_or(u32::MAX));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(UInt8Array::from(vec![scale; rows.len()])),
        Arc::new(UInt64Array::from(vec![shard; rows.len()])),
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.morton))),
        axis(0),
        axis(1),
        axis(2),
        list(&rows, |row| &row.labels)?,
        list(&rows, |row| &row.supervoxels)?,
        data(&rows)?,
        Arc::new(UInt32Array::from_iter_values(nbytes)),
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.raw_bytes))),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|_| codec))),
        Arc::new(UInt32Array::from(crcs)),
    ];
    Ok((of_batch(&batch(&SCHEMA, columns)?)?, sums))
}

fn list(rows: &[BlockRow], of: impl Fn(&BlockRow) -> &Vec<u64>) -> Result<ArrayRef> {
    let offsets = OffsetBuffer::<i32>::from_lengths(rows.iter().map(|row| of(row).len()));
    let mut values = Vec::with_capacity(rows.iter().map(|row| of(row).len()).sum());
    rows.iter().for_each(|row| values.extend_from_slice(of(row)));
    let values = UInt64Array::new(ScalarBuffer::from(values), None);
    let lists = ListArray::try_new(item(DataType::UInt64), offsets, Arc::new(values), None);
    Ok(Arc::new(lists.map_err(refused)?))
}

fn data(rows: &[BlockRow]) -> Result<ArrayRef> {
    let offsets = OffsetBuffer::<i32>::from_lengths(rows.iter().map(|row| row.data.len()));
    let bytes = match rows {
        [only] => Buffer::from(only.data.clone()),
        several => {
            let mut bytes = Vec::with_capacity(rows.iter().map(|row| row.data.len()).sum());
            several.iter().for_each(|row| bytes.extend_from_slice(&row.data));
            Buffer::from(bytes)
        }
    };
    Ok(Arc::new(BinaryArray::try_new(offsets, bytes, None).map_err(refused)?))
}
