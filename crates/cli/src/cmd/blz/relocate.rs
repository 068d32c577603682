//! `chunkyard blz move`: full files go to another root.

use std::ops::RangeInclusive;

use anyhow::Result;
use chunkyard_engine::format::superchunk::Blz;
use clap::Args;
use serde_json::json;

use crate::context::Context;

/// Move full files to another place, and read them from there
///
/// Each file is copied and compared before the old one is deleted. New rows still go to the old
/// place. Readers must allow the new place: --allow URL. No file at the new place is ever replaced,
/// and the same command finishes an interrupted move.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  chunkyard blz move ticks.blz 1:12 --to s3://archive/ticks
  chunkyard blz get ticks.blz --rows 0:10 --allow s3://archive/ticks")]
pub(crate) struct Move {
    /// The dataset
    place: String,

    /// Which files, by the numbers that `chunkyard blz files` lists: 3, or from first to last, 1:12
    #[arg(value_parser = parse_files)]
    files: RangeInclusive<u64>,

    /// Where they go, a URL
    #[arg(long, value_name = "URL")]
    to: String,
}

impl Move {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let (place, mut options) = super::place(&self.place, context)?;
        // A user who names a place allows it.
        options.open.allowed.push(self.to.clone());
        let dataset = Blz::open(&place, options).await?;
        dataset.relocate(self.files.clone(), &self.to).await?;
        let (first, last) = (self.files.start(), self.files.end());
        let document = json!({"first": first, "last": last, "to": self.to});
        context.output.done(&document, || {
            format!("files {first} to {last} are in {}; readers need --allow {}", self.to, self.to)
        })
    }
}

fn parse_files(text: &str) -> Result<RangeInclusive<u64>, String> {
    let (first, last) = text.split_once(':').unwrap_or((text, text));
    match (first.trim().parse(), last.trim().parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok(first..=last),
        _ => Err("expected a number, or the first and the last, such as 1:12".to_owned()),
    }
}
