//! The naive model: every version whole, in plain vectors.

use std::collections::{BTreeMap, BTreeSet};

/// Elements of a chunk; all arrays have one dimension and this chunk size.
pub(super) const CHUNK: u64 = 3;

/// A node and its identity, which survives moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) uid: u64,
    pub(super) attributes: String,
    /// Shape and elements, the padding of the last chunk included; none for a group.
    pub(super) array: Option<(u64, Vec<u8>)>,
}

/// A version: nodes by path.
pub(super) type Nodes = BTreeMap<String, Node>;

/// A snapshot.
#[derive(Debug, Clone)]
pub(super) struct Version {
    pub(super) id: String,
    pub(super) parent: Option<String>,
    pub(super) nodes: Nodes,
}

/// A session: what it began with, what it has, and which chunks it touched.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    pub(super) base: String,
    pub(super) before: Nodes,
    pub(super) nodes: Nodes,
    pub(super) chunks: BTreeSet<(u64, u64)>,
}

pub(super) fn chunk_count(shape: u64) -> u64 {
    shape.div_ceil(CHUNK)
}

impl Draft {
    pub(super) fn write(&mut self, path: &str, start: u64, end: u64, value: u8) {
        let Some(Node { uid, array: Some((shape, cells)), .. }) = self.nodes.get_mut(path) else {
            return;
        };
        for chunk in start / CHUNK..end.div_ceil(CHUNK) {
            let (first, last) = (chunk * CHUNK, (chunk + 1) * CHUNK);
            if start <= first && end >= last.min(*shape) {
                cells[first as usize..last as usize].fill(0); // a chunk written whole has new padding
            }
            self.chunks.insert((*uid, chunk));
        }
        cells[start as usize..end as usize].fill(value);
    }

    pub(super) fn erase(&mut self, path: &str, chunk: u64) {
        let Some(Node { uid, array: Some((_, cells)), .. }) = self.nodes.get_mut(path) else {
            return;
        };
        cells[(chunk * CHUNK) as usize..((chunk + 1) * CHUNK) as usize].fill(0);
        self.chunks.insert((*uid, chunk));
    }

    pub(super) fn resize(&mut self, path: &str, to: u64) {
        let Some(Node { uid, array: Some((shape, cells)), .. }) = self.nodes.get_mut(path) else {
            return;
        };
        let gone = chunk_count(to)..chunk_count(*shape).max(chunk_count(to));
        self.chunks.extend(gone.map(|chunk| (*uid, chunk)));
        cells.resize((chunk_count(to) * CHUNK) as usize, 0);
        *shape = to;
    }

    /// The session's changes on top of another version; there must be no conflicts.
    pub(super) fn onto(&self, theirs: &Nodes) -> Nodes {
        let uids = |nodes: &Nodes| -> BTreeMap<u64, String> {
            nodes.iter().map(|(path, node)| (node.uid, path.clone())).collect()
        };
        let (before, ours, their_paths) = (uids(&self.before), uids(&self.nodes), uids(theirs));
        let mut merged = theirs.clone();
        for uid in before.keys().filter(|uid| !ours.contains_key(uid)) {
            if let Some(path) = their_paths.get(uid) {
                merged.remove(path);
            }
        }
        let mut placed = Vec::new();
        for (uid, path) in &ours {
            let our = &self.nodes[path];
            let Some(old_path) = before.get(uid) else {
                placed.push((path.clone(), our.clone()));
                continue;
            };
            let old = &self.before[old_path];
            let Some(mut node) = their_paths.get(uid).and_then(|path| merged.remove(path)) else {
                continue; // they removed it, and we did not touch it
            };
            let path = if path == old_path { &their_paths[uid] } else { path };
            if our.attributes != old.attributes {
                node.attributes = our.attributes.clone();
            }
            if let (Some(own), Some(was), Some(their)) = (&our.array, &old.array, &mut node.array) {
                self.lay_chunks(*uid, own, was, their);
            }
            placed.push((path.clone(), node));
        }
        for (path, node) in placed {
            merged.entry(path).or_insert(node); // two equal groups are one, theirs
        }
        merged
    }

    fn lay_chunks(
        &self,
        uid: u64,
        own: &(u64, Vec<u8>),
        was: &(u64, Vec<u8>),
        their: &mut (u64, Vec<u8>),
    ) {
        if own.0 != was.0 {
            their.0 = own.0;
            their.1.resize((chunk_count(own.0) * CHUNK) as usize, 0);
        }
        for (_, chunk) in self.chunks.iter().filter(|(of, _)| *of == uid) {
            let range = (chunk * CHUNK) as usize..((chunk + 1) * CHUNK) as usize;
            if let (Some(from), Some(to)) = (own.1.get(range.clone()), their.1.get_mut(range)) {
                to.copy_from_slice(from);
            }
        }
    }
}

/// The whole repository.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    pub(super) versions: Vec<Version>,
    pub(super) branches: BTreeMap<String, String>,
    pub(super) tags: BTreeMap<String, String>,
    pub(super) retired: BTreeSet<String>,
}

impl Model {
    pub(super) fn version(&self, id: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.id == id)
    }

    pub(super) fn line(&self, id: &str) -> Vec<String> {
        let mut line = Vec::new();
        let mut next = Some(id.to_owned());
        while let Some(version) = next.and_then(|id| self.version(&id)) {
            line.push(version.id.clone());
            next = version.parent.clone();
        }
        line
    }

    pub(super) fn targets(&self) -> BTreeSet<String> {
        self.branches.values().chain(self.tags.values()).cloned().collect()
    }

    /// Keeps referenced snapshots and the newest of each branch.
    pub(super) fn expire(&mut self, keep_last: usize) {
        let mut keep = self.targets();
        for tip in self.branches.values() {
            keep.extend(self.line(tip).into_iter().take(keep_last));
        }
        let old = self.clone();
        self.versions.retain(|version| keep.contains(&version.id));
        for version in &mut self.versions {
            let line = old.line(&version.id);
            version.parent = line.into_iter().skip(1).find(|id| keep.contains(id));
        }
    }

    /// Forgets a replaced tip that nothing needs.
    pub(super) fn forget(&mut self, id: &str) {
        let child = self.versions.iter().any(|version| version.parent.as_deref() == Some(id));
        if !child && !self.targets().contains(id) {
            self.versions.retain(|version| version.id != id);
        }
    }
}
