//! Committing: everything durable first, then one swap.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use chunkyard_store::{Durability, Error, Noun, Result, Store, Uid, clock};
use serde_json::{Map, Value};

use super::changes::NodeEdits;
use super::tables::TableChanges;
use super::{Access, ArrayChanges, Chunks, Phase, Rebase, Session};
use crate::config::{Compat, Config};
use crate::coord::Coord;
use crate::id;
use crate::manifest::{Manifests, Payload, RunBuilder, Written, merge};
use crate::node::{Inventory, Node};
use crate::parquet_file::Label;
use crate::run::Keys;
use crate::run::levels::{self, level_of};
use crate::state::{Mode, ReferenceKind, Snapshot, State, Summary};
use crate::structure::{self, SnapshotLabel};
use crate::swap::{Loaded, Swap};
use crate::table::{Layers, RunLabel, RunWriter, TableFiles, TableRows, Walk};
use crate::tree::Tree;
use crate::{Version, attributes, read_only};

/// How far in our future a parent may be before we distrust the clocks.
const CLOCK_SKEW_MAX_MS: i64 = 10 * 60 * 1000;

/// From this number of bytes on, chunks are made durable before the turn to swap comes.
const BULK: u64 = 4 << 20;

/// How to commit.
#[derive(Debug, Clone, Default)]
pub struct CommitOptions {
    /// What the commit does, for people.
    pub message: String,
    /// User metadata of the commit.
    pub properties: Map<String, Value>,
    /// When the branch moved meanwhile: rebase with this policy, or fail when `None`.
    pub rebase: Option<Rebase>,
    /// Replace the tip instead of adding to it. Refused when the tip has a tag or another branch,
    /// unless `force`.
    pub amend: bool,
    /// See `amend`.
    pub force: bool,
    /// Commit even if nothing changed.
    pub allow_empty: bool,
    /// Record the snapshot without moving the branch; it is reachable only by its id.
    pub detached: bool,
}

