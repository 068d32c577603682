//! `chunkyard af resize`: changes the extents of an array.

use anyhow::Result;
use clap::Args;

use crate::context::Context;
use crate::units::parse_shape;

/// Change the extents of an array
///
/// New elements hold the fill value. Elements outside the new extents are gone, also when the array
/// grows again.
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
