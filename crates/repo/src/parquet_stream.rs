//! Reading a Parquet file a piece at a time, whatever its size.

use arrow_array::RecordBatch;
use bytes::Bytes;
use chunkyard_store::Result;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use super::parquet_file::{Footer, Label, Tail, guarded};

/// Rows of a piece.
const BATCH_ROWS: usize = 8192;

/// The rows of a file that is in memory and whose checksums are compared, piece by piece.
pub(super) struct Batches {
    file: String,
    is_bare: bool,
    /// `None` after an error.
    reader: Option<ParquetRecordBatchReader>,
}

/// Opens a file that is in memory, and checks all of it. Of the columns only those named in `only`
/// are decoded, if it is given.
pub(super) fn stream(
    file: &str,
    label: &Label<'_>,
    bytes: &Bytes,
    tail: Option<Tail>,
    only: Option<&[&str]>,
) -> Result<Batches> {
    let footer = Footer::parse(file, label, bytes, bytes.len() as u64, tail)?;
    let pieces = footer.assemble_whole(bytes.clone())?;
    for (row_group, rows) in footer.row_groups().into_iter().enumerate() {
        footer.check_headers(&pieces, row_group, &(0..rows))?;
    }
    let reader = guarded(file, || {
        let metadata = footer.arrow().clone();
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(pieces, metadata);
        let mask = match only {
            Some(names) => ProjectionMask::columns(builder.parquet_schema(), names.iter().copied()),
            None => ProjectionMask::all(),
        };
        builder.with_projection(mask).with_batch_size(BATCH_ROWS).build()
    })?;
    Ok(Batches { file: file.to_owned(), is_bare: footer.is_bare(), reader: Some(reader) })
}

impl Batches {
    /// Whether the file is one of the bare draft.
    pub(super) fn is_bare(&self) -> bool {
        self.is_bare
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let reader = self.reader.as_mut()?;
        let batch = guarded(&self.file, || Ok(reader.next().transpose()?)).transpose();
        if !matches!(batch, Some(Ok(_))) {
            self.reader = None;
        }
        batch
    }
}
