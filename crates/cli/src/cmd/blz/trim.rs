//! `chunkyard blz trim` and `resize`: change the length of a dataset.

use anyhow::Result;
use clap::Args;

use crate::context::Context;

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
        let dataset = super::open(&self.place, context).await?;
        dataset.resize(self.rows).await?;
        dataset.flush().await?;
        super::rows_now(&self.place, &dataset, context)
    }
}
