//! The hierarchy of a file: which groups and datasets there are, and under which names.
//!
//! HDF5 is a graph: an object can have many names, and a group can contain itself. Zarr is a tree. A
//! group is entered once, by the first name that leads to it; a dataset stands under each of its
//! names, since two arrays may well point to the same bytes. Objects that get no object are listed,
//! with the reason.

use std::collections::{HashMap, HashSet, VecDeque};

use hdf5_reader::Hdf5File;
use hdf5_reader::error::{Error as ParserError, Result as ParserResult};
use hdf5_reader::messages::HdfMessage;
use hdf5_reader::messages::link::{LinkMessage, LinkTarget};
use hdf5_reader::object_header::ObjectHeader;

use super::links;
use crate::Loss;

/// The most soft links on the way to one object; libhdf5 allows as many.
const SOFT_LINKS_MAX: usize = 16;
/// The most groups and datasets in one file.
const OBJECTS_MAX: usize = 1 << 20;

/// The loss of names that lead to an object under another name, or to another file, or nowhere.
const LINKS: &str = "links";
/// The loss of data types that have a name.
const TYPES: &str = "types";

/// The groups and datasets of a file.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// Groups by path, `/` first and each after its parent.
    pub(super) groups: Vec<NamedObject>,
    /// Datasets by path, with one entry per name.
    pub(super) datasets: Vec<NamedObject>,
    /// Objects and names that are in neither.
    pub(super) losses: Vec<Loss>,
}

/// An object and its name.
#[derive(Debug, Clone)]
pub(super) struct NamedObject {
    /// The path in the tree.
    pub(super) path: String,
    /// A path without soft links.
    pub(super) hard_path: String,
    /// Where its header is.
    pub(super) address: u64,
}

/// The kind of object that a header describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ObjectKind {
    Group,
    Dataset,
    DataType,
}

/// Walks the file from its root.
pub(super) fn walk(file: &Hdf5File) -> ParserResult<Tree> {
    let root = file.root_group()?.address();
    let mut walk = Walk { file, tree: Tree::default(), groups: HashMap::new(), soft: Vec::new() };
    let mut queue = VecDeque::from([NamedObject::hard("/", root)]);
    let mut entered = HashSet::from([root]);
    while let Some(group) = queue.pop_front() {
        walk.enter(group, &mut queue, &mut entered)?;
    }
    // Only now are all targets of soft links known.
    let datasets: HashMap<u64, String> =
        walk.tree.datasets.iter().map(|object| (object.address, object.path.clone())).collect();
    for (path, base, target) in std::mem::take(&mut walk.soft) {
        let mut links_left = SOFT_LINKS_MAX;
        let address = walk.resolve(root, base, &target, &mut links_left);
        let dataset = address.map(|address| (address, datasets.get(&address).cloned()));
        match dataset {
            Some((address, Some(hard_path))) => {
                walk.tree.datasets.push(NamedObject { path, hard_path, address });
            }
            Some((_, None)) => {
                walk.lose(LINKS, &path, format!("a soft link to {target}, no dataset"))
            }
            None => walk.lose(LINKS, &path, format!("a soft link to {target}, which is not there")),
        }
    }
    Ok(walk.tree)
}

impl NamedObject {
    fn hard(path: &str, address: u64) -> Self {
        Self { path: path.to_owned(), hard_path: path.to_owned(), address }
    }
}

struct Walk<'a> {
    file: &'a Hdf5File,
    tree: Tree,
    /// The links of each group, by its address.
    groups: HashMap<u64, HashMap<String, LinkTarget>>,
    /// Path, address of its group, target.
    soft: Vec<(String, u64, String)>,
}

