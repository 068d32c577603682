//! `chunkyard repo get`: any region of any version, as a NumPy file.

use std::path::PathBuf;

use anyhow::Result;
use chunkyard_array::Region;
use chunkyard_engine::repo::Array;
use chunkyard_engine::{Error, Result as EngineResult};
use clap::Args;
use serde_json::json;

use crate::args::VersionArgs;
use crate::context::Context;
use crate::npy::Writer;
use crate::slabs::{SLAB_BYTES, cut, slow_axis};
use crate::units::{shape, short, size};

/// Read an array, or a region of one, into a NumPy file
///
/// The file appears when it is complete; a failed get leaves what was there.
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

    /// Read this instead of everything: start:end per dimension, negative from the end
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
        let region = match &self.region {
            Some(text) => Region::parse(text, array.spec().shape())?,
            None => Region::whole(array.spec().shape()),
        };
        let bytes = region.num_bytes(array.item_size()?)? as u64;
        let (writer, target) =
            Writer::create(&self.output, &array.spec().dtype()?, region.shape())?;
        read(&array, &region, writer, context, bytes).await?;
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

/// Reads slab after slab, and writes each while the next one is read.
async fn read(
    array: &Array,
    region: &Region,
    writer: Writer,
    context: &Context,
    bytes: u64,
) -> Result<()> {
    let bar = context.progress(&array.node().path, bytes);
    let axis = slow_axis(region.shape(), false);
    let slabs = cut(region, array.grid().chunk_shape(), axis, array.item_size()?, SLAB_BYTES)?;
    let mut pending = tokio::task::spawn_blocking(move || EngineResult::Ok(writer));
    for slab in slabs {
        let values = array.read_region(&slab).await?;
        let mut writer: Writer = pending.await??;
        let size = values.len() as u64;
        pending = tokio::task::spawn_blocking(move || {
            writer.push(&values)?;
            Ok::<_, Error>(writer)
        });
        bar.advance(size);
    }
    let writer = pending.await??;
    tokio::task::spawn_blocking(move || writer.finish()).await??;
    Ok(())
}
