//! The Parquet files of a repository: how each is sealed, opened and checked.
//!
//! Our library does not write Parquet's page checksums, and a footer has none. So a sealed file
//! carries, in its key-value metadata, a CRC-32C for each 16 KiB block of the data before the
//! footer, and each reference to the file keeps the size and the CRC-32C of the rest (the *tail*:
//! page index and footer). Together they cover every byte, and a reader of a few pages checks
//! exactly what it read.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use chunkyard_store::{Error, Result};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
    RowSelector,
};
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::file::reader::{ChunkReader, Length};

use super::parquet_bounds;
use super::state::FORMAT_VERSION;
use super::thrift;

const BLOCK: usize = 16 << 10;
const BLOCK_CRCS: &str = "block-crc32c";

/// What every file of a repository says about itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Label<'a> {
    /// `structure`, `manifest`, `table`, `attributes` or `collection`.
    pub(super) format: &'static str,
    /// The dataset it belongs to.
    pub(super) dataset_id: &'a str,
    /// Wall clock of the writer.
    pub(super) created_ms: i64,
}

/// A finished file, with what its readers need to check it.
#[derive(Debug, Clone)]
pub(super) struct Sealed {
    pub(super) bytes: Bytes,
    pub(super) tail: Tail,
    /// Of the whole file.
    pub(super) crc32c: u32,
}

/// Size and checksum of what follows the data pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Tail {
    /// Bytes from the end of the last data page to the end of the file.
    pub size: u64,
    /// CRC-32C of those bytes.
    pub crc32c: u32,
}

/// The settings all files share: zstd level 3, exact page bounds, pages of at most 1,024 rows.
/// `content` is the whole content of the file, where known: small files are not compressed.
pub(super) fn properties(content: Option<&RecordBatch>) -> WriterPropertiesBuilder {
    let compression = match content.map(data_bytes) {
        Some(0..=PLAIN_BYTES_MAX) => Compression::UNCOMPRESSED,
        _ => Compression::ZSTD(ZstdLevel::default()),
    };
    WriterProperties::builder()
        .set_compression(compression)
        .set_created_by(writer_name())
        .set_write_batch_size(PAGE_ROWS)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_column_index_truncate_length(None)
        .set_statistics_truncate_length(None)
}

/// Rows of one data page.
pub(super) const PAGE_ROWS: usize = 1024;

/// Files with at most this much data are not compressed. Their pages are some ten bytes each, which
/// zstd makes no smaller, while the library sets up a compressor and a decompressor for each
/// column, reading or writing: over a millisecond for the columns of a structure file.
const PLAIN_BYTES_MAX: usize = 8 << 10;

fn data_bytes(batch: &RecordBatch) -> usize {
    let sizes = batch.columns().iter().map(|column| column.to_data().get_slice_memory_size());
    sizes.map(|size| size.unwrap_or(usize::MAX)).fold(0, usize::saturating_add)
}

pub(super) fn writer_name() -> String {
    concat!("chunkyard ", env!("CARGO_PKG_VERSION")).into()
}

/// Writes and seals a file of one row group.
pub(super) fn seal(
    label: Label<'_>,
    batch: &RecordBatch,
    properties: WriterProperties,
    more: &[(&str, String)],
) -> Result<Sealed> {
    let mut writer = FileWriter::new(batch.schema(), properties)?;
    writer.row_group(batch)?;
    writer.seal(label, more)
}

/// A file being written, row group by row group; what is encoded is held in memory.
pub(super) struct FileWriter(ArrowWriter<Vec<u8>>);

impl FileWriter {
    /// Parquet's own schema says all that a reader needs; Arrow's, in base64, was a third of the file
    /// of a small commit.
    pub(super) fn new(schema: SchemaRef, properties: WriterProperties) -> Result<Self> {
        Self::open(schema, ArrowWriterOptions::new().with_skip_arrow_metadata(true), properties)
    }

    /// With Arrow's schema too: Parquet has no lists of fixed size and no descriptions of columns.
    pub(super) fn with_arrow_schema(
        schema: SchemaRef,
        properties: WriterProperties,
    ) -> Result<Self> {
        Self::open(schema, ArrowWriterOptions::new(), properties)
    }

