//! Cuts rows off at the end: first they stop counting, then their files go.

use chunkyard_store::{Error, Result, Version};

use super::Writing;
use crate::superchunk::committed::View;
use crate::superchunk::handle::Blz;

impl Blz {
    /// Cuts `rows` off the end. Rows that are not committed are committed first.
    pub async fn trim(&self, rows: u64) -> Result<()> {
        self.shared.writing.lock().await.cut_off(rows).await
    }
}

impl Writing {
    /// Cuts rows off, after it commits the waiting ones.
    pub(super) async fn cut_off(&mut self, rows: u64) -> Result<()> {
        self.commit().await?;
        self.begin().await?;
        let view = View::of(self.committed());
        let trimmed = match view.len.checked_sub(rows) {
            Some(len) => match self.shorten(&view, len).await {
                Err(error) => Err(self.explain_loss(error).await),
                Ok(()) => Ok(()),
            },
            None => Err(Error::invalid(format!(
                "cutting {rows} rows off {}, which has {}",
                self.access.store.url(),
                view.len
            ))),
        };
        // The next append finds the end again.
        self.reset();
        if trimmed.is_ok() || matches!(trimmed, Err(Error::OutcomeUnknown { .. })) {
            self.reread().await?;
        }
        trimmed
    }

    async fn shorten(&self, view: &View, len: u64) -> Result<()> {
        let (access, committed) = (&self.access, &view.committed);
        let cut = view.cuts(len).await?;
        let each = committed.cbytes.iter().zip(&cut).map(|(bytes, cut)| bytes - cut.bytes);
        let cbytes: Vec<i64> = each.collect();
        let sizes = committed.sizes_for(len, &cbytes);
        access.commit_sizes(committed, &sizes, &cbytes).await?;
        // The last first, so that a crash leaves files without a gap, as the next writer expects.
        for file in cut.into_iter().flat_map(|cut| cut.files.into_iter().rev()) {
            // If this fails, the next writer removes the file.
            access.remove_file(file.0, file.1).await.ok();
        }
        Ok(())
    }
}

impl View {
    /// What each column loses when it is cut to `len` rows.
    async fn cuts(&self, len: u64) -> Result<Vec<Cut>> {
        let access = &self.committed.access;
        let mut all = Vec::with_capacity(self.committed.columns.len());
        for (at, column) in self.committed.columns.iter().enumerate() {
            let per_chunk = column.chunklen.max(1);
            let (mut chunk, had) = (len.div_ceil(per_chunk), self.len.div_ceil(per_chunk));
            let full = self.len / per_chunk;
            let mut cut = Cut::default();
            while chunk < had {
                let (index, slot) = self.find_slot(at, chunk).await?;
                // Count only full chunks: a dead writer may have left more in this file.
                let count = full.saturating_sub(chunk).min(index.chunks.len() as u64 - slot).max(1);
                let gone = index.chunks.iter().skip(usize::try_from(slot).unwrap_or(usize::MAX));
                let gone = gone.take(usize::try_from(count).unwrap_or(usize::MAX));
                cut.bytes += gone.map(|chunk| (chunk.end - chunk.start) as i64).sum::<i64>();
                if slot == 0 && index.rooted.url.is_none() {
                    let path = index.rooted.path.to_string();
                    // The version as of now: later the object may hold rows of another writer.
                    let version = access.version_now(&path).await?;
                    cut.files.push((path, version));
                }
                chunk += count;
            }
            all.push(cut);
        }
        Ok(all)
    }
}

/// What a column loses.
#[derive(Debug, Default)]
struct Cut {
    /// Files that hold no other rows, in the order of their numbers.
    files: Vec<(String, Option<Version>)>,
    /// Encoded bytes of the chunks.
    bytes: i64,
}
