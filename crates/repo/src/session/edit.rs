//! Changing the hierarchy: creating, describing, moving and deleting nodes.

use std::sync::Arc;

use chunkyard_array::{ArraySpec, Codecs, Grid, GroupSpec, non_finite};
use chunkyard_format::{is_within, normalise_path, parent_path};
use chunkyard_store::{Error, Noun, Result, Uid};
use serde_json::{Map, Value};

use super::{Access, Array, Session, Work};
use crate::coord::Coord;
use crate::manifest::{Payload, Scan};
use crate::node::{Attributes, Node, NodeKind};
use crate::tree::Tree;

impl Session {
    /// Creates an array, and the groups above it that do not exist.
    pub async fn create_array(self: &Arc<Self>, path: &str, spec: ArraySpec) -> Result<Array> {
        // An array that cannot be written is refused before it is created.
        Codecs::new(&spec)?;
        let node = self.define_array(path, spec)?;
        Array::open(self.clone(), &node)
    }

    /// Like [`Session::create_array`], also for arrays that this program cannot decode.
    pub(crate) fn define_array(&self, path: &str, spec: ArraySpec) -> Result<Arc<Node>> {
        let attributes = spec.attributes().clone();
        let spec = spec.with_attributes(Map::new())?;
        self.create(path, NodeKind::Array(spec.into()), attributes)
    }

    /// Creates a group, and the groups above it that do not exist. Attributes may contain numbers
    /// that are not finite, see [`non_finite`].
    pub fn create_group(&self, path: &str, attributes: Map<String, Value>) -> Result<Arc<Node>> {
        let group = GroupSpec::new(attributes);
        let attributes = group.attributes().clone();
        self.create(path, NodeKind::Group { extra: group.members() }, attributes)
    }

    /// Creates a group from its whole document, or applies the document to an existing group.
    pub(crate) fn define_group(&self, path: &str, group: &GroupSpec) -> Result<()> {
        let extra = group.members();
        let path = normalise_path(path)?;
        if self.node(&path).is_err() {
            self.create(&path, NodeKind::Group { extra }, group.attributes().clone())?;
            return Ok(());
        }
        let mut work = self.require_editable()?;
        let tree = Arc::make_mut(&mut work.tree);
        let mut node = (**tree.require(&path)?).clone();
        if let NodeKind::Group { extra: known } = &mut node.kind {
            known.extend(extra);
        }
        if !group.attributes().is_empty() {
            node.attributes = Attributes::Inline(Arc::new(group.attributes().clone()));
        }
        tree.put(Arc::new(node));
        work.describe(&path);
        Ok(())
    }

    pub(super) fn create(
        &self,
        path: &str,
        kind: NodeKind,
        attributes: Map<String, Value>,
    ) -> Result<Arc<Node>> {
        let path = normalise_path(path)?;
        let mut work = self.require_editable()?;
        let tree = Arc::make_mut(&mut work.tree);
        if let Some(existing) = tree.get(&path) {
            return Err(Error::AlreadyExists { what: existing.noun(), name: path });
        }
        make_parents(tree, &path)?;
        let node = Arc::new(Node::new(tree.take_id()?, &path, kind, attributes)?);
        tree.put(node.clone());
        work.describe(&path);
        Ok(node)
    }

    /// Replaces the user attributes of a node. They may contain numbers that are not finite, see
    /// [`non_finite`]; [`Session::plain_attributes`] returns them in the same form.
    pub fn set_attributes(&self, path: &str, mut attributes: Map<String, Value>) -> Result<()> {
        let numbers = non_finite::seal(&mut attributes);
        self.put_attributes(path, attributes, |kind| listing(kind, path, &numbers))
    }

    /// Replaces the user attributes of a node as its document has them, and applies `change` to its
    /// kind.
    pub(super) fn put_attributes(
        &self,
        path: &str,
        attributes: Map<String, Value>,
        change: impl FnOnce(&mut NodeKind) -> Result<()>,
    ) -> Result<()> {
        let path = normalise_path(path)?;
        let mut work = self.require_editable()?;
        let tree = Arc::make_mut(&mut work.tree);
        let mut node = (**tree.require(&path)?).clone();
        change(&mut node.kind)?;
        node.attributes = Attributes::Inline(Arc::new(attributes));
        tree.put(Arc::new(node));
        work.implied.remove(&path);
        Ok(())
    }

