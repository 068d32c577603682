//! What a key names.

use std::sync::{Arc, PoisonError};

use chunkyard_array::{ArraySpec, ChunkIndex, ChunkKeys, Grid};
use chunkyard_format::normalise_path;
use chunkyard_store::{Error, Result};

use super::{DOCUMENT, Keys, folder_of};
use crate::coord::Coord;
use crate::node::Node;
use crate::session::Why;
use crate::tree::Tree;

/// The names of Zarr version 2's documents.
const VERSION_2: [&str; 4] = [".zarray", ".zgroup", ".zattrs", ".zmetadata"];

/// What a key names.
#[derive(Debug)]
pub(super) enum KeyTarget {
    /// The document of the node at a path, which need not exist.
    Document(String),
    /// A chunk of an existing array.
    Chunk(ArrayKeys, Coord),
    /// Nothing.
    Nowhere(Why),
}

/// An array and how its chunks are named. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct ArrayKeys {
    pub(super) node: Arc<Node>,
    pub(super) naming: Arc<ChunkNaming>,
}

/// How the chunks of an array are named.
#[derive(Debug)]
pub(super) struct ChunkNaming {
    spec: Arc<ArraySpec>,
    pub(super) keys: ChunkKeys,
    pub(super) grid: Grid,
    /// Whether a chunk has parts that can be read alone, with their own checksums if the array's
    /// author wanted any.
    pub(super) has_parts: bool,
}

impl ChunkNaming {
    fn new(spec: &Arc<ArraySpec>) -> Result<Self> {
        let codecs = &spec.metadata().codecs;
        Ok(Self {
            spec: spec.clone(),
            keys: ChunkKeys::new(spec)?,
            grid: spec.grid()?,
            has_parts: codecs.iter().any(|codec| codec.name() == "sharding_indexed"),
        })
    }
}

impl ArrayKeys {
    /// The key of a chunk; `None` if the grid has no such chunk.
    pub(super) fn key(&self, coord: &Coord) -> Option<String> {
        let index = coord.decode(self.naming.grid.rank()).ok()?;
        self.naming.grid.contains(&index).then(|| self.naming.keys.key(&index))
    }
}

impl Keys {
    /// What a key names in a hierarchy.
    pub(super) fn target(&self, tree: &Tree, key: &str) -> Result<KeyTarget> {
        let (folder, name) = key.rsplit_once('/').unwrap_or(("", key));
        if VERSION_2.contains(&name) {
            return Ok(KeyTarget::Nowhere(Why::Version2));
        }
        if key.starts_with('/') {
            return Ok(KeyTarget::Nowhere(Why::NoArray));
        }
        if name == DOCUMENT {
            return Ok(match normalise_path(folder) {
                Ok(path) if folder_of(&path).trim_end_matches('/') == folder => {
                    KeyTarget::Document(path)
                }
                Ok(_) => KeyTarget::Nowhere(Why::Document(format!("{folder:?} is no path"))),
                Err(error) => KeyTarget::Nowhere(Why::Document(error.to_string())),
            });
        }
        let Some((array, rest)) = array_above(tree, key) else {
            return Ok(KeyTarget::Nowhere(Why::NoArray));
        };
        let array = match self.array_keys(array) {
            Ok(array) => array,
            // Legal, and kept as it is; but this program cannot tell which chunk the key names.
            Err(error @ Error::Array(_)) => {
                return Ok(KeyTarget::Nowhere(Why::Array(error.to_string())));
            }
            Err(error) => return Err(error),
        };
        let nowhere = |why: &str| Ok(KeyTarget::Nowhere(Why::Array(why.to_owned())));
        match array.naming.keys.parse(rest) {
            None => nowhere("its chunk keys look otherwise"),
            Some(index) if !array.naming.grid.contains(&index) => nowhere("outside its chunk grid"),
            Some(index) => Ok(KeyTarget::Chunk(array, Coord::encode(&index))),
        }
    }

    /// The array and the chunk that a key names; `None` for every other key.
    pub fn chunk(&self, key: &str) -> Result<Option<(String, ChunkIndex)>> {
        let KeyTarget::Chunk(array, coord) = self.target(&self.session.tree(), key)? else {
            return Ok(None);
        };
        let index = coord.decode(array.naming.grid.rank()).ok();
        Ok(index.map(|index| (array.node.path.clone(), index)))
    }

    /// How the chunks of an array are named.
    pub(super) fn array_keys(&self, node: &Arc<Node>) -> Result<ArrayKeys> {
        let spec = node.array()?;
        let mut namings = self.namings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(naming) = namings.get(&node.uid).filter(|it| Arc::ptr_eq(&it.spec, spec)) {
            return Ok(ArrayKeys { node: node.clone(), naming: naming.clone() });
        }
        let naming = Arc::new(ChunkNaming::new(spec)?);
        namings.insert(node.uid, naming.clone());
        Ok(ArrayKeys { node: node.clone(), naming })
    }
}

/// The array that a key lies in, and the rest of the key.
pub(super) fn array_above<'t, 'k>(
    tree: &'t Tree,
    key: &'k str,
) -> Option<(&'t Arc<Node>, &'k str)> {
    let path = format!("/{key}");
    // Nothing lies below an array, so there is at most one; chunk keys are short.
    path.rmatch_indices('/').filter(|(at, _)| *at > 0).find_map(|(at, _)| {
        let node = tree.get(path.get(..at)?).filter(|node| node.is_array())?;
        Some((node, key.get(at..)?))
    })
}
