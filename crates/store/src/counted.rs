//! Counts what is asked of a store, for tests and benches that state how many requests an operation
//! takes.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;

use super::Store;
use super::backend::{
    Backend, Created, Dir, Kind, Linked, Links, Lock, Meta, Object, Replaced, Version,
};
use super::guard::Guard;
use super::upload::Upload;
use crate::error::Result;

/// How often a store was asked, and for how many bytes. Failed operations count too, without bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Objects and ranges of objects that were read.
    pub gets: u64,
    /// Bytes of these.
    pub get_bytes: u64,
    /// Objects that were written: put, uploaded, created, replaced, or changed in place.
    pub puts: u64,
    /// Bytes of these.
    pub put_bytes: u64,
    /// Lists of objects or of a directory.
    pub lists: u64,
    /// Questions about an object.
    pub heads: u64,
    /// Objects and directories that were deleted.
    pub deletes: u64,
    /// Links, renames and exchanges.
    pub moves: u64,
}

#[derive(Debug, Default)]
struct Counters {
    gets: AtomicU64,
    get_bytes: AtomicU64,
    puts: AtomicU64,
    put_bytes: AtomicU64,
    lists: AtomicU64,
    heads: AtomicU64,
    deletes: AtomicU64,
    moves: AtomicU64,
}

/// A backend that counts what is asked of another.
#[derive(Debug)]
pub struct Counted {
    inner: Arc<dyn Backend>,
    counters: Arc<Counters>,
}

impl Counted {
    /// A store that works as `store` does, and its counter.
    pub fn wrap(store: &Store) -> (Store, Arc<Self>) {
        let counted = Self { inner: store.backend().clone(), counters: Arc::default() };
        let counted = Arc::new(counted);
        (store.with_backend(counted.clone()), counted)
    }

    /// The counts since the last call.
    pub fn take(&self) -> Counts {
        let Counters { gets, get_bytes, puts, put_bytes, lists, heads, deletes, moves } =
            &*self.counters;
        let take = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
        Counts {
            gets: take(gets),
            get_bytes: take(get_bytes),
            puts: take(puts),
            put_bytes: take(put_bytes),
            lists: take(lists),
            heads: take(heads),
            deletes: take(deletes),
            moves: take(moves),
        }
    }
}

fn add(counter: &AtomicU64, more: usize) {
    counter.fetch_add(more as u64, Ordering::Relaxed);
}

fn total<'a>(parts: impl IntoIterator<Item = &'a Bytes>) -> usize {
    parts.into_iter().map(Bytes::len).sum()
}

#[async_trait]
impl Backend for Counted {
    fn kind(&self) -> Kind {
        self.inner.kind()
    }

    fn objects_per_call(&self) -> usize {
        self.inner.objects_per_call()
    }

    async fn get(&self, path: &str) -> Result<Object> {
        add(&self.counters.gets, 1);
        let object = self.inner.get(path).await?;
        add(&self.counters.get_bytes, object.bytes.len());
        Ok(object)
    }

    async fn get_all(&self, paths: &[Arc<str>]) -> Result<Vec<Option<Bytes>>> {
        add(&self.counters.gets, paths.len());
        let found = self.inner.get_all(paths).await?;
        add(&self.counters.get_bytes, total(found.iter().flatten()));
        Ok(found)
    }

    async fn get_ranges(
        &self,
        path: &str,
        ranges: &[Range<u64>],
        guard: Option<&Guard>,
    ) -> Result<Vec<Bytes>> {
        add(&self.counters.gets, ranges.len());
        let found = self.inner.get_ranges(path, ranges, guard).await?;
        add(&self.counters.get_bytes, total(&found));
        Ok(found)
    }

    async fn head(&self, path: &str) -> Result<Meta> {
        add(&self.counters.heads, 1);
        self.inner.head(path).await
    }

    async fn put(&self, path: &str, bytes: Vec<Bytes>) -> Result<()> {
        let size = total(&bytes);
        add(&self.counters.puts, 1);
        self.inner.put(path, bytes).await?;
        add(&self.counters.put_bytes, size);
        Ok(())
    }

    async fn begin(&self, path: &str) -> Result<Box<dyn Upload>> {
        add(&self.counters.puts, 1);
        let (inner, counters) = (self.inner.begin(path).await?, self.counters.clone());
        Ok(Box::new(CountedUpload { inner, counters }))
    }

    async fn write_at(&self, path: &str, position: u64, bytes: Vec<Bytes>) -> Result<()> {
        let size = total(&bytes);
        add(&self.counters.puts, 1);
        self.inner.write_at(path, position, bytes).await?;
        add(&self.counters.put_bytes, size);
        Ok(())
    }

