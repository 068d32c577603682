//! Cuts rows off at the end: first they stop counting, then their files go.

use chunkyard_store::{Error, Kind, Result, Version};

use super::append::Writing;
use crate::superchunk::handle::{Blz, Inner, State};

impl Blz {
    /// Cuts `rows` off the end. Rows that are not committed are committed first.
    pub async fn trim(&self, rows: u64) -> Result<()> {
        let mut writing = self.inner.writing.lock().await;
        self.inner.cut_off(&mut writing, rows).await
    }
}

impl Inner {
    /// Cuts rows off, after it commits the waiting ones.
    pub(crate) async fn cut_off(&self, writing: &mut Writing, rows: u64) -> Result<()> {
        self.commit(writing).await?;
        self.begin(writing).await?;
        let state = self.state().clone();
        let trimmed = match state.len.checked_sub(rows) {
            Some(len) => match self.shorten(&state, len).await {
                Err(error) => Err(self.explain_loss(writing, error).await),
                Ok(()) => Ok(()),
            },
            None => Err(Error::invalid(format!(
                "cutting {rows} rows off {}, which has {}",
                self.store.url(),
                state.len
            ))),
        };
        // The next append finds the end again.
        writing.reset();
        if trimmed.is_ok() || matches!(trimmed, Err(Error::OutcomeUnknown { .. })) {
            self.reread().await?;
        }
        trimmed
    }

    async fn shorten(&self, state: &State, len: u64) -> Result<()> {
        let cut = self.cuts(state, len).await?;
        let each = state.cbytes.iter().zip(&cut).map(|(bytes, cut)| bytes - cut.bytes);
        let cbytes: Vec<i64> = each.collect();
        let sizes = state.sizes_for(len, &cbytes);
        if self.store.kind() == Kind::Local {
            self.put_sizes(state, &sizes, &cbytes).await?;
        } else {
            let swapped = self.swap_sizes(&sizes, &state.version).await?;
            swapped.ok_or_else(|| super::claim::lost(self.store.url()))?;
        }
        // The last first, so that a crash leaves files without a gap, as the next writer expects.
        for file in cut.into_iter().flat_map(|cut| cut.files.into_iter().rev()) {
            // If this fails, the next writer removes the file.
            self.remove_file(file.0, file.1).await.ok();
        }
        Ok(())
    }

    /// What each column loses when it is cut to `len` rows.
    async fn cuts(&self, state: &State, len: u64) -> Result<Vec<Cut>> {
        let mut all = Vec::with_capacity(state.columns.len());
        for (at, column) in state.columns.iter().enumerate() {
            let per_chunk = column.chunklen.max(1);
            let (mut chunk, had) = (len.div_ceil(per_chunk), state.len.div_ceil(per_chunk));
            let full = state.len / per_chunk;
            let mut cut = Cut::default();
            while chunk < had {
                let (index, slot) = self.find_slot(state, at, chunk).await?;
                // Count only full chunks: a dead writer may have left more in this file.
                let count = full.saturating_sub(chunk).min(index.chunks.len() as u64 - slot).max(1);
                let gone = index.chunks.iter().skip(usize::try_from(slot).unwrap_or(usize::MAX));
                let gone = gone.take(usize::try_from(count).unwrap_or(usize::MAX));
                cut.bytes += gone.map(|chunk| (chunk.end - chunk.start) as i64).sum::<i64>();
                if slot == 0 && index.rooted.url.is_none() {
                    let path = index.rooted.path.to_string();
                    // The version as of now: later the object may hold rows of another writer.
                    let version = match self.store.kind() {
                        Kind::Local => None,
                        _ => Some(Version::from(&self.store.head(&path).await?)),
                    };
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
