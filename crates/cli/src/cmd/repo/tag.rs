//! `chunkyard repo tag`: names of versions that never move.

use anyhow::Result;
use chunkyard_engine::repo::ReferenceKind;
use clap::{Args, Subcommand};

use super::branch::{created, deleted, list, version};
use crate::context::Context;

/// Create, list and delete tags
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard repo tag weather create v1")]
pub(crate) struct Tag {
    /// The repository
    repo: String,

    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Create a tag
    #[command(after_help = "Example:\n  chunkyard repo tag weather create v1 --at 7k3q")]
    Create {
        /// Its name
        name: String,
        /// What it names: a branch, a tag or a snapshot; the default branch if not given
        #[arg(long, value_name = "REF")]
        at: Option<String>,
        /// Use the name of a deleted tag again, although users may remember the old one
        #[arg(long)]
        reuse: bool,
    },
    /// List tags
    #[command(after_help = "Example:\n  chunkyard repo tag weather list --json")]
    List,
    /// Delete a tag and retire its name
    #[command(after_help = "Example:\n  chunkyard repo tag weather delete v1")]
    Delete {
        /// Its name
        name: String,
    },
}

impl Tag {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let repo = context.open(&self.repo).await?;
        match &self.action {
            Action::List => list(&repo, ReferenceKind::Tag, context).await,
            Action::Create { name, at, reuse } => {
                let snapshot = repo.create_tag(name, &version(at.as_deref()), *reuse).await?;
                created(ReferenceKind::Tag, name, &snapshot.snapshot_id, context)
            }
            Action::Delete { name } => {
                repo.delete_tag(name).await?;
                deleted(ReferenceKind::Tag, name, context)
            }
        }
    }
}
