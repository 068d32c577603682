//! Reading a table back: the blocks of a shard, whole again.

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use bytes::Bytes;
use chunkyard_store::{Error, Result};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::cells::{CELLS, Part, join};
use super::schema::schema;

/// A block that was read: Morton code, labels, supervoxels, payload.
pub(super) type Found = (u64, Vec<u64>, Vec<u64>, Vec<u8>);

/// The blocks in the file of a shard, in its order. Rows that are missing, doubled or damaged are an error that names `file`.
pub(super) fn read(file: &str, content: Bytes) -> Result<Vec<Found>> {
    let corrupt = |error: &dyn std::fmt::Display| Error::Corrupt {
        file: file.to_owned(),
        what: "block table".to_owned(),
        expected: "a Parquet file with the columns of one".to_owned(),
        found: error.to_string(),
    };
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(content).map_err(|error| corrupt(&error))?;
    let names = |schema: &arrow_schema::Schema| {
        let columns = schema.fields().iter();
        columns.map(|field| (field.name().clone(), field.data_type().clone())).collect::<Vec<_>>()
    };
    if names(reader.schema()) != names(&schema()) {
        return Err(corrupt(&"other columns"));
    }
    let batches = reader.build().map_err(|error| corrupt(&error))?;
    let batches: Vec<RecordBatch> =
        batches.collect::<Result<_, _>>().map_err(|error| corrupt(&error))?;
    let mut rows: Vec<Row<'_>> = Vec::new();
    for batch in &batches {
        rows.extend((0..batch.num_rows()).map(|at| Row { batch, at }));
    }
    if !rows.is_sorted_by_key(Row::place) {
        return Err(corrupt(&"rows that are not in the order of their blocks"));
    }
    let blocks = rows.chunk_by(|one, next| one.morton() == next.morton());
    blocks
        .map(|rows| {
            let morton = rows.first().map_or(0, Row::morton);
            let parts: Vec<Part<'_>> = rows.iter().map(Row::part).collect();
            let payload = join(&format!("{file}, block {morton}"), &parts)?;
            let list = |column| rows.iter().flat_map(|row| row.list(column)).collect();
            Ok((morton, list(LABELS), list(SUPERVOXELS), payload))
        })
        .collect()
}

const MORTON: usize = 1;
const LABELS: usize = 8;
const SUPERVOXELS: usize = 9;
const FIRST_BIN: usize = 14;

/// A row of a batch whose columns have been checked.
struct Row<'a> {
    batch: &'a RecordBatch,
    at: usize,
}

impl<'a> Row<'a> {
    fn morton(&self) -> u64 {
        self.batch.column(MORTON).as_primitive::<UInt64Type>().value(self.at)
    }

    fn place(&self) -> (u64, u16) {
        (self.morton(), self.part().part)
    }

    fn part(&self) -> Part<'a> {
        let short = |column| self.batch.column(column).as_primitive::<UInt16Type>().value(self.at);
        let word = |column| self.batch.column(column).as_primitive::<UInt32Type>().value(self.at);
        let mut cells = [None; CELLS];
        for (number, cell) in cells.iter_mut().enumerate() {
            let column = self.batch.column(FIRST_BIN + number).as_binary::<i32>();
            *cell = (!column.is_null(self.at)).then(|| column.value(self.at));
        }
        Part { part: short(2), parts: short(3), bytes: word(10), crc32c: word(13), cells }
    }

    fn list(&self, column: usize) -> Vec<u64> {
        let values = self.batch.column(column).as_list::<i32>().value(self.at);
        values.as_primitive::<UInt64Type>().values().to_vec()
    }
}
