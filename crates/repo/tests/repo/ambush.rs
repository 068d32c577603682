//! A store whose user is overtaken at chosen moments: before an operation, other writers do their
//! work.
//!
//! A process that falls asleep between two operations sees the same. But here the other writers are
//! always done before the operation happens, whatever the machine's load, so that a test has one
//! outcome.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_store::{
    Backend, Created, Dir, Guard, Kind, Linked, Links, Lock, Meta, Object, Replaced, Result, Store,
    Upload, Version,
};
use futures::future::BoxFuture;
use futures::stream::BoxStream;

/// An operation that is about to happen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment<'a> {
    /// How many happened before.
    pub(crate) number: usize,
    op: &'static str,
    path: &'a str,
}

impl Moment<'_> {
    /// Whether it is the step that replaces the state.
    pub(crate) fn is_swap(&self) -> bool {
        match self.op {
            "replace" => self.path == "state.json",
            "create" | "link" => self.path.starts_with("g/"),
            _ => false,
        }
    }
}

type Others = Box<dyn Fn(Moment<'_>) -> Option<BoxFuture<'static, ()>> + Send + Sync>;

/// A backend that lets other writers act first.
pub(crate) struct Ambush {
    inner: Arc<dyn Backend>,
    others: Others,
    operations: AtomicUsize,
    /// Whether the user holds a lock: other writers would wait for it instead of overtaking.
    locked: Arc<AtomicBool>,
}

/// A lock of the user.
struct Held(#[expect(dead_code, reason = "held until it is dropped")] Lock, Arc<AtomicBool>);

impl Drop for Held {
    fn drop(&mut self) {
        self.1.store(false, Ordering::Relaxed);
    }
}

impl fmt::Debug for Ambush {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ambush")
    }
}

impl Ambush {
    /// A store that works as `store` does. Before each operation, `others` decides what happens
    /// first.
    pub(crate) fn wrap(
        store: &Store,
        others: impl Fn(Moment<'_>) -> Option<BoxFuture<'static, ()>> + Send + Sync + 'static,
    ) -> (Store, Arc<Self>) {
        let others: Others = Box::new(others);
        let inner = store.backend().clone();
        let ambush = Arc::new(Self {
            inner,
            others,
            operations: AtomicUsize::new(0),
            locked: Arc::default(),
        });
        (store.with_backend(ambush.clone()), ambush)
    }

    /// How many operations there were.
    pub(crate) fn operations(&self) -> usize {
        self.operations.load(Ordering::Relaxed)
    }

    async fn before(&self, op: &'static str, path: &str) {
        if self.locked.load(Ordering::Relaxed) {
            return;
        }
        let number = self.operations.fetch_add(1, Ordering::Relaxed);
        if let Some(work) = (self.others)(Moment { number, op, path }) {
            work.await;
        }
    }
}

#[async_trait]
impl Backend for Ambush {
    fn kind(&self) -> Kind {
        self.inner.kind()
    }

    async fn get(&self, path: &str) -> Result<Object> {
        self.before("get", path).await;
        self.inner.get(path).await
    }

    async fn get_ranges(
        &self,
        path: &str,
        ranges: &[Range<u64>],
        guard: Option<&Guard>,
    ) -> Result<Vec<Bytes>> {
        self.before("get_ranges", path).await;
        self.inner.get_ranges(path, ranges, guard).await
    }

    async fn head(&self, path: &str) -> Result<Meta> {
        self.before("head", path).await;
        self.inner.head(path).await
    }

    async fn put(&self, path: &str, bytes: Vec<Bytes>) -> Result<()> {
        self.before("put", path).await;
        self.inner.put(path, bytes).await
    }

    async fn begin(&self, path: &str) -> Result<Box<dyn Upload>> {
        self.before("begin", path).await;
        self.inner.begin(path).await
    }

    async fn sync(&self, paths: &[String]) -> Result<()> {
        self.before("sync", "").await;
        self.inner.sync(paths).await
    }

    async fn create(&self, path: &str, bytes: Bytes) -> Result<Created> {
        self.before("create", path).await;
        self.inner.create(path, bytes).await
    }

    async fn replace(&self, path: &str, bytes: Bytes, expected: &Version) -> Result<Replaced> {
        self.before("replace", path).await;
        self.inner.replace(path, bytes, expected).await
    }

    async fn list_links(
        &self,
        prefix: &str,
        links: Links,
    ) -> Result<BoxStream<'static, Result<Meta>>> {
        self.before("list", prefix).await;
        self.inner.list_links(prefix, links).await
    }

    async fn list_dir(&self, prefix: &str) -> Result<Dir> {
        self.before("list_dir", prefix).await;
        self.inner.list_dir(prefix).await
    }

    async fn delete(&self, paths: &[String]) -> Result<()> {
        self.before("delete", "").await;
        self.inner.delete(paths).await
    }

    async fn delete_dir(&self, prefix: &str) -> Result<()> {
        self.before("delete_dir", prefix).await;
        self.inner.delete_dir(prefix).await
    }

    async fn link(&self, from: &str, to: &str) -> Result<Linked> {
        self.before("link", to).await;
        self.inner.link(from, to).await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.before("rename", to).await;
        self.inner.rename(from, to).await
    }

    async fn lock(&self, path: &str) -> Result<Lock> {
        self.before("lock", path).await;
        let lock = self.inner.lock(path).await?;
        self.locked.store(true, Ordering::Relaxed);
        Ok(Lock::new(Held(lock, self.locked.clone())))
    }

    async fn sync_dir(&self, path: &str) -> Result<()> {
        self.before("sync_dir", path).await;
        self.inner.sync_dir(path).await
    }
}
