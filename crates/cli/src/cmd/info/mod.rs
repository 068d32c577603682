//! `chunkyard info`: a place at a glance.

mod any;
mod dvid;
mod dvid_http;
mod repo;

use std::any::Any;

use anyhow::Result;
use chunkyard_engine::format::dvid::DvidFormat;
use chunkyard_engine::format::dvid_http::DvidSource;
use chunkyard_engine::format::{Format, Versions};
use chunkyard_engine::store::Limits;
use clap::Args;

use crate::args::VersionArgs;
use crate::context::Context;

/// Describe a dataset of any format
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard info sea.zarr
  chunkyard info weather --as-of '2026-01-31 12:00'")]
pub(crate) struct Info {
    /// The place
    url: String,

    #[command(flatten)]
    version: VersionArgs,
}

/// The number and size of the files at a place.
#[derive(Debug, Clone, Copy, Default)]
struct Stored {
    files: u64,
    bytes: u64,
}

impl Info {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let (place, format, mut options) = context.recognise(&self.url, Limits::default()).await?;
        if format.versions() == Versions::Commits {
            return repo::run(&self.url, &self.version, context).await;
        }
        options.version = self.version.of_any(format, &self.url, context).await?;
        if format.name() == DvidFormat.name() {
            return dvid::run(&self.url, context).await;
        }
        let source = context.open_source(&place, format, &options).await?;
        let any: &dyn Any = &*source;
        if let Some(server) = any.downcast_ref::<DvidSource>() {
            return dvid_http::run(&self.url, server, context.output).await;
        }
        let found = any::Found::look(place, format, source).await?;
        if context.output.is_json() {
            return context.output.document(&found.document()?);
        }
        context.output.text(&found.text(context.output)?)
    }
}
