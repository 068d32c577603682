//! `chunkyard af create`: a new container.

use anyhow::Result;
use chunkyard_engine::format::container::{Container, ContainerOptions};
use clap::Args;
use serde_json::json;

use crate::context::Context;

/// Create an empty container
///
/// Refuses, with exit code 4, if the container exists, or a file that would count as one of its
/// layers.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard af create buoys.af")]
pub(crate) struct Create {
    /// The file to create; its name ends in .af
    file: String,
}

impl Create {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let place = super::place(&self.file, context)?;
        let container = Container::create(&place, ContainerOptions::default()).await?;
        context.output.done(&json!({"url": container.url()}), || {
            format!(
                "created {}; next: chunkyard af set {} NAME FILE.npy",
                container.url(),
                self.file
            )
        })
    }
}
