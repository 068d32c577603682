//! `chunkyard blz set`: replaces existing rows.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use chunkyard_array::Region;
use chunkyard_engine::Error;
use chunkyard_engine::format::superchunk::{Blz, BlzOptions};
use clap::Args;
use serde_json::json;

use super::select::{Span, columns};
use crate::context::Context;
use crate::failure::Input as Unusable;
use crate::rows::{BLOCK_BYTES, FileKind, Input};
use crate::units::count;

/// Replace rows with the rows of a file
///
/// Datasets are for adding rows and cutting them off. To change rows is the exception and needs
/// --mutable. The file must have exactly as many rows.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard blz set ticks.blz 10:20 fixed.csv --mutable
  chunkyard blz set ticks.blz -1: last.npy --column price --mutable")]
pub(crate) struct Set {
    /// The dataset
    place: String,

    /// Which rows, as start:end, negative from the end
    #[arg(allow_hyphen_values = true)]
    rows: String,

    /// A .npy, .csv or .tsv file, or - for standard input
    input: PathBuf,

    /// Columns, by name; all if none is named
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    column: Vec<String>,

    /// The kind of file, if its name and its first bytes do not tell
    #[arg(long, value_name = "KIND")]
    format: Option<FileKind>,

    /// Existing rows may change
    #[arg(long)]
    mutable: bool,
}

impl Set {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let (path, format) = (self.input.clone(), self.format);
        let opening = tokio::task::spawn_blocking(move || Input::open(&path, format));
        let input = opening.await?.context(Unusable)?;
        let (place, options) = super::place(&self.place, context)?;
        let options = BlzOptions { mutable: self.mutable, ..options };
        let dataset = Blz::open(&place, options).await?;
        let span = Span::parse(&self.rows, dataset.len())?;
        if span.step != 1 {
            return Err(Error::invalid(format!("{:?}: rows side by side only", self.rows)).into());
        }
        let changed = self.change(&dataset, span, input, context).await;
        if changed.is_err() {
            dataset.discard().await;
        }
        changed?;
        context.output.done(&json!({"changed": span.count, "rows": dataset.len()}), || {
            format!("{}: {} changed", self.place, count(span.count, "row"))
        })
    }

    async fn change(
        &self,
        dataset: &Blz,
        span: Span,
        input: Input,
        context: &Context,
    ) -> Result<()> {
        let columns = columns(dataset, &self.column)?;
        let row_bytes: u64 = columns.iter().map(|column| column.row_bytes()).sum();
        let bar = context.progress("set", span.count.saturating_mul(row_bytes));
        let wrong = |rows| {
            Error::invalid(format!("the file has {rows} rows, where {} are to change", span.count))
        };
        if let Some(rows) = input.rows().filter(|rows| *rows != span.count) {
            return Err(wrong(rows.to_string()).into());
        }
        let mut blocks = input.blocks(&columns).context(Unusable)?;
        let step = dataset.rows_of_bytes(&columns, BLOCK_BYTES);
        let mut at = span.start;
        loop {
            let reading = tokio::task::spawn_blocking(move || (blocks.next(step), blocks));
            let (block, rest) = reading.await?;
            blocks = rest;
            let Some(block) = block.context(Unusable)? else { break };
            let bytes: u64 = block.iter().map(|column: &Bytes| column.len() as u64).sum();
            let rows = bytes / row_bytes.max(1);
            if at + rows > span.end() {
                return Err(wrong("more".to_owned()).into());
            }
            for (column, elements) in columns.iter().zip(block) {
                let zeros = column.row_shape.iter().map(|_| 0);
                let origin: Vec<u64> = [at].into_iter().chain(zeros).collect();
                let shape: Vec<u64> =
                    [rows].into_iter().chain(column.row_shape.iter().copied()).collect();
                let region = Region::new(origin, shape)?;
                dataset.writer(&column.path)?.write_region(&region, elements).await?;
            }
            at += rows;
            bar.advance(bytes);
        }
        if at < span.end() {
            return Err(wrong((at - span.start).to_string()).into());
        }
        Ok(dataset.flush().await?)
    }
}
