//! The versions of a repository, and which of several entries for one key counts at a version.
//!
//! Two rules. Blocks and indices follow all parents: the entries that no other entry overrides count, and if
//! two are left, because two parents changed the same thing, there is no answer. The mapping of supervoxels
//! follows the first parents alone ([`Dag::ancestry`]).

use std::collections::{BTreeMap, BTreeSet};

use chunkyard_store::{Error, Noun, Result};
use serde::Serialize;

/// The name that DVID gives to the branch of the root, which has none.
pub const MASTER: &str = "master";

/// The most versions below a version that has several parents somewhere.
const JOINED_MAX: usize = 1 << 14;

/// A version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct VersionNode {
    /// Its number, which keys hold.
    pub id: u32,
    /// Its name, 32 hexadecimal digits.
    pub uuid: String,
    /// The versions it was made from. The first is the one it continues.
    pub parents: Vec<u32>,
    /// Its branch; empty for the branch of the root.
    pub branch: String,
    /// What people wrote about it.
    pub note: String,
    /// When it was made, in milliseconds since 1970, if that is known.
    pub created_ms: Option<i64>,
    /// When it was last changed.
    pub updated_ms: Option<i64>,
    /// Whether it can no longer change.
    pub locked: bool,
}

/// All versions of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dag {
    nodes: BTreeMap<u32, VersionNode>,
}

impl Dag {
    /// The versions, if they hang together: every parent is there, and none is its own ancestor.
    pub fn new(what: &str, nodes: impl IntoIterator<Item = VersionNode>) -> Result<Self> {
        let corrupt = |expected: &str, found: String| Error::Corrupt {
            file: what.to_owned(),
            what: "versions".into(),
            expected: expected.to_owned(),
            found,
        };
        let mut dag = Self::default();
        for node in nodes {
            if let Some(known) = dag.nodes.insert(node.id, node) {
                return Err(corrupt("one version of each number", format!("two of {}", known.id)));
            }
        }
        for node in dag.nodes.values() {
            if let Some(parent) = node.parents.iter().find(|id| !dag.nodes.contains_key(id)) {
                let found = format!("none of the number {parent}, parent of {}", node.uuid);
                return Err(corrupt("all parents", found));
            }
        }
        // Takes away versions without parents until none is left.
        let mut waiting: BTreeMap<u32, usize> = BTreeMap::new();
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for node in dag.nodes.values() {
            let parents: BTreeSet<u32> = node.parents.iter().copied().collect();
            waiting.insert(node.id, parents.len());
            parents.into_iter().for_each(|id| children.entry(id).or_default().push(node.id));
        }
        let mut ready: Vec<u32> =
            waiting.iter().filter(|(_, count)| **count == 0).map(|(id, _)| *id).collect();
        let mut done = 0;
        while let Some(id) = ready.pop() {
            done += 1;
            for child in children.get(&id).into_iter().flatten() {
                if let Some(count) = waiting.get_mut(child) {
                    *count -= 1;
                    if *count == 0 {
                        ready.push(*child);
                    }
                }
            }
        }
        if done != dag.nodes.len() {
            return Err(corrupt("versions that come from a root", "a circle of versions".into()));
        }
        Ok(dag)
    }

    /// All versions, by number.
    pub fn versions(&self) -> impl Iterator<Item = &VersionNode> {
        self.nodes.values()
    }

    /// A version by its number.
    pub fn get(&self, id: u32) -> Option<&VersionNode> {
        self.nodes.get(&id)
    }

    /// All versions, parents before children.
    pub fn in_order(&self) -> Vec<u32> {
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut placed = BTreeSet::new();
        for &id in self.nodes.keys() {
            let mut stack = vec![id];
            while let Some(&top) = stack.last() {
                let parents = self.nodes.get(&top).map_or(&[][..], |node| &node.parents);
                let missing = parents.iter().find(|parent| !placed.contains(*parent));
                match missing {
                    Some(&parent) if !placed.contains(&top) => stack.push(parent),
                    _ => {
                        stack.pop();
                        if placed.insert(top) {
                            order.push(top);
                        }
                    }
                }
            }
        }
        order
    }

    /// The versions that no other was made from.
    pub fn leaves(&self) -> Vec<u32> {
        let parents: BTreeSet<u32> =
            self.nodes.values().flat_map(|node| node.parents.iter().copied()).collect();
        self.nodes.keys().copied().filter(|id| !parents.contains(id)).collect()
    }