impl Walk<'_> {
    fn enter(
        &mut self,
        group: NamedObject,
        queue: &mut VecDeque<NamedObject>,
        entered: &mut HashSet<u64>,
    ) -> ParserResult<()> {
        let header = self.file.get_or_parse_header(group.address)?;
        let links = match links::list(self.file, &header) {
            Ok(links) => links,
            Err(cause) if group.path != "/" => {
                self.leave_out(&group.path, format!("its links cannot be read: {cause}"));
                Vec::new()
            }
            Err(cause) => return Err(cause),
        };
        for LinkMessage { name, target, .. } in &links {
            let path = join(&group.path, name);
            if let Some(why) = improper(name) {
                self.leave_out(&path, why);
                continue;
            }
            match target {
                LinkTarget::Hard { address } => {
                    self.visit(NamedObject::hard(&path, *address), queue, entered);
                }
                LinkTarget::Soft { path: target } => {
                    self.soft.push((path, group.address, target.clone()));
                }
                LinkTarget::External { filename, path: inside } => {
                    self.lose(LINKS, &path, format!("an external link to {inside} in {filename}"));
                }
            }
            if self.tree.datasets.len() + queue.len() + self.tree.groups.len() > OBJECTS_MAX {
                let what = format!("more than {OBJECTS_MAX} groups and datasets");
                return Err(ParserError::ResourceLimit(what));
            }
        }
        let links = links.into_iter().map(|link| (link.name, link.target)).collect();
        self.groups.insert(group.address, links);
        self.tree.groups.push(group);
        Ok(())
    }

    fn visit(
        &mut self,
        object: NamedObject,
        queue: &mut VecDeque<NamedObject>,
        entered: &mut HashSet<u64>,
    ) {
        match self.file.get_or_parse_header(object.address).map(|header| kind(&header)) {
            Ok(ObjectKind::Dataset) => self.tree.datasets.push(object),
            Ok(ObjectKind::Group) if entered.insert(object.address) => queue.push_back(object),
            Ok(ObjectKind::Group) => self.lose(LINKS, &object.path, "another name of a group"),
            Ok(ObjectKind::DataType) => self.lose(TYPES, &object.path, "a data type of its own"),
            Err(cause) => self.leave_out(&object.path, unreadable(&cause)),
        }
    }

    /// The address of the object that a path leads to, from the group `base`.
    fn resolve(&self, root: u64, base: u64, path: &str, links_left: &mut usize) -> Option<u64> {
        let mut at = if path.starts_with('/') { root } else { base };
        for name in path.split('/').filter(|name| !name.is_empty() && *name != ".") {
            at = match self.groups.get(&at)?.get(name)? {
                LinkTarget::Hard { address } => *address,
                LinkTarget::Soft { path } => {
                    *links_left = links_left.checked_sub(1)?;
                    self.resolve(root, at, path, links_left)?
                }
                LinkTarget::External { .. } => return None,
            };
        }
        Some(at)
    }

    /// A group or dataset that is lost.
    fn leave_out(&mut self, path: &str, what: impl Into<String>) {
        self.tree.losses.push(Loss { name: path.to_owned(), what: what.into() });
    }

    /// A loss of something that holds no data.
    fn lose(&mut self, name: &str, path: &str, what: impl std::fmt::Display) {
        self.tree.losses.push(Loss { name: name.to_owned(), what: format!("{path}: {what}") });
    }
}

/// The kind of object, by the messages of its header.
fn kind(header: &ObjectHeader) -> ObjectKind {
    let has = |wanted: fn(&HdfMessage) -> bool| header.messages.iter().any(wanted);
    if has(|message| matches!(message, HdfMessage::DataLayout(_) | HdfMessage::Dataspace(_))) {
        ObjectKind::Dataset
    } else if has(|message| matches!(message, HdfMessage::Datatype(_))) {
        ObjectKind::DataType
    } else {
        ObjectKind::Group
    }
}

/// Why a header cannot be read, in words for the user.
fn unreadable(cause: &ParserError) -> String {
    match cause {
        // HDF5 §"Data Layout Message": class 3 is a virtual dataset.
        ParserError::UnsupportedLayoutClass(3) => {
            "a virtual dataset, made of parts of other datasets".to_owned()
        }
        cause => format!("it cannot be read: {cause}"),
    }
}

/// Why a name cannot be the name of a node.
fn improper(name: &str) -> Option<&'static str> {
    match name {
        "" | "." | ".." => Some("its name has another meaning in a path"),
        _ if name.contains('/') => Some("its name contains a slash"),
        _ => None,
    }
}

/// The path of a member of a group.
fn join(group: &str, name: &str) -> String {
    format!("{}/{name}", group.trim_end_matches('/'))
}
