//! `chunkyard rm`: deletes an array or a group of any format that can.

use anyhow::Result;
use chunkyard_engine::format::{Edit, normalise_path};
use clap::Args;
use serde_json::json;

use crate::args::ChangeArgs;
use crate::change::{Changing, New, Subject};
use crate::context::Context;

/// Delete an array, or a group and all below it
///
/// A repository and a container keep it in older versions. In plain Zarr it is gone.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard rm sea.zarr /scratch
  chunkyard rm weather /scratch -m 'no longer needed'")]
pub(crate) struct Rm {
    /// The place
    url: String,

    /// What to delete
    path: String,

    /// Commit to this branch of a repository instead of the default one
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,

    #[command(flatten)]
    change: ChangeArgs,
}

impl Rm {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let path = normalise_path(&self.path)?;
        let subject = Subject { url: &self.url, path: &path, edit: Edit::Remove };
        let (branch, new) = (self.branch.clone(), New::default());
        let changing = Changing::begin(subject, branch, &self.change, new, context).await?;
        let removed = changing.editor.remove(&path).await;
        let removed = removed.map(|()| json!({"path": path})).map_err(Into::into);
        changing.end(removed, &format!("delete {path}")).await
    }
}
