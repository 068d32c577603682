//! `chunkyard ls`: the nodes of a version.

use anyhow::Result;
use chunkyard_engine::repo::{Node, normalise_path};
use clap::Args;
use serde_json::{Value, json};

use crate::args::VersionArgs;
use crate::context::Context;
use crate::output::columns;
use crate::units::{count, shape};

/// List arrays and groups
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard ls weather -l /ocean --tag v1")]
pub(crate) struct Ls {
    /// The place
    url: String,

    /// List this group or array and all below it
    path: Option<String>,

    /// Also shape, chunks and data type
    #[arg(long, short)]
    long: bool,

    #[command(flatten)]
    version: VersionArgs,
}

impl Ls {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let repo = context.open(&self.url).await?;
        let session = repo.readonly_session(&self.version.version(&repo).await?).await?;
        let tree = session.tree();
        let root = normalise_path(self.path.as_deref().unwrap_or("/"))?;
        tree.require(&root)?;
        let nodes: Vec<_> = tree.subtree(&root).filter(|node| node.path != "/").cloned().collect();
        let documents = nodes.iter().map(|node| describe(node)).collect::<Result<Vec<_>>>()?;
        context.output.result(&documents, || match self.long {
            true => columns(&nodes.iter().map(|node| row(node)).collect::<Vec<_>>()),
            false => nodes.iter().map(|node| name(node) + "\n").collect(),
        })
    }
}

/// A group shows by the slash at its end.
fn name(node: &Node) -> String {
    if node.is_array() { node.path.clone() } else { format!("{}/", node.path) }
}

fn row(node: &Node) -> Vec<String> {
    let Ok(spec) = node.array() else { return vec![name(node), "group".into()] };
    let chunks = spec.chunk_shape().map_or_else(|| "irregular".into(), shape);
    vec![
        name(node),
        spec.data_type_name(),
        shape(spec.shape()),
        format!("chunks {chunks}"),
        format!("{} stored", count(node.refs_count, "chunk")),
    ]
}

/// A node as JSON: what it is, and for arrays the Zarr metadata in short.
pub(super) fn describe(node: &Node) -> Result<Value> {
    let Ok(spec) = node.array() else {
        return Ok(json!({"path": node.path, "type": "group"}));
    };
    let metadata = spec.metadata();
    Ok(json!({
        "path": node.path,
        "type": "array",
        "shape": spec.shape(),
        "chunk-shape": spec.chunk_shape(),
        "data-type": serde_json::to_value(&metadata.data_type)?,
        "codecs": serde_json::to_value(&metadata.codecs)?,
        "fill-value": serde_json::to_value(&metadata.fill_value)?,
        "dimension-names": spec.dimension_names(),
        "refs": node.refs_count,
    }))
}
