//! A directory as a store.
//!
//! Our own and not `object_store`'s, because a repository on a file system lives from what that
//! interface does not have: fsync, hard links that do not replace, locks, positioned reads of many
//! ranges in one go. Every call is one task on the blocking pool, however many ranges or files it
//! names; only `sync` takes several, because waiting for a disk is worth doing in parallel.

mod change;
mod delete;
mod durable;
mod link;
mod lock;
mod read;
mod upload;
mod walk;
mod write;

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;

use self::durable::Directories;
pub(super) use self::read::{check_range, short};
use self::upload::LocalUpload;
pub use self::write::TEMP_PREFIX;
use super::backend::{
    Backend, Created, Dir, Kind, Linked, Lock, Meta, Object, Replaced, Version, no,
};
use super::guard::Guard;
use super::options::Durability;
use super::path::{check_dir, check_path};
use super::upload::Upload;
use crate::alone::in_place;
use crate::error::{Error, Result};

/// The files below a directory.
#[derive(Debug, Clone)]
pub struct Local {
    root: Arc<Path>,
    directories: Arc<Directories>,
    durability: Durability,
}

impl Local {
    /// The files below `root`, which need not exist yet and is created by the first put.
    pub fn new(root: impl AsRef<Path>, durability: Durability) -> Result<Self> {
        let root = root.as_ref();
        let absolute = std::path::absolute(root)
            .map_err(|error| Error::store("find", root.display().to_string(), error))?;
        let root: Arc<Path> = absolute.into();
        Ok(Self { directories: Arc::new(Directories::new(root.clone())), root, durability })
    }

    /// The directory, absolute.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn file(&self, path: &str) -> Result<File> {
        check_path(path)?;
        Ok(File { name: path.to_owned(), path: self.root.join(path) })
    }

    fn files(&self, paths: &[String]) -> Result<Vec<File>> {
        paths.iter().map(|path| self.file(path)).collect()
    }

    fn directory(&self, path: &str) -> Result<PathBuf> {
        let path = check_dir(path)?;
        Ok(if path.is_empty() { self.root.to_path_buf() } else { self.root.join(path) })
    }
}

/// A checked path: by its name in the store and on the disk.
#[derive(Debug, Clone)]
struct File {
    name: String,
    path: PathBuf,
}

impl File {
    /// What an I/O error on this file means to the caller.
    fn error(&self, op: &'static str, error: impl Into<io::Error>) -> Error {
        let error = error.into();
        match error.kind() {
            // `a/b` does not exist if `a` is a file, as on any object store.
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => self.missing(),
            _ => Error::store(op, self.path.display().to_string(), error),
        }
    }

    fn missing(&self) -> Error {
        Error::NotFound { what: "object", name: self.name.clone() }
    }
}

/// Where a path really is, if that is at or below `root`, whatever the links on the way say.
fn resolved(path: &Path, root: &Path) -> io::Result<Option<PathBuf>> {
    let (path, root) = (fs::canonicalize(path)?, fs::canonicalize(root)?);
    Ok(path.starts_with(root).then_some(path))
}

/// Runs blocking calls where they block nobody else, or only somebody who does nothing else.
async fn blocking<T: Send + 'static>(
    op: &'static str,
    run: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match in_place(run) {
        Ok(done) => done,
        Err(run) => elsewhere(op, run).await,
    }
}

/// Begins blocking calls on a thread of their own.
fn elsewhere<T: Send + 'static>(
    op: &'static str,
    run: impl FnOnce() -> Result<T> + Send + 'static,
) -> impl Future<Output = Result<T>> {
    let task = tokio::task::spawn_blocking(run);
    async move {
        match task.await {
            Ok(result) => result,
            Err(error) => Err(Error::store(op, "on a blocking thread", error)),
        }
    }
}

#[async_trait]
impl Backend for Local {
    fn kind(&self) -> Kind {
        Kind::Local
    }

    async fn get(&self, path: &str) -> Result<Object> {
        let file = self.file(path)?;
        blocking("read", move || read::whole(&file)).await
    }

    async fn get_all(&self, paths: &[Arc<str>]) -> Result<Vec<Option<Bytes>>> {
        let files: Vec<File> = paths.iter().map(|path| self.file(path)).collect::<Result<_>>()?;
        blocking("read", move || read::all(&files)).await
    }

    async fn get_ranges(
        &self,
        path: &str,
        ranges: &[Range<u64>],
        guard: Option<&Guard>,
    ) -> Result<Vec<Bytes>> {
        let file = self.file(path)?;
        let (ranges, guard) = (ranges.to_vec(), guard.cloned());
        blocking("read", move || read::ranges(&file, &ranges, guard.as_ref())).await
    }

