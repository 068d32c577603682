//! Rebasing: carrying a session's changes over to a newer tip, if nothing excludes them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use chunkyard_format::{is_within, parent_path};
use chunkyard_store::{Conflict, ConflictKind, Error, Result, Uid};
use serde_json::{Map, Value};

use super::changes::NodeEdits;
use super::conflict::chunk_conflict;
use super::edit::reads_alike;
use super::{Access, Chunks, Reads, Rebase, Resolve, Session};
use crate::coord::Coord;
use crate::diff::ChangedChunks;
use crate::node::{Attributes, Node};
use crate::state::{Snapshot, State};
use crate::tree::Tree;

impl Session {
    /// Moves the session onto the current tip of its branch. On conflicts it stays as it is.
    pub async fn rebase(&self, policy: Rebase) -> Result<Arc<Snapshot>> {
        let Access::Writable { branch } = &self.access else {
            return Err(Error::Invalid { what: "only a writable session can be rebased".into() });
        };
        let _busy = self.hold()?;
        self.store_tables().await?;
        let state = self.repo.state().await?;
        let tip = state.tip(branch)?.clone();
        if tip.snapshot_id != self.snapshot().snapshot_id {
            self.rebase_onto(&state, &tip, policy).await?;
        }
        Ok(tip)
    }

    pub(super) async fn rebase_onto(
        &self,
        state: &State,
        tip: &Arc<Snapshot>,
        policy: Rebase,
    ) -> Result<()> {
        let base = self.snapshot();
        if state.snapshot(&base.snapshot_id).is_none() {
            return Err(Error::BaseExpired { id: base.snapshot_id.clone() });
        }
        if !state.ancestry(&tip.snapshot_id).any(|s| s.snapshot_id == base.snapshot_id) {
            return Err(Error::Conflict {
                message: format!(
                    "the branch was reset: its tip {} does not descend from {}, on which this \
                     session is based",
                    tip.snapshot_id, base.snapshot_id
                ),
                conflicts: Vec::new(),
            });
        }
        let theirs = self.repo.tree(tip).await?;
        let (base_tree, ours, chunks, reads) = {
            let work = self.work();
            let reads = work.reads.clone().unwrap_or_default();
            (work.base_tree.clone(), work.tree.clone(), work.chunks.clone(), reads)
        };
        // Their chunks that can matter: in arrays that we wrote, read, removed or reshaped.
        let edits = NodeEdits::between(&base_tree, &ours);
        let mut concerned: HashSet<Uid> = chunks.keys().chain(reads.keys()).copied().collect();
        concerned.extend(edits.removed.iter().map(|node| node.uid));
        concerned.extend(edits.changed.iter().map(|(_, node)| node.uid));
        let changed = self.repo.changed_chunks(state, &base, tip, Some(&concerned)).await?;

        let tables = self.table_merge(&base_tree, &ours, &theirs, &edits, policy).await?;

        let mut merge = Merge {
            base: &base_tree,
            ours: &ours,
            theirs: &theirs,
            edits: &edits,
            changed: &changed,
            changed_tables: &tables.changed,
            policy,
            conflicts: tables.conflicts,
        };
        let chunks = merge.chunks(chunks);
        merge.reads(&reads);
        let attributes = self.attribute_pairs(&edits, &theirs).await?;
        let tree = merge.tree(&attributes)?;
        let mut conflicts = merge.conflicts;
        if !conflicts.is_empty() {
            name_commits(&mut conflicts, state, &base, tip);
            return Err(Error::Conflict {
                message: format!("branch moved to {} meanwhile", tip.snapshot_id),
                conflicts,
            });
        }
        {
            let mut work = self.work();
            work.base = tip.clone();
            work.base_tree = theirs;
            work.tree = Arc::new(tree);
            work.chunks = chunks;
            // Their groups and ours are one hierarchy now, in which every group has a document.
            work.implied.clear();
        }
        self.take_theirs(tables.theirs).await
    }

