//! Marking: which files the listed snapshots need.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};

use crate::error::{Error, Result};
use crate::repo::Repository;
use crate::repo::manifest::{Native, Payload, Scan, chunk_files};
use crate::repo::node::{Attributes, Inventory, Node};
use crate::repo::state::{Snapshot, State};

/// The directories whose files are data of the repository.
pub(in crate::repo) const DATA_DIRECTORIES: [&str; 4] = ["s", "a", "i", "c"];

/// Manifests fetched at the same time. Each may be large, and is kept until it is decoded.
const MANIFESTS_AT_ONCE: usize = 8;

/// Chunk file to the references into it.
pub(super) type LiveChunks = HashMap<Arc<str>, Vec<(Arc<Node>, Vec<u8>, Native)>>;

impl Repository {
    /// The files that the snapshots of a state need, relative to the root. Each manifest is read
    /// once, and of its rows only the names of chunk files are decoded. The flags of its entries
    /// cannot spare that: they tell of inline and virtual chunks, but not that there are no others.
    pub(in crate::repo) async fn mark(&self, state: &State) -> Result<HashSet<String>> {
        let mut files = HashSet::new();
        let mut manifests: HashMap<Arc<str>, Inventory> = HashMap::new();
        let mut trees = stream::iter(state.snapshots.clone())
            .map(|snapshot| async move { self.tree(&snapshot).await })
            .buffer_unordered(self.limits().requests.max(1));
        while let Some(tree) = trees.try_next().await? {
            for node in tree.nodes() {
                if let Attributes::File(reference) = &node.attributes {
                    files.insert(format!("a/{}", reference.file));
                }
                for entry in &node.inventories {
                    manifests.entry(entry.file.clone()).or_insert_with(|| entry.clone());
                }
            }
        }
        for snapshot in &state.snapshots {
            files.insert(format!("s/{}", snapshot.structure_file));
            files.extend(snapshot.change_file.iter().map(|file| format!("i/{file}")));
        }
        files.extend(self.inner.state_file.history_files(state).await?);
        files.extend(manifests.keys().map(|file| format!("i/{file}")));
        let mut fetched = stream::iter(manifests)
            .map(|(file, entry)| async move {
                let bytes = self.inner.manifests.get(&file, entry.file_size).await?;
                Ok::<_, Error>((file, entry, bytes))
            })
            .buffer_unordered(MANIFESTS_AT_ONCE);
        while let Some((file, entry, bytes)) = fetched.try_next().await? {
            chunk_files(&file, &self.inner.dataset_id, &bytes, entry.tail, |name| {
                files.insert(format!("c/{name}"));
            })?;
        }
        Ok(files)
    }

    /// The references of one snapshot into chunk files.
    pub(super) async fn live_chunks(&self, snapshot: &Snapshot) -> Result<LiveChunks> {
        let mut live = LiveChunks::new();
        for node in self.tree(snapshot).await?.nodes().filter(|node| node.is_array()) {
            let mut scan = Scan::new(&self.inner.manifests, node, None);
            while let Some((coord, payload)) = scan.next().await? {
                if let Payload::Native(native) = payload {
                    let chunks = live.entry(native.file.clone()).or_default();
                    chunks.push((node.clone(), coord, native));
                }
            }
        }
        Ok(live)
    }
}
