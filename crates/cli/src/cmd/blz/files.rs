//! `chunkyard blz files`: the files of a dataset.

use anyhow::Result;
use chunkyard_engine::format::superchunk::FileInfo;
use clap::Args;
use serde_json::{Value, json};

use crate::context::Context;
use crate::output::columns;
use crate::units::size;

/// List the files with their rows and chunks, and where they are
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard blz files ticks.blz")]
pub(crate) struct Files {
    /// The dataset
    place: String,
}

impl Files {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let dataset = super::open(&self.place, context).await?;
        let files = dataset.files().await?;
        let document: Vec<_> = files.iter().map(document_of).collect();
        context.output.result(&document, || {
            let head = ["column", "file", "rows", "chunks", "bytes", "where"];
            let mut rows = vec![head.map(str::to_owned).to_vec()];
            rows.extend(files.iter().map(row));
            columns(&rows)
        })
    }
}

fn row(file: &FileInfo) -> Vec<String> {
    vec![
        file.column.to_string(),
        file.number.to_string(),
        format!("{}:{}", file.first_row, file.first_row + file.rows),
        file.chunks.to_string(),
        size(file.bytes),
        file.name.clone(),
    ]
}

fn document_of(file: &FileInfo) -> Value {
    json!({
        "column": *file.column,
        "number": file.number,
        "first-row": file.first_row,
        "rows": file.rows,
        "chunks": file.chunks,
        "bytes": file.bytes,
        "file": file.name,
        "elsewhere": file.elsewhere,
    })
}
