//! `chunkyard blz`: compressed arrays and tables that grow and shrink at their end.

mod append;
mod attrs;
mod create;
mod files;
mod get;
mod relocate;
mod repair;
mod select;
mod set;
mod trim;

use anyhow::Result;
use chunkyard_engine::format::superchunk::{Blz as Dataset, BlzFormat, BlzOptions};
use chunkyard_engine::format::{OpenOptions, Place};
use chunkyard_engine::store::Limits;
use clap::Subcommand;
use serde_json::json;

use crate::context::Context;
use crate::units::count;

/// Create, fill and read BLZ: compressed arrays and tables that grow at their end
///
/// A dataset is a directory of Bloscpack files. Rows are added and cut off at the end; readers see
/// each change whole or not at all.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Example:
  chunkyard blz create ticks.blz --dtype \"[('time', '<M8[ms]'), ('price', '<f8')]\"
  chunkyard blz append ticks.blz today.csv
  chunkyard blz get ticks.blz --column price --where 'price > 100'")]
pub(crate) enum Blz {
    Create(create::Create),
    Append(append::Append),
    Get(get::Get),
    Set(set::Set),
    Trim(trim::Trim),
    Resize(trim::Resize),
    Attrs(attrs::Attrs),
    Files(files::Files),
    Move(relocate::Move),
    Repair(repair::Repair),
}

impl Blz {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        match self {
            Self::Create(command) => command.run(context).await,
            Self::Append(command) => command.run(context).await,
            Self::Get(command) => command.run(context).await,
            Self::Set(command) => command.run(context).await,
            Self::Trim(command) => command.run(context).await,
            Self::Resize(command) => command.run(context).await,
            Self::Attrs(command) => command.run(context).await,
            Self::Files(command) => command.run(context).await,
            Self::Move(command) => command.run(context).await,
            Self::Repair(command) => command.run(context).await,
        }
    }
}

/// The place of a dataset, and how it is opened.
fn place(url: &str, context: &Context) -> Result<(Place, BlzOptions)> {
    context.about_format(url, &BlzFormat);
    let store = context.store_options(Limits::default());
    let place = Place::new(url, &store)?;
    let allowed = context.options().allowed;
    let open = OpenOptions { store, allowed, ..OpenOptions::default() };
    Ok((place, BlzOptions { open, ..BlzOptions::default() }))
}

/// Opens a dataset, and prints its cautions.
async fn open(url: &str, context: &Context) -> Result<Dataset> {
    let (place, options) = place(url, context)?;
    let dataset = Dataset::open(&place, options).await?;
    dataset.cautions().iter().for_each(|caution| context.output.warn(caution));
    Ok(dataset)
}

/// Prints the new length of a dataset.
fn rows_now(url: &str, dataset: &Dataset, context: &Context) -> Result<()> {
    let rows = dataset.len();
    context.output.done(&json!({"rows": rows}), || format!("{url}: {}", count(rows, "row")))
}
