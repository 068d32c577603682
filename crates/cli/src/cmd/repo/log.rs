//! `chunkyard repo log`: history, newest first.

use std::sync::Arc;

use anyhow::Result;
use chunkyard_engine::repo::{ReferenceKind, Snapshot, State};
use clap::Args;
use serde_json::{Value, json};

use crate::args::VersionArgs;
use crate::context::Context;
use crate::graph;
use crate::output::Output;
use crate::printable::{brief, line};
use crate::units::{count, short, size, time};

/// Show history
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard repo log weather --all -n 20")]
pub(crate) struct Log {
    /// The repository
    repo: String,

    /// Show at most this many snapshots
    #[arg(short = 'n', long, value_name = "COUNT")]
    number: Option<usize>,

    /// All branches and tags, and snapshots that none of them reaches
    #[arg(long, conflicts_with_all = ["branch", "tag", "snapshot", "as_of"])]
    all: bool,

    #[command(flatten)]
    version: VersionArgs,
}

impl Log {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let repo = context.open(&self.repo).await?;
        let version = self.version.version(&repo).await?;
        let state = repo.state().await?;
        let mut snapshots: Vec<Arc<Snapshot>> = match self.all {
            true => everything(&state),
            false => state.ancestry(&state.resolve(&version)?.snapshot_id).cloned().collect(),
        };
        snapshots.truncate(self.number.unwrap_or(usize::MAX));
        if context.output.is_json() {
            let documents: Result<Vec<_>> =
                snapshots.iter().map(|snapshot| document(snapshot, &state)).collect();
            return context.output.document(&documents?);
        }
        context.output.text(&describe(&snapshots, &state, context.output))
    }
}

/// All snapshots, newest first: a snapshot is always younger than its parent.
fn everything(state: &State) -> Vec<Arc<Snapshot>> {
    let mut snapshots = state.snapshots.clone();
    snapshots.reverse();
    snapshots.sort_by_key(|snapshot| std::cmp::Reverse(snapshot.timestamp_ms));
    snapshots
}

/// The engine's names, and the branches and tags that point here.
fn document(snapshot: &Snapshot, state: &State) -> Result<Value> {
    let mut document = serde_json::to_value(snapshot)?;
    let here = state.refs.values().filter(|r| r.snapshot_id == snapshot.snapshot_id);
    let here: Vec<_> = here.map(|r| json!({"name": r.name, "type": r.kind})).collect();
    if let Some(members) = document.as_object_mut() {
        members.insert("refs".into(), Value::Array(here));
    }
    Ok(document)
}

/// A graph with one line per snapshot.
pub(crate) fn describe(snapshots: &[Arc<Snapshot>], state: &State, output: Output) -> String {
    let mut text = String::new();
    for row in graph::draw(snapshots) {
        text.push_str(row.lanes.trim_end_matches(' '));
        if let Some(snapshot) = row.snapshot {
            text.push_str(&describe_snapshot(snapshot, state, output));
        }
        text.push('\n');
    }
    text
}

fn describe_snapshot(snapshot: &Snapshot, state: &State, output: Output) -> String {
    let here = state.refs.values().filter(|r| r.snapshot_id == snapshot.snapshot_id);
    let named: Vec<String> = here
        .map(|reference| match reference.kind {
            ReferenceKind::Branch => reference.name.clone(),
            ReferenceKind::Tag => format!("tag: {}", reference.name),
        })
        .collect();
    let named = match named.is_empty() {
        true => String::new(),
        false => format!(" {}", output.green(&line(&format!("({})", named.join(", "))))),
    };
    let summary = &snapshot.summary;
    let changed = summary.refs_added + summary.refs_removed;
    let effect = match changed {
        0 => size(summary.bytes_written),
        changed => format!("{}, {}", count(changed, "chunk"), size(summary.bytes_written)),
    };
    format!(
        " {}  {}{named}  {}  {}",
        output.id(short(&snapshot.snapshot_id)),
        time(snapshot.timestamp_ms),
        brief(&snapshot.message),
        output.dim(&format!("[{effect}]"))
    )
}
