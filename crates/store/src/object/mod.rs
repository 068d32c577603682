//! Object stores: memory, S3, GCS, Azure and web servers, through the `object_store` crate.
//!
//! That crate retries what is safe to retry; [`client`] says when and how often. A conditional put
//! may be retried too, after its first attempt succeeded and only the reply was lost; the answer is
//! then "exists" or "lost" although the object holds our bytes. This module passes on the store's
//! answer and claims no more: a commit reads the object back.

pub(super) mod client;
mod multipart;
mod read;
mod upload;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    Error as Cause, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
    PutResult, UpdateVersion,
};

use self::upload::ObjectUpload;
use super::backend::{
    Backend, Created, Dir, Kind, Linked, Links, Meta, Object, Replaced, Version, no,
};
use super::guard::Guard;
use super::path::{check_dir, check_path};
use super::upload::Upload;
use crate::error::{Error, Noun, Result};

/// Objects below a prefix of an object store.
#[derive(Clone)]
pub struct ObjectBackend {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    kind: Kind,
}

impl fmt::Debug for ObjectBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} ({:?})", self.store, self.prefix, self.kind)
    }
}

impl ObjectBackend {
    /// The objects of `store` below `prefix`. The caller says what the store can do; it must not be
    /// [`Kind::Local`], which promises what no object store has.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: Path, kind: Kind) -> Self {
        Self { store, prefix, kind }
    }

    fn location(&self, path: &str) -> Result<Path> {
        check_path(path)?;
        self.below(path)
    }

    fn below(&self, path: &str) -> Result<Path> {
        let whole = match (self.prefix.as_ref(), path) {
            ("", path) => path.to_owned(),
            (prefix, "") => prefix.to_owned(),
            (prefix, path) => format!("{prefix}/{path}"),
        };
        Path::parse(whole).map_err(|error| Error::invalid(error.to_string()))
    }

    fn writable(&self, op: &str, path: &str) -> Result<()> {
        if self.kind == Kind::ReadOnly { Err(no(self.kind, op, path)) } else { Ok(()) }
    }

    /// Where to list. Web servers have no common way to do it, and a partial answer would be worse
    /// than none.
    fn listable(&self, prefix: &str) -> Result<Path> {
        let directory = check_dir(prefix)?;
        self.writable("list", if directory.is_empty() { "the root" } else { directory })?;
        self.below(directory)
    }

    /// The path that a location has in this store.
    fn name(&self, location: &Path) -> String {
        let path = location.as_ref();
        let path = path.strip_prefix(self.prefix.as_ref()).unwrap_or(path);
        path.trim_start_matches('/').to_owned()
    }

    fn unlisted(&self, at: &Path, error: Cause) -> Error {
        if client::is_no_bucket(&error) {
            no_bucket(&*self.store)
        } else {
            translate("list", at.as_ref(), error)
        }
    }

    /// Deletes objects as they are found; missing ones are fine.
    async fn delete_each(&self, at: Locations, path: &str) -> Result<()> {
        let deleted = self.store.delete_stream(at).map(|item| match item {
            Ok(_) | Err(Cause::NotFound { .. }) => Ok(()),
            Err(error) if client::is_no_bucket(&error) => Err(no_bucket(&*self.store)),
            Err(error) => Err(translate("delete", path, error)),
        });
        deleted.try_collect().await
    }

    /// What an error of a write means: «not found» makes no sense for an object to be written.
    fn unwritten(&self, op: &'static str, path: &str, error: Cause) -> Error {
        match error {
            Cause::NotFound { .. } => no_bucket(&*self.store),
            other => translate(op, path, other),
        }
    }

    async fn put_if(&self, at: &Path, bytes: Bytes, mode: PutMode) -> PutOutcome {
        self.store.put_opts(at, bytes.into(), PutOptions::from(mode)).await
    }
}

type Locations = BoxStream<'static, std::result::Result<Path, Cause>>;

type PutOutcome = std::result::Result<PutResult, Cause>;

/// Whether an error says that the store did not do what was asked, and never will. Any other error
/// of a write (a timeout, a broken connection, a failing server) says nothing about whether the
/// write happened or is about to.
pub fn is_refusal(error: &Error) -> bool {
    match error {
        Error::Store { source, .. } => matches!(
            source.downcast_ref::<Cause>(),
            Some(Cause::PermissionDenied { .. } | Cause::Unauthenticated { .. })
        ),
        other => matches!(other, Error::Invalid { .. } | Error::Unsupported { .. }),
    }
}

/// What an error of the object store means to the caller.
fn translate(op: &'static str, path: &str, error: Cause) -> Error {
    match error {
        Cause::NotFound { .. } => Error::NotFound { what: Noun::Object, name: path.to_owned() },
        Cause::NotSupported { .. } | Cause::NotImplemented { .. } => {
            Error::unsupported(format!("{op} of {path}: {error}"))
        }
        other => Error::store(op, path, other),
    }
}

fn no_bucket(store: &dyn ObjectStore) -> Error {
    Error::NotFound { what: Noun::Bucket, name: store.to_string() }
}

fn describe(path: String, meta: ObjectMeta) -> Meta {
    Meta {
        path,
        size: meta.size,
        modified_ms: meta.last_modified.timestamp_millis(),
        etag: meta.e_tag,
        version: meta.version,
    }
}

fn version(put: PutResult) -> Version {
    Version { etag: put.e_tag, version: put.version }
}