impl CommitOptions {
    /// An ordinary commit.
    pub fn message(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// With a policy for when the branch moved meanwhile.
    pub fn with_rebase(mut self, rebase: Rebase) -> Self {
        self.rebase = Some(rebase);
        self
    }
}

impl Session {
    /// Makes all changes of the session visible at once, durably. Afterwards the session is closed.
    /// On an error nothing is visible and the session can be used further, except that after
    /// `OutcomeUnknown` the history must be looked at first.
    pub async fn commit(&self, options: CommitOptions) -> Result<Arc<Snapshot>> {
        let Access::Writable { branch } = &self.access else {
            return Err(Error::Invalid { what: "only a writable session can commit".into() });
        };
        if options.amend && options.detached {
            return Err(Error::Invalid {
                what: "a detached commit leaves the tip alone, an amendment replaces it".into(),
            });
        }
        let _busy = self.hold()?;
        self.work().aside.refuse("commit")?;
        self.store_tables().await?;
        let mut early = self.flush().await?;
        let snapshot_id = id::fresh()?;
        let mut delta: Option<Delta> = None;
        let mut line = self.repo.inner.state_file.line_up();
        loop {
            let turn = line.turn().await;
            let current = match early.take().filter(|_| !turn.waited) {
                Some(current) => current,
                None => self.repo.load_recent().await?,
            };
            let current = self.with_base(current, branch, &options).await?;
            match self.attempt(&current, branch, &snapshot_id, &options, &mut delta).await {
                Ok(Some(snapshot)) => return Ok(snapshot),
                Ok(None) => {}
                // A file is gone. If the state moved on, an expiry or a collection may have taken
                // it, and the next attempt finds out; otherwise it is lost.
                Err(error @ Error::NotFound { what: Noun::Object, .. }) => {
                    if self.repo.state().await?.generation == current.state.generation {
                        return Err(self.explain(error).await);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes what is still in memory, and returns the state if it was worth reading meanwhile.
    async fn flush(&self) -> Result<Option<Loaded>> {
        if self.repo.inner.state_file.is_remote() {
            // Each is a round trip.
            let (flushed, loaded) = futures::join!(self.flush_chunks(), self.repo.load_recent());
            return flushed.and(loaded.map(Some));
        }
        self.flush_chunks().await?;
        let files: Vec<String> = {
            let work = self.work();
            match work.bytes_written {
                ..BULK => return Ok(None),
                _ => work.files.difference(&work.durable).cloned().collect(),
            }
        };
        // So other writers do not wait for their turn until all of it is on the disk.
        self.repo.store().backend().sync(&files).await?;
        self.work().durable.extend(files);
        Ok(None)
    }

    /// The state with everything that a commit needs. Mostly its file is enough: if base and tip
    /// are among the newest snapshots, so is everything between them.
    async fn with_base(
        &self,
        current: Loaded,
        branch: &str,
        options: &CommitOptions,
    ) -> Result<Loaded> {
        let state = &current.state;
        let listed = state.snapshot(&self.snapshot().snapshot_id).is_some();
        if listed && !options.amend && state.finds(&Version::branch(branch)) {
            return Ok(current);
        }
        self.repo.inner.state_file.complete(current).await
    }

    /// Tries to commit onto a state; `None` when another writer was first.
    async fn attempt(
        &self,
        current: &Loaded,
        branch: &str,
        snapshot_id: &str,
        options: &CommitOptions,
        delta: &mut Option<Delta>,
    ) -> Result<Option<Arc<Snapshot>>> {
        let tip = self.check_base(&current.state, branch, options).await?;
        let plan = self.plan(current, &tip, branch, snapshot_id, options, delta).await?;
        let Plan { next, snapshot, tree, structure_path, files } = plan;
        match self.repo.inner.state_file.swap(current, next, &files).await? {
            Swap::Won(_) => {
                let mut work = self.work();
                work.phase = Phase::Closed;
                // Later reads see the commit.
                work.implied.clear();
                drop(work);
                let file: Arc<str> = snapshot.structure_file.as_str().into();
                self.repo.inner.trees.insert(file, tree);
                Ok(Some(snapshot))
            }
            Swap::Lost => {
                self.repo.store().backend().delete(&[structure_path]).await?;
                Ok(None)
            }
        }
    }

    /// The base check: may this session commit onto the branch as it is now? Rebases if it must and
    /// may. Returns the tip.
    async fn check_base(
        &self,
        state: &State,
        branch: &str,
        options: &CommitOptions,
    ) -> Result<Arc<Snapshot>> {
        if state.status.mode == Mode::ReadOnly {
            return Err(read_only(state));
        }
        let tip = state.tip(branch)?.clone();
        let base = self.snapshot();
        if state.snapshot(&base.snapshot_id).is_none() {
            return Err(Error::BaseExpired { id: base.snapshot_id.clone() });
        }
        if state.gc_epoch > self.gc_epoch {
            self.check_collected(state).await?;
        }
        if tip.snapshot_id == base.snapshot_id || options.detached {
            return Ok(tip);
        }
        match options.rebase {
            Some(policy) if !options.amend => {
                self.rebase_onto(state, &tip, policy).await?;
                Ok(tip)
            }
            _ => Err(Error::Conflict {
                message: format!(
                    "branch {branch:?} moved from {} to {} since this session began; rebase, or \
                     start again from the new tip",
                    base.snapshot_id, tip.snapshot_id
                ),
                conflicts: Vec::new(),
            }),
        }
    }

    /// Notes a file of this session, once.
    fn remember(&self, path: &str) {
        self.work().files.insert(path.to_owned());
    }

    /// Collections were announced since the session began: checks that none took our files.
    async fn check_collected(&self, state: &State) -> Result<()> {
        let lists = state.gc.as_ref().map_or(&[][..], |gc| &gc.lists);
        let files = self.work().files.clone();
        for epoch in self.gc_epoch + 1..=state.gc_epoch {
            let collected = match lists.iter().find(|list| list.epoch == epoch) {
                Some(list) => match self.repo.read_collection_list(list).await {
                    Ok(doomed) => files.iter().find(|file| doomed.contains(*file)).cloned(),
                    Err(Error::NotFound { .. }) => files.first().cloned(),
                    Err(error) => return Err(error),
                },
                // The list is gone, so assume that it named our files, if we have any.
                None => files.first().cloned(),
            };
            if let Some(file) = collected {
                return Err(Error::SessionCollected { file });
            }
        }
        Ok(())
    }

    /// Writes everything the commit needs and builds the next state.
    async fn plan(
        &self,
        current: &Loaded,
        tip: &Arc<Snapshot>,
        branch: &str,
        snapshot_id: &str,
        options: &CommitOptions,
        delta: &mut Option<Delta>,
    ) -> Result<Plan> {
        let state = &current.state;
        let (base, base_tree, tree, chunks, tables, mut files, bytes_written, described) = {
            let work = self.work();
            let described = work.has_described();
            let tree = (*work.tree).clone();
            let files: Vec<String> = work.files.difference(&work.durable).cloned().collect();
            let base = work.base.clone();
            let (base_tree, chunks) = (work.base_tree.clone(), work.chunks.clone());
            let tables = work.tables.clone();
            (base, base_tree, tree, chunks, tables, files, work.bytes_written, described)
        };
        let mut tree = tree;
        let edits = NodeEdits::between(&base_tree, &tree);
        let unchanged = edits.is_empty()
            && chunks.is_empty()
            && tables.values().all(TableChanges::is_empty)
            && !described;
        if unchanged && !options.allow_empty && !options.amend {
            return Err(Error::Invalid {
                what: "nothing to commit: the session changed nothing".into(),
            });
        }
        let (parent, change_base) = match options.amend {
            true => amended(state, tip, branch, options.force)?,
            false => (Some(base.snapshot_id.clone()), Some(base.snapshot_id.clone())),
        };
        let parent_ms = parent
            .as_deref()
            .and_then(|id| state.snapshot(id))
            .map_or(0, |parent| parent.timestamp_ms);
        let now_ms = clock::now_ms();
        if parent_ms > now_ms + CLOCK_SKEW_MAX_MS {
            return Err(Error::Invalid {
                what: format!(
                    "the parent snapshot is {} s in this machine's future; set the clock",
                    (parent_ms - now_ms) / 1000
                ),
            });
        }
        let timestamp_ms = now_ms.max(parent_ms + 1);
        let store = self.repo.store();
        let writer = Writer {
            store,
            manifests: &self.repo.inner.manifests,
            tables: self.repo.tables(),
            dataset_id: &self.repo.inner.dataset_id,
            config: &state.config,
            now_ms,
        };
        let label = writer.label("attributes");
        if let Some((file, sealed)) = attributes::move_out(&mut tree, &state.config, label)? {
            let path = format!("a/{file}");
            store.backend().put(&path, vec![sealed.bytes]).await?;
            files.push(path);
        }
        let mut written = bytes_written;
        let mut change = None;
        if !chunks.is_empty() {
            let made = writer.delta(&tree, &chunks, delta.take()).await?;
            written += made.written.sealed.bytes.len() as u64;
            let path = format!("i/{}", made.file);
            // If this attempt loses its race, the next one keeps the file, and a collection
            // announced in between must not have taken it.
            self.remember(&path);
            files.push(path);
            let sealed = &made.written.sealed;
            change = Some((made.file.to_string(), sealed.bytes.len() as u64, sealed.crc32c));
            files.extend(writer.apply(&mut tree, &chunks, &made, &mut written).await?);
            *delta = Some(made);
        }
        files.extend(writer.apply_tables(&mut tree, &tables, &mut written).await?);
        if options.amend {
            let both = self.amended_change(tip, &chunks, &tree, &writer).await?;
            if let Some((file, sealed)) = both {
                files.push(format!("i/{file}"));
                change = Some((file, sealed.0, sealed.1));
            }
        }
        let label = SnapshotLabel {
            snapshot_id,
            parent_snapshot_id: parent.as_deref(),
            timestamp_ms,
            message: &options.message,
            change_file: change.as_ref().map(|(file, ..)| file.as_str()),
            branch: (!options.detached).then_some(branch),
        };
        let sealed = structure::render(&tree, writer.dataset_id, &label, state.config.compat)?;
        let structure_file = id::fresh()?;
        let structure_path = format!("s/{structure_file}");
        let (structure_size, structure_crc) = (sealed.bytes.len() as u64, sealed.crc32c);
        store.backend().put(&structure_path, vec![sealed.bytes]).await?;
        files.push(structure_path.clone());
        written += structure_size;

        let removed = |change: &super::Change| change.payload.is_removed();
        let all = || chunks.values().flat_map(|changes| changes.refs.values());
        let refs_removed = all().filter(|change| removed(change)).count() as u64;
        let snapshot = Arc::new(Snapshot {
            snapshot_id: snapshot_id.to_owned(),
            parent_snapshot_id: parent,
            timestamp_ms,
            structure_file,
            message: options.message.clone(),
            change_file: change.as_ref().map(|(file, ..)| file.clone()),
            change_base,
            change_size: change.as_ref().map(|(_, size, _)| *size),
            change_crc32c: change.as_ref().map(|(.., crc)| *crc),
            structure_size: Some(structure_size),
            structure_crc32c: Some(structure_crc),
            summary: Summary {
                nodes: tree.len() as u64,
                refs_added: all().count() as u64 - refs_removed,
                refs_removed,
                bytes_written: written,
            },
            properties: self.properties(options),
            unknown: Map::new(),
        });
        let mut next = state.successor(timestamp_ms)?;
        next.snapshots.push(snapshot.clone());
        if !options.detached
            && let Some(reference) = next.refs.get_mut(branch)
        {
            reference.snapshot_id = snapshot_id.to_owned();
        }
        if options.amend {
            forget_amended(&mut next, &tip.snapshot_id);
        }
        require_features(&mut next, &tree);
        Ok(Plan { next, snapshot, tree: Arc::new(tree), structure_path, files })
    }

    /// The user's properties, and a note if the commit is not durable.
    fn properties(&self, options: &CommitOptions) -> Map<String, Value> {
        let mut properties = options.properties.clone();
        if self.repo.inner.options.store.durability == Durability::None {
            properties.insert("durability".into(), "none".into());
        }
        properties
    }

    /// The change file of an amended commit: what the tip did and what we did, ours winning.
    async fn amended_change(
        &self,
        tip: &Snapshot,
        chunks: &Chunks,
        tree: &Tree,
        writer: &Writer<'_>,
    ) -> Result<Option<(String, (u64, u32))>> {
        let mut rows: BTreeMap<u32, BTreeMap<Coord, Payload>> = BTreeMap::new();
        for row in self.repo.read_change_file(tip).await? {
            rows.entry(row.array_id).or_default().insert(row.coord, row.payload);
        }
        for (uid, changes) in chunks {
            let Some(node) = tree.by_uid(uid) else { continue };
            let array = rows.entry(node.id).or_default();
            for (coord, change) in &changes.refs {
                array.insert(coord.clone(), change.payload.clone());
            }
        }
        let nodes: HashMap<u32, &Arc<Node>> = tree.nodes().map(|node| (node.id, node)).collect();
        let mut builder = RunBuilder::new(writer.config.compat);
        for (id, refs) in rows {
            // An array the amendment deletes has no place in the change any more.
            let Some(node) = nodes.get(&id) else { continue };
            let rank = node.array()?.shape().len();
            let count = refs.len();
            builder.push_array(id, rank, count, refs.into_iter().map(Ok))?;
        }
        if builder.rows() == 0 {
            return Ok(None);
        }
        let written = builder.finish(writer.label("manifest"))?;
        let file = id::fresh()?;
        let sealed = &written.sealed;
        let facts = (sealed.bytes.len() as u64, sealed.crc32c);
        writer.store.backend().put(&format!("i/{file}"), vec![sealed.bytes.clone()]).await?;
        Ok(Some((file, facts)))
    }
}

/// Everything written, ready to swap.
struct Plan {
    next: State,
    snapshot: Arc<Snapshot>,
    tree: Arc<Tree>,
    structure_path: String,
    /// What must be durable before the swap.
    files: Vec<String>,
}

/// The manifest of exactly this commit's references. It does not depend on the base, so a rebase
/// keeps it unless a new array's handle was taken meanwhile.
struct Delta {
    file: Arc<str>,
    written: Written,
    handles: Vec<(u32, Uid)>,
    rows: usize,
}

/// Writes the files of one commit.
pub(crate) struct Writer<'a> {
    pub(crate) store: &'a Store,
    pub(crate) manifests: &'a Manifests,
    pub(crate) tables: &'a TableFiles,
    pub(crate) dataset_id: &'a str,
    pub(crate) config: &'a Config,
    pub(crate) now_ms: i64,
}

impl<'a> Writer<'a> {
    pub(crate) fn label(&self, format: &'static str) -> Label<'a> {
        Label { format, dataset_id: self.dataset_id, created_ms: self.now_ms }
    }

    async fn delta(&self, tree: &Tree, chunks: &Chunks, old: Option<Delta>) -> Result<Delta> {
        let mut handles = Vec::with_capacity(chunks.len());
        for uid in chunks.keys() {
            let node = tree.by_uid(uid).ok_or_else(|| Error::NotFound {
                what: Noun::WrittenArray,
                name: uid.to_string(),
            })?;
            handles.push((node.id, *uid));
        }
        handles.sort_unstable();
        let rows = chunks.values().map(|changes| changes.refs.len()).sum();
        if let Some(old) = old.filter(|old| old.handles == handles && old.rows == rows) {
            return Ok(old);
        }
        let mut builder = RunBuilder::new(self.config.compat);
        for (id, uid) in &handles {
            let (Some(node), Some(changes)) = (tree.by_uid(uid), chunks.get(uid)) else { continue };
            let rank = node.array()?.shape().len();
            let refs = changes.refs.iter().map(|(coord, change)| Ok((coord, &change.payload)));
            builder.push_array(*id, rank, changes.refs.len(), refs)?;
        }
        let written = builder.finish(self.label("manifest"))?;
        let file: Arc<str> = id::fresh()?.into();
        self.manifests.put(&file, &written.sealed.bytes).await?;
        Ok(Delta { file, written, handles, rows })
    }

    /// Adds the delta to the inventories of the touched arrays, counts their references, and merges
    /// runs where there are too many. Returns further files written.
    async fn apply(
        &self,
        tree: &mut Tree,
        chunks: &Chunks,
        delta: &Delta,
        bytes_written: &mut u64,
    ) -> Result<Vec<String>> {
        let mut touched = Vec::with_capacity(delta.handles.len());
        for (id, uid) in &delta.handles {
            let (Some(node), Some(changes)) = (tree.by_uid(uid), chunks.get(uid)) else { continue };
            let mut node = (**node).clone();
            node.refs_count = self.count(&node, changes).await?;
            let level = level_of(changes.refs.len() as u64);
            let mut entries = delta.written.inventories(&delta.file, *id, level);
            if !node.inventories.is_empty() {
                entries.iter_mut().for_each(|entry| entry.flags |= Inventory::OVERRIDES);
            }
            node.inventories.append(&mut entries);
            let node = Arc::new(node);
            tree.put(node.clone());
            touched.push(node);
        }
        let plans = touched.iter().filter_map(|node| {
            let plan = match self.config.compat {
                Compat::Wide => levels::plan(&node.inventories, self.config),
                // A reader of the draft knows neither stacked runs nor removals.
                Compat::Draft => levels::plan_all(&node.inventories),
            };
            Some((node.clone(), plan?))
        });
        self.merge(tree, plans.collect(), bytes_written).await
    }

    /// Live references after the changes: exact, because references that may have existed are
    /// looked up.
    async fn count(&self, node: &Node, changes: &ArrayChanges) -> Result<u64> {
        let live = |change: &&super::Change| !change.payload.is_removed();
        if node.inventories.is_empty() {
            return Ok(changes.refs.values().filter(live).count() as u64);
        }
        let coords: Vec<Coord> = changes.refs.keys().cloned().collect();
        let before = self.manifests.lookup(node, &coords).await?;
        let mut count = node.refs_count;
        for (before, change) in before.iter().zip(changes.refs.values()) {
            let was = before.as_ref().is_some_and(|payload| !payload.is_removed());
            match (was, !change.payload.is_removed()) {
                (false, true) => count += 1,
                (true, false) => count = count.saturating_sub(1),
                _ => {}
            }
        }
        Ok(count)
    }

    /// Puts the runs of a session on top of each table, and merges runs where there are too many.
    /// Returns further files written.
    async fn apply_tables(
        &self,
        tree: &mut Tree,
        tables: &HashMap<Uid, TableChanges>,
        bytes_written: &mut u64,
    ) -> Result<Vec<String>> {
        let mut plans = Vec::new();
        for (uid, changes) in tables.iter().filter(|(_, changes)| !changes.is_empty()) {
            let Some(node) = tree.by_uid(uid) else { continue };
            let mut node = (**node).clone();
            node.refs_count += changes.live;
            for entry in &changes.stored {
                let mut entry = entry.clone();
                if !node.inventories.is_empty() {
                    entry.flags |= Inventory::OVERRIDES;
                }
                node.inventories.push(entry);
            }
            let node = Arc::new(node);
            tree.put(node.clone());
            plans.extend(levels::plan(&node.inventories, self.config).map(|plan| (node, plan)));
        }
        self.merge(tree, plans, bytes_written).await
    }

    /// Merges runs of a table.
    async fn merge_table(
        &self,
        tree: &mut Tree,
        node: &Node,
        plan: &levels::Merge,
        bytes_written: &mut u64,
    ) -> Result<Vec<String>> {
        let spec = node.table()?;
        let entries = plan.merged().concat();
        let keeps_removed = !plan.is_oldest();
        let marks = keeps_removed && entries.iter().any(|e| e.flags & Inventory::REMOVALS != 0);
        let layers = Layers { entries, memory: Vec::new() };
        let mut walk = Walk::new(self.tables, TableRows::new(spec.clone()), &layers, Keys::ALL);
        if keeps_removed {
            walk = walk.with_removed();
        }
        let label = RunLabel { uid: node.uid, dataset_id: self.dataset_id, now_ms: self.now_ms };
        let mut writer = RunWriter::new(self.tables, label, spec, marks);
        while let Some(merged) = walk.next().await? {
            writer.push(merged).await?;
        }
        let written = writer.finish().await?;
        *bytes_written += written.bytes;
        // Rows that several runs held were counted several times.
        let mut refs_count = node.refs_count;
        if plan.is_oldest() {
            refs_count = written.live;
        }
        let files = written.paths().collect();
        let inventories = plan.result(written.on_level(plan.level));
        tree.put(Arc::new(Node { inventories, refs_count, ..node.clone() }));
        Ok(files)
    }

    /// Carries out merges: of arrays all into one new manifest, of each table into a run of its own.
    pub(crate) async fn merge(
        &self,
        tree: &mut Tree,
        plans: Vec<(Arc<Node>, levels::Merge)>,
        bytes_written: &mut u64,
    ) -> Result<Vec<String>> {
        let (tables, arrays): (Vec<_>, Vec<_>) =
            plans.into_iter().partition(|(node, _)| node.is_table());
        let mut files = self.merge_arrays(tree, arrays, bytes_written).await?;
        for (node, plan) in tables {
            files.extend(self.merge_table(tree, &node, &plan, bytes_written).await?);
        }
        Ok(files)
    }

    async fn merge_arrays(
        &self,
        tree: &mut Tree,
        mut plans: Vec<(Arc<Node>, levels::Merge)>,
        bytes_written: &mut u64,
    ) -> Result<Vec<String>> {
        if plans.is_empty() {
            return Ok(Vec::new());
        }
        plans.sort_by_key(|(node, _)| node.id);
        let mut builder = RunBuilder::new(self.config.compat);
        for (node, plan) in &plans {
            let rows = merge::collect(plan, self.manifests, node).await?;
            let rank = node.array()?.shape().len();
            builder.push_array(node.id, rank, rows.len(), rows.into_iter().map(Ok))?;
        }
        let written = builder.finish(self.label("manifest"))?;
        let file: Arc<str> = id::fresh()?.into();
        let path = format!("i/{file}");
        *bytes_written += written.sealed.bytes.len() as u64;
        self.manifests.put(&file, &written.sealed.bytes).await?;
        for (node, plan) in plans {
            let merged = written.inventories(&file, node.id, plan.level);
            let inventories = plan.result(merged);
            tree.put(Arc::new(Node { inventories, ..(*node).clone() }));
        }
        Ok(vec![path])
    }
}

/// Parent and change base of a commit that replaces the tip.
fn amended(
    state: &State,
    tip: &Snapshot,
    branch: &str,
    force: bool,
) -> Result<(Option<String>, Option<String>)> {
    if tip.parent_snapshot_id.is_none() {
        return Err(Error::Invalid { what: "the first snapshot cannot be amended".into() });
    }
    let other = state.refs.values().find(|reference| {
        reference.snapshot_id == tip.snapshot_id
            && !(reference.kind == ReferenceKind::Branch && reference.name == branch)
    });
    if let Some(other) = other.filter(|_| !force) {
        return Err(Error::Conflict {
            message: format!(
                "{} cannot be amended: the {} {:?} points at it",
                tip.snapshot_id,
                other.kind.noun(),
                other.name
            ),
            conflicts: Vec::new(),
        });
    }
    Ok((tip.parent_snapshot_id.clone(), tip.change_base.clone()))
}

/// Drops a replaced snapshot that nothing needs any more.
fn forget_amended(next: &mut State, id: &str) {
    let needed = next.refs.values().any(|reference| reference.snapshot_id == id)
        || next.snapshots.iter().any(|s| s.parent_snapshot_id.as_deref() == Some(id));
    if !needed {
        let own = next.own_snapshots().iter().any(|snapshot| snapshot.snapshot_id == id);
        next.snapshots.retain(|snapshot| snapshot.snapshot_id != id);
        if !own {
            next.snapshots_changed();
        }
    }
}

/// Names the features that readers must know, in the swap that first uses them.
fn require_features(next: &mut State, tree: &Tree) {
    next.require_wide();
    if tree.nodes().any(|node| node.is_table()) {
        next.require_feature("tables");
    }
    let flags =
        tree.nodes().flat_map(|node| &node.inventories).fold(0, |flags, entry| flags | entry.flags);
    for (bit, name) in [
        (Inventory::OVERRIDES, "delta-inventories"),
        (Inventory::REMOVALS, "removals"),
        (Inventory::VIRTUAL, "virtual"),
    ] {
        if flags & bit != 0 {
            next.require_feature(name);
        }
    }
}
