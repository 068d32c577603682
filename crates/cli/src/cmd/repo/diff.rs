//! `chunkyard repo diff`: what differs between two versions.

use anyhow::Result;
use chunkyard_engine::repo::{ChunkChanges, Diff, Version};
use clap::Args;

use crate::context::Context;
use crate::output::Output;
use crate::printable::line;

/// Chunk indices printed per array; `--json` has them all.
const SHOWN: usize = 6;

/// Compare two versions
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard repo diff weather v1 main")]
pub(crate) struct DiffCommand {
    /// The repository
    repo: String,

    /// A branch, a tag, or a snapshot's id or the beginning of it
    from: String,

    /// The same
    to: String,
}

impl DiffCommand {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let repo = context.open(&self.repo).await?;
        let named = |name: &str| Version::Named(name.to_owned());
        let diff = repo.diff(&named(&self.from), &named(&self.to)).await?;
        context.output.result(&diff, || describe(&diff, context.output))
    }
}

/// One line per node that differs.
pub(crate) fn describe(diff: &Diff, output: Output) -> String {
    if diff.is_empty() {
        return "no difference\n".into();
    }
    let mut lines = Vec::new();
    for node in &diff.added {
        lines.push(output.green(&line(&format!("+ {} {}", node.kind, node.path))));
    }
    for node in &diff.removed {
        lines.push(output.red(&line(&format!("- {} {}", node.kind, node.path))));
    }
    for node in &diff.moved {
        let from = node.from.as_deref().unwrap_or_default();
        lines.push(line(&format!("> {} {from} moved to {}", node.kind, node.path)).into_owned());
    }
    for node in &diff.metadata {
        lines.push(format!("~ {} {}: metadata", node.kind, line(&node.path)));
    }
    for node in &diff.attributes {
        lines.push(format!("~ {} {}: attributes", node.kind, line(&node.path)));
    }
    for changes in &diff.chunks {
        lines.push(format!("~ array {}: {}", line(&changes.path), describe_chunks(changes)));
    }
    lines.join("\n")
}

fn describe_chunks(changes: &ChunkChanges) -> String {
    let kinds =
        [("added", &changes.added), ("replaced", &changes.replaced), ("removed", &changes.removed)];
    let parts = kinds.iter().filter(|(_, chunks)| !chunks.is_empty()).map(|(kind, chunks)| {
        let mut shown: Vec<_> = chunks.iter().take(SHOWN).map(|c| format!("{c:?}")).collect();
        if chunks.len() > SHOWN {
            shown.push("…".into());
        }
        let s = if chunks.len() == 1 { "" } else { "s" };
        format!("{} chunk{s} {kind}: {}", chunks.len(), shown.join(" "))
    });
    parts.collect::<Vec<_>>().join("; ")
}
