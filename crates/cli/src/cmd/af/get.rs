//! `chunkyard af get`: any region of an array, as a NumPy file or as JSON.

use std::path::PathBuf;

use anyhow::Result;
use chunkyard_engine::Error;
use clap::Args;
use serde_json::json;

use super::{LayerArgs, elements};
use crate::context::Context;
use crate::npy::Writer;
use crate::transfer;
use crate::units::{count, shape, size};

/// Read an array, or a region of one, into a NumPy file or a file of JSON
///
/// The file appears when it is complete; a failed get leaves an older file as it is. JSON, for a file
/// that ends in .json, or with --json on standard output, also has strings, bytes (base64) and lists.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard af get buoys.af north/temperature -o now.npy --region 0:10,5:20
  chunkyard af get buoys.af north/temperature -o before.npy --at 3
  chunkyard af get buoys.af names -o - --json")]
pub(crate) struct Get {
    /// The container
    file: String,

    /// The array
    name: String,

    /// The .npy or .json file to write, or - for standard output
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,

    /// Read only this region: start:end per dimension, negative from the end
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
        let is_standard = self.output.as_os_str() == "-";
        if elements::is_json(&self.output) || (is_standard && context.output.is_json()) {
            let (writer, target) = Writer::begin(&self.output, b"")?;
            let writer = elements::write(&array, &region, writer).await?;
            tokio::task::spawn_blocking(move || writer.finish()).await??;
            target.appear()?;
            if is_standard {
                return Ok(());
            }
            let number = region.num_elements();
            let document = json!({
                "name": name,
                "file": self.output,
                "region": region.to_string(),
                "shape": region.shape(),
            });
            return context.output.done(&document, || {
                format!("{}: {} of {name}", self.output.display(), count(number, "element"))
            });
        }
        let dtype = spec.dtype()?;
        if dtype.to_numpy().is_none() {
            return Err(Error::unsupported(format!(
                "elements of {} in a .npy file; -o FILE.json takes them, and so does -o - --json",
                spec.dtype()?
            ))
            .into());
        }
        let (writer, target) = Writer::create(&self.output, &dtype, region.shape())?;
        let bytes = region.num_bytes(reader.item_size()?)? as u64;
        transfer::read(reader, &region, writer, context).await?;
        target.appear()?;
        if is_standard {
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
