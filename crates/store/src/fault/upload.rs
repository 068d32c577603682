//! Uploads through a [`Fault`]: every write and the finish may be the operation that goes wrong.

use async_trait::async_trait;
use bytes::Bytes;

use super::Fault;
use super::backend::first_half;
use crate::error::{Error, Result};
use crate::upload::{Soundness, Upload};

/// An upload that goes wrong when its store does.
#[derive(Debug)]
pub(super) struct FaultUpload {
    fault: Fault,
    path: String,
    /// Gone once it is finished or aborted.
    inner: Option<Box<dyn Upload>>,
    soundness: Soundness,
}

impl FaultUpload {
    pub(super) fn new(fault: Fault, path: String, inner: Box<dyn Upload>) -> Self {
        Self { fault, path, inner: Some(inner), soundness: Soundness::default() }
    }

    fn finished(&self) -> Error {
        Error::store("write", self.path.clone(), "it is finished")
    }
}

#[async_trait]
impl Upload for FaultUpload {
    async fn write(&mut self, mut bytes: Vec<Bytes>) -> Result<()> {
        self.soundness.begin(&self.path)?;
        let step = self.fault.begin_tearable("write", &self.path).await?;
        if step.tears() {
            bytes = first_half(&bytes);
        }
        let result = match &mut self.inner {
            Some(inner) => inner.write(bytes).await,
            None => Err(self.finished()),
        };
        self.fault.end(step, result).await?;
        self.soundness.done();
        Ok(())
    }

    async fn patch(&mut self, position: u64, bytes: Bytes) -> Result<()> {
        self.soundness.begin(&self.path)?;
        let step = self.fault.begin_tearable("patch", &self.path).await?;
        let bytes = if step.tears() { bytes.slice(..bytes.len() / 2) } else { bytes };
        let result = match &mut self.inner {
            Some(inner) => inner.patch(position, bytes).await,
            None => Err(self.finished()),
        };
        self.fault.end(step, result).await?;
        self.soundness.done();
        Ok(())
    }

    async fn finish(mut self: Box<Self>) -> Result<()> {
        self.soundness.begin(&self.path)?;
        let step = self.fault.begin_write("finish", &self.path).await?;
        let previous = self.fault.before(&self.path).await?;
        let result = match self.inner.take() {
            Some(inner) => inner.finish().await,
            None => Ok(()),
        };
        if result.is_ok() {
            self.fault.ledger.put(&self.path, previous);
        }
        self.fault.end(step, result).await
    }

    async fn abort(mut self: Box<Self>) {
        if let Some(inner) = self.inner.take_if(|_| !self.fault.dead()) {
            inner.abort().await;
        }
    }
}

impl Drop for FaultUpload {
    fn drop(&mut self) {
        // A killed process cleans nothing up: what it wrote stays.
        if self.fault.dead() {
            std::mem::forget(self.inner.take());
        }
    }
}
