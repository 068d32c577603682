//! `chunkyard labels verify` and `downres`: what follows from the voxels.

use anyhow::Result;
use chunkyard_engine::labels::Labelmap;
use chunkyard_engine::repo::CommitOptions;
use clap::Args;
use serde_json::json;

use super::Place;
use crate::args::{VersionArgs, branch_or_default};
use crate::context::Context;
use crate::failure::Unsound;
use crate::printable::line;
use crate::units::{count, short};

/// Count all voxels anew and compare every table and scale with them
///
/// Reads only. Exit code 5 if anything does not agree.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard labels verify brain --tag v1")]
pub(crate) struct Verify {
    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    version: VersionArgs,
}

impl Verify {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let map = self.place.at(&self.version, context).await?;
        let watch = context.watch("counting voxels");
        let found = map.verify(context.meter()).await?;
        drop(watch);
        context.output.result(&found, || {
            let mut text: String =
                found.problems.iter().map(|problem| format!("{}\n", line(problem))).collect();
            let verdict = match found.problem_count {
                0 => context.output.green("sound"),
                problems => context.output.red(&count(problems, "problem")),
            };
            text += &format!(
                "{verdict}: {}, {} bodies, {}\n",
                count(found.blocks, "block"),
                found.bodies,
                count(found.supervoxels, "supervoxel")
            );
            text
        })?;
        match found.problem_count {
            0 => Ok(()),
            problems => Err(Unsound { errors: problems as usize }.into()),
        }
    }
}

/// Make all coarser scales anew from full resolution
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard labels downres brain")]
pub(crate) struct Downres {
    #[command(flatten)]
    place: Place,

    /// Commit to this branch instead of the default one
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,

    /// What the commit does, for people
    #[arg(long, short, value_name = "TEXT", default_value = "make the coarser scales anew")]
    message: String,
}

impl Downres {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let repo = self.place.open(context).await?;
        let branch = branch_or_default(&repo, self.branch.as_deref()).await?;
        let session = repo.writable_session(&branch).await?;
        let map = Labelmap::open(&session, &self.place.group(&session).await?).await?;
        let watch = context.watch("halving");
        map.downsample(context.meter()).await?;
        drop(watch);
        let options = CommitOptions { allow_empty: true, ..CommitOptions::message(&self.message) };
        let snapshot = session.commit(options).await?;
        let id = &snapshot.snapshot_id;
        context
            .output
            .done(&json!({"snapshot": id}), || format!("{} ({})", self.message, short(id)))
    }
}
