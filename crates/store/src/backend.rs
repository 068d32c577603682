//! The interface of a store: few operations, in their most general form.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;

use super::guard::Guard;
use super::upload::Upload;
use crate::error::{Error, Noun, Result};

/// What a store can do, for code that must choose between two ways of committing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A file system: has `link`, `rename`, `exchange`, `lock`, `sync_dir`, `write_at`, `truncate`
    /// and [`Upload::patch`]; needs `sync`.
    Local,
    /// An object store: has `create`; a put is durable when it returns.
    Object {
        /// Whether `replace` works.
        conditional_put: bool,
    },
    /// A web server: `get`, `get_ranges` and `head`, nothing else.
    ReadOnly,
}

/// What a store knows about an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    /// The path, relative to the store's root.
    pub path: String,
    /// The size in bytes.
    pub size: u64,
    /// When it was last written, in milliseconds since 1970; 0 where the store does not say.
    pub modified_ms: i64,
    /// Changes whenever the content does.
    pub etag: Option<String>,
    /// The version, on stores that keep several.
    pub version: Option<String>,
}

/// The entries of a directory, not deeper. Sorted by path; paths are relative to the store's root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dir {
    /// Directories. One that has nothing below it exists on file systems only.
    pub dirs: Vec<String>,
    /// Objects.
    pub objects: Vec<Meta>,
    /// Everything else, on file systems only: pipes, sockets, devices, links that lead nowhere.
    pub others: Vec<String>,
}

impl Dir {
    pub(super) fn sorted(mut self) -> Self {
        self.dirs.sort_unstable();
        self.others.sort_unstable();
        self.objects.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        self
    }
}

/// An object's bytes with what the store knew when it gave them.
#[derive(Debug, Clone)]
pub struct Object {
    /// The whole content.
    pub bytes: Bytes,
    /// The state that these bytes belong to.
    pub meta: Meta,
}

/// The only state of an object that [`Backend::replace`] may replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The etag of that state.
    pub etag: Option<String>,
    /// The version, on stores that keep several.
    pub version: Option<String>,
}

impl From<&Meta> for Version {
    fn from(meta: &Meta) -> Self {
        Self { etag: meta.etag.clone(), version: meta.version.clone() }
    }
}

/// The outcome of [`Backend::create`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// We created the object.
    Done(Version),
    /// It was there before, or so the store says: see [`Backend::create`].
    Exists,
}

/// The outcome of [`Backend::replace`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replaced {
    /// The object holds our bytes.
    Done(Version),
    /// It was not in the expected state, or so the store says: see [`Backend::create`].
    Lost,
}

/// What becomes of symbolic links to directories in a list. Only a file system has any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// They are [`Error::Corrupt`]: for lists that drive deletions, or that must be complete.
    Refuse,
    /// They are skipped, and their targets are not listed.
    Skip,
    /// Their targets are listed: for readers. A cycle is [`Error::Corrupt`], and so is anything
    /// that is neither a file nor a directory, because a file may belong there.
    Follow,
}

/// The outcome of [`Backend::link`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linked {
    /// The target names the file.
    Done,
    /// The target was there before, or so the store says: see [`Backend::link`].
    Exists,
}

/// An exclusive lock, held until dropped.
pub struct Lock {
    _held: Box<dyn Any + Send + Sync>,
}

impl Lock {
    /// A lock that lasts as long as `held`, which releases it in its `Drop`.
    pub fn new(held: impl Any + Send + Sync) -> Self {
        Self { _held: Box::new(held) }
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lock")
    }
}

/// A place that keeps objects under paths.
///
/// Paths are relative to the store's root, separated by `/`, never absolute and never with `.` or
/// `..` as a segment; anything else is [`Error::Invalid`]. See
/// [`check_path`](super::check_path).
///
/// On a file system, reading follows symbolic links. Nothing is written or deleted through one that
/// lies below the root: that is [`Error::Corrupt`], and names the link. The root itself may be
/// reached through links. A pipe, a socket or a device is never read: that is [`Error::Corrupt`]
/// too.
#[async_trait]
pub trait Backend: fmt::Debug + Send + Sync {
    /// What this store can do.
    fn kind(&self) -> Kind;