    async fn truncate(&self, path: &str, len: u64) -> Result<()> {
        add(&self.counters.puts, 1);
        self.inner.truncate(path, len).await
    }

    async fn sync(&self, paths: &[String]) -> Result<()> {
        self.inner.sync(paths).await
    }

    async fn sync_content(&self, paths: &[String]) -> Result<()> {
        self.inner.sync_content(paths).await
    }

    async fn create(&self, path: &str, bytes: Bytes) -> Result<Created> {
        let size = bytes.len();
        add(&self.counters.puts, 1);
        let created = self.inner.create(path, bytes).await?;
        add(&self.counters.put_bytes, size);
        Ok(created)
    }

    async fn replace(&self, path: &str, bytes: Bytes, expected: &Version) -> Result<Replaced> {
        let size = bytes.len();
        add(&self.counters.puts, 1);
        let replaced = self.inner.replace(path, bytes, expected).await?;
        add(&self.counters.put_bytes, size);
        Ok(replaced)
    }

    async fn list_links(
        &self,
        prefix: &str,
        links: Links,
    ) -> Result<BoxStream<'static, Result<Meta>>> {
        add(&self.counters.lists, 1);
        self.inner.list_links(prefix, links).await
    }

    async fn list_dir(&self, prefix: &str) -> Result<Dir> {
        add(&self.counters.lists, 1);
        self.inner.list_dir(prefix).await
    }

    async fn delete(&self, paths: &[String]) -> Result<()> {
        add(&self.counters.deletes, paths.len());
        self.inner.delete(paths).await
    }

    async fn delete_dir(&self, prefix: &str) -> Result<()> {
        add(&self.counters.deletes, 1);
        self.inner.delete_dir(prefix).await
    }

    async fn link(&self, from: &str, to: &str) -> Result<Linked> {
        add(&self.counters.moves, 1);
        self.inner.link(from, to).await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        add(&self.counters.moves, 1);
        self.inner.rename(from, to).await
    }

    async fn exchange(&self, a: &str, b: &str) -> Result<()> {
        add(&self.counters.moves, 1);
        self.inner.exchange(a, b).await
    }

    async fn lock(&self, path: &str) -> Result<Lock> {
        self.inner.lock(path).await
    }

    async fn turn(&self, door: &str, room: &str, hold: Duration) -> Result<Lock> {
        self.inner.turn(door, room, hold).await
    }

    async fn sync_dir(&self, path: &str) -> Result<()> {
        self.inner.sync_dir(path).await
    }
}

/// An upload whose bytes are counted.
#[derive(Debug)]
struct CountedUpload {
    inner: Box<dyn Upload>,
    counters: Arc<Counters>,
}

#[async_trait]
impl Upload for CountedUpload {
    async fn write(&mut self, bytes: Vec<Bytes>) -> Result<()> {
        let size = total(&bytes);
        self.inner.write(bytes).await?;
        add(&self.counters.put_bytes, size);
        Ok(())
    }

    async fn patch(&mut self, position: u64, bytes: Bytes) -> Result<()> {
        let size = bytes.len();
        self.inner.patch(position, bytes).await?;
        add(&self.counters.put_bytes, size);
        Ok(())
    }

    async fn finish(self: Box<Self>) -> Result<()> {
        self.inner.finish().await
    }

    async fn abort(self: Box<Self>) {
        self.inner.abort().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    #[tokio::test]
    async fn operations_and_bytes_are_counted_until_they_are_taken() {
        let store = Store::open("memory://counted", &Options::default()).unwrap();
        let (store, counted) = Counted::wrap(&store);
        store.put("a", vec!["one".into(), "two".into()]).await.unwrap();
        let mut upload = store.begin("b").await.unwrap();
        upload.write(vec!["three".into()]).await.unwrap();
        upload.finish().await.unwrap();
        store.create("c", "4".into()).await.unwrap();
        store.link("c", "d").await.unwrap();
        let written = Counts { puts: 3, put_bytes: 12, moves: 1, ..Counts::default() };
        assert_eq!(counted.take(), written);
        store.get("a").await.unwrap();
        store.get_ranges("b", &[0..2, 3..4], None).await.unwrap();
        assert_eq!(store.get_all(&["c".into(), "x".into()]).await.unwrap().len(), 2);
        assert!(store.head("x").await.is_err());
        store.list_dir("").await.unwrap();
        store.delete(&["a".into(), "b".into()]).await.unwrap();
        let read =
            Counts { gets: 5, get_bytes: 10, lists: 1, heads: 1, deletes: 2, ..Counts::default() };
        assert_eq!(counted.take(), read);
        assert_eq!(counted.take(), Counts::default());
    }
}
