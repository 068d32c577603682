//! Plain Zarr of version 3, changed in place.
//!
//! ```text
//!  Zarr3Editor ─┬─ create_group, create_array, set_attributes, resize, delete    one document each
//!               └─ array ─▶ Zarr3Array ─┬─ reader     chunks, also one by one out of a shard
//!                                       └─ writer     whole objects: a chunk, or a shard
//! ```
//!
//! Each object, a document or a chunk, is the old one or the new one, also after a power cut
//! (`publish`), and durable before a call returns. A call that changes several is *not* one step:
//! others may see some of its chunks before the rest, and a crash may leave it half done. A caller
//! that needs more keeps the arrays in a repository.
//!
//! Threads of one process that change parts of the same chunk wait for each other (`exclusion`);
//! processes do not, and must write whole chunks or different ones. Consolidated metadata of groups
//! above a change is updated; where it is missing, none is made. A shard is read, changed and
//! written whole.

mod array;
mod as_editor;
mod document;
mod exclusion;
mod nodes;

use std::sync::{Arc, Mutex, PoisonError};

pub use self::array::Zarr3Array;
use chunkyard_store::{Error, Kind, Noun, Result, Store};

use self::document::Document;
use super::source::Zarr3Source;
use super::{METADATA, hierarchy, prefix_of};
use crate::{Dataset, Node, Source};

/// A hierarchy that is changed in place. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Zarr3Editor {
    store: Store,
    /// The nodes at the time of opening, with the changes made here.
    dataset: Arc<Mutex<Arc<Dataset>>>,
}

impl Zarr3Editor {
    /// Opens the hierarchy at the root of a store.
    pub async fn open(store: Store) -> Result<Self> {
        refuse_read_only(&store)?;
        let dataset = hierarchy::read(&store).await?.dataset;
        let editor = Self { store, dataset: Arc::new(Mutex::new(Arc::new(dataset))) };
        editor.require("/").await?;
        Ok(editor)
    }

    /// Creates a hierarchy with a group, or one array, as its root. Refuses an occupied place.
    pub async fn create(store: Store, root: Node) -> Result<Self> {
        refuse_read_only(&store)?;
        let found = store.list_dir("").await?;
        if !found.dirs.is_empty() || !found.objects.is_empty() {
            let name = store.url().to_owned();
            return Err(Error::AlreadyExists { what: Noun::Occupant, name });
        }
        let editor = Self { store, dataset: Arc::default() };
        editor.publish("/", &[("/".to_owned(), Document::of(&root)?)]).await?;
        Ok(editor)
    }

    /// The nodes, as far as this editor knows: changes made elsewhere since are not seen.
    pub fn dataset(&self) -> Arc<Dataset> {
        self.dataset.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same as a source, which reads and does not change.
    pub fn source(&self) -> Result<Arc<dyn Source>> {
        let (store, dataset) = (self.store.clone(), (*self.dataset()).clone());
        Ok(Arc::new(Zarr3Source::of(store, dataset, String::new())?))
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// An array, as it is now, for reading and writing.
    pub async fn array(&self, path: &str) -> Result<Zarr3Array> {
        let path = crate::normalise_path(path)?;
        let document = self.require(&path).await?;
        let node = document.node()?;
        self.note(|dataset| dataset.insert(path.clone(), node));
        Zarr3Array::open(&self.store, &path, document.array(&path)?)
    }

    /// The document of a node as it is now; `None` if there is no node.
    async fn document(&self, path: &str) -> Result<Option<Document>> {
        let name = format!("{}{METADATA}", prefix_of(path));
        match self.store.get(&name).await {
            Ok(object) => Document::parse(&name, &object.bytes).map(Some),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn require(&self, path: &str) -> Result<Document> {
        if let Some(document) = self.document(path).await? {
            return Ok(document);
        }
        match self.dataset().nodes.contains_key(path) {
            // It exists, but not as a document of version 3.
            true => Err(Error::unsupported(format!("changing {path}, which is Zarr of version 2"))),
            false => Err(Error::NotFound { what: Noun::Node, name: path.to_owned() }),
        }
    }

    /// Updates the nodes that this editor knows.
    fn note(&self, change: impl FnOnce(&mut Dataset)) {
        let mut dataset = self.dataset.lock().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut dataset));
    }
}

fn refuse_read_only(store: &Store) -> Result<()> {
    match store.kind() {
        Kind::ReadOnly => {
            Err(Error::unsupported(format!("writing to {}, a web server", store.url())))
        }
        _ => Ok(()),
    }
}
