//! The operations of a [`Fault`]: each asks the plan before and after.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::TryStreamExt;
use futures::stream::BoxStream;

use super::Fault;
use super::late::Late;
use super::moves::{Move, is_dir};
use super::power::before;
use super::unsynced::Change;
use super::upload::FaultUpload;
use crate::backend::{
    Backend, Created, Dir, Kind, Linked, Links, Lock, Meta, Object, Replaced, Version,
};
use crate::error::Result;
use crate::guard::Guard;
use crate::upload::Upload;

impl Fault {
    /// What a name stands for, if a power cut could bring it back.
    pub(super) async fn before(&self, path: &str) -> Result<Option<Bytes>> {
        if self.cuts_power() { before(&*self.inner, path).await } else { Ok(None) }
    }
}

#[async_trait]
impl Backend for Fault {
    fn kind(&self) -> Kind {
        self.inner.kind()
    }

    fn objects_per_call(&self) -> usize {
        self.inner.objects_per_call()
    }

    async fn get(&self, path: &str) -> Result<Object> {
        let step = self.begin_read("get", path).await?;
        let result = self.inner.get(path).await;
        self.end(step, result).await
    }

    async fn get_all(&self, paths: &[Arc<str>]) -> Result<Vec<Option<Bytes>>> {
        let step = self.begin_read("get", &paths.join(" ")).await?;
        let result = self.inner.get_all(paths).await;
        self.end(step, result).await
    }

    async fn get_ranges(
        &self,
        path: &str,
        ranges: &[Range<u64>],
        guard: Option<&Guard>,
    ) -> Result<Vec<Bytes>> {
        let step = self.begin_read("get_ranges", path).await?;
        let result = self.inner.get_ranges(path, ranges, guard).await;
        self.end(step, result).await
    }

    async fn head(&self, path: &str) -> Result<Meta> {
        let step = self.begin_read("head", path).await?;
        let result = self.inner.head(path).await;
        self.end(step, result).await
    }

    async fn put(&self, path: &str, mut bytes: Vec<Bytes>) -> Result<()> {
        let step = self.begin_tearable("put", path).await?;
        if step.is_late() {
            return Err(self.put_off(&step, Late::Put { path: path.to_owned(), bytes }));
        }
        let previous = self.before(path).await?;
        if step.tears() {
            // An existing file is replaced in one step, and an object store takes an object whole.
            if self.kind() != Kind::Local || self.inner.head(path).await.is_ok() {
                return self.end(step, Ok(())).await;
            }
            bytes = first_half(&bytes);
        }
        let result = self.inner.put(path, bytes).await;
        if result.is_ok() {
            self.ledger.put(path, previous);
        }
        self.end(step, result).await
    }

    async fn begin(&self, path: &str) -> Result<Box<dyn Upload>> {
        let step = self.begin_write("begin", path).await?;
        let result = self.inner.begin(path).await;
        let upload = |inner| FaultUpload::new(self.clone(), path.to_owned(), inner);
        let result = result.map(|inner| Box::new(upload(inner)) as Box<dyn Upload>);
        self.end(step, result).await
    }

    async fn write_at(&self, path: &str, position: u64, mut bytes: Vec<Bytes>) -> Result<()> {
        let step = self.begin_tearable("write_at", path).await?;
        let previous = self.before(path).await?;
        if step.tears() {
            bytes = first_half(&bytes);
        }
        let result = self.inner.write_at(path, position, bytes.clone()).await;
        if result.is_ok() {
            self.ledger.changed(path, previous, Change::Write { position, bytes });
        }
        self.end(step, result).await
    }

    async fn truncate(&self, path: &str, len: u64) -> Result<()> {
        let step = self.begin_write("truncate", path).await?;
        let previous = self.before(path).await?;
        let result = self.inner.truncate(path, len).await;
        if result.is_ok() {
            self.ledger.changed(path, previous, Change::Truncate { len });
        }
        self.end(step, result).await
    }

    async fn sync(&self, paths: &[String]) -> Result<()> {
        let step = self.begin_tearable("sync", &paths.join(" ")).await?;
        let reached = if step.tears() { &paths[..paths.len() / 2] } else { paths };
        let result = self.inner.sync(reached).await;
        if result.is_ok() {
            self.ledger.synced(reached);
        }
        self.end(step, result).await
    }

    async fn sync_content(&self, paths: &[String]) -> Result<()> {
        let step = self.begin_tearable("sync_content", &paths.join(" ")).await?;
        let reached = if step.tears() { &paths[..paths.len() / 2] } else { paths };
        let result = self.inner.sync_content(reached).await;
        if result.is_ok() {
            self.ledger.content_synced(reached);
        }
        self.end(step, result).await
    }

