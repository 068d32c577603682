//! Records of a shard as an encapsulated message of Arrow IPC.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, Int32Array, ListArray, RecordBatch, UInt32Array, UInt64Array,
};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_ipc::MetadataVersion;
use arrow_ipc::writer::{
    DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions, write_message,
};
use arrow_schema::{DataType, SchemaRef};
use bytes::Bytes;
use chunkyard_store::{Error, Result};

/// A label block as a record.
#[derive(Debug)]
pub(in crate::export) struct Record {
    /// Position in blocks.
    pub(in crate::export) at: [i32; 3],
    pub(in crate::export) labels: Vec<u64>,
    pub(in crate::export) supervoxels: Vec<u64>,
    /// The compressed block.
    pub(in crate::export) block: Bytes,
    /// Bytes of the block before it was compressed.
    pub(in crate::export) plain_bytes: u32,
}

/// An encoded message: its bytes, and how many of them come before the buffers.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) bytes: Bytes,
    pub(super) head: usize,
}

/// How messages are written: without compression of buffers, and aligned as DVID aligns them.
pub(super) fn options() -> Result<IpcWriteOptions> {
    IpcWriteOptions::try_new(8, false, MetadataVersion::V5).map_err(refused)
}

/// The message of a schema, with which a stream begins.
pub(super) fn schema_message(schema: &SchemaRef) -> Result<Message> {
    let options = options()?;
    let mut tracker = DictionaryTracker::new(true);
    let encoded = IpcDataGenerator::default().schema_to_bytes_with_dictionary_tracker(
        schema,
        &mut tracker,
        &options,
    );
    let mut bytes = Vec::new();
    let (head, _) = write_message(&mut bytes, encoded, &options).map_err(refused)?;
    Ok(Message { bytes: bytes.into(), head })
}

/// The message of a batch of records.
pub(super) fn batch_message(schema: &SchemaRef, records: Vec<Record>) -> Result<Message> {
    let batch = batch(schema, records)?;
    let options = options()?;
    let mut tracker = DictionaryTracker::new(true);
    let mut context = IpcWriteContext::default();
    let (_, encoded) = IpcDataGenerator::default()
        .encode(&batch, &mut tracker, &options, &mut context)
        .map_err(refused)?;
    let mut bytes = Vec::with_capacity(encoded.ipc_message.len() + encoded.arrow_data.len() + 16);
    let (head, _) = write_message(&mut bytes, encoded, &options).map_err(refused)?;
    Ok(Message { bytes: bytes.into(), head })
}

fn batch(schema: &SchemaRef, records: Vec<Record>) -> Result<RecordBatch> {
    let axis = |axis: usize| -> ArrayRef {
        Arc::new(Int32Array::from_iter_values(records.iter().map(|record| record.at[axis])))
    };
    let (x, y, z) = (axis(0), axis(1), axis(2));
    let sizes: ArrayRef =
        Arc::new(UInt32Array::from_iter_values(records.iter().map(|record| record.plain_bytes)));
    let blocks = blocks(&records)?;
    let (mut labels, mut supervoxels) = (Lists::default(), Lists::default());
    for record in records {
        labels.push(record.labels);
        supervoxels.push(record.supervoxels);
    }
    let columns =
        vec![x, y, z, labels.finish(schema, 3)?, supervoxels.finish(schema, 4)?, blocks, sizes];
    RecordBatch::try_new(schema.clone(), columns).map_err(refused)
}

fn blocks(records: &[Record]) -> Result<ArrayRef> {
    let lengths = records.iter().map(|record| record.block.len());
    let offsets = OffsetBuffer::<i32>::from_lengths(lengths);
    let bytes = match records {
        [only] => Buffer::from(only.block.clone()),
        several => several.iter().flat_map(|record| record.block.iter().copied()).collect(),
    };
    Ok(Arc::new(BinaryArray::try_new(offsets, bytes, None).map_err(refused)?))
}

/// A column of lists. The list of a single record becomes its values as it is.
#[derive(Default)]
struct Lists {
    values: Vec<u64>,
    lengths: Vec<usize>,
}

impl Lists {
    fn push(&mut self, list: Vec<u64>) {
        self.lengths.push(list.len());
        match self.values.is_empty() {
            true => self.values = list,
            false => self.values.extend(list),
        }
    }

    fn finish(self, schema: &SchemaRef, column: usize) -> Result<ArrayRef> {
        let DataType::List(item) = schema.field(column).data_type() else {
            return Err(Error::unsupported("a column of labels that is no list"));
        };
        let offsets = OffsetBuffer::<i32>::from_lengths(self.lengths);
        let values = UInt64Array::new(ScalarBuffer::from(self.values), None);
        let lists = ListArray::try_new(item.clone(), offsets, Arc::new(values), None);
        Ok(Arc::new(lists.map_err(refused)?))
    }
}

/// What Arrow refuses was made by us, of what a caller asked for.
pub(super) fn refused(error: arrow_schema::ArrowError) -> Error {
    Error::store("encode", "a record batch", error)
}
