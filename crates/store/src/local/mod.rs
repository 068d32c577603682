//! A directory as a store.
//!
//! Our own and not `object_store`'s, because a repository on a file system needs what that
//! interface lacks: fsync, hard links that do not replace, locks, positioned reads of many ranges
//! in one go. Every call is one task on the blocking pool, however many ranges or files it names;
//! only `sync` takes several, because waiting for a disk is worth doing in parallel.
//!
//! Reading follows links. Whatever writes or deletes does not: see [`beneath`].

mod beneath;
mod change;
mod delete;
mod durable;
mod link;
mod lock;
mod read;
mod turn;
mod upload;
mod walk;
mod write;

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use rustix::io::Errno;

use self::beneath::is_link;
use self::durable::Directories;
pub(super) use self::read::{check_range, short};
use self::upload::LocalUpload;
pub use self::write::TEMP_PREFIX;
use super::backend::{
    Backend, Created, Dir, Kind, Linked, Links, Lock, Meta, Object, Replaced, Version, no,
};
use super::guard::Guard;
use super::options::Durability;
use super::path::{check_dir, check_path};
use super::upload::Upload;
use crate::alone::in_place;
use crate::error::{Error, Noun, Result};

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
        Ok(File::new(&self.root, path))
    }

    fn files(&self, paths: &[String]) -> Result<Vec<File>> {
        paths.iter().map(|path| self.file(path)).collect()
    }

    /// A directory, by the same rules; `""` is the root.
    fn directory(&self, path: &str) -> Result<File> {
        Ok(File::new(&self.root, check_dir(path)?))
    }
}

/// A checked path: by its name in the store and on the disk.
#[derive(Debug, Clone)]
struct File {
    name: String,
    path: PathBuf,
    root: Arc<Path>,
}

impl File {
    fn new(root: &Arc<Path>, name: &str) -> Self {
        let path = if name.is_empty() { root.to_path_buf() } else { root.join(name) };
        Self { name: name.to_owned(), path, root: root.clone() }
    }

    /// Another name in the same directory.
    fn beside(&self, name: &str) -> Self {
        match beneath::split(&self.name).0 {
            "" => Self::new(&self.root, name),
            folder => Self::new(&self.root, &format!("{folder}/{name}")),
        }
    }

    /// What an I/O error on this file means to the caller.
    fn error(&self, op: &'static str, error: impl Into<io::Error>) -> Error {
        let error = error.into();
        if let Some(blocked) = self.blocked(&error) {
            return blocked;
        }
        match error.kind() {
            // `a/b` does not exist if `a` is a file, as on any object store.
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => self.missing(),
            _ => Error::store(op, self.path.display().to_string(), error),
        }
    }

    /// What an I/O error means for a file to be created.
    fn unmade(&self, op: &'static str, error: io::Error) -> Error {
        if let Some(blocked) = self.blocked(&error) {
            return blocked;
        }
        let not_a_directory = |path: &&Path| path.exists() && !path.is_dir();
        match self.root.ancestors().find(not_a_directory) {
            Some(file) => Error::invalid(format!(
                "{} is a file, and nothing can be written below it; name a directory, or a place \
                 where nothing is",
                file.display()
            )),
            None => Error::store(op, self.path.display().to_string(), error),
        }
    }

    /// The error where the path, and not the disk, is to blame.
    fn blocked(&self, error: &io::Error) -> Option<Error> {
        match Errno::from_io_error(error)? {
            _ if is_link(error) => self.linked(),
            Errno::NAMETOOLONG => Some(Error::invalid(format!(
                "{} has a name that is too long for the file system",
                self.path.display()
            ))),
            // Neither a socket nor a pipe without a reader can be opened.
            Errno::NXIO => read::sort(fs::metadata(&self.path).ok()?.file_type())
                .map(|found| self.irregular(found)),
            _ => None,
        }
    }

    /// The error of the first link on the way to this file.
    fn linked(&self) -> Option<Error> {
        let paths = beneath::steps(&self.name).map(|(path, _)| self.root.join(path));
        paths.filter_map(|path| Some((fs::read_link(&path).ok()?, path))).next().map(
            |(target, path)| Error::Corrupt {
                what: "the kind of file".to_owned(),
                expected: match path == self.path && !path.is_dir() {
                    true => "a file".to_owned(),
                    false => "a directory".to_owned(),
                },
                file: path.display().to_string(),
                found: format!("a symbolic link to {}, which is not followed", target.display()),
            },
        )
    }

    /// The error of something that is no file.
    fn irregular(&self, found: &str) -> Error {
        Error::Corrupt {
            file: self.path.display().to_string(),
            what: "the kind of file".to_owned(),
            expected: "a regular file".to_owned(),
            found: found.to_owned(),
        }
    }

    fn missing(&self) -> Error {
        Error::NotFound { what: Noun::Object, name: self.name.clone() }
    }
}

/// Runs blocking calls on another thread, or on this one if the caller waits for nothing else.
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
        let file = self.file(path)?;
        blocking("write", move || change::write_at(&file, position, &bytes)).await
    }

    async fn truncate(&self, path: &str, len: u64) -> Result<()> {
        let file = self.file(path)?;
        blocking("truncate", move || change::truncate(&file, len)).await
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

    async fn list_links(
        &self,
        prefix: &str,
        links: Links,
    ) -> Result<BoxStream<'static, Result<Meta>>> {
        Ok(walk::walk(self.directory(prefix)?, links))
    }

    async fn list_dir(&self, prefix: &str) -> Result<Dir> {
        let directory = self.directory(prefix)?;
        blocking("list", move || walk::children(&directory)).await
    }

    async fn delete(&self, paths: &[String]) -> Result<()> {
        let files = self.files(paths)?;
        blocking("delete", move || delete::delete(&files)).await
    }

    async fn delete_dir(&self, prefix: &str) -> Result<()> {
        let directory = self.directory(prefix)?;
        let directories = self.directories.clone();
        blocking("delete", move || delete::delete_dir(&directory, &directories)).await
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
        // Waiting may take long, and the caller may want to give up.
        match in_place(|| lock::try_lock(&file, &directories)) {
            Ok(Ok(Some(lock))) => Ok(lock),
            Ok(Err(error)) => Err(error),
            Ok(Ok(None)) | Err(_) => {
                elsewhere("lock", move || lock::lock(&file, &directories)).await
            }
        }
    }

    async fn turn(&self, door: &str, room: &str, hold: Duration) -> Result<Lock> {
        let (door, room) = (self.file(door)?, self.file(room)?);
        turn::TurnRequest { door, room, directories: self.directories.clone(), hold }.take().await
    }

    async fn sync_dir(&self, path: &str) -> Result<()> {
        let directory = self.directory(path)?;
        match self.durability {
            Durability::Full => {
                let directories = self.directories.clone();
                blocking("sync", move || directories.sync(&[directory.path])).await
            }
            Durability::None => Ok(()),
        }
    }
}
