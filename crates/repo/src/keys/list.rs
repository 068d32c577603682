//! Listing keys.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use chunkyard_format::parent_path;
use chunkyard_store::{Error, Result};

use super::target::{ArrayKeys, array_above};
use super::{DOCUMENT, Keys, folder, folder_of, path_of};
use crate::node::Node;
use crate::session::ChunkScan;

/// About how many keys a batch has.
const BATCH: usize = 1024;

/// The keys that begin with a prefix, in no particular order. Holds a batch of them at a time,
/// however many chunks there are.
#[derive(Debug)]
pub struct Listing {
    keys: Keys,
    prefix: String,
    /// Keys that wait for their place.
    aside: Vec<String>,
    nodes: VecDeque<Arc<Node>>,
    /// The array whose chunks are being listed, and what its keys begin with.
    chunks: Option<(ArrayKeys, String, ChunkScan)>,
}

impl Keys {
    /// Begins to list the keys that begin with a prefix.
    pub fn list_prefix(&self, prefix: &str) -> Listing {
        let aside = self.session.aside_below(prefix).into_iter().map(|(key, _)| key).collect();
        let nodes = self.nodes_with(prefix);
        Listing { keys: self.clone(), prefix: prefix.to_owned(), aside, nodes, chunks: None }
    }

    /// The nodes that may have keys of their own that begin with a prefix.
    fn nodes_with(&self, prefix: &str) -> VecDeque<Arc<Node>> {
        let tree = self.session.tree();
        // The last part of a prefix may be an incomplete name: look in its folder.
        let (within, _) = prefix.rsplit_once('/').unwrap_or(("", prefix));
        let mut above = path_of(within);
        while tree.get(&above).is_none() {
            above = parent_path(&above).unwrap_or("/").to_owned();
        }
        let meets = |node: &&Arc<Node>| {
            let folder = folder_of(&node.path);
            folder.starts_with(prefix) || prefix.starts_with(&folder)
        };
        tree.subtree(&above).filter(meets).cloned().collect()
    }

    /// The names in a folder: the last parts of its keys, and the folders in it.
    pub async fn list_dir(&self, prefix: &str) -> Result<Vec<String>> {
        let folder = folder(prefix);
        let first = |rest: &str| rest.split('/').next().unwrap_or_default().to_owned();
        let mut names = BTreeSet::new();
        for (key, _) in self.session.aside_below(&folder) {
            names.insert(first(key.get(folder.len()..).unwrap_or_default()));
        }
        let tree = self.session.tree();
        let path = path_of(&folder);
        if self.session.is_described(&path) {
            names.insert(DOCUMENT.to_owned());
        }
        for child in tree.children(&path) {
            names.insert(first(child.path.rsplit('/').next().unwrap_or_default()));
        }
        let inside = array_above(&tree, &folder);
        if let Some((array, rest)) = inside {
            let Some(array) = self.known(array)? else { return Ok(names.into_iter().collect()) };
            let mut scan = self.session.scan(&array.node, &array.naming().keys.leading(rest));
            while let Some((coord, _)) = scan.next().await? {
                let key = array.key(&coord);
                let Some(name) = key.as_deref().and_then(|key| key.strip_prefix(rest)) else {
                    continue;
                };
                names.insert(first(name));
                if rest.is_empty() && array.naming().keys.folder().is_some() {
                    break; // all the others are in the same folder
                }
            }
        }
        Ok(names.into_iter().collect())
    }

    /// Whether no key lies in a folder.
    pub async fn is_empty(&self, prefix: &str) -> Result<bool> {
        let folder = folder(prefix);
        let mut listing = self.list_prefix(&folder);
        Ok(listing.next().await?.is_empty())
    }

    /// The total size of the values whose keys begin with a prefix. Fetches no chunk.
    pub async fn size_prefix(&self, prefix: &str) -> Result<u64> {
        let aside = self.session.aside_below(prefix);
        let mut total: u64 = aside.iter().map(|(_, waiting)| waiting.bytes.len() as u64).sum();
        for node in self.nodes_with(prefix) {
            let folder = folder_of(&node.path);
            if format!("{folder}{DOCUMENT}").starts_with(prefix) {
                total += self.document(&node.path).await?.map_or(0, |bytes| bytes.len() as u64);
            }
            if let Some((array, rest, mut scan)) = self.chunks(&node, prefix)? {
                while let Some((coord, payload)) = scan.next().await? {
                    if array.key(&coord).is_some_and(|key| key.starts_with(&rest)) {
                        total += payload.length();
                    }
                }
            }
        }
        Ok(total)
    }

    /// An array whose chunk keys are known.
    fn known(&self, node: &Arc<Node>) -> Result<Option<ArrayKeys>> {
        match self.array_keys(node) {
            Ok(array) => Ok(Some(array)),
            // No chunk can have been set through unknown keys.
            Err(Error::Array(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The chunks of a node, and what their keys, relative to it, must begin with.
    fn chunks(
        &self,
        node: &Arc<Node>,
        prefix: &str,
    ) -> Result<Option<(ArrayKeys, String, ChunkScan)>> {
        if !node.is_array() {
            return Ok(None);
        }
        let Some(array) = self.known(node)? else { return Ok(None) };
        let rest = prefix.strip_prefix(&folder_of(&node.path)).unwrap_or_default().to_owned();
        let scan = self.session.scan(node, &array.naming().keys.leading(&rest));
        Ok(Some((array, rest, scan)))
    }
}

impl Listing {
    /// The next keys; none at the end.
    pub async fn next(&mut self) -> Result<Vec<String>> {
        let mut batch = std::mem::take(&mut self.aside);
        while batch.len() < BATCH {
            if let Some((array, rest, scan)) = &mut self.chunks {
                let Some((coord, _)) = scan.next().await? else {
                    self.chunks = None;
                    continue;
                };
                let key = array.key(&coord).filter(|key| key.starts_with(&**rest));
                batch.extend(key.map(|key| format!("{}{key}", folder_of(&array.node.path))));
                continue;
            }
            let Some(node) = self.nodes.pop_front() else { break };
            let document = format!("{}{DOCUMENT}", folder_of(&node.path));
            if document.starts_with(&self.prefix) && self.keys.session.is_described(&node.path) {
                batch.push(document);
            }
            self.chunks = self.keys.chunks(&node, &self.prefix)?;
        }
        Ok(batch)
    }

    /// All keys that are left.
    pub async fn all(mut self) -> Result<Vec<String>> {
        let mut all = Vec::new();
        loop {
            let batch = self.next().await?;
            if batch.is_empty() {
                return Ok(all);
            }
            all.extend(batch);
        }
    }
}