    /// The attributes of nodes that both changed, base and theirs; read from files where needed.
    async fn attribute_pairs(&self, edits: &NodeEdits, theirs: &Tree) -> Result<AttributePairs> {
        let mut pairs = HashMap::new();
        for (before, after) in &edits.changed {
            let Some(their) = theirs.by_uid(&before.uid) else { continue };
            if after.attributes != before.attributes && their.attributes != before.attributes {
                let before_map = self.read_attributes(&before.attributes).await?;
                let their_map = self.read_attributes(&their.attributes).await?;
                pairs.insert(before.uid, (before_map, their_map));
            }
        }
        Ok(pairs)
    }

    async fn read_attributes(&self, attributes: &Attributes) -> Result<Arc<Map<String, Value>>> {
        match attributes {
            Attributes::Inline(map) => Ok(map.clone()),
            Attributes::File(reference) => self.repo.attribute_document(reference).await,
        }
    }
}

type AttributePairs = HashMap<Uid, (Arc<Map<String, Value>>, Arc<Map<String, Value>>)>;

/// A three-way merge in progress.
struct Merge<'a> {
    base: &'a Tree,
    ours: &'a Tree,
    theirs: &'a Tree,
    edits: &'a NodeEdits,
    changed: &'a ChangedChunks,
    /// Tables that we removed and whose rows they changed.
    changed_tables: &'a HashSet<Uid>,
    policy: Rebase,
    conflicts: Vec<Conflict>,
}