    fn open(
        schema: SchemaRef,
        options: ArrowWriterOptions,
        properties: WriterProperties,
    ) -> Result<Self> {
        let options = options.with_properties(properties);
        let writer = ArrowWriter::try_new_with_options(Vec::new(), schema, options);
        Ok(Self(writer.map_err(failed)?))
    }

    /// Appends rows; a row group ends where the properties say.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0.write(batch).map_err(failed)
    }

    /// Bytes of the row groups that are complete.
    pub(super) fn bytes_written(&self) -> usize {
        self.0.bytes_written()
    }

    /// Takes out what is complete, for a file that is handed on piece by piece.
    pub(super) fn take(&mut self) -> Result<Bytes> {
        self.0.sync().map_err(|error| failed(error.into()))?;
        Ok(std::mem::take(self.0.inner_mut()).into())
    }

    /// Ends a file that is not sealed, and gives what was not taken yet.
    pub(super) fn end(self) -> Result<Bytes> {
        Ok(self.0.into_inner().map_err(failed)?.into())
    }

    pub(super) fn row_group(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0.write(batch).map_err(failed)?;
        self.0.flush().map_err(failed)
    }

    pub(super) fn seal(self, label: Label<'_>, more: &[(&str, String)]) -> Result<Sealed> {
        seal_writer(self.0, label, more)
    }
}

fn failed(error: ParquetError) -> Error {
    Error::Invalid { what: format!("cannot write a Parquet file: {error}") }
}

fn seal_writer(
    mut writer: ArrowWriter<Vec<u8>>,
    label: Label<'_>,
    more: &[(&str, String)],
) -> Result<Sealed> {
    writer.flush().map_err(failed)?;
    writer.sync().map_err(|error| failed(error.into()))?;
    let data = writer.inner();
    let data_len = data.len();
    let crcs: String =
        data.chunks(BLOCK).map(|block| format!("{:08x}", crc32c::crc32c(block))).collect();
    let own = [
        ("format", label.format.to_owned()),
        ("format-version", FORMAT_VERSION.to_string()),
        ("dataset-id", label.dataset_id.to_owned()),
        ("writer", writer_name()),
        ("created-ms", label.created_ms.to_string()),
        (BLOCK_CRCS, crcs),
    ];
    for (key, value) in own.iter().chain(more) {
        writer.append_key_value_metadata(KeyValue::new((*key).to_owned(), value.clone()));
    }
    let bytes = Bytes::from(writer.into_inner().map_err(failed)?);
    let tail = bytes.get(data_len..).unwrap_or_default();
    let tail = Tail { size: tail.len() as u64, crc32c: crc32c::crc32c(tail) };
    Ok(Sealed { crc32c: crc32c::crc32c(&bytes), tail, bytes })
}

/// The parsed footer of a file: enough to read any of its pages.
#[derive(Debug, Clone)]
pub(super) struct Footer {
    file: Arc<str>,
    metadata: ArrowReaderMetadata,
    key_values: BTreeMap<String, String>,
    size: u64,
    data_len: u64,
    block_crcs: Option<Vec<u32>>,
}

impl Footer {
    /// Parses the end of a file of `size` bytes. `tail_bytes` are its last bytes: the tail, or more.
    pub(super) fn parse(
        file: &str,
        label: &Label<'_>,
        tail_bytes: &Bytes,
        size: u64,
        tail: Option<Tail>,
    ) -> Result<Self> {
        if let Some(tail) = tail {
            let bytes = (tail_bytes.len() as u64)
                .checked_sub(tail.size)
                .and_then(|skip| tail_bytes.get(skip as usize..))
                .ok_or_else(|| {
                    corrupt(file, "size", &tail.size.to_string(), &tail_bytes.len().to_string())
                })?;
            check_crc(file, "footer", tail.crc32c, bytes)?;
        }
        let data_len = tail.map_or(size, |tail| size.saturating_sub(tail.size));
        parquet_bounds::check_footer(file, tail_bytes)?;
        let metadata = guarded(file, || {
            let mut reader = ParquetMetaDataReader::new();
            reader.try_parse_sized(tail_bytes, size)?;
            reader.finish()
        })?;
        parquet_bounds::check(file, &metadata, data_len)?;
        parquet_bounds::check_index(file, &metadata, tail_bytes, size)?;
        let metadata = guarded(file, || {
            let mut reader = ParquetMetaDataReader::new_with_metadata(metadata)
                .with_page_index_policy(PageIndexPolicy::Optional);
            reader.read_page_indexes_sized(tail_bytes, size)?;
            reader.finish()
        })?;
        parquet_bounds::check_pages(file, &metadata, data_len)?;
        let key_values = key_values(&metadata);
        check_label(file, label, &key_values)?;
        let block_crcs = match key_values.get(BLOCK_CRCS) {
            Some(text) => Some(parse_crcs(file, text)?),
            None => None,
        };
        let metadata = guarded(file, || {
            // We do not need the Arrow schema in the key-value metadata: columns are cast to the
            // expected types.
            let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
            ArrowReaderMetadata::try_new(Arc::new(metadata), options)
        })?;
        Ok(Self { file: file.into(), metadata, key_values, size, data_len, block_crcs })
    }

