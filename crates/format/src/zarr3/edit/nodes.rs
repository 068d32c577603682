//! Changes of the hierarchy: documents, and the objects that go with them.

use std::cmp::Reverse;
use std::sync::Arc;

use chunkyard_array::{ArraySpec, Attributes, Codecs, GroupSpec};
use chunkyard_store::{Error, Links, Noun, Result};
use futures::{TryStreamExt, future};
use serde_json::{Map, Value};

use super::document::Document;
use super::{Zarr3Array, Zarr3Editor, exclusion};
use crate::publish::{publish, sync_folders, withdraw};
use crate::zarr3::source::ObjectNames;
use crate::zarr3::{METADATA, prefix_of};
use crate::{ArrayNode, Writers};
use crate::{is_within, normalise_path};

impl Zarr3Editor {
    /// Creates a group, and the groups above it that are missing.
    pub async fn create_group(&self, path: &str, attributes: Attributes) -> Result<()> {
        let path = normalise_path(path)?;
        self.insert(&path, Document::Group(GroupSpec::new(attributes))).await
    }

    /// Creates an array, and the groups above it that are missing.
    pub async fn create_array(&self, path: &str, spec: &ArraySpec) -> Result<Zarr3Array> {
        let path = normalise_path(path)?;
        Codecs::new(spec)?;
        self.insert(&path, Document::Array(spec.clone().into())).await?;
        Zarr3Array::open(&self.store, &path, spec)
    }

    /// Replaces the attributes of a node.
    pub async fn set_attributes(&self, path: &str, attributes: Attributes) -> Result<()> {
        let path = normalise_path(path)?;
        let documents = exclusion::of_documents(&self.store);
        let _exclusive = documents.exclude(true).await;
        let changed = self.require(&path).await?.replace_attributes(attributes)?;
        self.publish(&path, &[(path.clone(), changed)]).await
    }

    /// Changes the shape of an array. Chunks outside the new shape are deleted. A chunk at its edge
    /// keeps elements outside the shape, stored and unseen, as in any Zarr.
    pub async fn resize(&self, path: &str, shape: &[u64]) -> Result<()> {
        let path = normalise_path(path)?;
        let (documents, array) = self.locks(&path);
        let _exclusive = (documents.exclude(true).await, array.exclude(true).await);
        let document = self.require(&path).await?;
        let old = document.array(&path)?;
        let spec = old.with_shape(shape)?;
        let shrinks = old.shape().iter().zip(shape).any(|(old, new)| new < old);
        self.publish(&path, &[(path.clone(), Document::Array(spec.clone().into()))]).await?;
        match shrinks {
            true => self.delete_chunks(&path, &spec, false).await,
            false => Ok(()),
        }
    }

    /// Deletes a node and everything below it, the deepest first.
    pub async fn delete(&self, path: &str) -> Result<()> {
        let path = normalise_path(path)?;
        if path == "/" {
            return Err(Error::invalid("the root of a hierarchy cannot be deleted"));
        }
        let (documents, array) = self.locks(&path);
        let _exclusive = (documents.exclude(true).await, array.exclude(true).await);
        self.require(&path).await?;
        self.consolidate(&path, |below, prefix| {
            below.retain(|key, _| !is_within(&format!("/{prefix}{key}"), &path));
        })
        .await?;
        // Without its document it is no node any more, however many of its objects remain. The
        // deepest go first: if this is cut short, every remaining node still has its groups above it.
        let prefix = prefix_of(&path);
        let objects = self.store.list_links(&prefix, Links::Skip).await?;
        let objects = objects.map_ok(|meta| meta.path);
        let is_document = |name: &String| future::ready(file_name(name) == METADATA);
        let mut documents: Vec<String> = objects.try_filter(is_document).try_collect().await?;
        documents.sort_by_key(|name| Reverse(name.matches('/').count()));
        for document in documents {
            withdraw(&self.store, &[document]).await?;
        }
        self.store.delete_dir(&prefix).await?;
        sync_folders(&self.store, &[prefix.trim_end_matches('/').to_owned()]).await?;
        self.note(|dataset| dataset.nodes.retain(|name, _| !is_within(name, &path)));
        Ok(())
    }