impl Merge<'_> {
    fn conflict(&mut self, path: &str, kind: ConflictKind) {
        self.conflicts.push(Conflict::of_node(path, kind));
    }

    /// Our chunks against their nodes and chunks. Returns the chunks that stay.
    fn chunks(&mut self, mut chunks: Chunks) -> Chunks {
        for (uid, own) in &mut chunks {
            let (Some(before), Some(our)) = (self.base.by_uid(uid), self.ours.by_uid(uid)) else {
                continue; // new in this session: no other writer can know it
            };
            let Some(their) = self.theirs.by_uid(uid) else {
                self.conflict(&our.path, ConflictKind::NodeRemoved);
                continue;
            };
            if their.path != before.path {
                self.conflict(&our.path, ConflictKind::NodeMoved);
            }
            if let (Ok(old), Ok(new)) = (before.array(), their.array())
                && (!reads_alike(old, new) || old.shape() != new.shape())
            {
                self.conflict(&our.path, ConflictKind::Metadata);
            }
            let Some(theirs) = self.changed.get(uid) else { continue };
            let both: Vec<Coord> =
                own.refs.keys().filter(|coord| theirs.contains_key(coord)).cloned().collect();
            match self.policy.chunks {
                _ if both.is_empty() => {}
                Resolve::Ours => {}
                Resolve::Theirs => {
                    for coord in &both {
                        Arc::make_mut(own).refs.remove(coord);
                    }
                }
                Resolve::Fail => {
                    let commits = commits_of(theirs, &both);
                    let both: Vec<&Coord> = both.iter().collect();
                    let kind = ConflictKind::Chunk;
                    self.conflicts.push(chunk_conflict(our, kind, &both, commits));
                }
            }
        }
        chunks.retain(|_, own| !own.refs.is_empty());
        chunks
    }

    /// What we read against their chunks.
    fn reads(&mut self, reads: &Reads) {
        for (uid, boxes) in reads {
            let (Some(theirs), Some(node)) = (self.changed.get(uid), self.base.by_uid(uid)) else {
                continue;
            };
            let rank = node.array().map_or(0, |spec| spec.shape().len());
            let was_read = |coord: &Coord| {
                coord.decode(rank).is_ok_and(|index| {
                    boxes.iter().any(|bounds| {
                        bounds.iter().zip(&index).all(|(b, i)| (b.0..b.1).contains(i))
                    })
                })
            };
            let read: Vec<Coord> = theirs.keys().filter(|c| was_read(c)).cloned().collect();
            if !read.is_empty() {
                let commits = commits_of(theirs, &read);
                let read: Vec<&Coord> = read.iter().collect();
                let kind = ConflictKind::ReadChunk;
                self.conflicts.push(chunk_conflict(node, kind, &read, commits));
            }
        }
    }

    /// Our nodes on top of theirs.
    fn tree(&mut self, attributes: &AttributePairs) -> Result<Tree> {
        let mut merged: BTreeMap<Uid, Arc<Node>> =
            self.theirs.nodes().map(|node| (node.uid, node.clone())).collect();
        self.remove_nodes(&mut merged);
        self.change_nodes(&mut merged, attributes);
        let mut tree = Tree::default();
        tree.reserve_ids(self.theirs.next_id());
        let mut taken: HashMap<String, Arc<Node>> = HashMap::new();
        for node in merged.into_values() {
            if let Some(other) = taken.insert(node.path.clone(), node.clone()) {
                self.conflict(&other.path, ConflictKind::PathTaken);
            }
            tree.put(node);
        }
        self.add_nodes(&mut tree, &taken)?;
        // A node whose group is gone: they added it inside a group we removed or moved away.
        let lost: Vec<String> = tree
            .nodes()
            .filter(|node| {
                parent_path(&node.path)
                    .is_some_and(|parent| tree.get(parent).is_none_or(|group| !group.is_group()))
            })
            .map(|node| node.path.clone())
            .collect();
        for path in lost {
            self.conflict(&path, ConflictKind::AddedInside);
        }
        Ok(tree)
    }

    fn remove_nodes(&mut self, merged: &mut BTreeMap<Uid, Arc<Node>>) {
        for before in &self.edits.removed {
            let Some(their) = self.theirs.by_uid(&before.uid) else { continue };
            if their.path != before.path {
                self.conflict(&before.path, ConflictKind::NodeMoved);
            } else if their.kind != before.kind
                || their.attributes != before.attributes
                || self.changed.get(&before.uid).is_some_and(|chunks| !chunks.is_empty())
                || self.changed_tables.contains(&before.uid)
            {
                self.conflict(&before.path, ConflictKind::RemovedNodeChanged);
            }
            let inside: Vec<String> = self
                .theirs
                .subtree(&before.path)
                .filter(|node| self.base.by_uid(&node.uid).is_none())
                .map(|node| node.path.clone())
                .collect();
            for path in inside {
                self.conflict(&path, ConflictKind::AddedInside);
            }
            merged.remove(&before.uid);
        }
    }

    fn change_nodes(&mut self, merged: &mut BTreeMap<Uid, Arc<Node>>, attributes: &AttributePairs) {
        for (before, our) in &self.edits.changed {
            let Some(their) = self.theirs.by_uid(&before.uid) else {
                self.conflict(&our.path, ConflictKind::NodeRemoved);
                continue;
            };
            let mut node = (**their).clone();
            let (we_moved, they_moved) = (our.path != before.path, their.path != before.path);
            let (we_changed, they_changed) = (our.kind != before.kind, their.kind != before.kind);
            if they_moved && (we_changed || our.attributes != before.attributes) {
                self.conflict(&our.path, ConflictKind::NodeMoved);
            }
            if we_moved {
                if they_moved && their.path != our.path {
                    self.conflict(&our.path, ConflictKind::NodeMoved);
                }
                node.path = our.path.clone();
            }
            if we_changed {
                if they_changed && their.kind != our.kind {
                    match self.policy.metadata {
                        Resolve::Fail => self.conflict(&our.path, ConflictKind::Metadata),
                        Resolve::Ours => node.kind = our.kind.clone(),
                        Resolve::Theirs => {}
                    }
                } else {
                    node.kind = our.kind.clone();
                }
                self.check_reshape(before, our);
            }
            if our.attributes != before.attributes {
                node.attributes = match attributes.get(&before.uid) {
                    None => our.attributes.clone(),
                    Some((old, their_map)) => self.merge_attributes(our, their, old, their_map),
                };
            }
            merged.insert(node.uid, Arc::new(node));
        }
    }

    /// A shape of ours that excludes chunks of theirs.
    fn check_reshape(&mut self, before: &Node, our: &Node) {
        let (Ok(old), Ok(new)) = (before.array(), our.array()) else { return };
        let Some(theirs) = self.changed.get(&our.uid).filter(|chunks| !chunks.is_empty()) else {
            return;
        };
        // Ours may have grown and theirs more, so it is not enough to check whether ours shrank.
        let fits = reads_alike(old, new)
            && new.grid().is_ok_and(|grid| {
                theirs
                    .keys()
                    .all(|coord| coord.decode(grid.rank()).is_ok_and(|index| grid.contains(&index)))
            });
        if !fits {
            self.conflict(&our.path, ConflictKind::Metadata);
        }
    }

    fn merge_attributes(
        &mut self,
        our: &Node,
        their: &Node,
        old: &Map<String, Value>,
        their_map: &Map<String, Value>,
    ) -> Attributes {
        if our.attributes == their.attributes {
            return their.attributes.clone();
        }
        // A session holds attributes it set inline, whatever their size.
        if let (true, Attributes::Inline(ours)) =
            (self.policy.merge_attribute_keys, &our.attributes)
            && let Some(merged) = merge_keys(old, ours, their_map)
        {
            return Attributes::Inline(Arc::new(merged));
        }
        match self.policy.attributes {
            Resolve::Ours => our.attributes.clone(),
            Resolve::Theirs => their.attributes.clone(),
            Resolve::Fail => {
                self.conflict(&our.path, ConflictKind::Attributes);
                their.attributes.clone()
            }
        }
    }

    fn add_nodes(&mut self, tree: &mut Tree, taken: &HashMap<String, Arc<Node>>) -> Result<()> {
        let ids: HashSet<u32> = taken.values().map(|node| node.id).collect();
        // A handle given out here must not belong to a later node of ours.
        tree.reserve_ids(self.ours.next_id());
        for node in &self.edits.added {
            if let Some(existing) = taken.get(&node.path) {
                // Two writers that both needed a group made the same one.
                let same_group = existing.is_group()
                    && node.is_group()
                    && existing.kind == node.kind
                    && existing.attributes == node.attributes;
                if !same_group {
                    self.conflict(&node.path, ConflictKind::PathTaken);
                }
                continue;
            }
            let parent = parent_path(&node.path).unwrap_or("/");
            match tree.get(parent) {
                Some(group) if group.is_group() => {}
                Some(_) => self.conflict(&node.path, ConflictKind::PathTaken),
                None if self.base.nodes().any(|n| is_within(parent, &n.path) && n.path != "/") => {
                    self.conflict(parent, ConflictKind::NodeRemoved);
                }
                None => self.conflict(&node.path, ConflictKind::PathTaken),
            }
            let mut added = (**node).clone();
            if ids.contains(&added.id) || added.id < self.theirs.next_id() {
                added.id = tree.take_id()?;
            }
            tree.put(Arc::new(added));
        }
        Ok(())
    }
}

