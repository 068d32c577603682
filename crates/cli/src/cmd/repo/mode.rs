//! `chunkyard repo mode`: stops and resumes accepting changes.

use anyhow::Result;
use chunkyard_engine::repo::Mode;
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::context::Context;

/// Stop or resume accepting changes
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard repo mode weather read-only --reason 'moving house'")]
pub(crate) struct ModeCommand {
    /// The repository
    repo: String,

    /// The new mode
    #[arg(value_enum)]
    mode: ModeWord,

    /// The reason, which refused writers see
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ModeWord {
    /// Commits are accepted
    Online,
    /// Commits are refused
    ReadOnly,
}

impl ModeCommand {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let repo = context.open(&self.repo).await?;
        let mode = match self.mode {
            ModeWord::Online => Mode::Online,
            ModeWord::ReadOnly => Mode::ReadOnly,
        };
        repo.set_mode(mode, self.reason.clone()).await?;
        let document = json!({"mode": mode, "reason": self.reason});
        let word = if mode == Mode::Online { "online" } else { "read-only" };
        context.output.done(&document, || format!("{} is {word}", self.repo))
    }
}
