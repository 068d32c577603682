//! Level 1: every metadata file of every snapshot, and that they agree with each other.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use chunkyard_store::Result;

use super::chunks::ChunkFiles;
use super::manifest::Manifest;
use super::table::TableFile;
use super::users::{Affected, Users, only};
use super::{Level, Report};
use crate::coord;
use crate::manifest::Scan;
use crate::node::{Attributes, AttributesRef, Inventory, Node};
use crate::state::{Snapshot, State};
use crate::{Repository, Tree, Uid, attributes, check_file, structure};

/// What structure files refer to.
#[derive(Default)]
pub(super) struct Named {
    pub(super) manifests: BTreeMap<Arc<str>, Manifest>,
    tables: BTreeMap<Arc<str>, TableFile>,
    documents: BTreeMap<Arc<str>, Vec<AttributesRef>>,
    users: Users,
    /// Each array as it was last seen. Most snapshots leave most arrays as they were, and then
    /// there is nothing new to check.
    seen: HashMap<Uid, Arc<Node>>,
}

impl Repository {
    /// Checks all metadata. Returns the manifests, and the chunk files they name if the level needs
    /// them.
    pub(super) async fn verify_metadata(
        &self,
        state: &State,
        level: Level,
        report: &mut Report,
    ) -> Result<(BTreeMap<Arc<str>, Manifest>, ChunkFiles)> {
        let mut named = Named::default();
        for (path, found) in self.inner.state_file.check_history(state).await? {
            report.checked.files += 1;
            named.users.add(path.clone(), 0);
            report.take(&path, Affected::NONE, found)?;
        }
        for (at, snapshot) in state.snapshots.iter().enumerate() {
            self.verify_structure(state, at, snapshot, &mut named, report).await?;
        }
        let Named { manifests, tables, documents, users, .. } = named;
        for (file, table) in &tables {
            self.verify_table_file(file, table, state, &users, report).await?;
        }
        self.verify_documents(documents, state, &users, report).await?;
        let sizes = if level >= Level::Existence { self.sizes().await? } else { HashMap::new() };
        let mut files = ChunkFiles::new(users, sizes);
        for (file, manifest) in &manifests {
            self.verify_manifest(file, manifest, state, &mut files, report).await?;
        }
        Ok((manifests, files))
    }

    /// Checks the structure file of the snapshot at a position, and gathers what it names.
    async fn verify_structure(
        &self,
        state: &State,
        at: usize,
        snapshot: &Snapshot,
        named: &mut Named,
        report: &mut Report,
    ) -> Result<()> {
        report.checked.snapshots += 1;
        report.checked.files += 1;
        let spans = only(at);
        let affected = Affected::new(state, &spans);
        let path = format!("s/{}", snapshot.structure_file);
        named.users.add(path.clone(), at);
        if let Some(file) = &snapshot.change_file {
            named.users.add(format!("i/{file}"), at);
            let manifest = named.manifests.entry(file.as_str().into()).or_default();
            manifest.change = Some((snapshot.change_size, snapshot.change_crc32c));
        }
        let tree = self.read_structure(&path, snapshot).await;
        let Some(tree) = report.take(&path, affected, tree)? else { return Ok(()) };
        named.add_users(&tree, at);
        for node in tree.nodes() {
            if named.seen.get(&node.uid).is_some_and(|seen| seen == node) {
                continue;
            }
            named.add(node);
            let found = report.findings.len();
            self.verify_node(node, &path, affected, report).await?;
            if report.findings.len() > found {
                // Not remembered, so that every affected snapshot reports it.
                named.seen.remove(&node.uid);
            }
        }
        Ok(())
    }

    /// Checks what can be checked of a node without its manifests.
    async fn verify_node(
        &self,
        node: &Node,
        path: &str,
        affected: Affected<'_>,
        report: &mut Report,
    ) -> Result<()> {
        if !node.is_array() {
            return Ok(());
        }
        let spec = node.array().map(|_| ());
        if report.take(path, affected, spec)?.is_some() && exceeds_grid(node) {
            let outside = self.outside_grid(node).await;
            if let Some(Some(index)) = report.take(path, affected, outside)? {
                let what = "a chunk lies outside the array's grid".into();
                let finding = report.error(path, what, affected);
                finding.array = Some(node.path.clone());
                finding.chunk = Some(index);
            }
        }
        Ok(())
    }