    /// Replaces an array's specification. Shape and dimension names may change freely (chunks
    /// outside the new shape are removed); whatever decides how chunks are read may change only
    /// while the array has no chunks. Attributes of the specification replace the node's.
    pub async fn set_spec(&self, path: &str, spec: ArraySpec) -> Result<()> {
        let path = normalise_path(path)?;
        let node = self.node(&path)?;
        let old = node.array()?.clone();
        let attributes = spec.attributes().clone();
        let spec = spec.with_attributes(Map::new())?;
        if !reads_alike(&old, &spec) && self.has_chunks(&node).await? {
            return Err(Error::Invalid {
                what: format!(
                    "{path}: data type, chunk grid, fill value or codecs cannot change while the \
                     array has chunks; create a new array instead"
                ),
            });
        }
        let outside = match (old.grid(), spec.grid()) {
            (Ok(_), Ok(new)) if shrinks(&old, &spec) => self.chunks_outside(&node, &new).await?,
            _ => Vec::new(),
        };
        let mut work = self.require_editable()?;
        for coord in outside {
            record(&mut work, node.uid, coord, Payload::Removed);
        }
        let tree = Arc::make_mut(&mut work.tree);
        let mut changed = (**tree.require(&path)?).clone();
        changed.kind = NodeKind::Array(spec.into());
        if !attributes.is_empty() {
            changed.attributes = Attributes::Inline(Arc::new(attributes));
        }
        tree.put(Arc::new(changed));
        Ok(())
    }

    /// Changes the shape of an array. Chunks outside the new shape are removed.
    pub async fn resize(&self, path: &str, shape: &[u64]) -> Result<()> {
        let spec = (**self.node(path)?.array()?).clone().with_shape(shape)?;
        self.set_spec(path, spec).await
    }

    /// Deletes a node and everything below it.
    pub fn delete(&self, path: &str) -> Result<()> {
        let path = normalise_path(path)?;
        refuse_root(&path)?;
        let mut work = self.require_editable()?;
        work.tree.require(&path)?;
        work.remove_subtree(&path);
        Ok(())
    }

    /// Moves a node and everything below it. References follow, nothing is copied.
    pub fn move_node(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (normalise_path(from)?, normalise_path(to)?);
        refuse_root(&from)?;
        refuse_root(&to)?;
        let mut work = self.require_editable()?;
        let tree = Arc::make_mut(&mut work.tree);
        tree.require(&from)?;
        if let Some(existing) = tree.get(&to) {
            return Err(Error::AlreadyExists { what: existing.noun(), name: to });
        }
        if is_within(&to, &from) {
            return Err(Error::Invalid {
                what: format!("{from} cannot move below itself, to {to}"),
            });
        }
        make_parents(tree, &to)?;
        let moving: Vec<_> = tree.subtree(&from).cloned().collect();
        for node in moving {
            let rest = node.path.strip_prefix(&from).unwrap_or_default();
            let path = format!("{to}{rest}");
            tree.put(Arc::new(Node { path, ..(*node).clone() }));
        }
        work.implied.retain(|implied| !is_within(implied, &from));
        work.describe(&to);
        Ok(())
    }

    pub(super) fn require_editable(&self) -> Result<std::sync::MutexGuard<'_, Work>> {
        if matches!(self.access, Access::Fork { .. }) {
            return Err(Error::Invalid {
                what: "a fork writes chunks; the hierarchy is changed by the session it came from"
                    .into(),
            });
        }
        self.require_writable()
    }

    pub(super) async fn has_chunks(&self, node: &Node) -> Result<bool> {
        let written = |work: &Work| {
            work.chunks.get(&node.uid).is_some_and(|changes| {
                changes.refs.values().any(|change| !change.payload.is_removed())
            })
        };
        Ok(node.refs_count > 0 || !node.inventories.is_empty() || written(&self.work()))
    }

    /// Chunks of a node that a new grid does not contain.
    async fn chunks_outside(&self, node: &Node, grid: &Grid) -> Result<Vec<Coord>> {
        let mut outside = Vec::new();
        let rank = grid.grid_shape().len();
        let mut check = |coord: &[u8]| {
            if crate::coord::decode(coord, rank).is_ok_and(|index| !grid.contains(&index)) {
                outside.push(Coord::from_bytes(coord));
            }
        };
        let mut scan = Scan::new(&self.repo.inner.manifests, node, None);
        while let Some((coord, payload)) = scan.next().await? {
            if !payload.is_removed() {
                check(&coord);
            }
        }
        if let Some(changes) = self.work().chunks.get(&node.uid) {
            changes.refs.keys().for_each(|coord| check(coord.as_bytes()));
        }
        Ok(outside)
    }
}

