//! Writing and deleting values.

use bytes::Bytes;
use chunkyard_format::parent_path;
use chunkyard_store::{Error, Result};

use super::document::{Document, Refusal};
use super::target::{ArrayKeys, KeyTarget, array_above};
use super::{Keys, folder, folder_of, path_of};
use crate::coord::Coord;
use crate::manifest::Virtual;
use crate::session::Why;
use crate::tree::Tree;

impl Keys {
    /// Sets the value of a key.
    pub async fn set(&self, key: &str, bytes: Bytes) -> Result<()> {
        {
            // Chunks of existing arrays are written side by side.
            let _shared = self.session.exclude(false).await;
            let target = self.target(&self.session.tree(), key)?;
            if let KeyTarget::Chunk(array, coord) = target
                && !bytes.is_empty()
            {
                return self.set_chunk(key, &array, coord, bytes).await;
            }
        }
        let _alone = self.session.exclude(true).await;
        self.set_alone(key, bytes).await
    }

    /// Sets the value of a missing key; returns whether it was missing.
    pub async fn set_if_not_exists(&self, key: &str, bytes: Bytes) -> Result<bool> {
        let _alone = self.session.exclude(true).await;
        if self.exists(key).await? {
            return Ok(false);
        }
        self.set_alone(key, bytes).await?;
        Ok(true)
    }

    /// Points the chunk of a key at a range of an object outside the repository; see
    /// [`Session::set_virtual`](crate::Session::set_virtual).
    pub fn set_virtual(&self, key: &str, reference: Virtual) -> Result<()> {
        if let Some((array, index)) = self.chunk(key)? {
            self.session.drop_aside(key)?;
            return self.session.set_virtual(&array, &index, reference);
        }
        match self.target(&self.session.tree(), key)? {
            KeyTarget::Nowhere(why) => Err(Error::invalid(format!("{key} {why}"))),
            _ => Err(Error::invalid(format!("{key}: a document cannot be elsewhere, only chunks"))),
        }
    }

    async fn set_alone(&self, key: &str, bytes: Bytes) -> Result<()> {
        match self.target(&self.session.tree(), key)? {
            KeyTarget::Document(path) => self.set_document(key, &path, bytes).await,
            KeyTarget::Chunk(array, coord) if bytes.is_empty() => {
                self.session.put_aside(key, bytes, Why::Empty)?;
                self.erase(&array, coord).await
            }
            KeyTarget::Chunk(array, coord) => self.set_chunk(key, &array, coord, bytes).await,
            KeyTarget::Nowhere(why) => self.session.put_aside(key, bytes, why),
        }
    }

    async fn set_chunk(
        &self,
        key: &str,
        array: &ArrayKeys,
        coord: Coord,
        bytes: Bytes,
    ) -> Result<()> {
        if !self.session.has_none_aside() {
            self.session.drop_aside(key)?;
        }
        self.session.set_chunk_of(&array.node, coord, bytes).await
    }

    async fn set_document(&self, key: &str, path: &str, bytes: Bytes) -> Result<()> {
        let refusal = match Document::parse(&bytes) {
            Err(Refusal::None(why)) => why,
            // No key that is written later can make it fit.
            Err(Refusal::Wrong(why)) => {
                let why = Why::Document(why);
                return Err(Error::invalid(format!("{key} {why}")));
            }
            Ok(_) if lies_in_array(&self.session.tree(), path) => "it lies in an array".to_owned(),
            Ok(document) => {
                self.put_document(path, &document).await?;
                self.session.drop_aside(key)?;
                return self.settle(&folder_of(path)).await;
            }
        };
        let why = Why::Document(refusal);
        if self.session.is_described(path) {
            return Err(Error::invalid(format!("{key} {why}")));
        }
        self.session.put_aside(key, bytes, why)
    }

