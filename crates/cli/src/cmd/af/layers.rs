//! `chunkyard af layers`: the layers of a container.

use anyhow::Result;
use chunkyard_engine::format::container::{Ignored, LayerInfo};
use clap::Args;
use serde_json::{Value, json};

use super::LayerArgs;
use crate::context::Context;
use crate::output::columns;
use crate::units::{count, size};

/// List the layers, and files with names of layers that do not count
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard af layers buoys.af")]
pub(crate) struct Layers {
    /// The container
    file: String,

    #[command(flatten)]
    layer: LayerArgs,
}

impl Layers {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let container = super::readable(&self.file, self.layer.at, context).await?;
        let (layers, ignored) = (container.layers().await?, container.ignored());
        let document = json!({
            "layers": layers.iter().map(document_of).collect::<Vec<_>>(),
            "ignored": ignored.iter().map(document_of_ignored).collect::<Vec<_>>(),
        });
        context.output.result(&document, || {
            let head = ["layer", "file", "bytes", "arrays", "deleted", "chunks", "blocks"];
            let mut rows = vec![head.map(str::to_owned).into_iter().collect::<Vec<_>>()];
            rows.extend(layers.iter().map(row));
            rows.extend(ignored.iter().map(|file| {
                let why = format!("{}: {}", file.reason.word(), file.why);
                vec!["-".to_owned(), file.path.clone(), size(file.size), why]
            }));
            columns(&rows)
        })
    }
}

fn row(layer: &LayerInfo) -> Vec<String> {
    let mut remarks = Vec::new();
    if !layer.sealed {
        remarks.push("no checksums".to_owned());
    }
    if let Some(absorbed) = &layer.absorbed {
        let merged = absorbed.end.saturating_sub(absorbed.start);
        remarks.push(format!("holds {}", count(merged, "older layer")));
    }
    if layer.version != 4 {
        remarks.push(format!("footer version {}", layer.version));
    }
    vec![
        layer.number.to_string(),
        layer.path.clone(),
        size(layer.bytes),
        layer.arrays.to_string(),
        layer.deleted.to_string(),
        layer.chunks.to_string(),
        layer.blocks.to_string(),
        remarks.join(", "),
    ]
}

pub(crate) fn document_of(layer: &LayerInfo) -> Value {
    json!({
        "layer": layer.number,
        "file": layer.path,
        "bytes": layer.bytes,
        "arrays": layer.arrays,
        "deleted": layer.deleted,
        "chunks": layer.chunks,
        "blocks": layer.blocks,
        "footer-version": layer.version,
        "checksums": layer.sealed,
        "holds-up-to": layer.absorbed.as_ref().map(|absorbed| absorbed.end.saturating_sub(1)),
    })
}

fn document_of_ignored(file: &Ignored) -> Value {
    json!({
        "file": file.path,
        "number": file.number,
        "bytes": file.size,
        "reason": file.reason.word(),
        "why": file.why,
    })
}
