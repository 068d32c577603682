//! `chunkyard repo mv`: moves an array or a group; chunks stay where they are.

use anyhow::Result;
use clap::Args;

use super::{commit, writable};
use crate::args::CommitArgs;
use crate::context::Context;

/// Move an array or a group
///
/// No chunk is copied.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard repo mv weather /t /air/temperature -m 'tidy up'")]
pub(crate) struct Mv {
    /// The repository
    repo: String,

    /// Its path
    from: String,

    /// Its new path; groups above it are created
    to: String,

    #[command(flatten)]
    commit: CommitArgs,
}

impl Mv {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let repo = context.open(&self.repo).await?;
        let session = writable(&repo, &self.commit).await?;
        session.move_node(&self.from, &self.to)?;
        commit(&session, &self.commit, format!("move {} to {}", self.from, self.to), context)
            .await?;
        Ok(())
    }
}
