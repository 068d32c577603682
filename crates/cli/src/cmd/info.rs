//! `chunkyard info`: a repository at a glance.

use std::sync::Arc;

use anyhow::Result;
use chunkyard_array::Region;
use chunkyard_engine::repo::{Mode, Node, ReferenceKind, Repository, Session, State};
use chunkyard_engine::store::Kind;
use clap::Args;
use futures::TryStreamExt;
use serde_json::{Map, Value, json};

use super::ls;
use crate::args::VersionArgs;
use crate::context::Context;
use crate::output::{Output, columns};
use crate::units::{count, shape, short, size, time};

/// Describe what is at a place, whatever its format
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard info weather --as-of '2026-01-31 12:00'")]
pub(crate) struct Info {
    /// The place
    url: String,

    #[command(flatten)]
    version: VersionArgs,
}

/// What the files of a repository take, all versions together.
#[derive(Debug, Clone, Copy, Default)]
struct Stored {
    files: u64,
    bytes: u64,
}

impl Info {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let repo = context.open(&self.url).await?;
        let state = repo.state().await?;
        let session = repo.readonly_session(&self.version.version(&repo).await?).await?;
        let stored = stored(&repo).await?;
        if context.output.is_json() {
            return context.output.document(&document(&repo, &state, &session, stored).await?);
        }
        context.output.text(&describe(&repo, &state, &session, stored, context.output).await?)
    }
}

/// Adds up the files, where the store can list them.
async fn stored(repo: &Repository) -> Result<Option<Stored>> {
    if repo.store().kind() == Kind::ReadOnly {
        return Ok(None);
    }
    let files = repo.store().list("").await?;
    let sum = files.try_fold(Stored::default(), |sum, meta| async move {
        Ok(Stored { files: sum.files + 1, bytes: sum.bytes + meta.size })
    });
    Ok(Some(sum.await?))
}

/// Bytes of an array's elements, stored or not.
fn logical_bytes(node: &Node) -> u64 {
    let Ok(spec) = node.array() else { return 0 };
    let item_size = spec.dtype().ok().and_then(|dtype| dtype.item_size()).unwrap_or(0);
    Region::whole(spec.shape()).num_elements().saturating_mul(item_size as u64)
}

fn names(state: &State, kind: ReferenceKind) -> Vec<(&str, &str)> {
    let references = state.refs.values().filter(|reference| reference.kind == kind);
    references.map(|reference| (reference.name.as_str(), reference.snapshot_id.as_str())).collect()
}

async fn document(
    repo: &Repository,
    state: &State,
    session: &Arc<Session>,
    stored: Option<Stored>,
) -> Result<Value> {
    let tree = session.tree();
    let mut nodes = Vec::new();
    for node in tree.nodes() {
        let mut described = ls::describe(node)?;
        if let Some(members) = described.as_object_mut() {
            let attributes = session.attributes(&node.path).await?;
            members.insert("attributes".into(), Value::Object((*attributes).clone()));
            if node.is_array() {
                members.insert("bytes".into(), json!(logical_bytes(node)));
            }
        }
        nodes.push(described);
    }
    let is_array = |node: &Value| node["type"] == "array";
    let (arrays, groups): (Vec<_>, Vec<_>) = nodes.into_iter().partition(is_array);
    let logical: u64 = tree.nodes().map(|node| logical_bytes(node)).sum();
    let references = |kind| -> Map<String, Value> {
        names(state, kind).into_iter().map(|(name, id)| (name.to_owned(), json!(id))).collect()
    };
    Ok(json!({
        "url": repo.store().url(),
        "format": "repo",
        "format-version": state.format_version,
        "id": state.id,
        "generation": state.generation,
        "default-branch": state.default_branch,
        "status": state.status,
        "branches": references(ReferenceKind::Branch),
        "tags": references(ReferenceKind::Tag),
        "snapshots": state.snapshots.len(),
        "snapshot": *session.snapshot(),
        "properties": state.properties,
        "config": state.config,
        "arrays": arrays,
        "groups": groups,
        "bytes": logical,
        "stored-files": stored.map(|stored| stored.files),
        "stored-bytes": stored.map(|stored| stored.bytes),
        "ratio": stored.map(|stored| logical as f64 / stored.bytes.max(1) as f64),
    }))
}

