//! Rows into a file, block by block.

use std::path::Path;

use chunkyard_array::Buffer;
use chunkyard_array::numpy::npy;
use chunkyard_engine::format::superchunk::Column;
use chunkyard_engine::format::superchunk::dtype::RowType;
use chunkyard_engine::{Error, Result};
use serde_json::{Map, Value};

use super::cell::Cells;
use super::csv::quoted;
use super::input::FileKind;
use super::layout::RowLayout;
use super::{row_type, title_of};
use crate::npy::{Target, Writer};

/// A file that rows go to.
pub(crate) struct Output {
    writer: Writer,
    form: Form,
}

enum Form {
    Plain(RowLayout),
    Text {
        columns: Vec<Cells>,
        delimiter: char,
    },
    /// One object per line.
    Json {
        columns: Vec<(String, Cells, Vec<u64>)>,
    },
}

impl Output {
    /// Begins a file with a number of rows of these columns. If `alone`, a single column has no name.
    pub(crate) fn file(
        path: &Path,
        kind: FileKind,
        columns: &[Column],
        alone: bool,
        rows: u64,
    ) -> Result<(Self, Target)> {
        let columns: Vec<Column> = columns
            .iter()
            .map(|column| match alone {
                true => Column { path: "/".into(), ..column.clone() },
                false => column.clone(),
            })
            .collect();
        let delimiter = match kind {
            FileKind::Csv => ',',
            FileKind::Tsv => '\t',
            FileKind::Npy | FileKind::Raw => {
                let (row, shape) = row_type(&columns);
                let layout = RowLayout::new(&row, &shape, &columns, "the file")?;
                let header = match kind {
                    FileKind::Npy => {
                        let all: Vec<u64> = [rows].into_iter().chain(shape).collect();
                        match &row {
                            RowType::Plain { dtype, .. } => npy::render_plain(dtype, &all)?,
                            row => npy::render(row, &all)?,
                        }
                    }
                    _ => Vec::new(),
                };
                let (writer, target) = Writer::begin(path, &header)?;
                return Ok((Self { writer, form: Form::Plain(layout) }, target));
            }
        };
        let columns = columns.iter().map(Cells::new).collect::<Result<Vec<_>>>()?;
        let titles = columns.iter().flat_map(|cells| &cells.titles);
        let titles: Vec<_> = titles.map(|title| quoted(title, delimiter)).collect();
        let head = format!("{}\n", titles.join(&delimiter.to_string()));
        let (writer, target) = Writer::begin(path, head.as_bytes())?;
        Ok((Self { writer, form: Form::Text { columns, delimiter } }, target))
    }

    /// JSON on standard output, a line for each row.
    pub(crate) fn json(columns: &[Column]) -> Result<(Self, Target)> {
        let each = columns
            .iter()
            .map(|column| Ok((title_of(column), Cells::new(column)?, column.row_shape.clone())));
        let columns = each.collect::<Result<Vec<_>>>()?;
        let (writer, target) = Writer::begin(Path::new("-"), &[])?;
        Ok((Self { writer, form: Form::Json { columns } }, target))
    }

    /// Appends rows, given as the elements of each column.
    pub(crate) fn push(&mut self, columns: &[Buffer], rows: usize) -> Result<()> {
        let bytes = match &self.form {
            Form::Plain(layout) => layout.join(columns, rows),
            Form::Text { columns: cells, delimiter } => text(cells, *delimiter, columns, rows),
            Form::Json { columns: cells } => json(cells, columns, rows)?,
        };
        self.writer.push(&bytes)
    }

    /// Ends the file.
    pub(crate) fn finish(self) -> Result<()> {
        self.writer.finish()
    }
}

fn text(cells: &[Cells], delimiter: char, columns: &[Buffer], rows: usize) -> Vec<u8> {
    let mut out = String::new();
    let mut cell = String::new();
    let mut elements: Vec<_> = cells
        .iter()
        .zip(columns)
        .map(|(cells, column)| (cells, column.chunks_exact(cells.bytes.max(1))))
        .collect();
    for _ in 0..rows {
        let mut first = true;
        for (cells, elements) in &mut elements {
            for element in elements.by_ref().take(cells.titles.len()) {
                if !std::mem::take(&mut first) {
                    out.push(delimiter);
                }
                cell.clear();
                cells.render(element, &mut cell);
                out.push_str(&quoted(&cell, delimiter));
            }
        }
        out.push('\n');
    }
    out.into_bytes()
}

fn json(cells: &[(String, Cells, Vec<u64>)], columns: &[Buffer], rows: usize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut elements: Vec<_> = cells
        .iter()
        .zip(columns)
        .map(|((title, cells, shape), column)| {
            (title, cells, shape, column.chunks_exact(cells.bytes.max(1)))
        })
        .collect();
    for _ in 0..rows {
        let mut row = Map::new();
        for (title, cells, shape, elements) in &mut elements {
            let values = elements.by_ref().take(cells.titles.len());
            let values = values.map(|element| cells.value(element)).collect();
            row.insert(title.to_string(), nested(values, shape));
        }
        serde_json::to_writer(&mut out, &row)
            .map_err(|error| Error::invalid(format!("a row in JSON: {error}")))?;
        out.push(b'\n');
    }
    Ok(out)
}

/// Values as lists within lists of a shape.
fn nested(mut values: Vec<Value>, shape: &[u64]) -> Value {
    for extent in shape.iter().skip(1).rev() {
        let extent = usize::try_from(*extent).unwrap_or(1).max(1);
        values = values.chunks(extent).map(|part| Value::Array(part.to_vec())).collect();
    }
    match shape.is_empty() {
        true => values.pop().unwrap_or_default(),
        false => Value::Array(values),
    }
}
