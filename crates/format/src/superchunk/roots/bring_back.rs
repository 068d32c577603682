//! Brings files back from elsewhere before rows are added to them.
//!
//! ```text
//!  rows were cut off in a file elsewhere:  tail and file here ─▶ meta/sizes, the commit ─▶ meta/shards
//! ```

use std::collections::BTreeMap;

use bytes::Bytes;
use chunkyard_store::{Result, Version};

use crate::publish::publish;
use crate::superchunk::access::Access;
use crate::superchunk::committed::{Committed, View};
use crate::superchunk::model::Column;
use crate::superchunk::protocol::Protocol;
use crate::superchunk::read::files::Files;
use crate::superchunk::write::Writing;
use crate::superchunk::write::begin::file_number;
use crate::superchunk::write::chunk_files::render;
use crate::superchunk::write::encode::encode;

impl Writing {
    /// After rows were cut off: brings back the files that rows will be added to, and those behind the end.
    pub(crate) async fn bring_back(&self) -> Result<()> {
        let committed = self.committed();
        let len = committed.len();
        let open = |column: &Column| column.place_of(len / column.chunklen.max(1)).0;
        let first = committed.columns.iter().map(open).min().unwrap_or(0);
        let mut shards = committed.files.roots.shards().clone();
        shards.ranges.retain(|range| range.first <= first);
        shards.ranges.iter_mut().for_each(|range| range.last = range.last.min(first));
        if shards == *committed.files.roots.shards() {
            return Ok(());
        }
        self.copy_back(&View::of(committed.clone()), first).await?;
        self.commit_shards(&committed, &shards).await?;
        self.copy_shards(&shards).await?;
        let files = Files::new(committed.files.roots.with_shards(shards));
        self.current.commit(Committed { files, ..(*self.committed()).clone() });
        Ok(())
    }

    /// Copies back the rows that count and are elsewhere, from file `first` on; durable when this returns.
    async fn copy_back(&self, view: &View, first: u64) -> Result<()> {
        let (access, committed, len) = (&self.access, &view.committed, view.len);
        let versions = self.object_versions(committed).await?;
        for (at, (column, versions)) in committed.columns.iter().zip(&versions).enumerate() {
            let full = len / column.chunklen.max(1);
            let (open, _) = column.place_of(full);
            let rows = column.rows_in(full, len);
            if rows > 0 && !committed.files.roots.is_here(open) {
                let found = view.find(at, full).await?;
                let rows = access.decode_rows(column, &found, full, rows).await?;
                let chunk = encode(column, rows).await?;
                let (path, parts, _) = committed.render_tail(column, full, &chunk)?;
                let version = versions.get(&column.tail_file(full));
                access.put_file(path, parts, version).await?;
            }
            for file in first..=open {
                let begins = file.saturating_mul(column.superchunk);
                let count = full.saturating_sub(begins).min(column.superchunk);
                if count == 0 || committed.files.roots.is_here(file) {
                    continue;
                }
                let (index, _) = view.find_slot(at, begins).await?;
                let chunks = access.chunks_of(&index, count).await?;
                let path = column.file(access.style, file);
                let spec = column.file_spec(access.style, begins, column.superchunk)?;
                let (parts, _) = render(&spec, &path, committed, &chunks, begins)?;
                access.put_file(path, parts, versions.get(&file)).await?;
            }
        }
        Ok(())
    }

    /// On an object store: the versions of each column's objects. None is from a writer with a later claim.
    async fn object_versions(&self, committed: &Committed) -> Result<Vec<BTreeMap<u64, Version>>> {
        let store = &self.access.store;
        let mut all = vec![BTreeMap::new(); committed.columns.len()];
        if self.access.protocol == Protocol::Locked {
            return Ok(all);
        }
        for (column, seen) in committed.columns.iter().zip(&mut all) {
            for meta in store.list_dir(&column.folder).await?.objects {
                let name = meta.path.rsplit('/').next().unwrap_or_default();
                let number = file_number(self.access.style, name);
                seen.extend(number.map(|number| (number, Version::from(&meta))));
            }
        }
        self.refuse_lost_claim().await?;
        Ok(all)
    }
}

impl Access {
    /// Puts a file here, where no reader looks for it yet.
    async fn put_file(
        &self,
        path: String,
        parts: Vec<Bytes>,
        expected: Option<&Version>,
    ) -> Result<()> {
        if self.protocol == Protocol::Locked {
            return publish(&self.store, vec![(path, parts.concat().into())]).await;
        }
        self.put_object(&path, parts, expected).await.map(drop)
    }
}
