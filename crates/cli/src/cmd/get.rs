//! `chunkyard get`: any region of an array of any format, as a NumPy file.

use std::path::PathBuf;

use anyhow::Result;
use chunkyard_engine::Error;
use chunkyard_engine::format::{Reader, normalise_path};
use chunkyard_engine::store::Limits;
use clap::Args;
use serde_json::json;

use crate::args::VersionArgs;
use crate::change::name_of;
use crate::context::Context;
use crate::npy::Writer;
use crate::transfer;
use crate::units::{shape, size};

/// Read an array of any format, or a region of one, into a NumPy file
///
/// The file appears when it is complete; a failed get leaves an older file as it is. Of a repository and
/// of a container any version can be read. Rows of BLZ tables as CSV: `chunkyard blz get`. Strings and
/// lists of a container as JSON: `chunkyard af get`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard get sea.nc /temperature -o now.npy --region 0:10,5:20
  chunkyard get weather /t -o - --as-of '2026-01-31 12:00' | python3 plot.py
  chunkyard get field.blz -o field.npy                        the array is the root")]
pub(crate) struct Get {
    /// The place
    url: String,

    /// The array
    #[arg(default_value = "/")]
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
        let path = normalise_path(&self.path)?;
        let (place, format, mut options) = context.recognise(&self.url, Limits::default()).await?;
        options.version = self.version.of_any(format, &self.url, context).await?;
        let source = context.open_source(&place, format, &options).await?;
        let spec = &source.dataset().array(&path)?.spec;
        let dtype = spec.dtype()?;
        let region = transfer::region(self.region.as_deref(), spec.shape())?;
        if dtype.to_numpy().is_none() {
            return Err(Error::unsupported(format!(
                "{path}: elements of {dtype} in a .npy file; Python reads them, with \
                 chunkyard.open({:?})",
                self.url
            ))
            .into());
        }
        let reader = Reader::new(&source, &path)?;
        let bytes = region.num_bytes(reader.item_size()?)? as u64;
        let (writer, target) = Writer::create(&self.output, &dtype, region.shape())?;
        transfer::read(&reader, &region, writer, context).await?;
        target.appear()?;
        if self.output.as_os_str() == "-" {
            // Standard output holds the data: no document may follow.
            return Ok(());
        }
        let document = json!({
            "format": format.name(),
            "snapshot": source.version().as_ref().map(name_of),
            "path": path,
            "file": self.output,
            "region": region.to_string(),
            "shape": region.shape(),
            "bytes": bytes,
        });
        context.output.done(&document, || {
            let extents = shape(region.shape());
            format!("{}: {path} of {extents} ({})", self.output.display(), size(bytes))
        })
    }
}
