//! Bytes that wait to be written elsewhere: in memory while they are few, then in a temporary file.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_store::{Error, Result};

/// Bytes that wait in memory at most.
const MEMORY_BYTES_MAX: u64 = 16 << 20;

/// Bytes in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Spool {
    /// What waits in memory: what came after the bytes in the file.
    held: Vec<(u64, Bytes)>,
    held_bytes: u64,
    /// A file without a name, which goes with the process however that ends.
    file: Option<Arc<File>>,
    filed_bytes: u64,
}

impl Spool {
    /// Appends bytes and says where they are.
    pub(super) async fn append(&mut self, bytes: Bytes) -> Result<Range<u64>> {
        let start = self.filed_bytes + self.held_bytes;
        let end = start + bytes.len() as u64;
        self.held_bytes += bytes.len() as u64;
        self.held.push((start, bytes));
        if self.held_bytes > MEMORY_BYTES_MAX {
            self.spill().await?;
        }
        Ok(start..end)
    }

    /// Moves what is in memory to the file.
    async fn spill(&mut self) -> Result<()> {
        let held = std::mem::take(&mut self.held);
        self.filed_bytes += std::mem::take(&mut self.held_bytes);
        let file = self.file.clone();
        let written = blocking(move || {
            let file = match file {
                Some(file) => file,
                None => Arc::new(tempfile::tempfile()?),
            };
            // Each write goes to the end: nothing else moves the position.
            let mut writer = io::BufWriter::with_capacity(1 << 20, &*file);
            held.iter().try_for_each(|(_, bytes)| writer.write_all(bytes))?;
            writer.flush()?;
            drop(writer);
            Ok(file)
        });
        self.file = Some(written.await?);
        Ok(())
    }

    /// Some of the bytes.
    pub(super) async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        if range.start < self.filed_bytes {
            // What was appended in one piece was moved in one piece.
            let Some(file) = self.file.clone() else { return Ok(Bytes::new()) };
            return blocking(move || {
                let len = usize::try_from(range.end - range.start).map_err(io::Error::other)?;
                let mut bytes = vec![0; len];
                file.read_exact_at(&mut bytes, range.start)?;
                Ok(bytes.into())
            })
            .await;
        }
        let at = self.held.partition_point(|(start, _)| *start < range.start);
        // Empty bytes have the place of those that follow.
        let found = self.held.iter().skip(at).find(|(start, bytes)| {
            *start == range.start && bytes.len() as u64 == range.end - range.start
        });
        Ok(found.map(|(_, bytes)| bytes.clone()).unwrap_or_default())
    }

    /// All bytes in pieces of at most `piece` bytes, or as they came where they are in memory.
    pub(super) fn pieces(&self, piece: u64) -> Vec<Range<u64>> {
        let mut pieces = Vec::new();
        let mut start = 0;
        while start < self.filed_bytes {
            let end = start.saturating_add(piece).min(self.filed_bytes);
            pieces.push(start..end);
            start = end;
        }
        pieces.extend(self.held.iter().map(|(start, bytes)| *start..*start + bytes.len() as u64));
        pieces
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T> {
    let temporary = || std::env::temp_dir().display().to_string();
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| Error::store("spool to", temporary(), error)),
        Err(error) => Err(Error::store("spool to", temporary(), error)),
    }
}
