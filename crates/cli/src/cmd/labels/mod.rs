//! `chunkyard labels`: segmentations under version control.

mod change;
mod check;
mod compare;
mod import;
mod info;
mod look;
mod npy_volume;
mod tables;

use anyhow::Result;
use chunkyard_engine::Error;
use chunkyard_engine::labels::Labelmap;
use chunkyard_engine::repo::{Repository, Session, Version};
use clap::{Args, Subcommand};
use std::sync::Arc;

pub(super) use self::compare::describe as describe_diff;
use crate::args::VersionArgs;
use crate::context::Context;

/// Segmentations under version control: bodies, edits, branches of proofreading
///
/// A labelmap is a group of a repository: supervoxels at several scales, and tables that say which body each
/// belongs to. Every edit is a commit; many edits can be one (`edit`).
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  chunkyard labels import brain segmentation.npy        a labelmap from a volume
  chunkyard labels merge-bodies brain 17 23             23 becomes part of 17
  chunkyard labels diff brain v1 main                   what changed, in bodies
  chunkyard labels merge brain alice                    bring her edits in")]
pub(crate) enum Labels {
    Create(import::Create),
    Import(import::Import),
    Info(info::Info),
    At(look::At),
    Body(look::Body),
    Bodies(look::Bodies),
    Table(tables::Table),
    Sql(tables::Sql),
    MergeBodies(change::MergeBodies),
    Cleave(change::Cleave),
    SplitSupervoxel(change::SplitSupervoxel),
    SplitBody(change::SplitBody),
    Renumber(change::Renumber),
    Map(change::Map),
    Edit(change::EditFile),
    Revert(change::Revert),
    Diff(compare::Diff),
    Merge(compare::Merge),
    Blame(compare::Blame),
    Log(compare::Log),
    Downres(check::Downres),
    Verify(check::Verify),
}

impl Labels {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        match self {
            Self::Create(command) => command.run(context).await,
            Self::Import(command) => command.run(context).await,
            Self::Info(command) => command.run(context).await,
            Self::At(command) => command.run(context).await,
            Self::Body(command) => command.run(context).await,
            Self::Bodies(command) => command.run(context).await,
            Self::Table(command) => command.run(context).await,
            Self::Sql(command) => command.run(context).await,
            Self::MergeBodies(command) => command.run(context).await,
            Self::Cleave(command) => command.run(context).await,
            Self::SplitSupervoxel(command) => command.run(context).await,
            Self::SplitBody(command) => command.run(context).await,
            Self::Renumber(command) => command.run(context).await,
            Self::Map(command) => command.run(context).await,
            Self::Edit(command) => command.run(context).await,
            Self::Revert(command) => command.run(context).await,
            Self::Diff(command) => command.run(context).await,
            Self::Merge(command) => command.run(context).await,
            Self::Blame(command) => command.run(context).await,
            Self::Log(command) => command.run(context).await,
            Self::Downres(command) => command.run(context).await,
            Self::Verify(command) => command.run(context).await,
        }
    }
}

/// Which labelmap a command is about.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// The repository
    repo: String,

    /// The group of the labelmap; not needed if the repository has one labelmap
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
}

impl Place {
    async fn open(&self, context: &Context) -> Result<Repository> {
        context.open(&self.repo).await
    }

    /// The group, which is the only labelmap of the session unless it was named.
    async fn group(&self, session: &Arc<Session>) -> Result<String> {
        if let Some(path) = &self.path {
            return Ok(path.clone());
        }
        match Labelmap::list(session).await?.as_slice() {
            [only] => Ok(only.clone()),
            [] => Err(Error::invalid(format!(
                "{} has no labelmap; `chunkyard labels import` makes one",
                self.repo
            ))
            .into()),
            several => Err(Error::invalid(format!(
                "{} has several labelmaps: {}; name one with --path",
                self.repo,
                several.join(", ")
            ))
            .into()),
        }
    }

    /// The labelmap at a version.
    async fn at(&self, version: &VersionArgs, context: &Context) -> Result<Labelmap> {
        let repo = self.open(context).await?;
        let session = repo.readonly_session(&version.version(&repo).await?).await?;
        Ok(Labelmap::open(&session, &self.group(&session).await?).await?)
    }

    /// The group on a branch.
    async fn group_on(&self, repo: &Repository, branch: &str) -> Result<String> {
        self.group(&repo.readonly_session(&Version::branch(branch)).await?).await
    }
}

/// Three numbers along z, y, x.
fn parse_three<T: std::str::FromStr>(text: &str) -> Result<[T; 3], String> {
    let numbers: Option<Vec<T>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
    numbers
        .and_then(|numbers| numbers.try_into().ok())
        .ok_or_else(|| format!("{text:?} is not three numbers z,y,x"))
}
