//! Level 1: every metadata file of every snapshot, and that they agree with each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::{Report, Users};
use crate::error::{Error, Result};
use crate::repo::Repository;
use crate::repo::coord;
use crate::repo::manifest::{Block, Payload, Scan, decode_file};
use crate::repo::node::{Attributes, AttributesRef, Inventory, Node};
use crate::repo::state::{Snapshot, State};
use crate::repo::{attributes, check_file, structure};

/// A reference to bytes in a chunk file or elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ByteRange {
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) crc32c: Option<u32>,
}

/// What all snapshots refer to.
#[derive(Debug, Default)]
pub(super) struct References {
    /// Ranges by chunk file, each with an array that needs it.
    pub(super) native: BTreeMap<Arc<str>, BTreeMap<ByteRange, Arc<str>>>,
    /// Virtual references, each once.
    pub(super) remote: BTreeMap<Arc<str>, crate::repo::Virtual>,
    /// Who needs which file.
    pub(super) users: Users,
}

/// An inventory entry with the array it belongs to.
struct Entry {
    inventory: Inventory,
    node: Arc<Node>,
}

impl Repository {
    pub(super) async fn verify_metadata(
        &self,
        state: &State,
        report: &mut Report,
    ) -> Result<References> {
        let mut references = References::default();
        let mut documents: BTreeMap<Arc<str>, Vec<AttributesRef>> = BTreeMap::new();
        let mut manifests: BTreeMap<Arc<str>, Vec<Entry>> = BTreeMap::new();
        let mut changes: Vec<Arc<Snapshot>> = Vec::new();
        for snapshot in &state.snapshots {
            report.checked.snapshots += 1;
            let id = BTreeSet::from([snapshot.snapshot_id.clone()]);
            let path = format!("s/{}", snapshot.structure_file);
            let tree = self.read_structure(&path, snapshot).await;
            let mut use_file = |path: String| {
                references.users.entry(path).or_default().insert(snapshot.snapshot_id.clone());
            };
            use_file(path.clone());
            if let Some(file) = &snapshot.change_file {
                use_file(format!("i/{file}"));
                changes.push(snapshot.clone());
            }
            report.checked.files += 1;
            let Some(tree) = report.take(&path, &id, tree)? else { continue };
            for node in tree.nodes() {
                if let Attributes::File(reference) = &node.attributes {
                    use_file(format!("a/{}", reference.file));
                    documents.entry(reference.file.clone()).or_default().push(reference.clone());
                }
                for inventory in &node.inventories {
                    use_file(format!("i/{}", inventory.file));
                    let known = manifests.entry(inventory.file.clone()).or_default();
                    let same =
                        |entry: &Entry| entry.inventory == *inventory && entry.node.uid == node.uid;
                    if !known.iter().any(same) {
                        let entry = Entry { inventory: inventory.clone(), node: node.clone() };
                        known.push(entry);
                    }
                }
                if exceeds_grid(node) {
                    let outside = self.outside_grid(node).await;
                    if let Some(Some(index)) = report.take(&path, &id, outside)? {
                        let what = "a chunk lies outside the array's grid".into();
                        let finding = report.error(&path, what, &id);
                        finding.array = Some(node.path.clone());
                        finding.chunk = Some(index);
                    }
                }
            }
        }
        self.verify_documents(documents, &references.users, report).await?;
        self.verify_change_files(changes, &references.users, report).await?;
        for (file, entries) in manifests {
            self.verify_manifest(&file, &entries, &mut references, report).await?;
        }
        Ok(references)
    }

    async fn read_structure(&self, path: &str, snapshot: &Snapshot) -> Result<crate::repo::Tree> {
        let bytes = self.inner.store.backend().get(path).await?.bytes;
        check_file(path, &bytes, snapshot.structure_size, snapshot.structure_crc32c)?;
        Ok(structure::parse(path, &self.inner.dataset_id, &bytes)?.0)
    }

    async fn verify_documents(
        &self,
        documents: BTreeMap<Arc<str>, Vec<AttributesRef>>,
        users: &Users,
        report: &mut Report,
    ) -> Result<()> {
        for (file, references) in documents {
            let path = format!("a/{file}");
            let snapshots = users.get(&path).cloned().unwrap_or_default();
            report.checked.files += 1;
            let read = self.inner.store.backend().get(&path).await;
            let Some(object) = report.take(&path, &snapshots, read)? else { continue };
            let first = references.first();
            let parsed =
                first.map(|first| attributes::parse(first, &self.inner.dataset_id, &object.bytes));
            let Some(Ok(rows)) = parsed else {
                if let Some(Err(error)) = parsed {
                    report.error(&path, error.to_string(), &snapshots);
                }
                continue;
            };
            if let Some(missing) = references.iter().find(|r| r.row >= rows.len() as u64) {
                let what = format!("row {} is missing, there are {}", missing.row, rows.len());
                report.error(&path, what, &snapshots);
            }
        }
        Ok(())
    }

    async fn verify_change_files(
        &self,
        changes: Vec<Arc<Snapshot>>,
        users: &Users,
        report: &mut Report,
    ) -> Result<()> {
        for snapshot in changes {
            let path = format!("i/{}", snapshot.change_file.as_deref().unwrap_or_default());
            let snapshots = users.get(&path).cloned().unwrap_or_default();
            report.checked.files += 1;
            let rows = self.read_change_file(&snapshot).await;
            report.take(&path, &snapshots, rows)?;
        }
        Ok(())
    }

