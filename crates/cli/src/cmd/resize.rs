//! `chunkyard resize`: changes the extents of an array of any format that can.

use anyhow::Result;
use chunkyard_engine::format::Edit;
use clap::Args;
use serde_json::json;

use crate::args::CommitArgs;
use crate::change::{Changing, New, Subject};
use crate::context::Context;
use crate::spelling::Spelling;
use crate::units::{parse_shape, shape};

/// Change the extents of an array
///
/// New elements hold the fill value. Elements outside the new extents are gone, also when the array
/// grows again. Of BLZ the number of rows can change: of a table, name the table.
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

    #[command(flatten)]
    commit: CommitArgs,
}

impl Resize {
    pub(crate) async fn run(&self, spelling: Spelling, context: &Context) -> Result<()> {
        let (path, extents) = (spelling.path(&self.path)?, parse_shape(&self.shape)?);
        let subject = Subject { spelling, url: &self.url, path: &path, edit: Edit::Resize };
        let (CommitArgs { branch, change }, new) = (&self.commit, New::default());
        let changing = Changing::begin(subject, branch.as_deref(), change, new, context).await?;
        let resized = changing.resize(&path, &extents).await;
        let resized = resized.map(|()| json!({"path": path, "shape": extents}));
        changing.end(resized, &format!("resize {path} to {}", shape(&extents))).await
    }
}
