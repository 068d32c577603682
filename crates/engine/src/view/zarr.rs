//! Groups and arrays of a source as a Zarr v3 hierarchy.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use chunkyard_array::{ChunkIndex, GroupSpec};
use chunkyard_format::keys::{DOCUMENT, KeyName, Naming, array_above, named};
use chunkyard_format::{ArrayNode, Node, Source, in_zarr3};
use chunkyard_store::{Error, Noun, Result};
use serde_json::{Map, Value as Json, json};

use super::reach::shown;
use super::{ArrayView, Bodies, ViewOptions, bodies};

/// The member of a group's document that repeats the documents below it.
const CONSOLIDATED: &str = "consolidated_metadata";
/// Nodes whose documents are repeated in the document of a group above them, at most.
const CONSOLIDATED_NODES_MAX: usize = 4096;
/// Bytes of these documents at most.
const CONSOLIDATED_BYTES_MAX: usize = 8 << 20;

/// A source as a Zarr v3 hierarchy.
#[derive(Debug)]
pub struct Hierarchy {
    source: Arc<dyn Source>,
    options: ViewOptions,
    bodies: Bodies,
    groups: BTreeMap<String, GroupSpec>,
    arrays: BTreeMap<String, Entry>,
}

/// An array that is shown as soon as it is asked for.
#[derive(Debug)]
struct Entry {
    node: Arc<ArrayNode>,
    shown: OnceLock<Shown>,
}

#[derive(Debug, Clone)]
struct Shown {
    view: ArrayView,
    naming: Arc<Naming>,
}

/// What a key of a hierarchy names.
#[derive(Debug, Clone)]
pub enum Value {
    /// A document.
    Document(Bytes),
    /// A chunk, which may hold nothing but the fill value and then has no value.
    Chunk(ArrayView, ChunkIndex),
}

impl Hierarchy {
    /// Shows a source.
    pub async fn new(source: Arc<dyn Source>, options: ViewOptions) -> Result<Self> {
        let bodies = bodies(&source, options.ids).await?;
        let dataset = in_zarr3(source.dataset().clone())?;
        let (mut groups, mut arrays) = (BTreeMap::new(), BTreeMap::new());
        for (path, node) in dataset.nodes {
            match node {
                Node::Group(group) => {
                    groups.insert(path, group);
                }
                Node::Array(node) => {
                    arrays.insert(path, Entry { node, shown: OnceLock::new() });
                }
            }
        }
        Ok(Self { source, options, bodies, groups, arrays })
    }

    /// What a key names; `None` if nothing does.
    pub fn value(&self, key: &str) -> Result<Option<Value>> {
        match named(key) {
            KeyName::Document(path) => Ok(self.document(&path)?.map(Value::Document)),
            KeyName::InArray => {
                let Some((path, rest)) = array_above(key, |path| {
                    self.arrays.get_key_value(path).map(|(path, _)| path.as_str())
                }) else {
                    return self.chunk("/", key);
                };
                self.chunk(path, rest)
            }
            KeyName::NoDocument(_) | KeyName::Version2 | KeyName::Outside => Ok(None),
        }
    }

    /// The arrays, by their paths.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.arrays.keys().map(String::as_str)
    }

    /// An array, or why it cannot be shown.
    pub fn array(&self, path: &str) -> Result<ArrayView> {
        match self.shown(path)? {
            Some(shown) => Ok(shown.view),
            None => Err(Error::NotFound { what: Noun::Array, name: path.to_owned() }),
        }
    }

    fn chunk(&self, path: &str, rest: &str) -> Result<Option<Value>> {
        let Some(Shown { view, naming }) = self.shown(path)? else { return Ok(None) };
        Ok(naming.chunk(rest).map(|index| Value::Chunk(view, index)))
    }

    fn shown(&self, path: &str) -> Result<Option<Shown>> {
        let Some(entry) = self.arrays.get(path) else { return Ok(None) };
        if let Some(shown) = entry.shown.get() {
            return Ok(Some(shown.clone()));
        }
        let shown = self.show(path, &entry.node)?;
        Ok(Some(entry.shown.get_or_init(|| shown).clone()))
    }

    fn show(&self, path: &str, node: &Arc<ArrayNode>) -> Result<Shown> {
        let shown =
            shown(node, self.options.bytes_max).map_err(|error| Error::for_array(path, error))?;
        let naming = Arc::new(Naming::new(&shown.spec)?);
        let bodies = self.bodies.get(path);
        let view = ArrayView::new(&self.source, path, shown, bodies, self.options.bytes_max)?;
        Ok(Shown { view, naming })
    }

    /// The document of a node.
    fn document(&self, path: &str) -> Result<Option<Bytes>> {
        if let Some(shown) = self.shown(path)? {
            return Ok(Some(shown.view.node().spec.render().into()));
        }
        let Some(group) = self.groups.get(path) else { return Ok(None) };
        let group = group.without_member(CONSOLIDATED);
        let group = match self.consolidated(path)? {
            Some(metadata) => group.with_member(
                CONSOLIDATED,
                json!({"kind": "inline", "must_understand": false, "metadata": metadata}),
            ),
            None => group,
        };
        Ok(Some(group.render().into()))
    }

    /// The documents of all nodes below a group, for readers that cannot list; `None` if there are too many.
    fn consolidated(&self, path: &str) -> Result<Option<Map<String, Json>>> {
        let folder = format!("{}/", path.trim_end_matches('/'));
        let below = |from: &str| from.len() > folder.len() && from.starts_with(&folder);
        let groups =
            self.groups.range(folder.clone()..).take_while(|(at, _)| at.starts_with(&folder));
        let arrays =
            self.arrays.range(folder.clone()..).take_while(|(at, _)| at.starts_with(&folder));
        let mut documents: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
        let mut bytes = 0;
        let paths = groups.map(|(at, _)| at).chain(arrays.map(|(at, _)| at));
        for at in paths.filter(|at| below(at)) {
            let document = match self.groups.get(at) {
                Some(group) => group.without_member(CONSOLIDATED).render(),
                // An array that cannot be shown says so where it is asked for alone.
                None => match self.shown(at) {
                    Ok(Some(shown)) => shown.view.node().spec.render(),
                    Ok(None) | Err(_) => continue,
                },
            };
            bytes += document.len();
            if documents.len() >= CONSOLIDATED_NODES_MAX || bytes > CONSOLIDATED_BYTES_MAX {
                return Ok(None);
            }
            documents.insert(at.get(folder.len()..).unwrap_or_default(), document);
        }
        let mut metadata = Map::new();
        for (at, document) in documents {
            let document = serde_json::from_slice(&document)
                .map_err(|error| Error::invalid(format!("{DOCUMENT} of {at}: {error}")))?;
            metadata.insert(at.to_owned(), document);
        }
        Ok(Some(metadata))
    }
}
