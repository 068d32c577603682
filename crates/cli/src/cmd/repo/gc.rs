//! `chunkyard repo gc`: removes files that no snapshot needs.

use anyhow::Result;
use chunkyard_engine::repo::GcOptions;
use clap::Args;

use crate::context::Context;
use crate::units::{count, parse_duration, size};

/// Remove files that no snapshot needs
///
/// Safe beside running readers and writers; a writer whose files are taken fails cleanly.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard repo gc weather --dry-run")]
pub(crate) struct Gc {
    /// The repository
    repo: String,

    /// Leave younger files alone: writers may need them
    #[arg(long, value_name = "AGE", default_value = "24h", value_parser = parse_duration)]
    min_age: i64,

    /// Only print what would be removed
    #[arg(long)]
    dry_run: bool,
}

impl Gc {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let repo = context.open(&self.repo).await?;
        let options = GcOptions { min_age_ms: self.min_age, dry_run: self.dry_run };
        let watch = context.watch("collecting");
        let report = repo.garbage_collect(&options).await?;
        drop(watch);
        context.output.done(&report, || {
            let verb = if report.dry_run { "would remove" } else { "removed" };
            let files = count(report.files, "file");
            format!("{verb} {files} ({}), kept {}", size(report.bytes), report.kept)
        })
    }
}
