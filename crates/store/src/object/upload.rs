//! An object sent in parts while it is still being made.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use object_store::path::Path;
use object_store::{
    Error as Cause, MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload, UploadPart,
};
use tokio::task::JoinSet;

use super::ObjectBackend;
use super::multipart::PARTS_AT_ONCE;
use crate::backend::no;
use crate::error::{Error, Result};
use crate::upload::{Soundness, Upload};

/// Parts are of equal size, because some services insist. S3 takes 10,000 of them, so this allows
/// for objects of 160 GB; parts under way and bytes waiting to fill a part take 80 MiB at most.
const PART_BYTES: usize = 16 << 20;

/// An object that is not complete. One smaller than a part is sent in one request.
#[derive(Debug)]
pub(super) struct ObjectUpload {
    backend: ObjectBackend,
    path: String,
    at: Path,
    /// What is not yet a part.
    rest: Vec<Bytes>,
    rest_bytes: usize,
    /// Exists from the first part on.
    parts: Option<Box<dyn MultipartUpload>>,
    under_way: JoinSet<object_store::Result<()>>,
    soundness: Soundness,
}

impl ObjectUpload {
    pub(super) fn new(backend: ObjectBackend, path: String, at: Path) -> Self {
        Self {
            backend,
            path,
            at,
            rest: Vec::new(),
            rest_bytes: 0,
            parts: None,
            under_way: JoinSet::new(),
            soundness: Soundness::default(),
        }
    }

    fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.backend.store
    }

    fn error(&self, error: Cause) -> Error {
        self.backend.unwritten("write", &self.path, error)
    }

    /// Sends what is left as a part, once there is room.
    async fn send_part(&mut self) -> Result<()> {
        while self.under_way.len() >= PARTS_AT_ONCE {
            self.join_one().await?;
        }
        let part: PutPayload = self.rest.drain(..).collect();
        self.rest_bytes = 0;
        let sent: UploadPart = match &mut self.parts {
            Some(parts) => parts.put_part(part),
            None => {
                let begun = self.store().put_multipart(&self.at).await;
                let begun = begun.map_err(|error| self.error(error))?;
                self.parts.insert(begun).put_part(part)
            }
        };
        self.under_way.spawn(sent);
        Ok(())
    }

    /// Waits for one of the parts; false if none is under way.
    async fn join_one(&mut self) -> Result<bool> {
        match self.under_way.join_next().await {
            None => Ok(false),
            Some(Ok(Ok(()))) => Ok(true),
            Some(Ok(Err(error))) => Err(self.error(error)),
            Some(Err(error)) => Err(Error::store("write", self.path.clone(), error)),
        }
    }

    async fn complete(&mut self) -> Result<()> {
        if self.parts.is_none() {
            let whole: PutPayload = self.rest.drain(..).collect();
            let put = self.store().put(&self.at, whole).await;
            return put.map(drop).map_err(|error| self.error(error));
        }
        if self.rest_bytes > 0 {
            self.send_part().await?;
        }
        while self.join_one().await? {}
        let Some(parts) = &mut self.parts else { return Ok(()) };
        let completed = parts.complete().await;
        completed.map_err(|error| self.error(error))?;
        // Nothing is left to be taken back.
        self.parts = None;
        Ok(())
    }

    /// Parts left behind cost money but do no harm; if this fails too, nothing more can be done.
    async fn take_back(&mut self) {
        self.under_way.shutdown().await;
        if let Some(mut parts) = self.parts.take() {
            parts.abort().await.ok();
        }
    }
}

#[async_trait]
impl Upload for ObjectUpload {
    async fn write(&mut self, bytes: Vec<Bytes>) -> Result<()> {
        self.soundness.begin(&self.path)?;
        for mut buffer in bytes {
            while self.rest_bytes + buffer.len() >= PART_BYTES {
                self.rest.push(buffer.split_to(PART_BYTES - self.rest_bytes));
                self.rest_bytes = PART_BYTES;
                self.send_part().await?;
            }
            if !buffer.is_empty() {
                self.rest_bytes += buffer.len();
                self.rest.push(buffer);
            }
        }
        self.soundness.done();
        Ok(())
    }

    async fn patch(&mut self, _position: u64, _bytes: Bytes) -> Result<()> {
        self.soundness.begin(&self.path)?;
        Err(no(self.backend.kind, "patch", &self.path))
    }

    async fn finish(mut self: Box<Self>) -> Result<()> {
        self.soundness.begin(&self.path)?;
        let completed = self.complete().await;
        if completed.is_err() {
            self.take_back().await;
        }
        completed
    }

    async fn abort(mut self: Box<Self>) {
        self.take_back().await;
    }
}

impl Drop for ObjectUpload {
    fn drop(&mut self) {
        let Some(mut parts) = self.parts.take() else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { parts.abort().await.ok() });
        }
    }
}
