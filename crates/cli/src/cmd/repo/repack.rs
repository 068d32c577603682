//! `chunkyard repo repack`: moves live chunks out of packs that are mostly dead.

use anyhow::Result;
use chunkyard_engine::Error;
use chunkyard_engine::repo::RepackOptions;
use clap::Args;

use crate::args::branch_or_default;
use crate::context::Context;
use crate::units::{count, short, size};

/// Move live chunks out of packs that are mostly dead
///
/// `gc` removes the old packs once the snapshots that need them have expired.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard repo repack weather --live-share 0.3")]
pub(crate) struct Repack {
    /// The repository
    repo: String,

    /// The branch; the default one if not given
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,

    /// Rewrite packs with less than this share of live bytes, between 0 and 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    live_share: f64,
}

impl Repack {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        if !(0.0..=1.0).contains(&self.live_share) {
            let what = format!("--live-share {} is not between 0 and 1", self.live_share);
            return Err(Error::invalid(what).into());
        }
        let repo = context.open(&self.repo).await?;
        let branch = branch_or_default(&repo, self.branch.as_deref()).await?;
        let options = RepackOptions { live_share_min: self.live_share };
        let watch = context.watch("repacking");
        let report = repo.repack(&branch, &options).await?;
        drop(watch);
        context.output.done(&report, || match &report.snapshot {
            None => format!("no pack of {branch} is mostly dead"),
            Some(id) => format!(
                "committed {} on {branch}: {} ({}) moved out of {}",
                short(id),
                count(report.chunks, "chunk"),
                size(report.bytes),
                count(report.packs, "pack")
            ),
        })
    }
}
