//! `chunkyard af`: containers, many arrays in one file and its layers.

mod compact;
mod create;
mod define;
mod layers;
mod ls;
mod repair;
mod stats;

use std::sync::Arc;

use anyhow::Result;
use chunkyard_engine::format::container::{
    Container, ContainerEditor, ContainerFormat, ContainerOptions, mapping, parse_packing,
};
use chunkyard_engine::format::{Editor, Place};
use chunkyard_engine::store::{BlockCodec, Limits};
use clap::{Args, Subcommand};
use serde_json::json;

pub(super) use self::define::Wanted;
pub(super) use self::layers::document_of as layer_document;
use super::{attrs, get, resize, rm, set};
use crate::context::Context;
use crate::spelling::Spelling;
use crate::units::size;

/// Create, change and maintain containers: many arrays in one file
///
/// A container is a file x.af and its layers x.1.af, x.2.af, …: every change adds one, and `compact`
/// merges them. `set`, `get`, `attrs`, `resize` and `rm` are the commands of these names, which take any
/// format; here the name of an array need not be a path.
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  chunkyard af create buoys.af")]
pub(crate) enum Af {
    Create(create::Create),
    Ls(ls::Ls),
    Layers(layers::Layers),
    Define(define::Define),
    Set(set::Set),
    Get(get::Get),
    Attrs(attrs::Attrs),
    Stats(stats::Stats),
    Resize(resize::Resize),
    Rm(rm::Rm),
    Compact(compact::Compact),
    Repair(repair::Repair),
}

impl Af {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        match self {
            Self::Create(command) => command.run(context).await,
            Self::Ls(command) => command.run(context).await,
            Self::Layers(command) => command.run(context).await,
            Self::Define(command) => command.run(context).await,
            Self::Set(command) => command.run(Spelling::Af, context).await,
            Self::Get(command) => command.run(Spelling::Af, context).await,
            Self::Attrs(command) => command.run(Spelling::Af, context).await,
            Self::Stats(command) => command.run(context).await,
            Self::Resize(command) => command.run(Spelling::Af, context).await,
            Self::Rm(command) => command.run(Spelling::Af, context).await,
            Self::Compact(command) => command.run(context).await,
            Self::Repair(command) => command.run(context).await,
        }
    }
}

/// Which state of a container a command reads.
#[derive(Debug, Args)]
struct LayerArgs {
    /// The state in which this layer was the newest
    #[arg(long, value_name = "LAYER")]
    at: Option<u64>,
}

/// How new blocks are packed.
#[derive(Debug, Args)]
struct CodecArgs {
    /// How new blocks are packed: none, lz4, zstd, zstd:LEVEL [default: zstd:3]
    #[arg(long, value_name = "CODEC", value_parser = parse_codec)]
    codec: Option<Arc<dyn BlockCodec>>,
}

fn parse_codec(text: &str) -> Result<Arc<dyn BlockCodec>, String> {
    parse_packing(text).map_err(|error| error.to_string())
}

/// The place of a container.
fn place(url: &str, context: &Context) -> Result<Place> {
    context.about_format(url, &ContainerFormat);
    Ok(Place::new(url, &context.store_options(Limits::default()))?)
}

/// Opens a container for reading, and says if its newest layer is torn.
pub(super) async fn readable(url: &str, at: Option<u64>, context: &Context) -> Result<Container> {
    let options = ContainerOptions { as_of: at, ..ContainerOptions::default() };
    let container = Container::open(&place(url, context)?, options).await?;
    container.cautions().iter().for_each(|caution| context.output.warn(caution));
    Ok(container)
}

/// Opens a container for writing: its newest layer must be whole.
async fn writable(
    url: &str,
    codec: Option<&Arc<dyn BlockCodec>>,
    context: &Context,
) -> Result<ContainerEditor> {
    let mut options = ContainerOptions { strict: true, ..ContainerOptions::default() };
    if let Some(codec) = codec {
        options.codec = codec.clone();
    }
    let editor = ContainerEditor::new(Container::open(&place(url, context)?, options).await?);
    editor.cautions().iter().for_each(|caution| context.output.warn(caution));
    Ok(editor)
}

/// The name of an array as the user types it, with or without a slash at its front.
fn name(typed: &str) -> &str {
    mapping::name_of(typed)
}

/// Flushes, and prints what was written.
async fn flush(editor: &ContainerEditor, what: &str, context: &Context) -> Result<()> {
    let Some(flushed) = editor.container().flush().await? else {
        return context.output.done(&json!({"layer": null}), || "nothing to change".to_owned());
    };
    if let Some(note) = &flushed.note {
        context.output.warn(note);
    }
    context.output.done(&json!({"layer": flushed.layer, "bytes": flushed.bytes}), || {
        format!("{what}: layer {} ({})", flushed.layer, size(flushed.bytes))
    })
}
