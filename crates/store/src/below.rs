//! A directory of a store as a store of its own.
//!
//! Opening its URL would mostly do, but it would not use the same backend: work below it would
//! escape a wrapper of the store, such as a [`Fault`](super::Fault), and the wrapper could not
//! follow renames between the directory and its parts.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;

use super::backend::{
    Backend, Created, Dir, Kind, Linked, Links, Lock, Meta, Object, Replaced, Version,
};
use super::guard::Guard;
use super::upload::Upload;
use super::{Store, check_path};
use crate::error::Result;

impl Store {
    /// The store whose root is a directory of this one. Errors name paths as this one does.
    pub fn below(&self, directory: &str) -> Result<Self> {
        check_path(directory)?;
        let url = format!("{}/{directory}", self.url.trim_end_matches('/')).into();
        let prefix = directory.to_owned();
        let backend = Arc::new(Below { inner: self.backend.clone(), prefix });
        Ok(Self { url, backend, limits: self.limits })
    }
}

#[derive(Debug)]
struct Below {
    inner: Arc<dyn Backend>,
    prefix: String,
}

impl Below {
    /// The full path of an object, which must have a name of its own here.
    fn object(&self, path: &str) -> Result<String> {
        check_path(path)?;
        Ok(self.full(path))
    }

    fn objects(&self, paths: &[String]) -> Result<Vec<String>> {
        paths.iter().map(|path| self.object(path)).collect()
    }

    fn full(&self, path: &str) -> String {
        match path {
            "" => self.prefix.clone(),
            path => format!("{}/{path}", self.prefix),
        }
    }

    fn meta(&self, meta: Meta) -> Meta {
        Meta { path: own(&self.prefix, meta.path), ..meta }
    }
}

/// A path relative to `prefix`, which is the root here.
fn own(prefix: &str, path: String) -> String {
    match path.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/')) {
        Some(rest) => rest.to_owned(),
        None => path,
    }
}

#[async_trait]
impl Backend for Below {
    fn kind(&self) -> Kind {
        self.inner.kind()
    }

    fn objects_per_call(&self) -> usize {
        self.inner.objects_per_call()
    }

    async fn get(&self, path: &str) -> Result<Object> {
        let object = self.inner.get(&self.object(path)?).await?;
        Ok(Object { meta: self.meta(object.meta), ..object })
    }

    async fn get_all(&self, paths: &[Arc<str>]) -> Result<Vec<Option<Bytes>>> {
        let paths: Result<Vec<Arc<str>>> =
            paths.iter().map(|path| Ok(self.object(path)?.into())).collect();
        self.inner.get_all(&paths?).await
    }

    async fn get_ranges(
        &self,
        path: &str,
        ranges: &[Range<u64>],
        guard: Option<&Guard>,
    ) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(&self.object(path)?, ranges, guard).await
    }

    async fn head(&self, path: &str) -> Result<Meta> {
        Ok(self.meta(self.inner.head(&self.object(path)?).await?))
    }

    async fn put(&self, path: &str, bytes: Vec<Bytes>) -> Result<()> {
        self.inner.put(&self.object(path)?, bytes).await
    }

    async fn begin(&self, path: &str) -> Result<Box<dyn Upload>> {
        self.inner.begin(&self.object(path)?).await
    }

    async fn write_at(&self, path: &str, position: u64, bytes: Vec<Bytes>) -> Result<()> {
        self.inner.write_at(&self.object(path)?, position, bytes).await
    }

    async fn truncate(&self, path: &str, len: u64) -> Result<()> {
        self.inner.truncate(&self.object(path)?, len).await
    }

    async fn sync(&self, paths: &[String]) -> Result<()> {
        self.inner.sync(&self.objects(paths)?).await
    }

    async fn sync_content(&self, paths: &[String]) -> Result<()> {
        self.inner.sync_content(&self.objects(paths)?).await
    }

    async fn create(&self, path: &str, bytes: Bytes) -> Result<Created> {
        self.inner.create(&self.object(path)?, bytes).await
    }

    async fn replace(&self, path: &str, bytes: Bytes, expected: &Version) -> Result<Replaced> {
        self.inner.replace(&self.object(path)?, bytes, expected).await
    }

    async fn list_links(
        &self,
        prefix: &str,
        links: Links,
    ) -> Result<BoxStream<'static, Result<Meta>>> {
        let listed = self.inner.list_links(&self.full(prefix), links).await?;
        let root = self.prefix.clone();
        let relative =
            move |meta: Result<Meta>| meta.map(|meta| Meta { path: own(&root, meta.path), ..meta });
        Ok(listed.map(relative).boxed())
    }

    async fn list_dir(&self, prefix: &str) -> Result<Dir> {
        let Dir { dirs, objects, others } = self.inner.list_dir(&self.full(prefix)).await?;
        Ok(Dir {
            dirs: dirs.into_iter().map(|dir| own(&self.prefix, dir)).collect(),
            objects: objects.into_iter().map(|meta| self.meta(meta)).collect(),
            others: others.into_iter().map(|other| own(&self.prefix, other)).collect(),
        })
    }

    async fn delete(&self, paths: &[String]) -> Result<()> {
        self.inner.delete(&self.objects(paths)?).await
    }

    async fn delete_dir(&self, prefix: &str) -> Result<()> {
        self.inner.delete_dir(&self.full(prefix)).await
    }

    async fn link(&self, from: &str, to: &str) -> Result<Linked> {
        self.inner.link(&self.object(from)?, &self.object(to)?).await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.inner.rename(&self.object(from)?, &self.object(to)?).await
    }

    async fn exchange(&self, a: &str, b: &str) -> Result<()> {
        self.inner.exchange(&self.object(a)?, &self.object(b)?).await
    }

    async fn lock(&self, path: &str) -> Result<Lock> {
        self.inner.lock(&self.object(path)?).await
    }

    async fn turn(&self, door: &str, room: &str, hold: Duration) -> Result<Lock> {
        self.inner.turn(&self.object(door)?, &self.object(room)?, hold).await
    }

    async fn sync_dir(&self, path: &str) -> Result<()> {
        self.inner.sync_dir(&self.full(path)).await
    }
}
