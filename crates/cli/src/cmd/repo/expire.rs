//! `chunkyard repo expire`: forgets old snapshots.

use anyhow::Result;
use chunkyard_engine::repo::ExpireOptions;
use clap::Args;

use crate::context::Context;
use crate::units::{count, parse_limit};

/// Forget old snapshots
///
/// Snapshots that branches and tags point at stay. `gc` removes the files.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard repo expire weather --older-than 30d --keep-last 10")]
#[group(id = "limit", required = true, multiple = true, args = ["older_than", "keep_last"])]
pub(crate) struct Expire {
    /// The repository
    repo: String,

    /// Snapshots older than this may go: an age such as 30d, or a time
    #[arg(long, value_name = "AGE|TIME", value_parser = parse_limit)]
    older_than: Option<i64>,

    /// Each branch keeps this many of its newest snapshots
    #[arg(long, value_name = "COUNT")]
    keep_last: Option<usize>,

    /// Also drop tags and branches (not the default one) whose target is older
    #[arg(long, requires = "older_than")]
    drop_references: bool,
}

impl Expire {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let repo = context.open(&self.repo).await?;
        let options = ExpireOptions {
            older_than_ms: self.older_than,
            keep_last: self.keep_last,
            drop_references: self.drop_references,
        };
        let expired = repo.expire(&options).await?;
        context.output.done(&expired, || {
            let mut text = format!("{} expired", count(expired.snapshots.len() as u64, "snapshot"));
            if !expired.references.is_empty() {
                text.push_str(&format!("; dropped {}", expired.references.join(", ")));
            }
            if !expired.snapshots.is_empty() {
                text.push_str(&format!("; next: chunkyard repo gc {}", self.repo));
            }
            text
        })
    }
}
