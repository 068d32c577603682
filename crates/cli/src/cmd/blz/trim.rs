//! `chunkyard blz trim` and `resize`: how long a dataset is.

use anyhow::Result;
use clap::Args;

use crate::context::Context;

/// Cut rows off the end
///
/// For everybody, at once. The bytes of files go where whole files hold nothing else.
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

/// Make it so many rows long: cut rows off, or add default rows
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard blz resize ticks.blz 1000000")]
pub(crate) struct Resize {
    /// The dataset
    place: String,

    /// How many rows it is to have
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