    async fn create(&self, path: &str, bytes: Bytes) -> Result<Created> {
        let step = self.begin_write("create", path).await?;
        if step.is_late() {
            return Err(self.put_off(&step, Late::Create { path: path.to_owned(), bytes }));
        }
        let result = self.inner.create(path, bytes).await;
        self.end(step, result).await
    }

    async fn replace(&self, path: &str, bytes: Bytes, expected: &Version) -> Result<Replaced> {
        let step = self.begin_write("replace", path).await?;
        if step.is_late() {
            let (path, expected) = (path.to_owned(), expected.clone());
            return Err(self.put_off(&step, Late::Replace { path, bytes, expected }));
        }
        let result = self.inner.replace(path, bytes, expected).await;
        self.end(step, result).await
    }

    async fn list_links(
        &self,
        prefix: &str,
        links: Links,
    ) -> Result<BoxStream<'static, Result<Meta>>> {
        let step = self.begin_read("list", prefix).await?;
        let result = self.inner.list_links(prefix, links).await;
        self.end(step, result).await
    }

    async fn list_dir(&self, prefix: &str) -> Result<Dir> {
        let step = self.begin_read("list_dir", prefix).await?;
        let result = self.inner.list_dir(prefix).await;
        self.end(step, result).await
    }

    async fn delete(&self, paths: &[String]) -> Result<()> {
        let step = self.begin_tearable("delete", &paths.join(" ")).await?;
        let reached = if step.tears() { &paths[..paths.len() / 2] } else { paths };
        let result = self.inner.delete(reached).await;
        if result.is_ok() {
            self.ledger.deleted(reached);
        }
        self.end(step, result).await
    }

    async fn delete_dir(&self, prefix: &str) -> Result<()> {
        let step = self.begin_tearable("delete_dir", prefix).await?;
        if step.tears() {
            let found: Vec<Meta> = self.inner.list(prefix).await?.try_collect().await?;
            let half = found.into_iter().map(|meta| meta.path).step_by(2).collect::<Vec<_>>();
            let result = self.inner.delete(&half).await;
            self.ledger.deleted(&half);
            return self.end(step, result).await;
        }
        let result = self.inner.delete_dir(prefix).await;
        if result.is_ok() {
            self.ledger.tree_deleted(prefix);
        }
        self.end(step, result).await
    }

    async fn link(&self, from: &str, to: &str) -> Result<Linked> {
        let step = self.begin_write("link", &format!("{from} {to}")).await?;
        if step.is_late() {
            let (from, to) = (from.to_owned(), to.to_owned());
            return Err(self.put_off(&step, Late::Link { from, to }));
        }
        let result = self.inner.link(from, to).await;
        if matches!(result, Ok(Linked::Done)) {
            self.ledger.linked(from, to);
        }
        self.end(step, result).await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        let step = self.begin_write("rename", &format!("{from} {to}")).await?;
        let (old_from, old_to) = (self.before(from).await?, self.before(to).await?);
        let tree = self.cuts_power() && is_dir(&*self.inner, from).await?;
        let result = self.inner.rename(from, to).await;
        if result.is_ok() && tree {
            self.ledger.moved(Move::rename(from, to));
        } else if result.is_ok() {
            self.ledger.renamed((from, old_from), (to, old_to));
        }
        self.end(step, result).await
    }

    async fn exchange(&self, a: &str, b: &str) -> Result<()> {
        let step = self.begin_write("exchange", &format!("{a} {b}")).await?;
        let result = self.inner.exchange(a, b).await;
        if result.is_ok() {
            self.ledger.moved(Move::exchange(a, b));
        }
        self.end(step, result).await
    }

    async fn lock(&self, path: &str) -> Result<Lock> {
        let step = self.begin_write("lock", path).await?;
        let result = self.inner.lock(path).await;
        self.end(step, result).await
    }

    async fn turn(&self, door: &str, room: &str, hold: Duration) -> Result<Lock> {
        let step = self.begin_write("turn", room).await?;
        let result = self.inner.turn(door, room, hold).await;
        self.end(step, result).await
    }

    async fn sync_dir(&self, path: &str) -> Result<()> {
        let step = self.begin_write("sync_dir", path).await?;
        let result = self.inner.sync_dir(path).await;
        if result.is_ok() {
            self.ledger.directory_synced(path);
        }
        self.end(step, result).await
    }
}

pub(super) fn first_half(bytes: &[Bytes]) -> Vec<Bytes> {
    let mut left = bytes.iter().map(Bytes::len).sum::<usize>() / 2;
    let mut half = Vec::new();
    for buffer in bytes {
        let taken = buffer.slice(..buffer.len().min(left));
        left -= taken.len();
        half.push(taken);
    }
    half
}
