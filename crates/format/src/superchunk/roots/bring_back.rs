//! Brings files back from elsewhere before rows are added to them.
//!
//! ```text
//!  rows were cut off in a file elsewhere:  tail and file here ─▶ meta/sizes, the commit ─▶ meta/shards
//! ```

use std::collections::BTreeMap;

use bytes::Bytes;
use chunkyard_store::{Kind, Result, Version};

use crate::publish::publish;
use crate::superchunk::handle::{Inner, State};
use crate::superchunk::meta::Shards;
use crate::superchunk::model::Column;
use crate::superchunk::read::files::Files;
use crate::superchunk::write::begin::file_number;
use crate::superchunk::write::chunk_files::render;
use crate::superchunk::write::encode::encode;

impl Inner {
    /// After rows were cut off: brings back the files that rows will be added to, and those behind the end.
    pub(crate) async fn bring_back(&self) -> Result<()> {
        let state = self.state().clone();
        let len = state.committed();
        let open = |column: &Column| column.place_of(len / column.chunklen.max(1)).0;
        let first = state.columns.iter().map(open).min().unwrap_or(0);
        let mut shards = state.files.roots.shards().clone();
        shards.ranges.retain(|range| range.first <= first);
        shards.ranges.iter_mut().for_each(|range| range.last = range.last.min(first));
        if shards == *state.files.roots.shards() {
            return Ok(());
        }
        self.copy_back(&state, first).await?;
        self.commit_shards(&state, &shards).await?;
        self.copy_shards(&shards).await?;
        self.use_shards(&state, shards);
        Ok(())
    }

    /// Copies back the rows that count and are elsewhere, from file `first` on; durable when this returns.
    async fn copy_back(&self, state: &State, first: u64) -> Result<()> {
        let versions = self.object_versions(state).await?;
        let len = state.committed();
        for (at, (column, versions)) in state.columns.iter().zip(&versions).enumerate() {
            let full = len / column.chunklen.max(1);
            let (open, _) = column.place_of(full);
            let rows = column.rows_in(full, len);
            if rows > 0 && !state.files.roots.is_here(open) {
                let found = self.find(state, at, full).await?;
                let rows = self.decode_rows(column, &found, full, rows).await?;
                let chunk = encode(column, rows).await?;
                let (path, parts, _) = self.render_tail(column, full, &chunk)?;
                let version = versions.get(&column.tail_file(full));
                self.put_file(path, parts, version).await?;
            }
            for file in first..=open {
                let begins = file.saturating_mul(column.superchunk);
                let count = full.saturating_sub(begins).min(column.superchunk);
                if count == 0 || state.files.roots.is_here(file) {
                    continue;
                }
                let (index, _) = self.find_slot(state, at, begins).await?;
                let chunks = self.chunks_of(&index, count).await?;
                let path = column.file(self.style, file);
                let spec = column.file_spec(self.style, begins, column.superchunk)?;
                let (parts, _) = render(&spec, &path, self, &chunks, begins)?;
                self.put_file(path, parts, versions.get(&file)).await?;
            }
        }
        Ok(())
    }

    /// On an object store: the versions of each column's objects. None is from a writer with a later claim.
    async fn object_versions(&self, state: &State) -> Result<Vec<BTreeMap<u64, Version>>> {
        let mut all = vec![BTreeMap::new(); state.columns.len()];
        if self.store.kind() == Kind::Local {
            return Ok(all);
        }
        for (column, seen) in state.columns.iter().zip(&mut all) {
            for meta in self.store.list_dir(&column.folder).await?.objects {
                let name = meta.path.rsplit('/').next().unwrap_or_default();
                let number = file_number(self.style, name);
                seen.extend(number.map(|number| (number, Version::from(&meta))));
            }
        }
        self.refuse_lost_claim().await?;
        Ok(all)
    }

    /// Puts a file here, where no reader looks for it yet.
    async fn put_file(
        &self,
        path: String,
        parts: Vec<Bytes>,
        expected: Option<&Version>,
    ) -> Result<()> {
        if self.store.kind() == Kind::Local {
            return publish(&self.store, vec![(path, parts.concat().into())]).await;
        }
        self.put_object(&path, parts, expected).await.map(drop)
    }

    /// Updates this handle to the new list of files elsewhere.
    fn use_shards(&self, state: &State, shards: Shards) {
        let roots = state.files.roots.with_shards(shards);
        self.state().files = Files::new(roots);
    }
}
