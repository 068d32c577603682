//! The commands: each file holds the arguments of one and its `run`.

mod af;
mod attrs;
mod blz;
mod convert;
mod demo;
mod export_shards;
mod facts;
mod get;
mod info;
mod labels;
mod link;
mod ls;
mod repo;
mod resize;
mod rm;
mod serve;
mod set;
mod verify;
mod work;
mod worker;

use anyhow::Result;
use clap::Subcommand;

use crate::context::Context;
use crate::spelling::Spelling;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::Demo),
    Info(info::Info),
    Ls(ls::Ls),
    Verify(verify::Verify),
    Get(get::Get),
    Set(set::Set),
    Attrs(attrs::Attrs),
    Rm(rm::Rm),
    Resize(resize::Resize),
    Convert(convert::Convert),
    Work(work::Work),
    Worker(worker::Worker),
    Link(link::Link),
    ExportShards(export_shards::ExportShards),
    Serve(serve::Serve),
    #[command(subcommand)]
    Repo(repo::Repo),
    #[command(subcommand)]
    Labels(labels::Labels),
    #[command(subcommand)]
    Af(af::Af),
    #[command(subcommand)]
    Blz(blz::Blz),
}

impl Command {
    /// Whether the command itself listens to Ctrl-C.
    pub(crate) fn hears_interrupts(&self) -> bool {
        matches!(self, Self::Serve(_))
    }

    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        match self {
            Self::Demo(command) => command.run(context).await,
            Self::Info(command) => command.run(context).await,
            Self::Ls(command) => command.run(context).await,
            Self::Verify(command) => command.run(context).await,
            Self::Get(command) => command.run(Spelling::Any, context).await,
            Self::Set(command) => command.run(Spelling::Any, context).await,
            Self::Attrs(command) => command.run(Spelling::Any, context).await,
            Self::Rm(command) => command.run(Spelling::Any, context).await,
            Self::Resize(command) => command.run(Spelling::Any, context).await,
            Self::Convert(command) => command.run(context).await,
            Self::Work(command) => command.run(context).await,
            Self::Worker(command) => command.run(context),
            Self::Link(command) => command.run(context).await,
            Self::ExportShards(command) => command.run(context).await,
            Self::Serve(command) => command.run(context).await,
            Self::Repo(command) => command.run(context).await,
            Self::Labels(command) => command.run(context).await,
            Self::Af(command) => command.run(context).await,
            Self::Blz(command) => command.run(context).await,
        }
    }
}
