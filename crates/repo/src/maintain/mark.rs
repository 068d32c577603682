//! Marking: which files the listed snapshots need.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chunkyard_store::{Error, Result};
use futures::{StreamExt, TryStreamExt, stream};

use crate::Repository;
use crate::manifest::{Native, Payload, Rows, Scan, chunk_files};
use crate::node::{Attributes, Inventory, Node};
use crate::state::{Snapshot, State};

/// The directories whose files are data of the repository.
pub(crate) const DATA_DIRECTORIES: [&str; 4] = ["s", "a", "i", "c"];

/// Manifests fetched at the same time. Each may be large, and is kept until it is decoded.
const MANIFESTS_AT_ONCE: usize = 8;

/// Chunk file to the references into it.
pub(super) type LiveChunks = HashMap<Arc<str>, Vec<(Arc<Node>, Vec<u8>, Native)>>;

/// Files that snapshots were found to need. Files that a snapshot names never change, so a mark
/// stays right in every later state, which only adds new ones.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// Paths relative to the root.
    pub(super) files: HashSet<String>,
    /// Structure and change file of each snapshot whose files are all marked.
    snapshots: HashSet<(String, Option<String>)>,
    /// Rows of manifests whose chunk files are marked.
    rows: HashMap<Arc<str>, HashSet<Rows>>,
}

impl Marks {
    /// Adds what was marked later.
    pub(super) fn absorb(&mut self, new: Self) {
        self.files.extend(new.files);
        self.snapshots.extend(new.snapshots);
        for (file, rows) in new.rows {
            self.rows.entry(file).or_default().extend(rows);
        }
    }

    /// Whether all files of a snapshot are marked.
    fn has(&self, snapshot: &Snapshot) -> bool {
        self.snapshots.contains(&key(snapshot))
    }

    fn has_rows(&self, file: &Arc<str>, rows: &Rows) -> bool {
        self.rows.get(file).is_some_and(|known| known.contains(rows))
    }
}

/// What determines the files that a snapshot needs.
fn key(snapshot: &Snapshot) -> (String, Option<String>) {
    (snapshot.structure_file.clone(), snapshot.change_file.clone())
}

impl Repository {
    /// Marks, in `new`, the files that the snapshots of a state need and `known` lacks. Returns how
    /// many snapshots were new. After an error `new` holds the marks so far, which are right too.
    ///
    /// In a manifest only the rows of a snapshot's arrays count: a manifest outlives a deleted
    /// array, because other arrays share it. Each is read once, unless further rows are needed
    /// later, and only the names of chunk files are decoded. The flags of its entries cannot
    /// replace this: they say that there are inline and virtual chunks, but not that there are no
    /// others.
    pub(super) async fn mark(
        &self,
        state: &State,
        known: &Marks,
        new: &mut Marks,
    ) -> Result<usize> {
        let snapshots = state.snapshots.iter().filter(|snapshot| !known.has(snapshot));
        let snapshots: Vec<Arc<Snapshot>> = snapshots.cloned().collect();
        let mut manifests: HashMap<Arc<str>, (Inventory, HashSet<Rows>)> = HashMap::new();
        let mut trees = stream::iter(snapshots.clone())
            .map(|snapshot| async move { self.tree(&snapshot).await })
            .buffer_unordered(self.limits().requests.max(1));
        while let Some(tree) = trees.try_next().await? {
            for node in tree.nodes() {
                if let Attributes::File(reference) = &node.attributes {
                    new.files.insert(format!("a/{}", reference.file));
                }
                if node.is_table() {
                    // Rows of tables name no further files.
                    new.files
                        .extend(node.inventories.iter().map(|entry| format!("i/{}", entry.file)));
                    continue;
                }
                for entry in &node.inventories {
                    let rows = Rows::of(entry, node);
                    if !known.has_rows(&entry.file, &rows) {
                        let manifest = manifests.entry(entry.file.clone());
                        let (_, wanted) =
                            manifest.or_insert_with(|| (entry.clone(), HashSet::new()));
                        wanted.insert(rows);
                    }
                }
            }
        }
        drop(trees);
        for snapshot in &snapshots {
            new.files.insert(format!("s/{}", snapshot.structure_file));
            new.files.extend(snapshot.change_file.iter().map(|file| format!("i/{file}")));
        }
        // The history files of this very state: each state may have others.
        new.files.extend(self.inner.state_file.history_files(state).await?);
        let mut fetched = stream::iter(manifests)
            .map(|(file, (entry, rows))| async move {
                let bytes = self.inner.manifests.get(&file, entry.file_size).await?;
                Ok::<_, Error>((file, entry, rows, bytes))
            })
            .buffer_unordered(MANIFESTS_AT_ONCE);
        while let Some((file, entry, rows, bytes)) = fetched.try_next().await? {
            new.files.insert(format!("i/{file}"));
            let wanted = rows.iter().copied();
            chunk_files(&file, &self.inner.dataset_id, &bytes, entry.tail, wanted, |name| {
                new.files.insert(format!("c/{name}"));
            })?;
            new.rows.insert(file, rows);
        }
        new.snapshots.extend(snapshots.iter().map(|snapshot| key(snapshot)));
        Ok(snapshots.len())
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