    async fn put_document(&self, path: &str, document: &Document) -> Result<()> {
        // Writing the same document again changes nothing, and is allowed in a fork.
        if self.document(path).await? == Some(document.render()?) {
            return Ok(());
        }
        match document {
            Document::Group(spec) => self.session.put_group(path, spec).await,
            Document::Array(spec) => self.session.put_array(path, (**spec).clone()).await,
        }
    }

    /// Stores waiting keys whose place now exists.
    async fn settle(&self, prefix: &str) -> Result<()> {
        loop {
            let mut progress = false;
            let mut waiting = self.session.aside_below(prefix);
            // From the top: an array decides about the keys in it.
            waiting.sort_by_key(|(key, _)| key.matches('/').count());
            for (key, waiting) in waiting {
                let tree = self.session.tree();
                match self.target(&tree, &key)? {
                    KeyTarget::Chunk(array, coord) if !waiting.bytes.is_empty() => {
                        self.set_chunk(&key, &array, coord, waiting.bytes).await?;
                    }
                    KeyTarget::Chunk(..) => {}
                    KeyTarget::Nowhere(why) => {
                        if why != waiting.why {
                            self.session.put_aside(&key, waiting.bytes, why)?;
                        }
                    }
                    KeyTarget::Document(path) => {
                        let parsed = Document::parse(&waiting.bytes);
                        let Some(document) = parsed.ok().filter(|_| !lies_in_array(&tree, &path))
                        else {
                            continue;
                        };
                        self.put_document(&path, &document).await?;
                        self.session.drop_aside(&key)?;
                        // The loop may have passed its chunks already.
                        progress = true;
                    }
                }
            }
            if !progress {
                return Ok(());
            }
        }
    }

    /// Deletes a key, if it exists.
    pub async fn delete(&self, key: &str) -> Result<()> {
        let _alone = self.session.exclude(true).await;
        if self.session.drop_aside(key)? {
            return Ok(());
        }
        match self.target(&self.session.tree(), key)? {
            KeyTarget::Nowhere(_) => Ok(()),
            KeyTarget::Chunk(array, coord) => self.erase(&array, coord).await,
            KeyTarget::Document(path) if self.session.is_described(&path) => {
                self.session.delete_document(&path)?;
                self.settle(&folder_of(&path)).await
            }
            KeyTarget::Document(_) => Ok(()),
        }
    }

    /// Deletes all keys in a folder: a node goes with everything below it.
    pub async fn delete_dir(&self, prefix: &str) -> Result<()> {
        let _alone = self.session.exclude(true).await;
        let folder = folder(prefix);
        self.session.drop_aside_below(&folder)?;
        let tree = self.session.tree();
        let path = path_of(&folder);
        if tree.get(&path).is_some() {
            return self.session.delete_below(&path);
        }
        let Some((array, rest)) = array_above(&tree, &folder) else { return Ok(()) };
        let array = self.array_keys(array)?;
        let mut scan = self.session.scan(&array.node, &array.naming().keys.leading(rest));
        while let Some((coord, _)) = scan.next().await? {
            if array.key(&coord).is_some_and(|key| key.starts_with(rest)) {
                self.session.erase_chunk_of(&array.node, coord)?;
            }
        }
        Ok(())
    }

    /// Deletes all keys.
    pub async fn clear(&self) -> Result<()> {
        self.delete_dir("").await
    }

    /// Removes an existing chunk. A missing one must not become a change of the session:
    /// zarr-python deletes every chunk that holds only the fill value.
    async fn erase(&self, array: &ArrayKeys, coord: Coord) -> Result<()> {
        let located = self.session.locate_coords(&array.node, std::slice::from_ref(&coord)).await?;
        match located.into_iter().flatten().next() {
            Some(_) => self.session.erase_chunk_of(&array.node, coord),
            None => Ok(()),
        }
    }
}

fn lies_in_array(tree: &Tree, path: &str) -> bool {
    let mut above = parent_path(path);
    while let Some(path) = above {
        if tree.get(path).is_some_and(|node| !node.is_group()) {
            return true;
        }
        above = parent_path(path);
    }
    false
}
