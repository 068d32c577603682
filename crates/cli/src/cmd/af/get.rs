//! `chunkyard af get`: any region of an array, as a NumPy file.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::LayerArgs;
use crate::context::Context;
use crate::npy::Writer;
use crate::transfer;
use crate::units::{shape, size};

/// Read an array, or a region of one, into a NumPy file
///
/// The file appears when it is complete; a failed get leaves what was there.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard af get buoys.af north/temperature -o now.npy --region 0:10,5:20
  chunkyard af get buoys.af north/temperature -o before.npy --at 3")]
pub(crate) struct Get {
    /// The container
    file: String,

    /// The array
    name: String,

    /// The .npy file to write, or - for standard output
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,

    /// Read this instead of everything: start:end per dimension, negative from the end
    #[arg(long, value_name = "REGION", allow_hyphen_values = true)]
    region: Option<String>,

    #[command(flatten)]
    layer: LayerArgs,
}

impl Get {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let container = super::readable(&self.file, &self.layer, context).await?;
        let name = super::name(&self.name);
        let array = container.array(name).await?;
        let (spec, reader) = (&array.node()?.spec, array.reader()?);
        let region = transfer::region(self.region.as_deref(), spec.shape())?;
        let (writer, target) = Writer::create(&self.output, &spec.dtype()?, region.shape())?;
        let bytes = region.num_bytes(reader.item_size()?)? as u64;
        transfer::read(reader, &region, writer, context).await?;
        target.appear()?;
        if self.output.as_os_str() == "-" {
            // Standard output holds the data: no document may follow.
            return Ok(());
        }
        let document = json!({
            "name": name,
            "file": self.output,
            "region": region.to_string(),
            "shape": region.shape(),
            "bytes": bytes,
        });
        context.output.done(&document, || {
            let extents = shape(region.shape());
            format!("{}: {name} of {extents} ({})", self.output.display(), size(bytes))
        })
    }
}
