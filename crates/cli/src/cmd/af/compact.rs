//! `chunkyard af compact`: all layers become one.

use anyhow::Result;
use chunkyard_engine::Meter;
use chunkyard_engine::format::container::CompactOptions;
use clap::Args;
use serde_json::json;
use std::sync::Arc;

use super::CodecArgs;
use crate::context::Context;
use crate::progress::Watch;
use crate::units::{count, size};

/// Merge all layers into one file
///
/// Deleted and overwritten data goes, and so do older states. The new file is complete before
/// anything is deleted: readers keep reading, and another writer keeps its layer. With --codec all
/// blocks are packed anew.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard af compact buoys.af
  chunkyard af compact buoys.af --codec zstd:19")]
pub(crate) struct Compact {
    /// The container
    file: String,

    #[command(flatten)]
    codec: CodecArgs,

    /// No other program writes: needed for large containers on object stores
    #[arg(long)]
    alone: bool,
}

impl Compact {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let codec = self.codec.codec.as_ref();
        let editor = super::writable(&self.file, codec, context).await?;
        let meter = Arc::new(Meter::default());
        let options =
            CompactOptions { alone: self.alone, repack: codec.is_some(), meter: meter.clone() };
        let watch = Watch::new("compacting", meter, context.output.talks());
        let compacted = editor.container().compact(&options).await?;
        drop(watch);
        let document = json!({
            "layers": compacted.layers,
            "bytes-before": compacted.bytes_before,
            "bytes-after": compacted.bytes_after,
        });
        context.output.done(&document, || {
            format!(
                "{} became one: {} instead of {}",
                count(compacted.layers, "layer"),
                size(compacted.bytes_after),
                size(compacted.bytes_before)
            )
        })
    }
}