/// Makes the document of a node list which of its attributes are numbers.
fn listing(kind: &mut NodeKind, path: &str, numbers: &[String]) -> Result<()> {
    match kind {
        NodeKind::Group { extra } => {
            extra.shift_remove(non_finite::MEMBER);
            if !numbers.is_empty() {
                extra.insert(non_finite::MEMBER.to_owned(), non_finite::member(numbers));
            }
        }
        // A table has no document that could list them.
        NodeKind::Table(_) if numbers.is_empty() => {}
        NodeKind::Table(_) => {
            return Err(Error::Invalid {
                what: format!(
                    "{path} is a table: its attributes cannot hold numbers that are not finite"
                ),
            });
        }
        NodeKind::Array(metadata) => {
            let listed = metadata.document(path)?.contains_key(non_finite::MEMBER);
            if listed || !numbers.is_empty() {
                let spec = metadata.spec(path)?.without_members(&[non_finite::MEMBER])?;
                *kind = NodeKind::Array(match numbers {
                    [] => spec.into(),
                    _ => spec.with_member(non_finite::MEMBER, non_finite::member(numbers))?.into(),
                });
            }
        }
    }
    Ok(())
}

/// Notes a reference in a session's changes.
pub(super) fn record(work: &mut Work, uid: Uid, coord: Coord, payload: Payload) {
    let after_forks = work.forks;
    let changes = Arc::make_mut(work.chunks.entry(uid).or_default());
    if let Payload::Inline { bytes } = &payload {
        changes.inline_bytes += bytes.len() as u64;
    }
    let replaced = changes.refs.insert(coord, super::Change { payload, after_forks });
    if let Some(Payload::Inline { bytes }) = replaced.map(|change| change.payload) {
        changes.inline_bytes -= bytes.len() as u64;
    }
}

/// A handle may outlive its array; chunks written through it then would belong to nothing.
pub(super) fn require_node(work: &Work, node: &Node) -> Result<()> {
    match work.tree.by_uid(&node.uid) {
        Some(_) => Ok(()),
        None => Err(Error::NotFound { what: Noun::Array, name: node.path.clone() }),
    }
}

pub(super) fn make_parents(tree: &mut Tree, path: &str) -> Result<()> {
    let Some(parent) = parent_path(path) else { return Ok(()) };
    match tree.get(parent) {
        Some(node) if !node.is_group() => Err(Error::Invalid {
            what: format!("{path} cannot be created: {parent} is {}", node.with_article()),
        }),
        Some(_) => Ok(()),
        None => {
            make_parents(tree, parent)?;
            let node = Node::group(tree.take_id()?, parent)?;
            tree.put(Arc::new(node));
            Ok(())
        }
    }
}

fn refuse_root(path: &str) -> Result<()> {
    if path == "/" {
        return Err(Error::Invalid {
            what: "the root group can be neither moved nor deleted".into(),
        });
    }
    Ok(())
}

/// Whether chunks written under one specification can be read under the other.
pub(super) fn reads_alike(a: &ArraySpec, b: &ArraySpec) -> bool {
    let (a, b) = (a.metadata(), b.metadata());
    a.shape.len() == b.shape.len()
        && a.data_type == b.data_type
        && a.chunk_grid == b.chunk_grid
        && a.fill_value == b.fill_value
        && a.codecs == b.codecs
        && a.storage_transformers == b.storage_transformers
}

/// Whether some dimension became smaller.
fn shrinks(old: &ArraySpec, new: &ArraySpec) -> bool {
    old.shape().iter().zip(new.shape()).any(|(old, new)| new < old)
}
