//! Containers among all that can change: changes wait, and a commit is one more layer.

use std::sync::Arc;

use async_trait::async_trait;
use chunkyard_array::{ArraySpec, Attributes};
use chunkyard_store::{BlockCodec, Error, Noun, Result, block_codec, zstd_block_codec};

use super::editor::ContainerEditor;
use super::handle::{Container, ContainerOptions};
use super::layers::stack::Reason;
use crate::{Committed, EditOptions, Editor, Node, Place, Reader, Version, Writer};

impl ContainerEditor {
    /// Opens the container at a place to change it: its newest layer must be whole.
    pub async fn open(place: &Place, options: &EditOptions) -> Result<Self> {
        options.refuse_versions("a container")?;
        let mut how = ContainerOptions { strict: true, ..ContainerOptions::default() };
        if let Some(packing) = &options.packing {
            how.codec = parse_packing(packing)?;
        }
        let container = match Container::open(place, how.clone()).await {
            Err(Error::NotFound { what: Noun::Container, .. }) if options.create => {
                Container::create(place, how).await?
            }
            opened => opened?,
        };
        Ok(Self::new(container))
    }
}

/// How blocks are packed, as the user types it: `none`, `lz4`, `zstd`, `zstd:9`.
pub fn parse_packing(text: &str) -> Result<Arc<dyn BlockCodec>> {
    match text.split_once(':') {
        Some(("zstd", level)) => match level.parse() {
            Ok(level) => zstd_block_codec(level),
            Err(_) => Err(Error::invalid(format!("{level:?} is no level of zstd"))),
        },
        _ => block_codec(text),
    }
}

#[async_trait]
impl Editor for ContainerEditor {
    async fn node(&self, path: &str) -> Result<Option<Node>> {
        ContainerEditor::node(self, path).await
    }

    async fn reader(&self, path: &str) -> Result<Reader> {
        Ok(ContainerEditor::array(self, path).await?.reader()?.clone())
    }

    async fn writer(&self, path: &str) -> Result<Writer> {
        ContainerEditor::array(self, path).await?.writer()
    }

    async fn create_array(&self, path: &str, spec: &ArraySpec) -> Result<()> {
        ContainerEditor::create_array(self, path, spec).await
    }

    async fn create_group(&self, path: &str, attributes: Attributes) -> Result<()> {
        ContainerEditor::create_group(self, path, attributes).await
    }

    async fn resize(&self, path: &str, shape: &[u64]) -> Result<()> {
        ContainerEditor::resize(self, path, shape).await
    }

    async fn set_attributes(&self, path: &str, attributes: Attributes) -> Result<()> {
        ContainerEditor::set_attributes(self, path, attributes).await
    }

    async fn remove(&self, path: &str) -> Result<()> {
        self.delete(path).await
    }

    async fn commit(&self, _message: Option<&str>) -> Result<Committed> {
        let Some(flushed) = self.container().flush().await? else {
            return Ok(Committed::default());
        };
        Ok(Committed {
            version: Some(Version::Snapshot(flushed.layer.to_string())),
            cautions: flushed.note.into_iter().collect(),
        })
    }

    async fn discard(&self) -> Result<()> {
        self.container().discard().await;
        Ok(())
    }

    fn cautions(&self) -> Vec<String> {
        let ignored = self.container().ignored().into_iter();
        let foreign = ignored.filter(|file| file.reason == Reason::Foreign);
        foreign.map(|file| format!("{} is left alone: {}", file.path, file.why)).collect()
    }
}