/// Both maps changed against `old`; `None` when some key was changed by both, differently.
fn merge_keys(
    old: &Map<String, Value>,
    ours: &Map<String, Value>,
    theirs: &Map<String, Value>,
) -> Option<Map<String, Value>> {
    let mut merged = theirs.clone();
    for key in old.keys().chain(ours.keys()) {
        let (before, our, their) = (old.get(key), ours.get(key), theirs.get(key));
        if our == before {
            continue;
        }
        if their != before && their != our {
            return None;
        }
        match our {
            Some(value) => merged.insert(key.clone(), value.clone()),
            None => merged.shift_remove(key),
        };
    }
    Some(merged)
}

fn commits_of(theirs: &BTreeMap<Coord, Arc<str>>, coords: &[Coord]) -> Vec<String> {
    let mut commits: Vec<String> = Vec::new();
    for commit in coords.iter().filter_map(|coord| theirs.get(coord)) {
        if !commits.iter().any(|known| **known == **commit) {
            commits.push(commit.to_string());
        }
    }
    commits
}

/// If the commit is unknown, names all commits in between.
fn name_commits(conflicts: &mut [Conflict], state: &State, base: &Snapshot, tip: &Snapshot) {
    let mut between: Vec<String> = state
        .ancestry(&tip.snapshot_id)
        .take_while(|snapshot| snapshot.snapshot_id != base.snapshot_id)
        .map(|snapshot| snapshot.snapshot_id.clone())
        .collect();
    between.reverse();
    for conflict in conflicts.iter_mut().filter(|conflict| conflict.theirs.is_empty()) {
        conflict.theirs = between.clone();
    }
}
