//! Differences between versions: nodes by identity, chunks exactly.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use chunkyard_format::{Version, normalise_path};
use chunkyard_store::{Error, Noun, Result, Uid};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde::Serialize;

use super::coord::Coord;
use super::manifest::{Manifests, Payload, References, Row, Scan, decode_file};
use super::node::{Inventory, Node};
use super::session::{NodeEdits, Session};
use super::state::{Snapshot, State};
use super::table::{Layers, RowChanges, RowCounts, RowDiff, TableRows};
use super::tree::Tree;
use super::{Repository, check_file};

/// What differs between two versions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Diff {
    /// Nodes only in the second.
    pub added: Vec<NodeChange>,
    /// Nodes only in the first.
    pub removed: Vec<NodeChange>,
    /// Nodes at another path; `from` says where they were.
    pub moved: Vec<NodeChange>,
    /// Arrays whose specification differs.
    pub metadata: Vec<NodeChange>,
    /// Nodes whose attributes differ.
    pub attributes: Vec<NodeChange>,
    /// Arrays whose chunks differ.
    pub chunks: Vec<ChunkChanges>,
    /// Tables whose rows differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<RowCounts>,
}

impl Diff {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A node that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct NodeChange {
    /// Where it is (or was, if removed).
    pub path: String,
    /// `array`, `group` or `table`.
    pub kind: &'static str,
    /// Where a moved node was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// Chunks of one array that differ, as chunk indices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ChunkChanges {
    /// The array.
    pub path: String,
    /// Only in the second.
    pub added: Vec<Vec<u64>>,
    /// In both, with different content.
    pub replaced: Vec<Vec<u64>>,
    /// Only in the first.
    pub removed: Vec<Vec<u64>>,
}

impl ChunkChanges {
    fn none_of(node: &Node) -> Self {
        let path = node.path.clone();
        Self { path, added: Vec::new(), replaced: Vec::new(), removed: Vec::new() }
    }

    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.replaced.is_empty() && self.removed.is_empty()
    }
}

/// Chunks that were touched, each with the last commit that did it.
pub(super) type ChangedChunks = HashMap<Uid, BTreeMap<Coord, Arc<str>>>;

impl Repository {
    /// Compares two versions.
    pub async fn diff(&self, from: &Version, to: &Version) -> Result<Diff> {
        let state = self.state().await?;
        let (from, to) = (state.resolve(from)?.clone(), state.resolve(to)?.clone());
        let (before, after) = (self.tree(&from).await?, self.tree(&to).await?);
        let mut diff = Diff::of_nodes(&NodeEdits::between(&before, &after));
        let changed = self.changed_chunks(&state, &from, &to, None).await?;
        for node in after.nodes().filter(|node| node.is_array()) {
            let candidates: Vec<Coord> = match (changed.get(&node.uid), before.by_uid(&node.uid)) {
                (_, None) => self.live_coords(node).await?,
                (Some(coords), Some(_)) => coords.keys().cloned().collect(),
                (None, Some(_)) => continue,
            };
            let old = match before.by_uid(&node.uid) {
                Some(old) => self.inner.manifests.lookup(old, &candidates).await?,
                None => vec![None; candidates.len()],
            };
            let new = self.inner.manifests.lookup(node, &candidates).await?;
            diff.chunks.extend(self.classify(node, &candidates, old, new, &state).await?);
        }
        for node in after.nodes().filter(|node| node.is_table()) {
            let old = before.by_uid(&node.uid).map_or(&[][..], |old| &old.inventories);
            diff.rows.extend(self.row_diff(node, old, &Layers::of(node))?.count(&node.path).await?);
        }
        Ok(diff)
    }

