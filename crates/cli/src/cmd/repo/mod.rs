//! `chunkyard repo`: everything about versions.

mod branch;
mod diff;
mod expire;
mod gc;
mod init;
mod log;
mod mode;
mod mv;
mod optimise;
mod repack;
mod repair;
mod reset;
mod tag;

use anyhow::Result;
use clap::Subcommand;

pub(super) use self::diff::describe as describe_diff;
pub(super) use self::log::describe as describe_log;
use super::{attrs, get, rm, set};
use crate::context::Context;
use crate::spelling::Spelling;

/// Create, change and maintain repositories
///
/// `set`, `get`, `attrs` and `rm` are the commands of these names, which take any format; here they print
/// the snapshot.
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
            Self::Set(command) => command.run(Spelling::Repo, context).await,
            Self::Get(command) => command.run(Spelling::Repo, context).await,
            Self::Log(command) => command.run(context).await,
            Self::Diff(command) => command.run(context).await,
            Self::Branch(command) => command.run(context).await,
            Self::Tag(command) => command.run(context).await,
            Self::Reset(command) => command.run(context).await,
            Self::Attrs(command) => command.run(Spelling::Repo, context).await,
            Self::Mv(command) => command.run(context).await,
            Self::Rm(command) => command.run(Spelling::Repo, context).await,
            Self::Expire(command) => command.run(context).await,
            Self::Gc(command) => command.run(context).await,
            Self::Optimise(command) => command.run(context).await,
            Self::Repack(command) => command.run(context).await,
            Self::Repair(command) => command.run(context).await,
            Self::Mode(command) => command.run(context).await,
        }
    }
}
