//! `chunkyard repo repair`: what to do when `verify` finds damage.

use anyhow::Result;
use chunkyard_engine::repo::Repository;
use chunkyard_engine::store::Store;
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::args::branch_or_default;
use crate::context::Context;
use crate::units::{count, short};

/// Repair a damaged repository, one named action at a time
///
/// Run `chunkyard verify` first, then the action that fits.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard repo repair weather republish")]
pub(crate) struct Repair {
    /// The repository
    repo: String,

    /// What to do
    #[arg(value_enum)]
    action: Action,

    /// The branch for all but `republish` and `drop-unreadable`; the default one if not given
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Action {
    /// Publish the newest sound claim over a damaged state.json
    Republish,
    /// Build a lost state from the structure files; tags and configuration do not come back
    RebuildState,
    /// Forget unreadable snapshots that no branch or tag points at
    DropUnreadable,
    /// Rebuild lost manifests of a branch from the packs' own indexes
    RecoverReferences,
    /// Commit that chunks with lost bytes read as the fill value
    ForgetMissing,
}

impl Repair {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        context.about(&self.repo);
        let output = &context.output;
        // The first two are for repositories that cannot be opened.
        let store = || Store::open(&self.repo, &context.options().store);
        match self.action {
            Action::Republish => {
                let republished = Repository::republish(&store()?).await?;
                output.done(&republished, || {
                    format!(
                        "published generation {} again; {} set aside",
                        republished.generation,
                        count(republished.damaged_claims, "damaged claim")
                    )
                })
            }
            Action::RebuildState => {
                let branch = self.branch.as_deref().unwrap_or("main");
                let rebuilt = Repository::rebuild_state(&store()?, branch).await?;
                output.done(&rebuilt, || {
                    format!(
                        "found {} on {}; {} could not be read",
                        count(rebuilt.snapshots, "snapshot"),
                        rebuilt.branches.keys().cloned().collect::<Vec<_>>().join(", "),
                        count(rebuilt.unreadable.len() as u64, "structure file")
                    )
                })
            }
            Action::DropUnreadable => {
                let dropped = context.open(&self.repo).await?.drop_unreadable().await?;
                output.done(&json!({"snapshots": dropped}), || {
                    format!("forgot {}", count(dropped.len() as u64, "unreadable snapshot"))
                })
            }
            Action::RecoverReferences => {
                let repo = context.open(&self.repo).await?;
                let branch = branch_or_default(&repo, self.branch.as_deref()).await?;
                let recovered = repo.recover_references(&branch).await?;
                output.done(&recovered, || match &recovered.snapshot {
                    None => format!("no manifest of {branch} is lost"),
                    Some(id) => format!(
                        "committed {} on {branch}: {} lost, {} found in packs",
                        short(id),
                        count(recovered.manifests.len() as u64, "manifest"),
                        count(recovered.chunks, "chunk")
                    ),
                })
            }
            Action::ForgetMissing => {
                let repo = context.open(&self.repo).await?;
                let branch = branch_or_default(&repo, self.branch.as_deref()).await?;
                let forgotten = repo.forget_missing(&branch).await?;
                output.done(&forgotten, || match &forgotten.snapshot {
                    None => format!("no chunk of {branch} is missing"),
                    Some(id) => format!(
                        "committed {} on {branch}: gave up {}",
                        short(id),
                        count(forgotten.chunks.len() as u64, "chunk")
                    ),
                })
            }
        }
    }
}