    /// The version that a user names: the beginning of its UUID, or that of any version and `:` and a branch,
    /// whose last version is meant; with nothing, the only leaf.
    pub fn find(&self, name: Option<&str>) -> Result<u32> {
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return match self.leaves().as_slice() {
                [leaf] => Ok(*leaf),
                _ => Err(Error::invalid(format!(
                    "name a version by uuid=; there are:\n{}",
                    self.list()
                ))),
            };
        };
        if let Some((start, branch)) = name.split_once(':') {
            self.by_uuid(start)?;
            let branch = if branch == MASTER { "" } else { branch };
            let on: BTreeSet<u32> = self
                .nodes
                .values()
                .filter(|node| node.branch == branch)
                .map(|node| node.id)
                .collect();
            let continued: BTreeSet<u32> = on
                .iter()
                .filter_map(|id| self.nodes.get(id))
                .flat_map(|node| node.parents.first().copied())
                .collect();
            let tips: Vec<u32> = on.difference(&continued).copied().collect();
            return match tips.as_slice() {
                [tip] => Ok(*tip),
                [] => Err(Error::NotFound {
                    what: Noun::Branch,
                    name: format!("{branch}; there are:\n{}", self.list()),
                }),
                _ => Err(Error::invalid(format!(
                    "branch {branch:?} has several ends; name a version:\n{}",
                    self.list()
                ))),
            };
        }
        self.by_uuid(name)
    }

    fn by_uuid(&self, start: &str) -> Result<u32> {
        let found: Vec<&VersionNode> =
            self.nodes.values().filter(|node| node.uuid.starts_with(start)).collect();
        match found.as_slice() {
            [node] => Ok(node.id),
            [] => Err(Error::NotFound {
                what: Noun::Version,
                name: format!("{start}; there are:\n{}", self.list()),
            }),
            several => Err(Error::invalid(format!(
                "{start} is the beginning of {} versions:\n{}",
                several.len(),
                self.list()
            ))),
        }
    }

    fn list(&self) -> String {
        let line = |id: u32| {
            let node = self.nodes.get(&id)?;
            let branch = if node.branch.is_empty() { MASTER } else { &node.branch };
            Some(format!("  {} {branch} {}", node.uuid, node.note))
        };
        let lines: Vec<String> = self.in_order().into_iter().filter_map(line).collect();
        lines.join("\n")
    }

    /// A version and all before it by first parents, nearest first: the way that a mapping takes.
    pub fn ancestry(&self, version: u32) -> Vec<u32> {
        let parent = |id: &u32| self.nodes.get(id).and_then(|node| node.parents.first().copied());
        std::iter::successors(Some(version), parent).collect()
    }

    /// Prepares to resolve many keys at one version.
    pub fn resolver(&self, version: u32) -> Result<Resolver> {
        if !self.nodes.contains_key(&version) {
            return Err(Error::NotFound { what: Noun::Version, name: version.to_string() });
        }
        let mut ancestors = BTreeSet::from([version]);
        let mut stack = vec![version];
        let mut joined = false;
        while let Some(node) = stack.pop().and_then(|id| self.nodes.get(&id)) {
            joined |= node.parents.len() > 1;
            stack.extend(node.parents.iter().copied().filter(|id| ancestors.insert(*id)));
        }
        if !joined {
            let distance = self.ancestry(version).into_iter().zip(0..).collect();
            return Ok(Resolver { version, lineage: Lineage::Chain(distance) });
        }
        if ancestors.len() > JOINED_MAX {
            return Err(Error::unsupported(format!(
                "{} versions with several parents; {JOINED_MAX} at most",
                ancestors.len()
            )));
        }
        let number: BTreeMap<u32, usize> =
            ancestors.iter().enumerate().map(|(at, id)| (*id, at)).collect();
        let words = ancestors.len().div_ceil(64);
        let mut above: Vec<Vec<u64>> = vec![Vec::new(); ancestors.len()];
        for id in self.in_order().into_iter().filter(|id| ancestors.contains(id)) {
            let mut bits = vec![0u64; words];
            let parents = self.nodes.get(&id).map_or(&[][..], |node| &node.parents);
            for parent in parents.iter().filter_map(|id| number.get(id)) {
                bits[parent / 64] |= 1 << (parent % 64);
                bits.iter_mut().zip(&above[*parent]).for_each(|(bit, more)| *bit |= more);
            }
            if let Some(&at) = number.get(&id) {
                above[at] = bits;
            }
        }
        Ok(Resolver { version, lineage: Lineage::Joined { number, above } })
    }
}

/// Finds the entry of a key that counts at one version.
#[derive(Debug, Clone)]
pub struct Resolver {
    version: u32,
    lineage: Lineage,
}

#[derive(Debug, Clone)]
enum Lineage {
    /// Every version has one parent at most: how far each is away.
    Chain(BTreeMap<u32, u32>),
    /// A number for each version, and the ancestors of each as bits.
    Joined { number: BTreeMap<u32, usize>, above: Vec<Vec<u64>> },
}

/// An entry of a key: its version, and whether it says that the thing is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// The version.
    pub version: u32,
    /// Whether it is a tombstone.
    pub tombstone: bool,
}

