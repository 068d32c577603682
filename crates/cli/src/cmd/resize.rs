//! `chunkyard resize`: changes the extents of an array of any format that can.

use anyhow::Result;
use chunkyard_engine::format::{Edit, normalise_path};
use clap::Args;
use serde_json::json;

use crate::args::ChangeArgs;
use crate::change::{Changing, New, Subject};
use crate::context::Context;
use crate::units::{parse_shape, shape};

/// Change the extents of an array
///
/// New elements hold the fill value. Elements outside the new extents are gone. Of BLZ the number of
/// rows can change: of a table, name the table.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard resize sea.zarr /t 1200,200
  chunkyard resize ticks.blz / 1000000
  chunkyard resize weather /t 1200,200 -m 'room for another year'")]
pub(crate) struct Resize {
    /// The place
    url: String,

    /// The array
    path: String,

    /// Its new shape, such as 1200,200
    shape: String,

    /// Commit to this branch of a repository instead of the default one
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,

    #[command(flatten)]
    change: ChangeArgs,
}

impl Resize {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let (path, extents) = (normalise_path(&self.path)?, parse_shape(&self.shape)?);
        let subject = Subject { url: &self.url, path: &path, edit: Edit::Resize };
        let (branch, new) = (self.branch.clone(), New::default());
        let changing = Changing::begin(subject, branch, &self.change, new, context).await?;
        let resized = changing.editor.resize(&path, &extents).await;
        let resized = resized.map(|()| json!({"path": path, "shape": extents}));
        let done = format!("resize {path} to {}", shape(&extents));
        changing.end(resized.map_err(Into::into), &done).await
    }
}
