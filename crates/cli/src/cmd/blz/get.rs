//! `chunkyard blz get`: rows, into a file or printed.

use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::Result;
use chunkyard_array::{Axis, Buffer, Selection};
use chunkyard_engine::Error;
use chunkyard_engine::format::superchunk::{Blz, Column, Filter};
use clap::Args;
use serde_json::json;

use super::select::{Span, columns};
use crate::context::Context;
use crate::npy::Target;
use crate::rows::{BLOCK_BYTES, FileKind, Output};
use crate::units::{count, size};

/// Print rows, or write them into a file
///
/// Without -o rows are printed as CSV, with --json as one object per line. A file appears when it is
/// complete; a failed get leaves an older file as it is. Only the named columns are read.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard blz get ticks.blz --rows -5:
  chunkyard blz get ticks.blz --column time,price --where 'price > 100 and size >= 10' -o some.csv
  chunkyard blz get field.blz --rows 0:1000:10 -o thin.npy")]
pub(crate) struct Get {
    /// The dataset
    place: String,

    /// Columns, by name; all if none is named
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    column: Vec<String>,

    /// Rows, as start:end or start:end:step, negative from the end
    #[arg(long, value_name = "ROWS", allow_hyphen_values = true)]
    rows: Option<String>,

    /// Only rows for which this holds: comparisons of columns with values, joined by `and`
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,

    /// The .npy, .csv or .tsv file to write, or - for .npy on standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The kind of file, if its name does not tell
    #[arg(long, value_name = "KIND")]
    format: Option<FileKind>,
}

impl Get {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let dataset = super::open(&self.place, context).await?;
        let wanted = RowQuery {
            columns: columns(&dataset, &self.column)?,
            span: match &self.rows {
                Some(text) => Span::parse(text, dataset.len())?,
                None => Span::all(dataset.len()),
            },
            filter: self.condition.as_deref().map(Filter::parse).transpose()?,
            dataset,
        };
        let (output, target) = self.begin(&wanted, context).await?;
        let row_bytes: u64 = wanted.columns.iter().map(Column::row_bytes).sum();
        let rows = wanted.write(output, row_bytes, context).await?;
        target.appear()?;
        let Some(file) = self.output.as_ref().filter(|file| file.as_os_str() != "-") else {
            // Standard output holds the data: no document may follow.
            return Ok(());
        };
        let bytes = rows * row_bytes;
        let titles: Vec<_> = wanted.columns.iter().map(crate::rows::title_of).collect();
        let document = json!({"file": file, "rows": rows, "columns": titles, "bytes": bytes});
        context.output.done(&document, || {
            format!("{}: {} ({})", file.display(), count(rows, "row"), size(bytes))
        })
    }

    async fn begin(&self, wanted: &RowQuery, context: &Context) -> Result<(Output, Target)> {
        let Some(path) = &self.output else {
            return match (self.format, context.output.is_json()) {
                (None, true) => Ok(Output::json(&wanted.columns)?),
                (kind, _) => {
                    let kind = kind.unwrap_or(FileKind::Csv);
                    Ok(self.file(Path::new("-"), kind, wanted).await?)
                }
            };
        };
        let kind = self.format.or_else(|| FileKind::of_name(path)).unwrap_or(FileKind::Npy);
        self.file(path, kind, wanted).await
    }

    async fn file(
        &self,
        path: &Path,
        kind: FileKind,
        wanted: &RowQuery,
    ) -> Result<(Output, Target)> {
        // One column that the user names becomes a plain array; text always has a title.
        let binary = matches!(kind, FileKind::Npy | FileKind::Raw);
        let alone = binary && self.column.len() == 1 && wanted.columns.len() == 1;
        let rows = match kind {
            FileKind::Npy => wanted.count().await?,
            _ => 0,
        };
        Ok(Output::file(path, kind, &wanted.columns, alone, rows)?)
    }
}

/// What is read.
struct RowQuery {
    dataset: Blz,
    columns: Vec<Column>,
    span: Span,
    filter: Option<Filter>,
}

impl RowQuery {
    /// The number of rows. A condition is evaluated twice, since the header of a file holds the number.
    async fn count(&self) -> Result<u64> {
        let Some(filter) = &self.filter else { return Ok(self.span.count) };
        let mut count = 0;
        for rows in self.ranges() {
            count += self.matching(filter, rows).await?.len() as u64;
        }
        Ok(count)
    }

    /// Ranges that cover all wanted rows, one block each.
    fn ranges(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let step = self.dataset.rows_of_bytes(&self.columns, BLOCK_BYTES);
        let (mut from, end) = (self.span.start, self.span.end());
        std::iter::from_fn(move || {
            let rows = from..from.saturating_add(step - from % step).min(end);
            from = rows.end;
            (!rows.is_empty()).then_some(rows)
        })
    }

    async fn matching(&self, filter: &Filter, rows: Range<u64>) -> Result<Vec<u64>> {
        let mut found = self.dataset.matching(filter, rows).await?;
        found.retain(|row| self.span.has(*row));
        Ok(found)
    }

    /// Which rows of each block are wanted.
    async fn blocks(&self, at: Range<u64>) -> Result<Axis> {
        let Span { start, step, .. } = self.span;
        Ok(match &self.filter {
            Some(filter) => Axis::list(self.matching(filter, at).await?),
            None => {
                let first = start + (at.start - start).next_multiple_of(step);
                Axis::range(first, step, at.end.saturating_sub(first).div_ceil(step))?
            }
        })
    }

    /// Writes block after block while the next one is read; gives the number of rows.
    async fn write(&self, output: Output, row_bytes: u64, context: &Context) -> Result<u64> {
        let bar = context.progress("get", (self.span.end() - self.span.start) * row_bytes);
        let mut pending = tokio::task::spawn_blocking(move || Ok::<_, Error>(output));
        let mut written = 0;
        for at in self.ranges() {
            let passed = (at.end - at.start) * row_bytes;
            let rows = self.blocks(at).await?;
            let count = usize::try_from(rows.len())?;
            let mut columns = Vec::new();
            for column in &self.columns {
                columns.push(self.read(column, &rows).await?);
            }
            let mut output = pending.await??;
            pending = tokio::task::spawn_blocking(move || {
                output.push(&columns, count)?;
                Ok(output)
            });
            written += count as u64;
            bar.advance(passed);
        }
        let output = pending.await??;
        tokio::task::spawn_blocking(move || output.finish()).await??;
        Ok(written)
    }

    async fn read(&self, column: &Column, rows: &Axis) -> Result<Buffer> {
        let reader = self.dataset.reader(&column.path)?;
        let whole = column.row_shape.iter().map(|extent| Axis::range(0, 1, *extent));
        let axes: Result<Vec<_>, _> = std::iter::once(Ok(rows.clone())).chain(whole).collect();
        let selection = Selection::new(axes?);
        let memory = Buffer::zeroed(selection.num_bytes(reader.item_size()?)?)?;
        Ok(reader.read_selection_into(&selection, memory).await?)
    }
}
