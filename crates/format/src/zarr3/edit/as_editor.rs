//! Plain Zarr among all that can change. Each change is durable and visible when its call returns, so a
//! commit has nothing left to do, and a discard nothing to drop.

use async_trait::async_trait;
use chunkyard_array::{ArraySpec, Attributes};
use chunkyard_store::Result;

use super::Zarr3Editor;
use crate::{Committed, Editor, Node, Reader, Writer, normalise_path};

#[async_trait]
impl Editor for Zarr3Editor {
    async fn node(&self, path: &str) -> Result<Option<Node>> {
        let path = normalise_path(path)?;
        if self.document(&path).await?.is_none() && !self.dataset().nodes.contains_key(&path) {
            return Ok(None);
        }
        // Refuses a node of version 2.
        self.require(&path).await?.node().map(Some)
    }

    async fn reader(&self, path: &str) -> Result<Reader> {
        Ok(self.array(path).await?.reader().clone())
    }

    async fn writer(&self, path: &str) -> Result<Writer> {
        Ok(self.array(path).await?.writer().clone())
    }

    async fn create_array(&self, path: &str, spec: &ArraySpec) -> Result<()> {
        Zarr3Editor::create_array(self, path, spec).await.map(drop)
    }

    async fn create_group(&self, path: &str, attributes: Attributes) -> Result<()> {
        Zarr3Editor::create_group(self, path, attributes).await
    }

    async fn resize(&self, path: &str, shape: &[u64]) -> Result<()> {
        Zarr3Editor::resize(self, path, shape).await
    }

    async fn set_attributes(&self, path: &str, attributes: Attributes) -> Result<()> {
        Zarr3Editor::set_attributes(self, path, attributes).await
    }

    async fn remove(&self, path: &str) -> Result<()> {
        self.delete(path).await
    }

    async fn commit(&self, _message: Option<&str>) -> Result<Committed> {
        Ok(Committed::default())
    }

    async fn discard(&self) -> Result<()> {
        Ok(())
    }
}
