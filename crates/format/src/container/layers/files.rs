//! Where the files of a container are, and how they are reached.

use std::sync::Arc;

use chunkyard_store::{Error, Fetcher, Lock, Noun, Result, Store, TEMP_PREFIX, Uid};

use super::file_names::Names;
use super::footer_reader::Windows;
use super::layer::Layer;
use super::stack::Id;
use crate::Place;
use crate::publish::sync_folders;

/// Windows of large footers that are kept in memory.
const WINDOW_BYTES_MAX: u64 = 16 << 20;

/// Unpacked blocks of several chunks that are kept in memory.
const BLOCK_BYTES_MAX: u64 = 256 << 20;

/// The files of a container: the store, their names there, and caches of what was read of them.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) store: Store,
    pub(crate) names: Names,
    /// Parts of large footers.
    pub(crate) windows: Windows,
    /// Fetches chunks, and keeps blocks that hold several.
    pub(crate) fetcher: Fetcher,
}

impl Files {
    /// The files of the container at a place.
    pub(crate) fn at(place: &Place) -> Result<Arc<Self>> {
        let (store, names) = files_at(place)?;
        let windows = Windows::new(WINDOW_BYTES_MAX, |_, window| window.len());
        let fetcher = Fetcher::within(&store).with_block_cache(BLOCK_BYTES_MAX);
        Ok(Arc::new(Self { store, names, windows, fetcher }))
    }

    /// A name for a temporary file.
    pub(crate) fn temporary_path(&self) -> Result<String> {
        temporary_path(&self.store, &self.names)
    }

    /// Opens the layer with this number.
    pub(crate) async fn open_layer(&self, number: u64) -> Result<Layer> {
        let meta = self.store.head(&self.names.layer(number)).await?;
        Layer::open(&self.store, number, &meta, &self.windows).await
    }

    /// Whether there is no file at a path.
    pub(crate) async fn is_missing(&self, path: &str) -> Result<bool> {
        match self.store.head(path).await {
            Ok(_) => Ok(false),
            Err(Error::NotFound { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Deletes files one after the other: a reader of the remaining files must not find an older one
    /// after a newer one is gone.
    pub(crate) async fn delete_in_order(&self, paths: &[String]) -> Result<()> {
        for path in paths {
            self.store.delete(std::slice::from_ref(path)).await?;
        }
        sync_folders(&self.store, paths).await
    }

    /// Keeps others from compacting and repairing, where there are locks.
    pub(crate) async fn lock_upkeep(&self) -> Result<Option<Lock>> {
        self.store.keep_out(&format!("{}/lock", self.names.work())).await
    }

    /// Lets others go on, and leaves no folder behind.
    pub(crate) async fn unlock_upkeep(&self, lock: Option<Lock>) -> Result<()> {
        if lock.is_some() && self.store.list_dir(&self.names.work()).await?.dirs.is_empty() {
            // The folder held only the lock. A process that waits for the lock makes another one, and
            // may have done so already: then the folder is not empty, and that process deletes it.
            self.store.delete_dir(&self.names.work()).await.ok();
        }
        Ok(())
    }
}

/// The store that a container is in, and the names of its files there.
pub(crate) fn files_at(place: &Place) -> Result<(Store, Names)> {
    let (store, name) = place.object().ok_or_else(|| {
        Error::invalid(format!("{}: a container is a file in a folder", place.url()))
    })?;
    Ok((store.clone(), Names::new(name)?))
}

/// Refuses a place where there is a container, or a file that would be taken for a layer of one.
pub(crate) async fn refuse_occupied(store: &Store, names: &Names) -> Result<()> {
    let found = store.list_dir("").await?;
    let taken = |path: &String| *path == names.base() || names.number(path).is_some();
    let dirs = found.dirs.iter().find(|path| taken(path));
    match found.objects.iter().map(|meta| &meta.path).find(|path| taken(path)).or(dirs) {
        None => Ok(()),
        Some(path) => Err(exists(store, path)),
    }
}

/// The error of a place that is taken.
pub(crate) fn exists(store: &Store, path: &str) -> Error {
    Error::AlreadyExists { what: Noun::ContainerFile, name: store.object_url(path) }
}

/// A name for a temporary file: where files are renamed, beside its place, so that it leaves no folder behind.
pub(crate) fn temporary_path(store: &Store, names: &Names) -> Result<String> {
    let id = Uid::fresh()?;
    Ok(match store.renames() {
        true => format!("{TEMP_PREFIX}{id}"),
        false => format!("{}/{id}", names.work()),
    })
}

/// An identity that no other layer has.
pub(crate) fn fresh_id() -> Result<Id> {
    Ok(*Uid::fresh()?.as_bytes())
}