async fn describe(
    repo: &Repository,
    state: &State,
    session: &Arc<Session>,
    stored: Option<Stored>,
    output: Output,
) -> Result<String> {
    let snapshot = session.snapshot();
    let tree = session.tree();
    let list = |kind| {
        let named = names(state, kind);
        let named: Vec<_> =
            named.iter().map(|(name, id)| format!("{name} ({})", short(id))).collect();
        if named.is_empty() { "none".to_owned() } else { named.join(", ") }
    };
    let mut rows = vec![
        vec!["repository".into(), output.bold(repo.store().url())],
        vec!["id".into(), state.id.clone()],
        vec!["branches".into(), list(ReferenceKind::Branch)],
        vec!["tags".into(), list(ReferenceKind::Tag)],
        vec!["snapshots".into(), state.snapshots.len().to_string()],
        vec![
            "shown".into(),
            format!(
                "{} of {}  {}",
                output.id(short(&snapshot.snapshot_id)),
                time(snapshot.timestamp_ms),
                snapshot.message
            ),
        ],
    ];
    if state.status.mode == Mode::ReadOnly {
        let reason = state.status.reason.as_deref().unwrap_or("no reason given");
        rows.push(vec!["mode".into(), output.red(&format!("read-only: {reason}"))]);
    }
    let logical: u64 = tree.nodes().map(|node| logical_bytes(node)).sum();
    rows.push(vec!["values".into(), size(logical)]);
    if let Some(stored) = stored {
        let ratio = logical as f64 / stored.bytes.max(1) as f64;
        let stored = format!(
            "{} in {}, all versions together (ratio {ratio:.1})",
            size(stored.bytes),
            count(stored.files, "file")
        );
        rows.push(vec!["stored".into(), stored]);
    }
    for (key, value) in &state.properties {
        rows.push(vec!["property".into(), format!("{key} = {value}")]);
    }
    let mut text = columns(&rows);
    for node in tree.nodes().filter(|node| node.is_array()) {
        text.push('\n');
        text.push_str(&describe_array(session, node, output).await?);
    }
    if tree.nodes().all(|node| !node.is_array()) {
        text.push_str("\nno arrays yet\n");
    }
    Ok(text)
}

async fn describe_array(session: &Arc<Session>, node: &Node, output: Output) -> Result<String> {
    let spec = node.array()?;
    let mut rows = Vec::new();
    let mut row = |key: &str, value: String| rows.push(vec![format!("  {key}"), value]);
    let mut extents = shape(spec.shape());
    if let Some(names) = spec.dimension_names() {
        let names: Vec<_> = names.iter().map(|name| name.as_deref().unwrap_or("?")).collect();
        extents.push_str(&format!("  ({})", names.join(", ")));
    }
    row("shape", extents);
    let metadata = spec.metadata();
    row("data type", metadata.data_type.to_string());
    match (spec.chunk_shape(), spec.grid()) {
        (Some(chunks), Ok(grid)) => {
            let all = grid.num_chunks();
            row("chunks", format!("{}, {} of {all} stored", shape(chunks), node.refs_count));
        }
        _ => row("chunks", metadata.chunk_grid.to_string()),
    }
    let codecs: Vec<_> = metadata.codecs.iter().map(ToString::to_string).collect();
    row("codecs", codecs.join(", "));
    row("fill value", serde_json::to_string(&metadata.fill_value)?);
    row("values", size(logical_bytes(node)));
    for (key, value) in session.attributes(&node.path).await?.iter() {
        row(&format!("@{key}"), value.to_string());
    }
    Ok(format!("{}\n{}", output.bold(&node.path), columns(&rows)))
}