    async fn read_structure(&self, path: &str, snapshot: &Snapshot) -> Result<Tree> {
        let bytes = self.inner.store.backend().get(path).await?.bytes;
        check_file(path, &bytes, snapshot.structure_size, snapshot.structure_crc32c)?;
        Ok(structure::parse(path, &self.inner.dataset_id, &bytes)?.0)
    }

    async fn verify_documents(
        &self,
        documents: BTreeMap<Arc<str>, Vec<AttributesRef>>,
        state: &State,
        users: &Users,
        report: &mut Report,
    ) -> Result<()> {
        for (file, references) in documents {
            let path = format!("a/{file}");
            let spans = users.of(&path);
            let affected = Affected::new(state, &spans);
            report.checked.files += 1;
            let read = self.inner.store.backend().get(&path).await;
            let Some(object) = report.take(&path, affected, read)? else { continue };
            let first = references.first();
            let parsed =
                first.map(|first| attributes::parse(first, &self.inner.dataset_id, &object.bytes));
            let Some(Ok(rows)) = parsed else {
                if let Some(Err(error)) = parsed {
                    report.error(&path, error.to_string(), affected);
                }
                continue;
            };
            if let Some(missing) = references.iter().find(|r| r.row >= rows.len() as u64) {
                let what = format!("row {} is missing, there are {}", missing.row, rows.len());
                report.error(&path, what, affected);
            }
        }
        Ok(())
    }

    /// A live chunk outside the grid, if there is one.
    async fn outside_grid(&self, node: &Node) -> Result<Option<Vec<u64>>> {
        let grid = node.array()?.grid()?;
        let mut scan = Scan::new(&self.inner.manifests, node, None);
        while let Some((coord, payload)) = scan.next().await? {
            if payload.is_removed() {
                continue;
            }
            match coord::decode(&coord, grid.rank()) {
                Ok(index) if !grid.contains(&index) => return Ok(Some(index)),
                _ => {}
            }
        }
        Ok(None)
    }
}

impl Named {
    /// Notes that a snapshot needs the files its nodes name.
    fn add_users(&mut self, tree: &Tree, snapshot: usize) {
        // Many arrays share a file.
        let mut files = HashSet::new();
        for node in tree.nodes() {
            files.extend(node.inventories.iter().map(|entry| ("i", &entry.file)));
            if let Attributes::File(reference) = &node.attributes {
                files.insert(("a", &reference.file));
            }
        }
        for (directory, file) in files {
            self.users.add(format!("{directory}/{file}"), snapshot);
        }
    }

    fn add(&mut self, node: &Arc<Node>) {
        if let Attributes::File(reference) = &node.attributes {
            self.documents.entry(reference.file.clone()).or_default().push(reference.clone());
        }
        if node.is_table() {
            for inventory in &node.inventories {
                let table = || TableFile { node: node.clone(), entries: Vec::new() };
                let table = self.tables.entry(inventory.file.clone()).or_insert_with(table);
                let flags = inventory.flags & Inventory::REMOVALS;
                let entry = Inventory { flags, ..inventory.clone() };
                if !table.entries.contains(&entry) {
                    table.entries.push(entry);
                }
            }
            self.seen.insert(node.uid, node.clone());
            return;
        }
        for inventory in &node.inventories {
            self.manifests.entry(inventory.file.clone()).or_default().add(inventory, node);
        }
        self.seen.insert(node.uid, node.clone());
    }
}

/// Whether some entry reaches beyond the grid. That alone is no fault: an array that shrank keeps
/// old rows under its removals.
fn exceeds_grid(node: &Node) -> bool {
    let Ok(Ok(grid)) = node.array().map(|spec| spec.grid()) else { return false };
    let shape = grid.grid_shape();
    node.inventories
        .iter()
        .any(|entry| entry.extent.iter().zip(&shape).any(|((_, high), size)| high > size))
}
