//! `chunkyard repo branch`: lines of history that move with each commit.

use anyhow::Result;
use chunkyard_engine::repo::{ReferenceKind, Repository, State, Version};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::context::Context;
use crate::output::columns;
use crate::units::{short, time};

/// Create, list and delete branches
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard repo branch weather create experiment --at v1")]
pub(crate) struct Branch {
    /// The repository
    repo: String,

    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Create a branch
    #[command(after_help = "Example:\n  chunkyard repo branch weather create experiment --at v1")]
    Create {
        /// Its name
        name: String,
        /// Where it begins: a branch, a tag or a snapshot; the default branch if not given
        #[arg(long, value_name = "REF")]
        at: Option<String>,
    },
    /// List branches
    #[command(after_help = "Example:\n  chunkyard repo branch weather list --json")]
    List,
    /// Delete a branch; its snapshots stay until they expire
    #[command(after_help = "Example:\n  chunkyard repo branch weather delete experiment")]
    Delete {
        /// Its name
        name: String,
    },
}

impl Branch {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let repo = context.open(&self.repo).await?;
        match &self.action {
            Action::List => list(&repo, ReferenceKind::Branch, context).await,
            Action::Create { name, at } => {
                let snapshot = repo.create_branch(name, &version(at.as_deref())).await?;
                created(ReferenceKind::Branch, name, &snapshot.snapshot_id, context)
            }
            Action::Delete { name } => {
                repo.delete_branch(name).await?;
                deleted(ReferenceKind::Branch, name, context)
            }
        }
    }
}

/// What `--at` means.
pub(super) fn version(at: Option<&str>) -> Version {
    at.map_or(Version::Default, |name| Version::Named(name.to_owned()))
}

/// Prints all references of a kind.
pub(super) async fn list(repo: &Repository, kind: ReferenceKind, context: &Context) -> Result<()> {
    let state = repo.state().await?;
    let references: Vec<_> = state.refs.values().filter(|r| r.kind == kind).collect();
    let output = context.output;
    output.result(&references, || {
        let rows = references.iter().map(|r| row(&state, &r.name, &r.snapshot_id));
        columns(&rows.collect::<Vec<_>>())
    })
}

fn row(state: &State, name: &str, id: &str) -> Vec<String> {
    let mark = if name == state.default_branch { " (default)" } else { "" };
    let (when, message) = match state.snapshot(id) {
        Some(snapshot) => (time(snapshot.timestamp_ms), snapshot.message.clone()),
        None => Default::default(),
    };
    vec![format!("{name}{mark}"), short(id).to_owned(), when, message]
}

/// Says that a reference was created.
pub(super) fn created(kind: ReferenceKind, name: &str, id: &str, context: &Context) -> Result<()> {
    let document = json!({"name": name, "type": kind, "snapshot-id": id});
    context.output.done(&document, || format!("created {} {name} at {}", kind.noun(), short(id)))
}

/// Says that a reference was deleted.
pub(super) fn deleted(kind: ReferenceKind, name: &str, context: &Context) -> Result<()> {
    let document = json!({"name": name, "type": kind, "deleted": true});
    context.output.done(&document, || format!("deleted {} {name}", kind.noun()))
}