    /// A whole object. A missing one is [`Error::NotFound`].
    async fn get(&self, path: &str) -> Result<Object>;

    /// Whole objects, one after the other and in the order given; `None` where there is none. For
    /// many at a time, call this several times at once.
    async fn get_all(&self, paths: &[Arc<str>]) -> Result<Vec<Option<Bytes>>> {
        let mut found = Vec::with_capacity(paths.len());
        for path in paths {
            found.push(match self.get(path).await {
                Ok(object) => Some(object.bytes),
                Err(Error::NotFound { what: Noun::Object, .. }) => None,
                Err(error) => return Err(error),
            });
        }
        Ok(found)
    }

    /// How many objects one call of [`get_all`](Backend::get_all) fetches at best. More than 1 where a
    /// request takes many names, and then few calls with many each are better than many with few.
    fn objects_per_call(&self) -> usize {
        1
    }

    /// Ranges of one object, in the order given, each complete: a range beyond the object's end is
    /// [`Error::Corrupt`], because the data that named the range expects more. An object that
    /// violates `guard` is [`Error::VirtualSourceChanged`].
    ///
    /// One request or read per range; [`Store::fetch`](super::Store::fetch) coalesces.
    async fn get_ranges(
        &self,
        path: &str,
        ranges: &[Range<u64>],
        guard: Option<&Guard>,
    ) -> Result<Vec<Bytes>>;

    /// What the store knows about an object. A missing one is [`Error::NotFound`].
    async fn head(&self, path: &str) -> Result<Meta>;

    /// Writes an object from several buffers, back to back, replacing an existing one.
    ///
    /// The bytes are readable when this returns, and durable after [`Backend::sync`]. Readers may
    /// see a part of a new file while it is written, and a crash may leave that part: nothing may
    /// refer to the file before it is synced. An existing file is replaced in one step.
    async fn put(&self, path: &str, bytes: Vec<Bytes>) -> Result<()>;

    /// Begins to write an object piece by piece. Finishing it replaces an existing one.
    async fn begin(&self, path: &str) -> Result<Box<dyn Upload>>;

    /// Writes buffers, back to back, at a position of an existing file, over its bytes and beyond
    /// its end. The rest of the file stays, and the change shows under each of its names. A
    /// position beyond the end is [`Error::Invalid`], because it would leave a hole. A link in
    /// place of the file is [`Error::Corrupt`].
    ///
    /// It is not one step: after an error or a crash any part of the bytes may be there, and
    /// readers see them arrive. Durable after [`Backend::sync`]; until then a power cut may take
    /// any part of them, from one call or several. File systems only.
    async fn write_at(&self, path: &str, position: u64, bytes: Vec<Bytes>) -> Result<()> {
        let size: usize = bytes.iter().map(Bytes::len).sum();
        Err(no(self.kind(), "write", &format!("{size} bytes at {position} of {path}")))
    }

    /// Cuts an existing file to a length; a shorter file is [`Error::Invalid`], a link in its place
    /// is [`Error::Corrupt`]. Durable after [`Backend::sync`]. File systems only.
    async fn truncate(&self, path: &str, len: u64) -> Result<()> {
        Err(no(self.kind(), "truncation", &format!("{path} to {len} bytes")))
    }

    /// The durability barrier: when it returns, these objects survive a power cut, by name and by
    /// content. Nothing to do on object stores.
    async fn sync(&self, paths: &[String]) -> Result<()>;

    /// Makes the bytes of objects survive a power cut, under each of their durable names. It saves
    /// the sync of the directory where the name is about to change anyway, as before a rename.
    async fn sync_content(&self, paths: &[String]) -> Result<()> {
        self.sync(paths).await
    }

    /// Creates an object if there is none.
    ///
    /// A transport that retries may report [`Created::Exists`] for what its own first attempt
    /// created, when only the reply was lost. A caller that must know reads the object back; a
    /// transport error also leaves the outcome open.
    async fn create(&self, path: &str, bytes: Bytes) -> Result<Created>;

    /// Replaces an object if it is still in the `expected` state. As to retries, see
    /// [`Backend::create`].
    async fn replace(&self, path: &str, bytes: Bytes, expected: &Version) -> Result<Replaced>;