    /// The rows of a table in which two versions differ, in the order of the key. Runs that both versions
    /// share are not read. A table that one of them does not have counts as empty there.
    pub async fn diff_table(
        &self,
        from: &Version,
        to: &Version,
        path: &str,
    ) -> Result<BoxStream<'static, Result<RowChanges>>> {
        let state = self.state().await?;
        let (from, to) = (state.resolve(from)?.clone(), state.resolve(to)?.clone());
        let path = normalise_path(path)?;
        let (before, after) = (self.tree(&from).await?, self.tree(&to).await?);
        // By identity: the table may have moved. Its path is the one in the second version, if it is there.
        let node = after.get(&path).or_else(|| before.get(&path));
        let node = node.ok_or_else(|| Error::NotFound { what: Noun::Table, name: path })?;
        let spec = node.table()?.clone();
        let entries = |tree: &Tree| {
            tree.by_uid(&node.uid).map(|node| node.inventories.clone()).unwrap_or_default()
        };
        let after = Layers { entries: entries(&after), memory: Vec::new() };
        let diff = RowDiff::new(self.tables(), TableRows::new(spec), &entries(&before), &after);
        let step = |mut diff: RowDiff| async move {
            Ok(diff.next().await?.map(|changes| (changes, diff)))
        };
        Ok(stream::try_unfold(diff, step).boxed())
    }

    /// Compares a version of a table with the runs that it had.
    pub(super) fn row_diff(
        &self,
        node: &Node,
        before: &[Inventory],
        after: &Layers,
    ) -> Result<RowDiff> {
        Ok(RowDiff::new(self.tables(), TableRows::new(node.table()?.clone()), before, after))
    }

    /// The chunks of one array in which two versions differ. An array that one of them does not have
    /// counts as empty there.
    pub async fn diff_chunks(
        &self,
        from: &Version,
        to: &Version,
        path: &str,
    ) -> Result<ChunkChanges> {
        let state = self.state().await?;
        let (from, to) = (state.resolve(from)?.clone(), state.resolve(to)?.clone());
        let path = normalise_path(path)?;
        let (before, after) = (self.tree(&from).await?, self.tree(&to).await?);
        let node = after.require(&path)?;
        let only = HashSet::from([node.uid]);
        let mut changed = self.changed_chunks(&state, &from, &to, Some(&only)).await?;
        let old = before.by_uid(&node.uid);
        let candidates: Vec<Coord> = match old {
            Some(_) => changed.remove(&node.uid).unwrap_or_default().into_keys().collect(),
            None => self.live_coords(node).await?,
        };
        let old = match old {
            Some(old) => self.inner.manifests.lookup(old, &candidates).await?,
            None => vec![None; candidates.len()],
        };
        let new = self.inner.manifests.lookup(node, &candidates).await?;
        let changes = self.classify(node, &candidates, old, new, &state).await?;
        Ok(changes.unwrap_or_else(|| ChunkChanges::none_of(node)))
    }

    /// Sorts candidates into added, replaced and removed; drops equal ones.
    async fn classify(
        &self,
        node: &Node,
        coords: &[Coord],
        old: Vec<Option<Payload>>,
        new: Vec<Option<Payload>>,
        state: &State,
    ) -> Result<Option<ChunkChanges>> {
        let rank = node.array()?.shape().len();
        let mut changes = ChunkChanges::none_of(node);
        let live = |payload: Option<Payload>| payload.filter(|payload| !payload.is_removed());
        for ((coord, old), new) in coords.iter().zip(old).zip(new) {
            let index = coord.decode(rank).map_err(|error| Error::Corrupt {
                file: node.path.clone(),
                what: "chunk coordinate".into(),
                expected: format!("{rank} components"),
                found: error.to_string(),
            })?;
            match (live(old), live(new)) {
                (None, Some(_)) => changes.added.push(index),
                (Some(_), None) => changes.removed.push(index),
                (Some(old), Some(new)) if !self.same_bytes(&old, &new, state).await? => {
                    changes.replaced.push(index);
                }
                _ => {}
            }
        }
        Ok((!changes.is_empty()).then_some(changes))
    }

    /// Whether two references lead to the same bytes. Where place differs but length and checksum
    /// agree (a repacked chunk), the bytes themselves are compared.
    async fn same_bytes(&self, a: &Payload, b: &Payload, state: &State) -> Result<bool> {
        match (a, b) {
            _ if a == b => Ok(true),
            (Payload::Native(x), Payload::Native(y))
                if x.length == y.length && x.crc32c == y.crc32c =>
            {
                let pair = [("chunk", a), ("chunk", b)];
                let bytes = self.fetch_payloads(&pair, &state.config).await?;
                Ok(bytes.first() == bytes.get(1))
            }
            _ => Ok(false),
        }
    }

    async fn live_coords(&self, node: &Node) -> Result<Vec<Coord>> {
        let mut scan = Scan::new(&self.inner.manifests, node, None);
        let mut coords = Vec::new();
        while let Some((coord, payload)) = scan.next().await? {
            if !payload.is_removed() {
                coords.push(Coord::from_bytes(&coord));
            }
        }
        Ok(coords)
    }

    /// Chunks of arrays known to both versions that may differ: a superset, from the change files
    /// where they chain, else from the runs that are not in both.
    pub(super) async fn changed_chunks(
        &self,
        state: &State,
        from: &Snapshot,
        to: &Snapshot,
        only: Option<&HashSet<Uid>>,
    ) -> Result<ChangedChunks> {
        let wanted = |uid: &Uid| only.is_none_or(|only| only.contains(uid));
        if let Some(steps) = chained_steps(state, from, to) {
            match self.changed_by_files(&steps, from, to, &wanted).await {
                // A change file may have been collected with an expired snapshot.
                Err(Error::NotFound { .. }) => {}
                other => return other,
            }
        }
        let (before, after) = (self.tree(from).await?, self.tree(to).await?);
        let commit: Arc<str> = to.snapshot_id.as_str().into();
        let mut changed = ChangedChunks::new();
        for node in after.nodes().filter(|node| wanted(&node.uid) && node.is_array()) {
            let Some(old) = before.by_uid(&node.uid) else { continue };
            let coords = differing_coords(&self.inner.manifests, old, node).await?;
            if !coords.is_empty() {
                let coords = coords.into_iter().map(|coord| (coord, commit.clone()));
                changed.insert(node.uid, coords.collect());
            }
        }
        Ok(changed)
    }

    async fn changed_by_files(
        &self,
        steps: &[Arc<Snapshot>],
        from: &Snapshot,
        to: &Snapshot,
        wanted: &impl Fn(&Uid) -> bool,
    ) -> Result<ChangedChunks> {
        let (before, after) = (self.tree(from).await?, self.tree(to).await?);
        // Handles are never reused within a lineage, so both ends together know them all, except
        // arrays that came and went in between.
        let uids: HashMap<u32, Uid> =
            before.nodes().chain(after.nodes()).map(|node| (node.id, node.uid)).collect();
        let mut changed = ChangedChunks::new();
        for step in steps {
            let commit: Arc<str> = step.snapshot_id.as_str().into();
            for row in self.read_change_file(step).await? {
                let Some(uid) = uids.get(&row.array_id).filter(|uid| wanted(uid)) else { continue };
                changed.entry(*uid).or_default().insert(row.coord, commit.clone());
            }
        }
        Ok(changed)
    }

    /// All rows of a commit's change file.
    pub(super) async fn read_change_file(&self, snapshot: &Snapshot) -> Result<Vec<Row>> {
        let Some(file) = &snapshot.change_file else { return Ok(Vec::new()) };
        let file: Arc<str> = file.as_str().into();
        let bytes = self.inner.manifests.get(&file, snapshot.change_size).await?;
        check_file(&format!("i/{file}"), &bytes, snapshot.change_size, snapshot.change_crc32c)?;
        let blocks = decode_file(&file, &self.inner.dataset_id, &bytes, None)?;
        blocks.iter().flat_map(|block| (0..block.len()).map(|at| block.row(at))).collect()
    }
}

