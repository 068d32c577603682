//! The content of a source, and the input of a sink: groups and arrays by path.

use std::collections::BTreeMap;
use std::sync::Arc;

use chunkyard_array::{ArraySpec, Grid, GroupSpec, Region, Sharding};
use chunkyard_store::{Error, Noun, Result};

/// The longest path, in bytes and in names. Every group above a node is listed by its own path:
/// without limits, a name of a megabyte in which every other byte is a slash takes hundreds of
/// gigabytes.
const PATH_BYTES_MAX: usize = 4096;
const DEPTH_MAX: usize = 64;

/// Refuses a path from a file, given without its leading slash, that cannot be the path of a node.
pub(crate) fn check_node_path(path: &str) -> Result<()> {
    let (len, depth) = (path.len(), path.split('/').count());
    if len > PATH_BYTES_MAX || depth > DEPTH_MAX {
        return Err(Error::unsupported(format!(
            "a path of {len} bytes and {depth} names; a node may have {PATH_BYTES_MAX} and {DEPTH_MAX}"
        )));
    }
    chunkyard_store::check_path(path)
}

/// Groups and arrays by absolute path; `/` is the root.
#[derive(Debug, Clone, Default)]
pub struct Dataset {
    /// The nodes. Every array lies in groups that are listed too, unless it is the root itself.
    pub nodes: BTreeMap<String, Node>,
    /// Content of the source that this model cannot express.
    pub losses: Vec<Loss>,
}

/// A group or an array.
#[derive(Debug, Clone)]
pub enum Node {
    /// A group and its attributes.
    Group(GroupSpec),
    /// An array.
    Array(Arc<ArrayNode>),
}

/// An array as the pipeline sees it.
#[derive(Debug, Clone)]
pub struct ArrayNode {
    /// Metadata of its chunks, attributes included. Where chunks are packed into shards this is the
    /// metadata of the inner chunks: packing is not a codec.
    pub spec: ArraySpec,
    /// How chunks are packed into objects, where the metadata of the format says so.
    pub sharding: Option<Sharding>,
    /// What chunks at the upper edges look like.
    pub edges: Edges,
}

/// What chunks at the upper edges of an array look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Edges {
    /// As large as all others, padded.
    #[default]
    Padded,
    /// Clipped to the array.
    Clipped,
}

/// Something that a conversion would lose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// What a user types to accept it: a word, or the path of a node that is left out.
    pub name: String,
    /// What is lost, and why.
    pub what: String,
}

impl Node {
    /// The Zarr document that describes it, with shards as a codec.
    pub fn render(&self) -> Result<Vec<u8>> {
        match self {
            Self::Group(group) => Ok(group.render()),
            Self::Array(array) => Ok(array.packed_spec()?.render()),
        }
    }
}

impl Dataset {
    /// The array at a path.
    pub fn array(&self, path: &str) -> Result<&Arc<ArrayNode>> {
        match self.nodes.get(path) {
            Some(Node::Array(array)) => Ok(array),
            Some(Node::Group(_)) => {
                Err(Error::NotFound { what: Noun::Array, name: format!("{path} (it is a group)") })
            }
            None => Err(Error::NotFound { what: Noun::Array, name: path.to_owned() }),
        }
    }

    /// All arrays, in the order of their paths.
    pub fn arrays(&self) -> impl Iterator<Item = (&str, &Arc<ArrayNode>)> {
        self.nodes.iter().filter_map(|(path, node)| match node {
            Node::Array(array) => Some((path.as_str(), array)),
            Node::Group(_) => None,
        })
    }

    /// All groups, in the order of their paths.
    pub fn groups(&self) -> impl Iterator<Item = (&str, &GroupSpec)> {
        self.nodes.iter().filter_map(|(path, node)| match node {
            Node::Group(group) => Some((path.as_str(), group)),
            Node::Array(_) => None,
        })
    }

    /// Adds a node, and the groups above it that are missing.
    pub fn insert(&mut self, path: impl Into<String>, node: Node) {
        let path = path.into();
        let mut above = path.as_str();
        while let Some(at) = above.rfind('/').filter(|_| above != "/") {
            above = if at == 0 { "/" } else { above.get(..at).unwrap_or("/") };
            if self.nodes.contains_key(above) {
                break;
            }
            let group = GroupSpec::new(chunkyard_array::Attributes::new());
            self.nodes.insert(above.to_owned(), Node::Group(group));
        }
        self.nodes.insert(path, node);
    }
}

impl Dataset {
    /// The same dataset with padded edge chunks, for formats that know nothing else.
    pub fn with_padded_edges(mut self) -> Result<Self> {
        for node in self.nodes.values_mut() {
            if let Node::Array(array) = node
                && array.edges == Edges::Clipped
            {
                Arc::make_mut(array).edges = Edges::Padded;
            }
        }
        Ok(self)
    }
}

impl ArrayNode {
    /// An array from the metadata that describes it as a whole: sharding becomes packing, not a
    /// codec.
    pub fn new(spec: &ArraySpec) -> Result<Self> {
        let (spec, sharding) = spec.unsharded()?;
        Ok(Self { spec, sharding, edges: Edges::Padded })
    }

    /// The metadata as Zarr writes it, with sharding as a codec.
    pub fn packed_spec(&self) -> Result<ArraySpec> {
        match &self.sharding {
            Some(sharding) => Ok(self.spec.sharded(sharding)?),
            None => Ok(self.spec.clone()),
        }
    }

    /// The grid of its chunks.
    pub fn grid(&self) -> Result<Grid> {
        Ok(self.spec.grid()?)
    }

    /// Bytes of an element; for types of variable length, where it is unknown, 16.
    pub fn item_bytes(&self) -> u64 {
        self.spec.dtype().ok().and_then(|dtype| dtype.item_size()).unwrap_or(16) as u64
    }

    /// Bytes of its elements, stored or not.
    pub fn logical_bytes(&self) -> u64 {
        Region::whole(self.spec.shape()).num_elements().saturating_mul(self.item_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_above_an_array_are_added() {
        let spec = ArraySpec::builder(&[4], &[2], "uint8").build().unwrap();
        let array = Node::Array(Arc::new(ArrayNode::new(&spec).unwrap()));
        let mut dataset = Dataset::default();
        dataset.insert("/a/b/c", array.clone());
        let paths: Vec<_> = dataset.nodes.keys().map(String::as_str).collect();
        assert_eq!(paths, ["/", "/a", "/a/b", "/a/b/c"]);
        let mut root = Dataset::default();
        root.insert("/", array);
        assert_eq!(root.nodes.len(), 1);
        assert!(root.array("/").is_ok());
    }

    #[test]
    fn a_path_that_is_too_deep_is_refused() {
        let deep = vec!["a"; DEPTH_MAX].join("/");
        check_node_path(&deep).unwrap();
        for path in [format!("a/{deep}"), "a/".repeat(1 << 20), "a".repeat(PATH_BYTES_MAX + 1)] {
            let error = check_node_path(&path).unwrap_err();
            assert_eq!(error.kind(), chunkyard_store::ErrorKind::Unsupported, "{error}");
        }
        assert_eq!(
            check_node_path("a/../b").unwrap_err().kind(),
            chunkyard_store::ErrorKind::Invalid
        );
    }
}
