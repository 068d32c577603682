//! Parquet files that are no part of a repository, one row group at a time, behind the checks that its own files have.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use chunkyard_store::Result;
use parquet::arrow::ProjectionMask;
use parquet::file::metadata::RowGroupMetaData;

use super::parquet_file::{Footer, corrupt};

/// Bytes at the end of a file that hold most footers.
pub const END_BYTES: u64 = 64 << 10;
/// Bytes of a footer at most.
const FOOTER_BYTES_MAX: u64 = 64 << 20;

/// A Parquet file of any program, its footer read and checked.
#[derive(Debug, Clone)]
pub struct ForeignParquet(Footer);

/// What the end of a file gives.
#[derive(Debug)]
pub enum ForeignEnd {
    /// The footer is longer: so many bytes from the end are needed.
    Needs(u64),
    /// The file can be read.
    Open(ForeignParquet),
}

impl ForeignParquet {
    /// Reads the footer of a file of `size` bytes from its last ones.
    pub fn open(file: &str, end: &Bytes, size: u64) -> Result<ForeignEnd> {
        let length = end.split_last_chunk::<8>().map(|(_, tail)| {
            let [a, b, c, d, ..] = *tail;
            u64::from(u32::from_le_bytes([a, b, c, d])) + 8
        });
        let least = length.unwrap_or(8);
        if least > size.min(FOOTER_BYTES_MAX) {
            let expected = format!("a footer within {} bytes", size.min(FOOTER_BYTES_MAX));
            return Err(corrupt(file, "footer", &expected, &format!("{least} bytes")));
        }
        match least > end.len() as u64 {
            true => Ok(ForeignEnd::Needs(least)),
            false => Ok(ForeignEnd::Open(Self(Footer::foreign(file, end, size)?))),
        }
    }

    /// What the file says about itself under a key.
    pub fn key_value(&self, key: &str) -> Option<&str> {
        self.0.key_value(key)
    }

    /// Its row groups.
    pub fn row_groups(&self) -> &[RowGroupMetaData] {
        self.0.parquet().row_groups()
    }

    /// The bytes that a row group takes in the file; more of them where that saves a request.
    pub fn ranges(&self, row_group: usize) -> Vec<Range<u64>> {
        match self.row_groups().get(row_group) {
            Some(_) => self.0.ranges(row_group, &(0..usize::MAX), &ProjectionMask::all()),
            None => Vec::new(),
        }
    }

    /// The rows of a row group, from the bytes of its [ranges](Self::ranges) with their places.
    pub fn decode(&self, row_group: usize, pieces: Vec<(u64, Bytes)>) -> Result<Vec<RecordBatch>> {
        let Some(&rows) = self.0.row_groups().get(row_group) else { return Ok(Vec::new()) };
        let pieces = self.0.assemble(pieces)?;
        self.0.decode(&pieces, row_group, 0..rows, &ProjectionMask::all())
    }

    /// The file, for messages.
    pub fn file(&self) -> &Arc<str> {
        self.0.file()
    }
}
