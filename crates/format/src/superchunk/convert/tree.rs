//! Several datasets in one directory, which open as one dataset.
//!
//! ```text
//!  meta/hierarchy      {"format": "blz-hierarchy/1", "sealed": true, "groups": {path: attributes}, "arrays": [paths]}
//!  a/b/meta, a/b/data  the array /a/b, a dataset of its own that any reader of BLZ can open
//! ```
//!
//! The list is written last and makes it a tree; without it each dataset is only itself.

use std::collections::BTreeMap;

use chunkyard_array::{Attributes, GroupSpec, non_finite};
use chunkyard_store::{ChunkRef, Error, Result, Store};
use futures::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::check_node_path;
use crate::superchunk::corrupt;
use crate::superchunk::handle::{Blz, BlzOptions};
use crate::superchunk::meta;
use crate::superchunk::names;
use crate::superchunk::read::directory;

/// The file that lists what a tree holds.
pub(crate) const HIERARCHY: &str = "meta/hierarchy";
/// The name of its format.
const FORMAT: &str = "blz-hierarchy/1";
/// The one folder name at the root that arrays cannot have.
const META: &str = "meta";
/// Datasets that are opened at the same time.
const OPENED: usize = 16;

/// A dataset of a tree.
#[derive(Debug)]
pub(crate) struct Member {
    /// Its path in the tree: `/` if it is the only one.
    pub(crate) path: String,
    /// Its folder, with a slash at the end; empty if it is the only one.
    pub(crate) folder: String,
    pub(crate) blz: Blz,
}

impl Member {
    /// Turns a reference within the dataset into one within the tree.
    pub(crate) fn reference(&self, reference: ChunkRef) -> ChunkRef {
        match reference {
            ChunkRef::Object { path, range, guard, check } if !self.folder.is_empty() => {
                let path = format!("{}{path}", self.folder).into();
                ChunkRef::Object { path, range, guard, check }
            }
            other => other,
        }
    }

    /// The error with the file's name in the tree.
    pub(crate) fn named(&self, error: Error) -> Error {
        match error {
            Error::Corrupt { file, what, expected, found } => {
                Error::Corrupt { file: format!("{}{file}", self.folder), what, expected, found }
            }
            other => other,
        }
    }

    /// Whether a file of the tree belongs to this dataset.
    pub(crate) fn owns(&self, path: &str) -> bool {
        path.strip_prefix(&self.folder)
            .is_some_and(|inner| self.blz.shared.current.committed().owns(inner))
    }
}

/// What a tree holds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Hierarchy {
    format: String,
    /// Whether it ends with a checksum. This is at its beginning, so that no damage to one end hides the other.
    #[serde(default)]
    sealed: bool,
    groups: BTreeMap<String, Attributes>,
    arrays: Vec<String>,
}

impl Hierarchy {
    pub(crate) fn new(groups: BTreeMap<String, Attributes>, arrays: Vec<String>) -> Self {
        Self { format: FORMAT.to_owned(), sealed: true, groups, arrays }
    }

    fn parse(bytes: &[u8]) -> Result<Self> {
        let wrong = |expected: &str, found: String| {
            corrupt(HIERARCHY, "the list of arrays", expected, found)
        };
        let no_list =
            |error: serde_json::Error| wrong("JSON of groups and arrays", error.to_string());
        let mut found = non_finite::parse(bytes).map_err(no_list)?;
        let has_seal = found.get(meta::SEAL).is_some();
        if has_seal {
            meta::seal::check(HIERARCHY, bytes)?;
        }
        // Attributes stay verbatim this way; `Deserialize` would change them.
        let groups = match found.get_mut("groups").map(Value::take) {
            Some(Value::Object(groups)) => groups,
            other => {
                let found = other.unwrap_or_default().to_string();
                return Err(wrong("an object of groups", found));
            }
        };
        found["groups"] = Value::Object(Map::new());
        let mut found: Self = serde_json::from_value(found).map_err(no_list)?;
        if found.sealed != has_seal {
            return Err(meta::unsealed(HIERARCHY));
        }
        for (path, attributes) in groups {
            let Value::Object(attributes) = attributes else {
                return Err(wrong("attributes of a group", format!("{path}: {attributes}")));
            };
            found.groups.insert(path, attributes);
        }
        if found.format != FORMAT {
            return Err(Error::unsupported(format!(
                "{HIERARCHY} says {:?}; this reads {FORMAT:?}",
                found.format
            )));
        }
        for path in found.arrays.iter().chain(found.groups.keys()) {
            let inner = path.strip_prefix('/');
            match inner {
                Some("") => {}
                Some(inner) => check_node_path(inner)
                    .map_err(|error| wrong("paths from the root", error.to_string()))?,
                None => return Err(wrong("paths from the root", format!("{path:?}"))),
            }
        }
        Ok(found)
    }