    /// Reads the footer of a file that is no part of a repository: it has no label and no checksums, and its page index
    /// is not read.
    pub(super) fn foreign(file: &str, end: &Bytes, size: u64) -> Result<Self> {
        parquet_bounds::check_footer(file, end)?;
        let metadata = guarded(file, || {
            let mut reader = ParquetMetaDataReader::new();
            reader.try_parse_sized(end, size)?;
            reader.finish()
        })?;
        parquet_bounds::check(file, &metadata, size)?;
        let key_values = key_values(&metadata);
        let metadata = guarded(file, || {
            let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
            ArrowReaderMetadata::try_new(Arc::new(metadata), options)
        })?;
        Ok(Self { file: file.into(), metadata, key_values, size, data_len: size, block_crcs: None })
    }

    pub(super) fn file(&self) -> &Arc<str> {
        &self.file
    }

    /// What the library needs to read the file.
    pub(super) fn arrow(&self) -> &ArrowReaderMetadata {
        &self.metadata
    }

    pub(super) fn parquet(&self) -> &ParquetMetaData {
        self.metadata.metadata()
    }

    /// Whether the writing program knows only the draft.
    pub(super) fn is_bare(&self) -> bool {
        self.key_value("format").is_none()
    }

    pub(super) fn key_value(&self, key: &str) -> Option<&str> {
        self.key_values.get(key).map(String::as_str)
    }

    /// The byte ranges that hold `rows` of some columns of a row group, rounded to checkable blocks.
    pub(super) fn ranges(
        &self,
        row_group: usize,
        rows: &Range<usize>,
        columns: &ProjectionMask,
    ) -> Vec<Range<u64>> {
        let group = self.parquet().row_group(row_group);
        let pages = self.parquet().page_index_for_row_group(row_group);
        let mut ranges = Vec::new();
        for (leaf, column) in group.columns().iter().enumerate() {
            if !columns.leaf_included(leaf) {
                continue;
            }
            let (start, length) = column.byte_range();
            let Some(pages) = pages.offset_index(leaf) else {
                ranges.push(start..start + length);
                continue;
            };
            let locations = pages.page_locations();
            if let Some(first) = locations.first() {
                ranges.push(start..first.offset as u64); // the dictionary, if there is one
            }
            for (at, page) in locations.iter().enumerate() {
                let first = page.first_row_index as usize;
                let end = locations.get(at + 1).map_or(usize::MAX, |p| p.first_row_index as usize);
                if first < rows.end && end > rows.start {
                    let offset = page.offset as u64;
                    ranges.push(offset..offset + page.compressed_page_size as u64);
                }
            }
        }
        self.round_to_blocks(ranges)
    }

    fn round_to_blocks(&self, mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
        let block = BLOCK as u64;
        ranges.retain(|range| !range.is_empty());
        ranges.sort_by_key(|range| range.start);
        let mut rounded: Vec<Range<u64>> = Vec::new();
        for range in ranges {
            let start = range.start / block * block;
            let end = range.end.div_ceil(block).saturating_mul(block).min(self.data_len);
            match rounded.last_mut() {
                Some(last) if start <= last.end => last.end = last.end.max(end),
                _ => rounded.push(start..end),
            }
        }
        rounded
    }

