//! `chunkyard repo reset`: points a branch at another version.

use anyhow::Result;
use chunkyard_engine::repo::Version;
use clap::Args;
use serde_json::json;

use crate::context::Context;
use crate::units::short;

/// Point a branch at another version
///
/// The snapshot it pointed at stays readable by its id until it expires.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard repo reset weather main v1")]
pub(crate) struct Reset {
    /// The repository
    repo: String,

    /// The branch to move
    branch: String,

    /// Where to: a branch, a tag, or a snapshot's id or the beginning of it
    to: String,

    /// Only if the branch is at this snapshot now
    #[arg(long, value_name = "ID")]
    expect: Option<String>,
}

impl Reset {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let repo = context.open(&self.repo).await?;
        let state = repo.state().await?;
        let before = state.tip(&self.branch)?.snapshot_id.clone();
        let expected = match &self.expect {
            Some(id) => Some(state.resolve(&Version::Snapshot(id.clone()))?.snapshot_id.clone()),
            None => None,
        };
        let to = Version::Named(self.to.clone());
        let snapshot = repo.reset_branch(&self.branch, &to, expected.as_deref()).await?;
        let after = &snapshot.snapshot_id;
        let document = json!({"branch": self.branch, "before": before, "snapshot-id": after});
        context.output.done(&document, || {
            format!("branch {} moved from {} to {}", self.branch, short(&before), short(after))
        })
    }
}
