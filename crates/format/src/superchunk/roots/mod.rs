//! Which store a file is in: the dataset's own, or one that `meta/sizes` names and the reader allows.

mod bring_back;
pub(crate) mod copy;
mod relocate;

use std::sync::Arc;

use chunkyard_store::{Error, Remotes, Result, Store};

use crate::superchunk::meta::Shards;

/// The store of a dataset, and where else its files may be. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Roots {
    pub(crate) store: Store,
    pub(crate) remotes: Arc<Remotes>,
    shards: Arc<Shards>,
}

/// A file and the store that it is in.
#[derive(Debug, Clone)]
pub(crate) struct Rooted {
    pub(crate) store: Store,
    pub(crate) path: Arc<str>,
    /// Its URL, if it is not in the dataset's own store.
    pub(crate) url: Option<Arc<str>>,
}

impl Rooted {
    /// Its name in messages.
    pub(crate) fn name(&self) -> String {
        match &self.url {
            Some(url) => url.to_string(),
            None => self.path.to_string(),
        }
    }
}

impl Roots {
    pub(crate) fn new(store: Store, remotes: Arc<Remotes>, shards: Shards) -> Self {
        Self { store, remotes, shards: Arc::new(shards) }
    }

    /// Which files are elsewhere.
    pub(crate) fn shards(&self) -> &Shards {
        &self.shards
    }

    /// The same roots with another list of files elsewhere.
    pub(crate) fn with_shards(&self, shards: Shards) -> Self {
        Self { shards: Arc::new(shards), ..self.clone() }
    }

    /// Whether a file is in the dataset's own store.
    pub(crate) fn is_here(&self, file: u64) -> bool {
        self.base_of(file).is_none()
    }

    fn base_of(&self, file: u64) -> Option<&str> {
        // The list counts from 1, as the names of files do.
        self.shards.base_of(file.saturating_add(1))
    }

    /// Where a file is. `path` is its path in the dataset, and the same below any other root.
    pub(crate) async fn resolve(&self, folder: &str, path: &str, file: u64) -> Result<Rooted> {
        let Some(base) = self.base_of(file) else {
            let path = path.into();
            return Ok(Rooted { store: self.store.clone(), path, url: None });
        };
        let url = format!("{}/{path}", base.trim_end_matches('/'));
        if !self.remotes.allows(&url) {
            return Err(Error::invalid(format!(
                "files of {folder} are kept at {base}, which this reader may not read: allow it by its \
                 prefix"
            )));
        }
        let (store, path) = self.remotes.resolve(&url).await?;
        Ok(Rooted { store, path: path.into(), url: Some(url.into()) })
    }
}