    /// The locks for documents, and for the chunks of an array.
    fn locks(&self, path: &str) -> (Arc<Writers>, Arc<Writers>) {
        (exclusion::of_documents(&self.store), exclusion::of_array(&self.store, path))
    }

    /// Adds a node where none exists.
    async fn insert(&self, path: &str, document: Document) -> Result<()> {
        let documents = exclusion::of_documents(&self.store);
        let _exclusive = documents.exclude(true).await;
        let mut new = Vec::new();
        for above in ancestors(path) {
            match self.document(above).await? {
                Some(Document::Group(_)) => {}
                Some(Document::Array(_)) => {
                    let what = format!("{path} cannot be created: {above} is an array");
                    return Err(Error::invalid(what));
                }
                None => {
                    let group = Document::Group(GroupSpec::new(Attributes::new()));
                    new.push((above.to_owned(), group));
                }
            }
        }
        if let Some(existing) = self.document(path).await? {
            let what = match existing {
                Document::Array(_) => Noun::Array,
                Document::Group(_) => Noun::Group,
            };
            return Err(Error::AlreadyExists { what, name: path.to_owned() });
        }
        if let Document::Array(spec) = &document {
            // Otherwise chunks left by an interrupted deletion would come to life again.
            self.delete_chunks(path, spec, true).await?;
        }
        new.push((path.to_owned(), document));
        self.publish(path, &new).await
    }

    /// Publishes documents on the way to a path, the topmost first, and then the groups that repeat
    /// them.
    pub(super) async fn publish(&self, path: &str, changed: &[(String, Document)]) -> Result<()> {
        for (path, document) in changed {
            let name = format!("{}{METADATA}", prefix_of(path));
            publish(&self.store, vec![(name, document.render())]).await?;
        }
        self.consolidate(path, |below, prefix| {
            for (path, document) in changed {
                if let Some(key) = path.trim_start_matches('/').strip_prefix(prefix) {
                    below.insert(key.to_owned(), document.repeated());
                }
            }
        })
        .await?;
        for (path, document) in changed {
            let node = document.node()?;
            self.note(|dataset| dataset.insert(path.clone(), node));
        }
        Ok(())
    }

    /// Changes the consolidated metadata of the groups above a node, where they have any. `change`
    /// gets the documents that a group repeats, by path, and the prefix that these paths lack.
    async fn consolidate(
        &self,
        path: &str,
        change: impl Fn(&mut Map<String, Value>, &str),
    ) -> Result<()> {
        for above in ancestors(path) {
            let Some(document) = self.document(above).await? else { continue };
            let Some(mut below) = document.consolidated() else { continue };
            change(&mut below, &prefix_of(above));
            let name = format!("{}{METADATA}", prefix_of(above));
            publish(&self.store, vec![(name, document.with_consolidated(below).render())]).await?;
        }
        Ok(())
    }

    /// Deletes the chunks of an array that lie outside its shape, or all of them.
    async fn delete_chunks(&self, path: &str, spec: &ArraySpec, all: bool) -> Result<()> {
        let node = ArrayNode::new(spec)?;
        let (names, grid) = (ObjectNames::new(path, &node)?, node.grid()?);
        let doomed = |name: &str| names.parse(name).is_some() && (all || !names.has(name, &grid));
        let objects = self.store.list(&prefix_of(path)).await?;
        let doomed =
            objects.map_ok(|meta| meta.path).try_filter(|name| future::ready(doomed(name)));
        let doomed: Vec<String> = doomed.try_collect().await?;
        withdraw(&self.store, &doomed).await
    }
}

/// The paths of the groups above a node, the root first.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    let slashes = path.match_indices('/').map(|(at, _)| at);
    slashes
        .filter(move |_| path != "/")
        .map(|at| if at == 0 { "/" } else { path.get(..at).unwrap_or("/") })
}

/// The last part of the name of an object.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
