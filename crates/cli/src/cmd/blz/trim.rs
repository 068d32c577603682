//! `chunkyard blz trim` and `resize`: change the length of a dataset.

use anyhow::Result;
use chunkyard_engine::format::{Edit, Node};
use clap::Args;
use serde_json::json;

use crate::args::ChangeArgs;
use crate::change::{Changing, New, Subject};
use crate::context::Context;
use crate::spelling::Spelling;
use crate::units::count;

/// Cut rows off the end
///
/// All readers see this at once. Files that hold no other rows are deleted.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard blz trim ticks.blz 100")]
pub(crate) struct Trim {
    /// The dataset
    place: String,

    /// How many rows
    rows: u64,
}

impl Trim {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let dataset = super::open(&self.place, context).await?;
        dataset.trim(self.rows).await?;
        super::rows_now(&self.place, &dataset, context)
    }
}

/// Set the number of rows: cut rows off, or add default rows
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard blz resize ticks.blz 1000000")]
pub(crate) struct Resize {
    /// The dataset
    place: String,

    /// The new number of rows
    rows: u64,
}

impl Resize {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let (spelling, edit) = (Spelling::Blz, Edit::Resize);
        let subject = Subject { spelling, url: &self.place, path: "/", edit };
        let args = ChangeArgs::default();
        let changing = Changing::begin(subject, None, &args, New::default(), context).await?;
        let resized = self.resize(&changing).await.map(|()| json!({"rows": self.rows}));
        changing.end(resized, &count(self.rows, "row")).await
    }

    async fn resize(&self, changing: &Changing<'_>) -> Result<()> {
        let mut shape = vec![self.rows];
        if let Some(Node::Array(array)) = changing.node("/").await? {
            shape.extend(array.spec.shape().iter().skip(1));
        }
        changing.resize("/", &shape).await
    }
}