    pub(crate) fn render(&self) -> Result<Vec<u8>> {
        let rendered = serde_json::to_vec(self);
        rendered
            .map(meta::seal::sealed)
            .map_err(|error| Error::invalid(format!("{HIERARCHY}: {error}")))
    }

    /// The groups and their attributes.
    pub(crate) fn groups(&self) -> Vec<(String, GroupSpec)> {
        let all = self.groups.iter();
        all.map(|(path, attributes)| (path.clone(), GroupSpec::new(attributes.clone()))).collect()
    }

    /// Opens all datasets.
    pub(crate) async fn open(&self, store: &Store, options: &BlzOptions) -> Result<Vec<Member>> {
        stream::iter(self.arrays.clone())
            .map(|path| async move {
                let folder = folder_of(&path);
                let below = store.below(folder.trim_end_matches('/'))?;
                let Some(found) = directory::read(&below).await? else {
                    let what = format!("the array {path}");
                    let expected = format!("a dataset in {folder}");
                    return Err(corrupt(HIERARCHY, &what, expected, "none"));
                };
                let blz = Blz::of_directory(below, found, options);
                Ok(Member { path, folder, blz })
            })
            .buffered(OPENED)
            .try_collect()
            .await
    }
}

/// Reads the list at the root, if there is one.
pub(crate) async fn read(store: &Store) -> Result<Option<Hierarchy>> {
    match directory::get(store, HIERARCHY).await? {
        Some(object) => Hierarchy::parse(&object.bytes).map(Some),
        None => Ok(None),
    }
}

/// Whether a file is the list.
pub(crate) fn is_hierarchy(path: &str) -> bool {
    path == HIERARCHY
}

/// The folder of an array of a tree, with a slash at the end.
pub(crate) fn folder_of(path: &str) -> String {
    let mut folder = String::new();
    for (depth, name) in path.trim_matches('/').split('/').enumerate() {
        match depth == 0 && name == META {
            true => folder.push_str("%6Deta"),
            false => folder.push_str(&names::field_dir(name)),
        }
        folder.push('/');
    }
    folder
}

/// The path in the tree of a node of the dataset at `above`.
pub(crate) fn joined(above: &str, path: &str) -> String {
    match (above, path) {
        ("/", path) => path.to_owned(),
        (above, "/") => above.to_owned(),
        (above, path) => format!("{above}{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_an_array_is_its_path_and_never_the_folder_of_the_list() {
        assert_eq!(folder_of("/a/b c"), "a/b%20c/");
        assert_eq!(folder_of("/meta"), "%6Deta/");
        assert_eq!(folder_of("/a/meta"), "a/meta/");
        assert_eq!(folder_of("/__1"), "%5F_1/");
    }

    #[test]
    fn a_list_with_a_flipped_bit_is_refused_and_one_without_a_checksum_is_read() {
        let groups = BTreeMap::from([("/".to_owned(), Attributes::new())]);
        let whole = Hierarchy::new(groups, vec!["/a".to_owned()]).render().unwrap();
        assert!(Hierarchy::parse(&whole).is_ok());
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut other = whole.clone();
                other[at] ^= 1 << bit;
                assert!(Hierarchy::parse(&other).is_err(), "{at}.{bit}");
            }
        }
        let old = br#"{"format":"blz-hierarchy/1","groups":{"/":{}},"arrays":["/a"]}"#;
        assert!(Hierarchy::parse(old).is_ok());
    }

    #[test]
    fn a_list_that_leads_out_of_the_tree_is_refused() {
        let list = |path: &str| Hierarchy::new(BTreeMap::new(), vec![path.to_owned()]);
        assert!(Hierarchy::parse(&list("/a/b").render().unwrap()).is_ok());
        let deep = "/a".repeat(65);
        for path in ["a", "/../a", "/a//b", "", &deep] {
            assert!(Hierarchy::parse(&list(path).render().unwrap()).is_err(), "{path}");
        }
    }
}