impl Resolver {
    /// The version.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Whether a version is this one or before it.
    pub fn covers(&self, version: u32) -> bool {
        match &self.lineage {
            Lineage::Chain(distance) => distance.contains_key(&version),
            Lineage::Joined { number, .. } => number.contains_key(&version),
        }
    }

    /// Which of the entries of a key counts, by its place among them; `None` if the thing is not there. If
    /// two parents have different ones, these are the error.
    pub fn resolve(&self, entries: &[Stored]) -> Result<Option<usize>, Vec<u32>> {
        match &self.lineage {
            Lineage::Chain(distance) => {
                let near = |(at, entry): (usize, &Stored)| {
                    Some((*distance.get(&entry.version)?, entry.tombstone, at))
                };
                let nearest = entries.iter().enumerate().filter_map(near).min();
                Ok(nearest.filter(|(_, tombstone, _)| !tombstone).map(|(_, _, at)| at))
            }
            Lineage::Joined { number, above } => {
                let known: Vec<(usize, usize)> = entries
                    .iter()
                    .enumerate()
                    .filter_map(|(at, entry)| Some((at, *number.get(&entry.version)?)))
                    .collect();
                let overridden = |this: usize| {
                    known.iter().any(|(_, other)| {
                        above[*other]
                            .get(this / 64)
                            .is_some_and(|word| word >> (this % 64) & 1 == 1)
                    })
                };
                let left: Vec<usize> = known
                    .iter()
                    .filter(|(at, this)| !overridden(*this) && !entries[*at].tombstone)
                    .map(|(at, _)| *at)
                    .collect();
                match left.as_slice() {
                    [] => Ok(None),
                    [at] => Ok(Some(*at)),
                    several => Err(several.iter().map(|at| entries[*at].version).collect()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: u32, parents: &[u32], branch: &str) -> VersionNode {
        VersionNode {
            id,
            uuid: format!("{id:x}{:031x}", 0),
            parents: parents.to_vec(),
            branch: branch.into(),
            ..VersionNode::default()
        }
    }

    /// 1 ─ 2 ─ 4 ─┐ ;  1 ─ 3 ─┴─ 5
    fn joined() -> Dag {
        let nodes = [
            node(1, &[], ""),
            node(2, &[1], ""),
            node(3, &[1], "side"),
            node(4, &[2], ""),
            node(5, &[4, 3], ""),
        ];
        Dag::new("test", nodes).unwrap()
    }

    fn at(version: u32, tombstone: bool) -> Stored {
        Stored { version, tombstone }
    }

    #[test]
    fn the_nearest_entry_counts_where_each_version_has_one_parent() {
        let resolver = joined().resolver(4).unwrap();
        let entries = [at(1, false), at(2, false), at(3, false)];
        assert_eq!(resolver.resolve(&entries), Ok(Some(1)));
        assert_eq!(resolver.resolve(&[at(1, false), at(4, true)]), Ok(None));
        assert_eq!(resolver.resolve(&[at(3, false)]), Ok(None));
    }

    #[test]
    fn what_two_parents_changed_has_no_answer() {
        let resolver = joined().resolver(5).unwrap();
        assert_eq!(resolver.resolve(&[at(1, false), at(3, false)]), Ok(Some(1)));
        assert_eq!(resolver.resolve(&[at(1, false), at(2, false), at(3, false)]), Err(vec![2, 3]));
        // A tombstone hides what came before it, and nothing of the other parent.
        assert_eq!(resolver.resolve(&[at(2, true), at(3, false)]), Ok(Some(1)));
        assert_eq!(resolver.resolve(&[at(1, false), at(2, true)]), Ok(None));
        let all = [at(2, false), at(3, false), at(5, false)];
        assert_eq!(resolver.resolve(&all), Ok(Some(2)));
    }

    #[test]
    fn the_mapping_follows_first_parents() {
        assert_eq!(joined().ancestry(5), [5, 4, 2, 1]);
    }

    #[test]
    fn a_version_is_found_by_the_beginning_of_its_name() {
        let dag = joined();
        assert_eq!(dag.find(None).unwrap(), 5);
        assert_eq!(dag.find(Some("3")).unwrap(), 3);
        assert_eq!(dag.find(Some("1:side")).unwrap(), 3);
        assert_eq!(dag.find(Some("1:master")).unwrap(), 5);
        assert!(dag.find(Some("f")).is_err());
        assert!(dag.find(Some("1:none")).is_err());
        let order = dag.in_order();
        assert_eq!(order.len(), 5);
        assert!(order.iter().position(|id| *id == 3) < order.iter().position(|id| *id == 5));
    }

    #[test]
    fn versions_in_a_circle_are_refused() {
        for nodes in [
            vec![node(1, &[2], ""), node(2, &[1], "")],
            vec![node(1, &[9], "")],
            vec![node(1, &[], ""), node(1, &[], "")],
        ] {
            assert!(Dag::new("test", nodes).is_err());
        }
    }
}
