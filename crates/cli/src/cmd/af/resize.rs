//! `chunkyard af resize`: an array gets other extents.

use anyhow::Result;
use clap::Args;

use crate::context::Context;
use crate::units::parse_shape;

/// Give an array other extents
///
/// What it grows by holds the fill value; what lies outside of what it shrinks to is gone, also when
/// it grows again.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard af resize buoys.af north/temperature 1200,200")]
pub(crate) struct Resize {
    /// The container
    file: String,

    /// The array
    name: String,

    /// Its new shape
    shape: String,
}

impl Resize {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let shape = parse_shape(&self.shape)?;
        let editor = super::writable(&self.file, None, context).await?;
        editor.container().resize(super::name(&self.name), &shape).await?;
        super::flush(&editor, &format!("resized {}", super::name(&self.name)), context).await
    }
}
