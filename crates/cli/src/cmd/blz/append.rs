//! `chunkyard blz append`: rows of a file, or of a stream without an end.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use chunkyard_engine::format::superchunk::{Blz, dtype};
use chunkyard_engine::{Error, Noun};
use clap::Args;
use serde_json::json;

use super::create::WishArgs;
use crate::context::Context;
use crate::failure::Input as Unusable;
use crate::rows::{BLOCK_BYTES, FileKind, Input};
use crate::units::count;

/// Add the rows of a file at the end
///
/// A .npy file must have the type of the rows; a table takes a structured one, fields by name. Of a CSV
/// or TSV file the first line names the columns. Standard input may be a .npy file, or rows without a
/// header: little-endian, columns one after another, until the stream ends. Readers see all rows at
/// once, at the end; with --durable-every they see them earlier.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard blz append ticks.blz today.csv
  chunkyard blz append field.blz day.npy --create --expected-rows 100000
  sensor | chunkyard blz append field.blz - --durable-every 1000")]
pub(crate) struct Append {
    /// The dataset
    place: String,

    /// A .npy, .csv or .tsv file, or - for standard input
    #[arg(default_value = "-")]
    input: PathBuf,

    /// The kind of file, if its name and its first bytes do not tell
    #[arg(long, value_name = "KIND")]
    format: Option<FileKind>,

    /// Make rows durable and visible each time this many were added
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u64).range(1..))]
    durable_every: Option<u64>,

    /// Create the dataset if it does not exist, with the type of the .npy file
    #[arg(long)]
    create: bool,

    #[command(flatten)]
    wishes: WishArgs,
}

impl Append {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let (path, format) = (self.input.clone(), self.format);
        // Opening a pipe may block, and Ctrl-C must work meanwhile.
        let opening = tokio::task::spawn_blocking(move || Input::open(&path, format));
        let input = opening.await?.context(Unusable)?;
        let (dataset, created) = self.target(&input, context).await?;
        let before = dataset.len();
        if let Err(error) = self.add(&dataset, input, context).await {
            dataset.discard().await;
            let stay = dataset.len() - before;
            if stay > 0 {
                context.output.warn(&format!("{} were added before, and stay", count(stay, "row")));
            } else if created {
                self.take_back(dataset, context).await;
            }
            return Err(error);
        }
        let (rows, added) = (dataset.len(), dataset.len() - before);
        let sizes = dataset.sizes();
        let document = json!({
            "added": added, "rows": rows, "nbytes": sizes.nbytes, "cbytes": sizes.cbytes,
        });
        context.output.done(&document, || {
            let now = count(rows, "row");
            format!("{}: {} added, {now} now", self.place, count(added, "row"))
        })
    }

    /// Opens the dataset, or creates it if the options ask for that; and says whether it is new.
    async fn target(&self, input: &Input, context: &Context) -> Result<(Blz, bool)> {
        match (super::open(&self.place, context).await, input.row()) {
            (Err(error), row) if self.create && is_missing(&error) => {
                let Some((row, shape)) = row else {
                    let what =
                        "only a .npy file says what to create; `chunkyard blz create` takes a type";
                    return Err(Error::invalid(what).into());
                };
                let mut wanted = self.wishes.wanted(dtype::render(row)?)?;
                wanted.row_shape = shape.to_vec();
                wanted.expected_rows = wanted.expected_rows.or(input.rows());
                let (place, options) = super::place(&self.place, context)?;
                Ok((Blz::create(&place, &wanted.creation()?, options).await?, true))
            }
            (opened, _) => Ok((opened?, false)),
        }
    }

    /// Removes a dataset that was created for rows that did not come.
    async fn take_back(&self, dataset: Blz, context: &Context) {
        let gone = match super::place(&self.place, context) {
            Ok((place, _)) => dataset.take_back(&place).await.unwrap_or(false),
            Err(_) => false,
        };
        if !gone {
            let what = format!("{} was created, is empty, and stays", self.place);
            context.output.warn(&what);
        }
    }

    /// Adds block after block, and reads the next one meanwhile.
    async fn add(&self, dataset: &Blz, input: Input, context: &Context) -> Result<()> {
        let columns = dataset.columns();
        let row_bytes: u64 = columns.iter().map(|column| column.row_bytes()).sum();
        let bar = context.progress("append", input.rows().unwrap_or(0).saturating_mul(row_bytes));
        let mut blocks = input.blocks(&columns).context(Unusable)?;
        let step = dataset.rows_of_bytes(&columns, BLOCK_BYTES);
        let step = self.durable_every.unwrap_or(step).min(step);
        let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
        let reading = tokio::task::spawn_blocking(move || {
            while let Some(block) = blocks.next(step)? {
                if sender.blocking_send(block).is_err() {
                    // The writer gave up; it reports the reason.
                    break;
                }
            }
            Ok::<_, Error>(())
        });
        let mut waiting = 0;
        while let Some(block) = receiver.recv().await {
            let bytes: u64 = block.iter().map(|column: &Bytes| column.len() as u64).sum();
            dataset.append(block).await?;
            waiting += bytes / row_bytes.max(1);
            if self.durable_every.is_some_and(|every| waiting >= every) {
                dataset.flush().await?;
                waiting = 0;
            }
            bar.advance(bytes);
        }
        reading.await?.context(Unusable)?;
        Ok(dataset.flush().await?)
    }
}

fn is_missing(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Error::NotFound { what: Noun::BlzDataset, .. }))
}
