//! Writing the table of a shard, in bounded memory.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, Int32Builder, ListBuilder, StringBuilder, UInt8Builder, UInt16Builder,
    UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field};
use bytes::Bytes;
use chunkyard_store::{Error, Result, Store, Upload};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;

use super::LABELS_KEY;
use super::cells::{CELLS, cell, labels, parts};
use super::schema::schema;

/// Bytes of a row group before compression, about.
const GROUP_BYTES: usize = 16 << 20;

/// A block, as a row or several.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    /// Compressed Morton code of the chunk.
    pub morton: u64,
    /// Its first voxel: x, y, z.
    pub origin: [i32; 3],
    /// The label of each supervoxel.
    pub labels: &'a [u64],
    /// The supervoxels in the order of the block's table.
    pub supervoxels: &'a [u64],
    /// The block as it is stored.
    pub payload: &'a [u8],
    /// Its bytes before it was compressed.
    pub raw_bytes: u32,
    /// How it is compressed.
    pub codec: &'a str,
}

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Blocks.
    pub blocks: u64,
    /// Rows: as many, or more where blocks are large.
    pub rows: u64,
    /// Bytes of all payloads.
    pub payload_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// CRC-32C of the file.
    pub crc32c: u32,
}

/// The columns of rows that wait for their row group.
struct Columns {
    shard_id: UInt64Builder,
    morton: UInt64Builder,
    part: UInt16Builder,
    parts: UInt16Builder,
    scale: UInt8Builder,
    at: [Int32Builder; 3],
    labels: ListBuilder<UInt64Builder>,
    supervoxels: ListBuilder<UInt64Builder>,
    nbytes: UInt32Builder,
    raw_nbytes: UInt32Builder,
    codec: StringBuilder,
    crc32c: UInt32Builder,
    bins: [BinaryBuilder; CELLS],
    bytes: usize,
}

impl Columns {
    fn new() -> Self {
        let list = || {
            let item = Field::new("item", DataType::UInt64, true);
            ListBuilder::new(UInt64Builder::new()).with_field(item)
        };
        Self {
            shard_id: UInt64Builder::new(),
            morton: UInt64Builder::new(),
            part: UInt16Builder::new(),
            parts: UInt16Builder::new(),
            scale: UInt8Builder::new(),
            at: Default::default(),
            labels: list(),
            supervoxels: list(),
            nbytes: UInt32Builder::new(),
            raw_nbytes: UInt32Builder::new(),
            codec: StringBuilder::new(),
            crc32c: UInt32Builder::new(),
            bins: Default::default(),
            bytes: 0,
        }
    }

    fn batch(&mut self) -> Result<RecordBatch> {
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(self.shard_id.finish()),
            Arc::new(self.morton.finish()),
            Arc::new(self.part.finish()),
            Arc::new(self.parts.finish()),
            Arc::new(self.scale.finish()),
        ];
        columns.extend(self.at.iter_mut().map(|at| Arc::new(at.finish()) as ArrayRef));
        columns.push(Arc::new(self.labels.finish()));
        columns.push(Arc::new(self.supervoxels.finish()));
        columns.push(Arc::new(self.nbytes.finish()));
        columns.push(Arc::new(self.raw_nbytes.finish()));
        columns.push(Arc::new(self.codec.finish()));
        columns.push(Arc::new(self.crc32c.finish()));
        columns.extend(self.bins.iter_mut().map(|bin| Arc::new(bin.finish()) as ArrayRef));
        self.bytes = 0;
        RecordBatch::try_new(schema(), columns)
            .map_err(|error| Error::invalid(format!("rows of a block table: {error}")))
    }
}

/// Writes the table of one shard. The file is there when it is [closed](TableWriter::close), and not before.
pub struct TableWriter {
    store: Store,
    path: String,
    shard_id: u64,
    scale: u8,
    upload: Box<dyn Upload>,
    writer: ArrowWriter<Vec<u8>>,
    columns: Columns,
    last: Option<u64>,
    written: Written,
}

impl std::fmt::Debug for TableWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableWriter").field("path", &self.path).finish_non_exhaustive()
    }
}