    /// Checks pieces that [`Footer::ranges`] asked for, and makes them readable.
    pub(super) fn assemble(&self, pieces: Vec<(u64, Bytes)>) -> Result<Pieces> {
        if let Some(crcs) = &self.block_crcs {
            for (offset, bytes) in &pieces {
                for (at, block) in bytes.chunks(BLOCK).enumerate() {
                    let number = *offset as usize / BLOCK + at;
                    let start = number * BLOCK;
                    let left = (self.data_len as usize).saturating_sub(start);
                    let found = block.get(..block.len().min(left));
                    let (Some(&expected), Some(found)) = (crcs.get(number), found) else {
                        return Err(corrupt(
                            &self.file,
                            BLOCK_CRCS,
                            &format!("a checksum for block {number}"),
                            &format!("{} checksums", crcs.len()),
                        ));
                    };
                    check_crc(&self.file, &format!("block {number}"), expected, found)?;
                }
            }
        }
        Ok(Pieces { pieces: Arc::new(pieces), size: self.size })
    }

    /// Reads a whole file that is already in memory, checking all of it.
    pub(super) fn assemble_whole(&self, bytes: Bytes) -> Result<Pieces> {
        let data = bytes.slice(..(self.data_len as usize).min(bytes.len()));
        if self.block_crcs.is_some() && self.data_len < self.size {
            self.assemble(vec![(0, data)])?;
        }
        Ok(Pieces { pieces: Arc::new(vec![(0, bytes)]), size: self.size })
    }

    /// Decodes `rows` of one row group, of some columns.
    pub(super) fn decode(
        &self,
        pieces: &Pieces,
        row_group: usize,
        rows: Range<usize>,
        columns: &ProjectionMask,
    ) -> Result<Vec<RecordBatch>> {
        self.check_headers(pieces, row_group, &rows)?;
        guarded(&self.file, || {
            let selection = RowSelection::from(vec![
                RowSelector::skip(rows.start),
                RowSelector::select(rows.len()),
            ]);
            let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(
                pieces.clone(),
                self.metadata.clone(),
            )
            .with_projection(columns.clone())
            .with_row_groups(vec![row_group])
            .with_row_selection(selection)
            .with_batch_size(rows.len().max(1))
            .build()?;
            reader.collect::<Result<Vec<_>, _>>().map_err(ParquetError::from)
        })
    }

    /// Checks the headers of the pages that hold `rows` of a row group, where the file says where pages
    /// are. Otherwise the library asks for one header after the other, see [`Pieces`].
    pub(super) fn check_headers(
        &self,
        pieces: &Pieces,
        row_group: usize,
        rows: &Range<usize>,
    ) -> Result<()> {
        let group = self.parquet().row_group(row_group);
        let pages = self.parquet().page_index_for_row_group(row_group);
        for (leaf, column) in group.columns().iter().enumerate() {
            let Some(pages) = pages.offset_index(leaf) else { continue };
            let locations = pages.page_locations();
            let next = locations.iter().skip(1).map(|page| page.first_row_index as usize);
            let held = locations.iter().zip(next.chain([usize::MAX])).filter(|(page, next)| {
                (page.first_row_index as usize) < rows.end && *next > rows.start
            });
            let starts = held.map(|(page, _)| page.offset as u64);
            for start in starts.chain([column.byte_range().0]) {
                // What is not there is for the library to report.
                let Ok((offset, bytes)) = pieces.piece(start) else { continue };
                let header = bytes.get((start - offset) as usize..).unwrap_or_default();
                parquet_bounds::check_header(&self.file, start, header)?;
            }
        }
        Ok(())
    }

    /// Row counts of the row groups.
    pub(super) fn row_groups(&self) -> Vec<usize> {
        self.parquet().row_groups().iter().map(|group| group.num_rows().max(0) as usize).collect()
    }
}

/// Opens and decodes a whole file that is in memory.
pub(super) fn read_whole(
    file: &str,
    label: &Label<'_>,
    bytes: &Bytes,
    tail: Option<Tail>,
) -> Result<(Footer, Vec<RecordBatch>)> {
    let footer = Footer::parse(file, label, bytes, bytes.len() as u64, tail)?;
    let pieces = footer.assemble_whole(bytes.clone())?;
    let mut batches = Vec::new();
    for (row_group, rows) in footer.row_groups().into_iter().enumerate() {
        batches.extend(footer.decode(&pieces, row_group, 0..rows, &ProjectionMask::all())?);
    }
    Ok((footer, batches))
}