    async fn verify_manifest(
        &self,
        file: &Arc<str>,
        entries: &[Entry],
        references: &mut References,
        report: &mut Report,
    ) -> Result<()> {
        let path = format!("i/{file}");
        let snapshots = references.users.get(&path).cloned().unwrap_or_default();
        report.checked.files += 1;
        let Some(first) = entries.first() else { return Ok(()) };
        let bytes = self.inner.manifests.get(file, first.inventory.file_size).await;
        let Some(bytes) = report.take(&path, &snapshots, bytes)? else { return Ok(()) };
        let blocks = self.decode(file, &bytes, &first.inventory);
        let Some(blocks) = report.take(&path, &snapshots, blocks)? else { return Ok(()) };
        report.checked.bytes += bytes.len() as u64;
        if let Some(what) = order_fault(&blocks) {
            report.error(&path, what, &snapshots);
        }
        for entry in entries {
            let checked = check_entry(entry, &blocks, &snapshots, references, report);
            if let Err(error) = checked {
                let finding = report.error(&path, error.to_string(), &snapshots);
                finding.array = Some(entry.node.path.clone());
            }
        }
        Ok(())
    }

    fn decode(&self, file: &Arc<str>, bytes: &Bytes, entry: &Inventory) -> Result<Vec<Block>> {
        decode_file(file, &self.inner.dataset_id, bytes, entry.tail)
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

/// Whether some entry reaches beyond the grid. That alone is no fault: an array that shrank keeps
/// old rows under its removals.
fn exceeds_grid(node: &Node) -> bool {
    let Ok(Ok(grid)) = node.array().map(|spec| spec.grid()) else { return false };
    let shape = grid.grid_shape();
    node.inventories
        .iter()
        .any(|entry| entry.extent.iter().zip(&shape).any(|((_, high), size)| high > size))
}

fn order_fault(blocks: &[Block]) -> Option<String> {
    let mut last: Option<(u64, &[u8])> = None;
    for block in blocks {
        for at in 0..block.len() {
            let key = (block.array_id(at), block.coord(at));
            if last.is_some_and(|last| last >= key) {
                let row = block.first_row + at as u64;
                return Some(format!("row {row} is not in order of array_id and coord"));
            }
            last = Some(key);
        }
    }
    None
}

/// Compares an entry with the rows it describes, and collects what they refer to.
fn check_entry(
    entry: &Entry,
    blocks: &[Block],
    snapshots: &BTreeSet<String>,
    references: &mut References,
    report: &mut Report,
) -> Result<()> {
    let (inventory, node) = (&entry.inventory, &entry.node);
    let rank = node.array()?.shape().len();
    let path: Arc<str> = node.path.as_str().into();
    let wrong = |what: &str, expected: String, found: String| Error::Corrupt {
        file: format!("i/{}", inventory.file),
        what: what.to_owned(),
        expected,
        found,
    };
    let end = inventory.rows.map(|rows| inventory.row.saturating_add(rows));
    let mut extent = vec![(u64::MAX, 0); rank];
    let (mut first, mut last, mut count) = (None, None, 0u64);
    for block in blocks {
        for at in 0..block.len() {
            let row = block.first_row + at as u64;
            let ours = block.array_id(at) == u64::from(node.id);
            if row < inventory.row || end.is_some_and(|end| row >= end) {
                continue;
            }
            if !ours {
                if end.is_none() {
                    break; // the draft does not say where an array's rows end
                }
                let found = block.array_id(at).to_string();
                return Err(wrong(&format!("array_id of row {row}"), node.id.to_string(), found));
            }
            let coord = block.coord(at);
            let index = coord::decode(coord, rank).map_err(|error| {
                wrong(
                    &format!("coord of row {row}"),
                    format!("{rank} components"),
                    error.to_string(),
                )
            })?;
            for (bound, component) in extent.iter_mut().zip(&index) {
                *bound = (bound.0.min(*component), bound.1.max(component.saturating_add(1)));
            }
            first.get_or_insert_with(|| coord.to_vec());
            last = Some(coord.to_vec());
            count += 1;
            collect(block.payload(at)?, &path, snapshots, references);
        }
    }
    report.checked.references += count;
    if inventory.rows.is_some_and(|rows| rows != count) {
        return Err(wrong("rows of an entry", format!("{:?}", inventory.rows), count.to_string()));
    }
    if count > 0 && inventory.extent != extent {
        let expected = format!("{:?}", inventory.extent);
        return Err(wrong("extent of an entry", expected, format!("{extent:?}")));
    }
    for (what, recorded, found) in
        [("coord_min", &inventory.coord_min, first), ("coord_max", &inventory.coord_max, last)]
    {
        if recorded.is_some() && *recorded != found {
            return Err(wrong(what, format!("{recorded:02x?}"), format!("{found:02x?}")));
        }
    }
    Ok(())
}

fn collect(
    payload: Payload,
    path: &Arc<str>,
    snapshots: &BTreeSet<String>,
    references: &mut References,
) {
    match payload {
        Payload::Native(native) => {
            let file = format!("c/{}", native.file);
            references.users.entry(file).or_default().extend(snapshots.iter().cloned());
            let range =
                ByteRange { offset: native.offset, length: native.length, crc32c: native.crc32c };
            references.native.entry(native.file).or_default().insert(range, path.clone());
        }
        Payload::Virtual(remote) => {
            references.remote.insert(remote.url.clone(), *remote);
        }
        Payload::Inline { .. } | Payload::Removed => {}
    }
}
