//! `chunkyard af rm`: deletes an array or a group; older layers keep it until they are compacted.

use anyhow::Result;
use chunkyard_engine::Error;
use clap::Args;

use crate::context::Context;

/// Delete an array, or a group and all below it
///
/// Its bytes go at the next compaction; until then it can be read as of an older layer.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard af rm buoys.af scratch")]
pub(crate) struct Rm {
    /// The container
    file: String,

    /// What to delete
    name: String,
}

impl Rm {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let editor = super::writable(&self.file, None, context).await?;
        let name = super::name(&self.name);
        // Try the name as it is first: it need not be a path.
        match editor.container().delete(name).await {
            Err(Error::NotFound { .. }) => editor.delete(&self.name).await?,
            other => other?,
        }
        super::flush(&editor, &format!("deleted {name}"), context).await
    }
}