    async fn head(&self, path: &str) -> Result<Meta> {
        let file = self.file(path)?;
        blocking("look up", move || read::head(&file)).await
    }

    async fn put(&self, path: &str, bytes: Vec<Bytes>) -> Result<()> {
        let file = self.file(path)?;
        let (directories, durability) = (self.directories.clone(), self.durability);
        blocking("write", move || write::put(&file, &bytes, &directories, durability)).await
    }

    async fn begin(&self, path: &str) -> Result<Box<dyn Upload>> {
        let file = self.file(path)?;
        let (directories, durability) = (self.directories.clone(), self.durability);
        let begin = move || LocalUpload::new(file, &directories, durability);
        Ok(Box::new(blocking("write", begin).await?))
    }

    async fn write_at(&self, path: &str, position: u64, bytes: Vec<Bytes>) -> Result<()> {
        let (file, root) = (self.file(path)?, self.root.clone());
        blocking("write", move || change::write_at(&file, &root, position, &bytes)).await
    }

    async fn truncate(&self, path: &str, len: u64) -> Result<()> {
        let (file, root) = (self.file(path)?, self.root.clone());
        blocking("truncate", move || change::truncate(&file, &root, len)).await
    }

    async fn sync(&self, paths: &[String]) -> Result<()> {
        let files = self.files(paths)?;
        match self.durability {
            Durability::Full => durable::sync(files, self.directories.clone()).await,
            Durability::None => Ok(()),
        }
    }

    async fn sync_content(&self, paths: &[String]) -> Result<()> {
        let files = self.files(paths)?;
        match self.durability {
            Durability::Full => durable::sync_contents(files).await,
            Durability::None => Ok(()),
        }
    }

    async fn create(&self, path: &str, _bytes: Bytes) -> Result<Created> {
        Err(no(self.kind(), "create", path))
    }

    async fn replace(&self, path: &str, _bytes: Bytes, _expected: &Version) -> Result<Replaced> {
        Err(no(self.kind(), "replace", path))
    }

    async fn list(&self, prefix: &str) -> Result<BoxStream<'static, Result<Meta>>> {
        Ok(walk::walk(self.directory(prefix)?, check_dir(prefix)?.to_owned()))
    }

    async fn list_dir(&self, prefix: &str) -> Result<Dir> {
        let (directory, prefix) = (self.directory(prefix)?, check_dir(prefix)?.to_owned());
        blocking("list", move || walk::children(&directory, &prefix)).await
    }

    async fn delete(&self, paths: &[String]) -> Result<()> {
        let files = self.files(paths)?;
        blocking("delete", move || delete::delete(&files)).await
    }

    async fn delete_dir(&self, prefix: &str) -> Result<()> {
        let (directory, root) = (self.directory(prefix)?, self.root.clone());
        let directories = self.directories.clone();
        blocking("delete", move || delete::delete_dir(&directory, &root, &directories)).await
    }

    async fn link(&self, from: &str, to: &str) -> Result<Linked> {
        let (from, to) = (self.file(from)?, self.file(to)?);
        let directories = self.directories.clone();
        blocking("link", move || link::link(&from, &to, &directories)).await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (self.file(from)?, self.file(to)?);
        let directories = self.directories.clone();
        blocking("rename", move || link::rename(&from, &to, &directories)).await
    }

    async fn exchange(&self, a: &str, b: &str) -> Result<()> {
        let (a, b) = (self.file(a)?, self.file(b)?);
        let directories = self.directories.clone();
        blocking("exchange", move || link::exchange(&a, &b, &directories)).await
    }

    async fn lock(&self, path: &str) -> Result<Lock> {
        let file = self.file(path)?;
        let directories = self.directories.clone();
        // It may take long, and whoever waits may want to give up.
        match in_place(|| lock::try_lock(&file, &directories)) {
            Ok(Ok(Some(lock))) => Ok(lock),
            Ok(Err(error)) => Err(error),
            Ok(Ok(None)) | Err(_) => {
                elsewhere("lock", move || lock::lock(&file, &directories)).await
            }
        }
    }

    async fn sync_dir(&self, path: &str) -> Result<()> {
        let directory = self.directory(path)?;
        match self.durability {
            Durability::Full => {
                let directories = self.directories.clone();
                blocking("sync", move || directories.sync(&[directory])).await
            }
            Durability::None => Ok(()),
        }
    }
}
