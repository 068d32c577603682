//! `chunkyard af repair`: a container whose newest layer cannot be read becomes writable again.

use anyhow::Result;
use chunkyard_engine::format::container::Container;
use clap::Args;
use serde_json::json;

use crate::context::Context;

/// Set an unreadable newest layer aside, and delete layers that a compaction left behind
///
/// An unreadable layer is renamed, not deleted: x.3.af becomes x.3.torn if its write was cut off, or
/// x.3.damaged if it was whole once; then its changes are lost, unless you put a copy of it back.
/// Damage elsewhere is not touched.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard af repair buoys.af")]
pub(crate) struct Repair {
    /// The container
    file: String,
}

impl Repair {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let repaired = Container::repair(&super::place(&self.file, context)?).await?;
        let document: Vec<_> = repaired
            .iter()
            .map(|done| {
                json!({
                    "file": done.file.path,
                    "reason": done.file.reason.word(),
                    "why": done.file.why,
                    "renamed": done.renamed,
                })
            })
            .collect();
        context.output.done(&document, || {
            let lines = repaired.iter().map(|done| match &done.renamed {
                Some(name) => format!("{} is {name} now: {}", done.file.path, done.file.why),
                None => format!("{} deleted: {}", done.file.path, done.file.why),
            });
            match repaired.is_empty() {
                true => "nothing to repair".to_owned(),
                false => lines.collect::<Vec<_>>().join("\n"),
            }
        })
    }
}