impl Session {
    /// What the session changed so far, compared with its base.
    pub async fn status(&self) -> Result<Diff> {
        let (base, tree, chunks) = self.changes();
        let mut diff = Diff::of_nodes(&NodeEdits::between(&base, &tree));
        let repo = self.repository();
        for node in tree.nodes() {
            let Some(refs) = chunks.get(&node.uid) else { continue };
            let (coords, new): (Vec<Coord>, Vec<_>) =
                refs.iter().map(|(coord, payload)| (coord.clone(), Some(payload.clone()))).unzip();
            let old = match base.by_uid(&node.uid) {
                Some(old) => repo.inner.manifests.lookup(old, &coords).await?,
                None => vec![None; coords.len()],
            };
            diff.chunks.extend(session_changes(node, &coords, old, new)?);
        }
        for node in tree.nodes().filter(|node| node.is_table()) {
            let layers = self.table_layers(&node.uid, &node.path)?;
            let old = base.by_uid(&node.uid).map_or(&[][..], |old| &old.inventories);
            diff.rows.extend(repo.row_diff(node, old, &layers)?.count(&node.path).await?);
        }
        Ok(diff)
    }
}

/// Like `classify`, by the references alone: what a session wrote is a change even if the bytes
/// happen to be the same.
fn session_changes(
    node: &Node,
    coords: &[Coord],
    old: Vec<Option<Payload>>,
    new: Vec<Option<Payload>>,
) -> Result<Option<ChunkChanges>> {
    let rank = node.array()?.shape().len();
    let mut changes = ChunkChanges::none_of(node);
    for ((coord, old), new) in coords.iter().zip(old).zip(new) {
        let Ok(index) = coord.decode(rank) else { continue };
        let live = |payload: &Option<Payload>| payload.as_ref().is_some_and(|p| !p.is_removed());
        match (live(&old), live(&new)) {
            (false, true) => changes.added.push(index),
            (true, false) => changes.removed.push(index),
            (true, true) if old != new => changes.replaced.push(index),
            _ => {}
        }
    }
    Ok((!changes.is_empty()).then_some(changes))
}

