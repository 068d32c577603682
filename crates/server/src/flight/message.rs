//! Schemas and batches as messages of Flight.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_flight::{FlightData, IpcMessage, SchemaAsIpc};
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use chunkyard_engine::{Error, Result};

/// A batch is about this large: less costs messages, more costs memory and waiting.
pub(super) const BATCH_BYTES: usize = 1 << 20;

/// The message with which a stream begins.
pub(super) fn of_schema(schema: &Schema) -> FlightData {
    SchemaAsIpc::new(schema, &IpcWriteOptions::default()).into()
}

/// A schema as `FlightInfo` and `GetSchema` have it.
pub(super) fn schema_bytes(schema: &Schema) -> Result<Bytes> {
    let IpcMessage(bytes) =
        SchemaAsIpc::new(schema, &IpcWriteOptions::default()).try_into().map_err(refused)?;
    Ok(bytes)
}

/// The message of a batch.
pub(super) fn of_batch(batch: &RecordBatch) -> Result<FlightData> {
    let (mut tracker, mut context) = (DictionaryTracker::new(true), IpcWriteContext::default());
    let options = IpcWriteOptions::default();
    let (_, encoded) = IpcDataGenerator::default()
        .encode(batch, &mut tracker, &options, &mut context)
        .map_err(refused)?;
    Ok(encoded.into())
}

pub(super) fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>) -> Result<RecordBatch> {
    RecordBatch::try_new(schema.clone(), columns).map_err(refused)
}

/// A column without nulls.
pub(super) fn column(name: &str, kind: DataType) -> Field {
    Field::new(name, kind, false)
}

/// A column of lists.
pub(super) fn lists(name: &str, of: DataType) -> Field {
    Field::new_list(name, item(of), false)
}

/// The field of the items of lists.
pub(super) fn item(of: DataType) -> Arc<Field> {
    Arc::new(Field::new("item", of, true))
}

/// What Arrow refuses was made here.
pub(super) fn refused(error: ArrowError) -> Error {
    Error::store("encode", "a record batch", error)
}