/// Compares a CRC-32C.
pub(super) fn check_crc(file: &str, what: &str, expected: u32, bytes: &[u8]) -> Result<()> {
    let found = crc32c::crc32c(bytes);
    if found == expected {
        return Ok(());
    }
    Err(corrupt(
        file,
        &format!("checksum of {what}"),
        &format!("{expected:08x}"),
        &format!("{found:08x}"),
    ))
}

pub(super) fn corrupt(file: &str, what: &str, expected: &str, found: &str) -> Error {
    Error::Corrupt {
        file: file.to_owned(),
        what: what.to_owned(),
        expected: expected.to_owned(),
        found: found.to_owned(),
    }
}

/// Runs a call into the Parquet library on bytes from outside. The library returns errors for most
/// unsound files and panics on a few; both count as a corrupt file.
pub(super) fn guarded<T>(
    file: &str,
    call: impl FnOnce() -> std::result::Result<T, ParquetError>,
) -> Result<T> {
    let error = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "content the Parquet reader cannot handle".into(),
    };
    Err(corrupt(file, "content", "a sound Parquet file", &error))
}

fn key_values(metadata: &ParquetMetaData) -> BTreeMap<String, String> {
    let list = metadata.file_metadata().key_value_metadata();
    list.into_iter()
        .flatten()
        .filter_map(|pair| Some((pair.key.clone(), pair.value.clone()?)))
        .collect()
}

/// A file copied from another dataset, or of another kind, is refused. Files of the bare draft say
/// nothing about themselves and are taken as they are.
fn check_label(file: &str, label: &Label<'_>, found: &BTreeMap<String, String>) -> Result<()> {
    for (key, expected) in [("dataset-id", label.dataset_id), ("format", label.format)] {
        if let Some(found) = found.get(key).filter(|found| *found != expected) {
            return Err(corrupt(file, key, expected, found));
        }
    }
    match found.get("format-version").map(|text| text.parse::<u64>()) {
        Some(Ok(version)) if version > FORMAT_VERSION => Err(Error::Unsupported {
            what: format!("{file} has format-version {version}; this program knows 1"),
        }),
        _ => Ok(()),
    }
}

fn parse_crcs(file: &str, text: &str) -> Result<Vec<u32>> {
    text.as_bytes()
        .chunks(8)
        .map(|digits| {
            std::str::from_utf8(digits).ok().and_then(|digits| u32::from_str_radix(digits, 16).ok())
        })
        .collect::<Option<Vec<u32>>>()
        .ok_or_else(|| corrupt(file, BLOCK_CRCS, "hexadecimal digits", "something else"))
}

/// Parts of a file, readable as if they were the whole.
#[derive(Debug, Clone)]
pub(super) struct Pieces {
    pieces: Arc<Vec<(u64, Bytes)>>,
    size: u64,
}

impl Length for Pieces {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for Pieces {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        use bytes::Buf;
        let (offset, bytes) = self.piece(start)?;
        let bytes = bytes.slice((start - offset) as usize..);
        if thrift::has_booleans(&bytes) {
            return Err(ParquetError::General(format!(
                "the page header at {start} has a list of booleans"
            )));
        }
        Ok(bytes.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let (offset, bytes) = self.piece(start)?;
        let from = (start - offset) as usize;
        match from.checked_add(length) {
            Some(end) if end <= bytes.len() => Ok(bytes.slice(from..end)),
            _ => Err(ParquetError::EOF(format!("{length} bytes at {start} are not there"))),
        }
    }
}

impl Pieces {
    fn piece(&self, start: u64) -> parquet::errors::Result<(u64, &Bytes)> {
        let at = self.pieces.partition_point(|(offset, _)| *offset <= start);
        at.checked_sub(1)
            .and_then(|at| self.pieces.get(at))
            .filter(|(offset, bytes)| start - offset <= bytes.len() as u64)
            .map(|(offset, bytes)| (*offset, bytes))
            .ok_or_else(|| ParquetError::EOF(format!("byte {start} is not there")))
    }
}