impl TableWriter {
    /// Begins the table of a shard of a scale.
    pub async fn begin(store: &Store, path: &str, scale: u8, shard_id: u64) -> Result<Self> {
        let sorted =
            |column_idx| SortingColumn { column_idx, descending: false, nulls_first: false };
        let zstd = ZstdLevel::try_new(3).map(Compression::ZSTD).unwrap_or(Compression::SNAPPY);
        let mut properties = WriterProperties::builder()
            .set_compression(zstd)
            .set_sorting_columns(Some(vec![sorted(0), sorted(1), sorted(2)]));
        for bin in ["bin1", "bin2", "bin3", "bin4"] {
            // A block is compressed already, and no two are alike.
            let column = ColumnPath::from(bin);
            properties = properties
                .set_column_compression(column.clone(), Compression::UNCOMPRESSED)
                .set_column_dictionary_enabled(column, false);
        }
        let writer = ArrowWriter::try_new(Vec::new(), schema(), Some(properties.build()))
            .map_err(|error| failed(path, error))?;
        Ok(Self {
            store: store.clone(),
            path: path.to_owned(),
            shard_id,
            scale,
            upload: store.begin(path).await?,
            writer,
            columns: Columns::new(),
            last: None,
            written: Written::default(),
        })
    }

    /// Notes in the file whether label lists are left out of blocks.
    pub fn tell_labels(&mut self, apart: bool) {
        let value = if apart { "apart" } else { "inside" };
        let pair = KeyValue::new(LABELS_KEY.to_owned(), value.to_owned());
        self.writer.append_key_value_metadata(pair);
    }

    /// Adds a block. Blocks come in the order of their Morton codes, each once.
    pub async fn push(&mut self, block: Block<'_>) -> Result<()> {
        if self.last.is_some_and(|last| last >= block.morton) {
            let what = format!("{}: block {} after {:?}", self.path, block.morton, self.last);
            return Err(Error::invalid(what));
        }
        if block.labels.len() != block.supervoxels.len() {
            return Err(Error::invalid(format!(
                "{}: block {} has {} labels and {} supervoxels",
                self.path,
                block.morton,
                block.labels.len(),
                block.supervoxels.len()
            )));
        }
        let too_large = |_| Error::unsupported(format!("{}: a block of 4 GiB", self.path));
        let bytes = u32::try_from(block.payload.len()).map_err(too_large)?;
        let parts = parts(block.payload.len(), block.labels.len())?;
        let crc32c = crc32c::crc32c(block.payload);
        let columns = &mut self.columns;
        for part in 0..parts {
            columns.shard_id.append_value(self.shard_id);
            columns.morton.append_value(block.morton);
            columns.part.append_value(part);
            columns.parts.append_value(parts);
            columns.scale.append_value(self.scale);
            columns.at.iter_mut().zip(block.origin).for_each(|(at, value)| at.append_value(value));
            let range = labels(block.labels.len(), part);
            let lists = [
                (&mut columns.labels, block.labels),
                (&mut columns.supervoxels, block.supervoxels),
            ];
            for (list, values) in lists {
                list.values().append_slice(values.get(range.clone()).unwrap_or_default());
                list.append(true);
            }
            columns.nbytes.append_value(bytes);
            columns.raw_nbytes.append_value(block.raw_bytes);
            columns.codec.append_value(block.codec);
            columns.crc32c.append_value(crc32c);
            for (number, bin) in columns.bins.iter_mut().enumerate() {
                let range = cell(block.payload.len(), part, number);
                bin.append_option(range.and_then(|range| block.payload.get(range)));
            }
            columns.bytes += 128;
        }
        columns.bytes += block.payload.len() + 16 * block.labels.len();
        self.last = Some(block.morton);
        self.written.blocks += 1;
        self.written.rows += u64::from(parts);
        self.written.payload_bytes += u64::from(bytes);
        if self.columns.bytes >= GROUP_BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    /// Writes the rows that wait as a row group, and sends what is complete.
    async fn flush(&mut self) -> Result<()> {
        let batch = self.columns.batch()?;
        if batch.num_rows() > 0 {
            self.writer.write(&batch).map_err(|error| failed(&self.path, error))?;
            self.writer.flush().map_err(|error| failed(&self.path, error))?;
        }
        let sent = std::mem::take(self.writer.inner_mut());
        self.send(sent).await
    }

    async fn send(&mut self, bytes: Vec<u8>) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.written.file_bytes += bytes.len() as u64;
        self.written.crc32c = crc32c::crc32c_append(self.written.crc32c, &bytes);
        self.upload.write(vec![Bytes::from(bytes)]).await
    }

    /// Completes the file: durable, then visible.
    pub async fn close(mut self) -> Result<Written> {
        self.flush().await?;
        self.writer.finish().map_err(|error| failed(&self.path, error))?;
        let rest = std::mem::take(self.writer.inner_mut());
        self.send(rest).await?;
        self.upload.finish().await?;
        self.store.sync(&[self.path]).await?;
        Ok(self.written)
    }

    /// Removes what was written.
    pub async fn abort(self) {
        self.upload.abort().await;
    }
}

pub(super) fn failed(path: &str, error: parquet::errors::ParquetError) -> Error {
    Error::store("write", path, error)
}