    /// All objects below the directory `prefix` (`""`: all), at any depth, in no order. A missing
    /// directory has none. A link to a directory is [`Error::Corrupt`].
    async fn list(&self, prefix: &str) -> Result<BoxStream<'static, Result<Meta>>> {
        self.list_links(prefix, Links::Refuse).await
    }

    /// Like [`Backend::list`]; `links` says what becomes of links to directories.
    async fn list_links(
        &self,
        prefix: &str,
        links: Links,
    ) -> Result<BoxStream<'static, Result<Meta>>>;

    /// The entries of the directory `prefix` (`""`: the root), not deeper. A missing directory is
    /// empty. Links to directories are skipped.
    async fn list_dir(&self, prefix: &str) -> Result<Dir>;

    /// Deletes objects. Missing ones are fine.
    async fn delete(&self, paths: &[String]) -> Result<()>;

    /// Deletes all objects below the directory `prefix` (`""`: all), and on a file system the
    /// directories as well, but not the root. Links are deleted and never followed. A missing
    /// directory is fine. It is not one step: readers may see a part of it gone.
    async fn delete_dir(&self, prefix: &str) -> Result<()>;

    /// Gives the file `from` a second name `to`, unless `to` is taken. Visible at once, durable
    /// after [`Backend::sync_dir`] of the directory of `to`.
    ///
    /// Where the file system has no hard links the file is renamed instead, without replacing, so
    /// do not rely on `from` afterwards.
    ///
    /// An object store copies on its side, if `to` does not exist, and the copy is durable at once.
    /// S3 does it as an upload of one part: `from` must have a byte at least and 5 GiB at most, and
    /// a process that dies on the way leaves an upload that only a rule of the bucket removes. A
    /// service that speaks S3 another way is told by the option `copy_if_not_exists`; one that has
    /// no way at all is [`Error::Unsupported`]. As with [`Backend::create`], [`Linked::Exists`] may
    /// come from our own first attempt, when its reply was lost: a caller that must know reads `to`
    /// back.
    async fn link(&self, from: &str, to: &str) -> Result<Linked> {
        Err(no(self.kind(), "link", &format!("{from} to {to}")))
    }

    /// Renames a file, replacing `to`; or a directory, if `to` is nothing or an empty directory.
    /// Visible at once, durable after [`Backend::sync_dir`] of the directories of both names.
    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        Err(no(self.kind(), "rename", &format!("{from} to {to}")))
    }

    /// Swaps the names of two files or directories in one step: a reader never finds either name
    /// missing. Durable like a [rename](Backend::rename). Some file systems cannot do it:
    /// [`Error::Unsupported`].
    async fn exchange(&self, a: &str, b: &str) -> Result<()> {
        Err(no(self.kind(), "exchange", &format!("{a} and {b}")))
    }

    /// Waits for an exclusive lock among all processes that use this path for it.
    async fn lock(&self, path: &str) -> Result<Lock> {
        Err(no(self.kind(), "lock", path))
    }

    /// Waits for a turn among all processes that use these two paths for it, which the caller means
    /// to keep for `hold`, and ends it when the lock is dropped. Turns are for fairness: they are
    /// handed on nearly in the order of the requests, and waiting processes end a turn that lasts
    /// longer than it was meant to (and at least a second). So two callers may hold a turn at once,
    /// and correctness must not depend on it. File systems only.
    async fn turn(&self, door: &str, room: &str, hold: Duration) -> Result<Lock> {
        let (op, paths) = ("turn", format!("{door} and {room} for {} ms", hold.as_millis()));
        Err(no(self.kind(), op, &paths))
    }

    /// Makes the names in a directory (`""`: the root) durable.
    async fn sync_dir(&self, path: &str) -> Result<()> {
        Err(no(self.kind(), "sync_dir", path))
    }
}

/// The error of an operation that this kind of store does not have.
pub(super) fn no(kind: Kind, op: &str, path: &str) -> Error {
    let kind = match kind {
        Kind::Local => "a local directory",
        Kind::Object { .. } => "an object store",
        Kind::ReadOnly => "a read-only store",
    };
    Error::unsupported(format!("{op} of {path} on {kind}"))
}
