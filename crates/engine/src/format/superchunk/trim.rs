//! Rows are cut off at the end: first they do not count any more, then their files go.

use super::handle::{Blz, Inner, State};
use crate::error::{Error, Result};
use crate::store::Kind;

impl Blz {
    /// Cuts `rows` off the end. Rows that are not committed are committed first.
    pub async fn trim(&self, rows: u64) -> Result<()> {
        let inner = &self.inner;
        let mut writing = inner.writing.lock().await;
        inner.commit(&mut writing).await?;
        inner.begin(&mut writing).await?;
        let state = inner.state().clone();
        let len = state.len.checked_sub(rows).ok_or_else(|| {
            Error::invalid(format!(
                "cutting {rows} rows off {}, which has {}",
                inner.store.url(),
                state.len
            ))
        });
        let trimmed = match len {
            Ok(len) => inner.shorten(&state, len).await,
            Err(error) => Err(error),
        };
        // The next writer looks anew at where it ends.
        writing.reset();
        if trimmed.is_ok() || matches!(trimmed, Err(Error::OutcomeUnknown { .. })) {
            inner.reread().await?;
        }
        trimmed
    }
}

impl Inner {
    async fn shorten(&self, state: &State, len: u64) -> Result<()> {
        let cut = self.beyond(state, len).await?;
        let each = state.cbytes.iter().zip(&cut).map(|(bytes, cut)| bytes - cut.bytes);
        let cbytes: Vec<i64> = each.collect();
        let sizes = state.sizes_for(len, &cbytes);
        if self.store.kind() == Kind::Local {
            let mut last = Vec::new();
            for (path, bytes) in self.render_sizes(state, &sizes, &cbytes) {
                last.push((self.aside(&path, vec![bytes]).await?, path));
            }
            let temps: Vec<String> = last.iter().map(|(temp, _)| temp.clone()).collect();
            self.store.sync(&temps).await?;
            self.rename_sizes(&last).await?;
        } else {
            let swapped = self.swap_sizes(&sizes, &state.version).await?;
            swapped.ok_or_else(|| super::settle::lost(self.store.url()))?;
        }
        // The last first, so that what is left by a crash is what the next writer expects to find.
        for file in cut.into_iter().flat_map(|cut| cut.files.into_iter().rev()) {
            self.store.delete(&[file]).await.ok();
        }
        Ok(())
    }

    /// What goes of each column once there are `len` rows.
    async fn beyond(&self, state: &State, len: u64) -> Result<Vec<Cut>> {
        let mut all = Vec::with_capacity(state.columns.len());
        for (at, column) in state.columns.iter().enumerate() {
            let per_chunk = column.chunklen.max(1);
            let (mut chunk, had) = (len.div_ceil(per_chunk), state.len.div_ceil(per_chunk));
            let mut cut = Cut::default();
            while chunk < had {
                let (index, slot) = self.find_slot(state, at, chunk).await?;
                let gone = index.chunks.iter().skip(usize::try_from(slot).unwrap_or(usize::MAX));
                cut.bytes += gone.map(|chunk| (chunk.end - chunk.start) as i64).sum::<i64>();
                if slot == 0 && index.rooted.url.is_none() {
                    cut.files.push(index.rooted.path.to_string());
                }
                chunk += (index.chunks.len() as u64 - slot).max(1);
            }
            all.push(cut);
        }
        Ok(all)
    }
}

/// What goes of a column.
#[derive(Debug, Default)]
struct Cut {
    /// Files that hold nothing else, in the order of their numbers.
    files: Vec<String>,
    /// Encoded bytes of chunks.
    bytes: i64,
}
