//! `chunkyard repo rm`: deletes an array or a group; older versions keep it.

use anyhow::Result;
use clap::Args;

use super::{commit, writable};
use crate::args::CommitArgs;
use crate::context::Context;

/// Delete an array, or a group and all below it
///
/// Older versions keep it until they expire.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard repo rm weather /scratch -m 'no longer needed'")]
pub(crate) struct Rm {
    /// The repository
    repo: String,

    /// What to delete
    path: String,

    #[command(flatten)]
    commit: CommitArgs,
}

impl Rm {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let repo = context.open(&self.repo).await?;
        let session = writable(&repo, &self.commit).await?;
        session.delete(&self.path)?;
        commit(&session, &self.commit, format!("delete {}", self.path), context).await?;
        Ok(())
    }
}