impl Diff {
    fn of_nodes(edits: &NodeEdits) -> Self {
        let change = |node: &Arc<Node>, from: Option<&str>| NodeChange {
            path: node.path.clone(),
            kind: node.type_name(),
            from: from.map(str::to_owned),
        };
        let mut diff = Self {
            added: edits.added.iter().map(|node| change(node, None)).collect(),
            removed: edits.removed.iter().map(|node| change(node, None)).collect(),
            ..Self::default()
        };
        for (before, after) in &edits.changed {
            if before.path != after.path {
                diff.moved.push(change(after, Some(&before.path)));
            }
            if before.kind != after.kind {
                diff.metadata.push(change(after, None));
            }
            if before.attributes != after.attributes {
                diff.attributes.push(change(after, None));
            }
        }
        diff
    }
}

/// The commits after `from` up to `to`, oldest first, if each change file describes exactly the
/// step from its parent.
fn chained_steps(state: &State, from: &Snapshot, to: &Snapshot) -> Option<Vec<Arc<Snapshot>>> {
    let mut steps = Vec::new();
    for snapshot in state.ancestry(&to.snapshot_id) {
        if snapshot.snapshot_id == from.snapshot_id {
            steps.reverse();
            return Some(steps);
        }
        if snapshot.change_base != snapshot.parent_snapshot_id {
            return None;
        }
        steps.push(snapshot.clone());
    }
    None
}

/// Coordinates in entries that only one of two versions of an array has. Where both share all
/// entries nothing can differ.
async fn differing_coords(
    manifests: &Manifests,
    before: &Node,
    after: &Node,
) -> Result<HashSet<Coord>> {
    let key = |entry: &Inventory| (entry.file.clone(), entry.row, entry.rows);
    let old: HashSet<_> = before.inventories.iter().map(key).collect();
    let new: HashSet<_> = after.inventories.iter().map(key).collect();
    let mut coords = HashSet::new();
    for (node, others) in [(before, &new), (after, &old)] {
        for entry in node.inventories.iter().filter(|entry| !others.contains(&key(entry))) {
            let part = manifests.entry(&References::of(node), entry).await?;
            for (block, rows) in part.pieces() {
                coords.extend(rows.map(|at| Coord::from_bytes(block.coord(at))));
            }
        }
    }
    Ok(coords)
}
