//! `chunkyard repo optimise`: merges the manifests of a branch.

use anyhow::Result;
use clap::Args;

use crate::args::branch_or_default;
use crate::context::Context;
use crate::units::{count, short};

/// Merge the chunk manifests of a branch, for faster reads
#[derive(Debug, Args)]
#[command(alias = "optimize", after_help = "Example:\n  chunkyard repo optimise weather")]
pub(crate) struct Optimise {
    /// The repository
    repo: String,

    /// The branch; the default one if not given
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
}

impl Optimise {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let repo = context.open(&self.repo).await?;
        let branch = branch_or_default(&repo, self.branch.as_deref()).await?;
        let watch = context.watch("merging");
        let report = repo.optimise(&branch).await?;
        drop(watch);
        context.output.done(&report, || match &report.snapshot {
            None => format!("nothing to merge on {branch}"),
            Some(id) => format!(
                "committed {} on {branch}: {} merged, {} became {}",
                short(id),
                count(report.arrays, "array"),
                count(report.entries_before, "manifest part"),
                report.entries_after
            ),
        })
    }
}
