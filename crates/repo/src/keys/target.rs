//! What a key names.

use std::sync::{Arc, PoisonError};

use chunkyard_array::{ArraySpec, ChunkIndex};
use chunkyard_format::keys::{self, KeyName, Naming};
use chunkyard_store::{Error, Result};

use super::Keys;
use crate::coord::Coord;
use crate::node::Node;
use crate::session::Why;
use crate::tree::Tree;

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
    chunks: Arc<ChunkNaming>,
}

/// How the chunks of an array are named, and for which of its specifications.
#[derive(Debug)]
pub(super) struct ChunkNaming {
    spec: Arc<ArraySpec>,
    pub(super) naming: Naming,
}

impl ArrayKeys {
    pub(super) fn naming(&self) -> &Naming {
        &self.chunks.naming
    }

    /// The key of a chunk; `None` if the grid has no such chunk.
    pub(super) fn key(&self, coord: &Coord) -> Option<String> {
        let naming = self.naming();
        naming.key(&coord.decode(naming.grid.rank()).ok()?)
    }
}

impl Keys {
    /// What a key names in a hierarchy.
    pub(super) fn target(&self, tree: &Tree, key: &str) -> Result<KeyTarget> {
        match keys::named(key) {
            KeyName::Version2 => return Ok(KeyTarget::Nowhere(Why::Version2)),
            KeyName::Outside => return Ok(KeyTarget::Nowhere(Why::NoArray)),
            KeyName::Document(path) => return Ok(KeyTarget::Document(path)),
            KeyName::NoDocument(why) => return Ok(KeyTarget::Nowhere(Why::Document(why))),
            KeyName::InArray => {}
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
        match array.naming().keys.parse(rest) {
            None => nowhere("its chunk keys look otherwise"),
            Some(index) if !array.naming().grid.contains(&index) => {
                nowhere("outside its chunk grid")
            }
            Some(index) => Ok(KeyTarget::Chunk(array, Coord::encode(&index))),
        }
    }

    /// The array and the chunk that a key names; `None` for every other key.
    pub fn chunk(&self, key: &str) -> Result<Option<(String, ChunkIndex)>> {
        let KeyTarget::Chunk(array, coord) = self.target(&self.session.tree(), key)? else {
            return Ok(None);
        };
        let index = coord.decode(array.naming().grid.rank()).ok();
        Ok(index.map(|index| (array.node.path.clone(), index)))
    }

    /// How the chunks of an array are named.
    pub(super) fn array_keys(&self, node: &Arc<Node>) -> Result<ArrayKeys> {
        let spec = node.array()?;
        let mut namings = self.namings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(naming) = namings.get(&node.uid).filter(|it| Arc::ptr_eq(&it.spec, spec)) {
            return Ok(ArrayKeys { node: node.clone(), chunks: naming.clone() });
        }
        let chunks = Arc::new(ChunkNaming { spec: spec.clone(), naming: Naming::new(spec)? });
        namings.insert(node.uid, chunks.clone());
        Ok(ArrayKeys { node: node.clone(), chunks })
    }
}

/// The array that a key lies in, and the rest of the key.
pub(super) fn array_above<'t, 'k>(
    tree: &'t Tree,
    key: &'k str,
) -> Option<(&'t Arc<Node>, &'k str)> {
    keys::array_above(key, |path| tree.get(path).filter(|node| node.is_array()))
}
