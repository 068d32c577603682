//! `chunkyard repo`: everything about versions.

mod attrs;
mod branch;
mod diff;
mod expire;
mod gc;
mod get;
mod init;
mod log;
mod mode;
mod mv;
mod optimise;
mod repack;
mod repair;
mod reset;
mod rm;
mod set;
mod tag;

use std::sync::Arc;

use anyhow::Result;
use chunkyard_engine::repo::{CommitOptions, Rebase, Repository, Session, Snapshot};
use clap::Subcommand;

pub(super) use self::diff::describe as describe_diff;
pub(super) use self::log::describe as describe_log;
use crate::args::{CommitArgs, branch_or_default};
use crate::context::Context;
use crate::printable::brief;
use crate::units::{count, short, size};

/// Create, change and maintain repositories
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  chunkyard repo init weather")]
pub(crate) enum Repo {
    Init(init::Init),
    Set(set::Set),
    Get(get::Get),
    Log(log::Log),
    Diff(diff::DiffCommand),
    Branch(branch::Branch),
    Tag(tag::Tag),
    Reset(reset::Reset),
    Attrs(attrs::Attrs),
    Mv(mv::Mv),
    Rm(rm::Rm),
    Expire(expire::Expire),
    Gc(gc::Gc),
    Optimise(optimise::Optimise),
    Repack(repack::Repack),
    Repair(repair::Repair),
    Mode(mode::ModeCommand),
}

impl Repo {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        match self {
            Self::Init(command) => command.run(context).await,
            Self::Set(command) => command.run(context).await,
            Self::Get(command) => command.run(context).await,
            Self::Log(command) => command.run(context).await,
            Self::Diff(command) => command.run(context).await,
            Self::Branch(command) => command.run(context).await,
            Self::Tag(command) => command.run(context).await,
            Self::Reset(command) => command.run(context).await,
            Self::Attrs(command) => command.run(context).await,
            Self::Mv(command) => command.run(context).await,
            Self::Rm(command) => command.run(context).await,
            Self::Expire(command) => command.run(context).await,
            Self::Gc(command) => command.run(context).await,
            Self::Optimise(command) => command.run(context).await,
            Self::Repack(command) => command.run(context).await,
            Self::Repair(command) => command.run(context).await,
            Self::Mode(command) => command.run(context).await,
        }
    }
}

/// A session on the named branch, or on the default one.
async fn writable(repo: &Repository, args: &CommitArgs) -> Result<Arc<Session>> {
    let branch = branch_or_default(repo, args.branch.as_deref()).await?;
    Ok(repo.writable_session(&branch).await?)
}

/// Commits as the arguments say, and prints the snapshot.
async fn commit(
    session: &Session,
    args: &CommitArgs,
    default_message: String,
    context: &Context,
) -> Result<Arc<Snapshot>> {
    let options = CommitOptions {
        message: args.message.clone().unwrap_or(default_message),
        rebase: args.rebase.then(Rebase::default),
        amend: args.amend,
        ..CommitOptions::default()
    };
    let snapshot = session.commit(options).await?;
    context.output.done(&*snapshot, || {
        let summary = &snapshot.summary;
        let mut changed = Vec::new();
        if summary.refs_added > 0 {
            changed.push(format!("{} set", count(summary.refs_added, "chunk")));
        }
        if summary.refs_removed > 0 {
            changed.push(format!("{} removed", count(summary.refs_removed, "chunk")));
        }
        changed.push(format!("{} written", size(summary.bytes_written)));
        format!(
            "committed {} on {}: {} ({})",
            short(&snapshot.snapshot_id),
            session.branch().unwrap_or_default(),
            brief(&snapshot.message),
            changed.join(", ")
        )
    })?;
    Ok(snapshot)
}
