//! `chunkyard repo get`: any region of any version, as a NumPy file.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use crate::args::VersionArgs;
use crate::context::Context;
use crate::npy::Writer;
use crate::transfer;
use crate::units::{shape, short, size};

/// Read an array, or a region of one, into a NumPy file
///
/// The file appears when it is complete; a failed get leaves an older file as it is.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard repo get weather /t -o now.npy --region 0:10,5:20
  chunkyard repo get weather /t -o - --as-of '2026-01-31 12:00' | python3 plot.py")]
pub(crate) struct Get {
    /// The repository
    repo: String,

    /// The array
    path: String,

    /// The .npy file to write, or - for standard output
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,

    /// Read only this region: start:end per dimension, negative from the end
    #[arg(long, value_name = "REGION", allow_hyphen_values = true)]
    region: Option<String>,

    #[command(flatten)]
    version: VersionArgs,
}

impl Get {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let repo = context.open(&self.repo).await?;
        let session = repo.readonly_session(&self.version.version(&repo).await?).await?;
        let array = session.array(&self.path).await?;
        let region = transfer::region(self.region.as_deref(), array.spec().shape())?;
        let bytes = region.num_bytes(array.item_size()?)? as u64;
        let (writer, target) =
            Writer::create(&self.output, &array.spec().dtype()?, region.shape())?;
        transfer::read(array.reader(), &region, writer, context).await?;
        target.appear()?;
        if self.output.as_os_str() == "-" {
            // Standard output holds the data: no document may follow.
            return Ok(());
        }
        let snapshot = session.snapshot();
        let document = json!({
            "path": array.node().path,
            "file": self.output,
            "region": region.to_string(),
            "shape": region.shape(),
            "bytes": bytes,
            "snapshot-id": snapshot.snapshot_id,
        });
        context.output.done(&document, || {
            format!(
                "{}: {} of {} ({}) at {}",
                self.output.display(),
                array.node().path,
                shape(region.shape()),
                size(bytes),
                short(&snapshot.snapshot_id)
            )
        })
    }
}
