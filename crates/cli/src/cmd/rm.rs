//! `chunkyard rm`: deletes an array or a group of any format that can.

use anyhow::Result;
use chunkyard_engine::format::Edit;
use clap::Args;
use serde_json::json;

use crate::args::CommitArgs;
use crate::change::{Changing, New, Subject};
use crate::context::Context;
use crate::spelling::Spelling;

/// Delete an array, or a group and all below it
///
/// A repository keeps it in older versions until they expire, a container in older layers until they are
/// compacted. In plain Zarr it is gone.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard rm sea.zarr /scratch
  chunkyard rm buoys.af /scratch
  chunkyard rm weather /scratch -m 'no longer needed'")]
pub(crate) struct Rm {
    /// The place
    url: String,

    /// What to delete
    path: String,

    #[command(flatten)]
    commit: CommitArgs,
}

impl Rm {
    pub(crate) async fn run(&self, spelling: Spelling, context: &Context) -> Result<()> {
        let path = spelling.path(&self.path)?;
        let subject = Subject { spelling, url: &self.url, path: &path, edit: Edit::Remove };
        let (CommitArgs { branch, change }, new) = (&self.commit, New::default());
        let changing = Changing::begin(subject, branch.as_deref(), change, new, context).await?;
        let removed = changing.remove(&path).await.map(|()| json!({"path": path}));
        changing.end(removed, &format!("delete {path}")).await
    }
}
