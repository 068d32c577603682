//! Groups and arrays as the keys of a Zarr v3 hierarchy: what a key names, and its value.
//!
//! ```text
//!  zarr.json        the document of the root
//!  a/zarr.json      the document of a node: its specification and its attributes, as one
//!  a/c/0/1          an encoded chunk, by the chunk key encoding of its array
//! ```
//!
//! Used for sessions of a repository, which are also written by such keys, and for views of any source. This module knows
//! neither: `named` looks at the text of a key alone, a [`Naming`] turns the rest of a key into a chunk and back, and
//! [`fetch_values`] brings values, or ranges of them, from wherever the chunks are.

mod range;
mod value;

use chunkyard_array::{ArraySpec, ChunkIndex, ChunkKeys, Grid};
use chunkyard_store::Result;

pub use self::range::ByteRange;
pub use self::value::{StoredValue, fetch_values};
use crate::normalise_path;

/// The last part of the key of every metadata document.
pub const DOCUMENT: &str = "zarr.json";

/// The names of Zarr version 2's documents.
const VERSION_2: [&str; 4] = [".zarray", ".zgroup", ".zattrs", ".zmetadata"];

/// What the text of a key says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyName {
    /// It is the key of the document of the node at a path, which need not exist.
    Document(String),
    /// It would be a document, but not of any possible path, for this reason.
    NoDocument(String),
    /// It is a document of Zarr version 2.
    Version2,
    /// It lies in no folder of the hierarchy.
    Outside,
    /// It may be a chunk, if an array is above it.
    InArray,
}

/// What the text of a key says.
pub fn named(key: &str) -> KeyName {
    let (folder, name) = key.rsplit_once('/').unwrap_or(("", key));
    if VERSION_2.contains(&name) {
        return KeyName::Version2;
    }
    if key.starts_with('/') {
        return KeyName::Outside;
    }
    if name != DOCUMENT {
        return KeyName::InArray;
    }
    match normalise_path(folder) {
        Ok(path) if path.trim_matches('/') == folder => KeyName::Document(path),
        Ok(_) => KeyName::NoDocument(format!("{folder:?} is no path")),
        Err(error) => KeyName::NoDocument(error.to_string()),
    }
}

/// The array that a key lies in, which `array` finds by its path, and the rest of the key.
pub fn array_above<A>(key: &str, array: impl Fn(&str) -> Option<A>) -> Option<(A, &str)> {
    let path = format!("/{key}");
    // Nothing lies below an array, so there is at most one; chunk keys are short.
    path.rmatch_indices('/').filter(|(at, _)| *at > 0).find_map(|(at, _)| {
        let array = array(path.get(..at)?)?;
        Some((array, key.get(at..)?))
    })
}

/// How the chunks of an array are named.
#[derive(Debug, Clone)]
pub struct Naming {
    /// The keys of chunks, relative to the array.
    pub keys: ChunkKeys,
    /// The chunks that there are.
    pub grid: Grid,
    /// Whether a chunk has parts that can be read alone, with their own checksums if the array's
    /// author wanted any.
    pub has_parts: bool,
}

impl Naming {
    /// The names of the chunks of an array.
    pub fn new(spec: &ArraySpec) -> Result<Self> {
        let codecs = &spec.metadata().codecs;
        Ok(Self {
            keys: ChunkKeys::new(spec)?,
            grid: spec.grid()?,
            has_parts: codecs.iter().any(|codec| codec.name() == "sharding_indexed"),
        })
    }

    /// The chunk of a key, if the grid has it.
    pub fn chunk(&self, rest: &str) -> Option<ChunkIndex> {
        self.keys.parse(rest).filter(|index| self.grid.contains(index))
    }

    /// The key of a chunk; `None` if the grid has no such chunk.
    pub fn key(&self, index: &[u64]) -> Option<String> {
        self.grid.contains(index).then(|| self.keys.key(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_says_what_it_can_be() {
        let document = |path: &str| KeyName::Document(path.to_owned());
        for (key, expected) in [
            ("zarr.json", document("/")),
            ("a/b/zarr.json", document("/a/b")),
            ("a/c/0/1", KeyName::InArray),
            ("", KeyName::InArray),
            ("/zarr.json", KeyName::Outside),
            ("a/.zarray", KeyName::Version2),
        ] {
            assert_eq!(named(key), expected, "{key}");
        }
        for key in
            ["../zarr.json", "a/../zarr.json", "a//zarr.json", "./zarr.json", "a/\0/zarr.json"]
        {
            assert!(matches!(named(key), KeyName::NoDocument(_)), "{key}");
        }
    }

    #[test]
    fn the_array_above_a_key_takes_the_rest() {
        let find = |path: &str| (path == "/a/b").then_some(());
        assert_eq!(array_above("a/b/c/0", find), Some(((), "c/0")));
        assert_eq!(array_above("a/b", find), None);
        assert_eq!(array_above("a/c/0", find), None);
        assert_eq!(array_above("", find), None);
    }

    #[test]
    fn only_chunks_of_the_grid_have_names() {
        let spec = ArraySpec::builder(&[4, 4], &[2, 3], "uint8").build().unwrap();
        let naming = Naming::new(&spec).unwrap();
        assert_eq!(naming.chunk("c/1/1"), Some(vec![1, 1]));
        for key in ["c/2/0", "c/0", "c/0/00", "0.0", ""] {
            assert_eq!(naming.chunk(key), None, "{key}");
        }
        assert_eq!(naming.key(&[1, 0]).as_deref(), Some("c/1/0"));
        assert_eq!(naming.key(&[0, 2]), None);
    }
}