#[async_trait]
impl Backend for ObjectBackend {
    fn kind(&self) -> Kind {
        self.kind
    }

    async fn get(&self, path: &str) -> Result<Object> {
        read::whole(&*self.store, &self.location(path)?, path).await
    }

    async fn get_ranges(
        &self,
        path: &str,
        ranges: &[Range<u64>],
        guard: Option<&Guard>,
    ) -> Result<Vec<Bytes>> {
        read::ranges(&*self.store, &self.location(path)?, path, ranges, guard).await
    }

    async fn head(&self, path: &str) -> Result<Meta> {
        let meta = self.store.head(&self.location(path)?).await;
        let meta = meta.map_err(|error| translate("look up", path, error))?;
        Ok(describe(path.to_owned(), meta))
    }

    async fn put(&self, path: &str, bytes: Vec<Bytes>) -> Result<()> {
        let at = self.location(path)?;
        self.writable("put", path)?;
        let size: usize = bytes.iter().map(Bytes::len).sum();
        let put = if size > multipart::SINGLE_PUT_BYTES_MAX {
            multipart::put(&*self.store, &at, bytes).await
        } else {
            self.store.put(&at, PutPayload::from_iter(bytes)).await.map(drop)
        };
        put.map_err(|error| self.unwritten("write", path, error))
    }

    async fn begin(&self, path: &str) -> Result<Box<dyn Upload>> {
        let at = self.location(path)?;
        self.writable("write", path)?;
        Ok(Box::new(ObjectUpload::new(self.clone(), path.to_owned(), at)))
    }

    async fn sync(&self, paths: &[String]) -> Result<()> {
        // An object store acknowledges a put when it will survive; only the paths are checked.
        paths.iter().try_for_each(|path| check_path(path))
    }

    async fn create(&self, path: &str, bytes: Bytes) -> Result<Created> {
        let at = self.location(path)?;
        self.writable("create", path)?;
        match self.put_if(&at, bytes, PutMode::Create).await {
            Ok(put) => Ok(Created::Done(version(put))),
            Err(Cause::AlreadyExists { .. } | Cause::Precondition { .. }) => Ok(Created::Exists),
            Err(error) => Err(self.unwritten("create", path, error)),
        }
    }

    async fn replace(&self, path: &str, bytes: Bytes, expected: &Version) -> Result<Replaced> {
        let at = self.location(path)?;
        if self.kind != (Kind::Object { conditional_put: true }) {
            return Err(no(self.kind, "conditional replace", path));
        }
        let expected =
            UpdateVersion { e_tag: expected.etag.clone(), version: expected.version.clone() };
        match self.put_if(&at, bytes, PutMode::Update(expected)).await {
            Ok(put) => Ok(Replaced::Done(version(put))),
            // Some stores say «not found» when nothing is left to replace, and S3 says «conflict»
            // while another conditional put of the same object is under way.
            Err(
                Cause::Precondition { .. } | Cause::NotFound { .. } | Cause::AlreadyExists { .. },
            ) => Ok(Replaced::Lost),
            Err(error) => Err(translate("replace", path, error)),
        }
    }

    async fn list_links(
        &self,
        prefix: &str,
        _links: Links,
    ) -> Result<BoxStream<'static, Result<Meta>>> {
        let at = self.listable(prefix)?;
        let found = self.store.list((!at.as_ref().is_empty()).then_some(&at));
        let this = self.clone();
        let listed = found.map(move |item| match item {
            Ok(meta) => Ok(describe(this.name(&meta.location), meta)),
            Err(error) => Err(this.unlisted(&at, error)),
        });
        Ok(listed.boxed())
    }

    async fn list_dir(&self, prefix: &str) -> Result<Dir> {
        let at = self.listable(prefix)?;
        let found = self.store.list_with_delimiter((!at.as_ref().is_empty()).then_some(&at)).await;
        let found = found.map_err(|error| self.unlisted(&at, error))?;
        let dirs = found.common_prefixes.iter().map(|dir| self.name(dir)).collect();
        let objects = found.objects.into_iter();
        let objects = objects.map(|meta| describe(self.name(&meta.location), meta)).collect();
        Ok(Dir { dirs, objects, others: Vec::new() }.sorted())
    }

    async fn delete(&self, paths: &[String]) -> Result<()> {
        let at: Vec<Path> =
            paths.iter().map(|path| self.location(path)).collect::<Result<Vec<_>>>()?;
        let Some(first) = paths.first() else { return Ok(()) };
        self.writable("delete", first)?;
        self.delete_each(stream::iter(at.into_iter().map(Ok)).boxed(), first).await
    }

    async fn delete_dir(&self, prefix: &str) -> Result<()> {
        let at = self.below(check_dir(prefix)?)?;
        self.writable("delete", at.as_ref())?;
        let found = self.store.list((!at.as_ref().is_empty()).then_some(&at));
        let found = found.map_ok(|meta| meta.location).boxed();
        self.delete_each(found, at.as_ref()).await
    }

    async fn link(&self, from: &str, to: &str) -> Result<Linked> {
        let (source, target) = (self.location(from)?, self.location(to)?);
        self.writable("link", to)?;
        match self.store.copy_if_not_exists(&source, &target).await {
            Ok(()) => Ok(Linked::Done),
            Err(Cause::AlreadyExists { .. } | Cause::Precondition { .. }) => Ok(Linked::Exists),
            Err(error) => Err(translate("link", from, error)),
        }
    }
}
