//! Which files a dataset consists of, and where they are.

use std::sync::Arc;

use chunkyard_store::Result;

use crate::superchunk::committed::View;
use crate::superchunk::handle::Blz;
use crate::superchunk::model::Style;

/// A file of a column.
#[derive(Debug, Clone)]
pub struct FileInfo {
    /// Path of the column.
    pub column: Arc<str>,
    /// Its number, as its name has it.
    pub number: u64,
    /// Its path in the dataset, or its URL if it is elsewhere.
    pub name: String,
    /// Whether it is elsewhere.
    pub elsewhere: bool,
    /// First row in it.
    pub first_row: u64,
    /// Rows in it that count.
    pub rows: u64,
    /// Chunks in it that count.
    pub chunks: u64,
    /// Its bytes.
    pub bytes: u64,
}

impl Blz {
    /// The files with committed rows, column after column.
    pub async fn files(&self) -> Result<Vec<FileInfo>> {
        let view = View::of(self.shared.current.committed());
        let mut all = Vec::new();
        for (at, column) in view.committed.columns.iter().enumerate() {
            let (mut chunk, end) = (0, view.len.div_ceil(column.chunklen.max(1)));
            while chunk < end {
                let (index, slot) = view.find_slot(at, chunk).await?;
                let chunks = (index.chunks.len() as u64 - slot).clamp(1, end - chunk);
                let first_row = chunk.saturating_mul(column.chunklen);
                let last_row = (chunk + chunks).saturating_mul(column.chunklen).min(view.len);
                let full = view.len / column.chunklen.max(1);
                let (file, _) = column.place_of(chunk);
                // The rows behind the last full chunk have a file of their own.
                let file = if chunk == full { column.tail_file(full) } else { file };
                // bcolz counts files from 0, all others from 1.
                let number = file + u64::from(self.style() != Style::Bcolz);
                all.push(FileInfo {
                    column: column.path.clone(),
                    number,
                    name: index.rooted.name(),
                    elsewhere: index.rooted.url.is_some(),
                    first_row,
                    rows: last_row - first_row,
                    chunks,
                    bytes: index.size,
                });
                chunk += chunks;
            }
        }
        Ok(all)
    }
}
