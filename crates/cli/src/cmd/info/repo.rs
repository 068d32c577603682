//! A repository: its history, and the content of a version.

use std::sync::Arc;

use anyhow::Result;
use chunkyard_engine::format::{Source, Survey};
use chunkyard_engine::repo::{Mode, ReferenceKind, RepoSource, Repository, Session, State};
use chunkyard_engine::store::Kind;
use futures::TryStreamExt;
use serde_json::{Map, Value, json};

use super::Stored;
use crate::args::VersionArgs;
use crate::cmd::facts::{Facts, survey_members, survey_rows};
use crate::context::Context;
use crate::output::{Output, columns};
use crate::printable::brief;
use crate::units::{count, short, size, time};

/// Describes a version of a repository.
pub(super) async fn run(url: &str, version: &VersionArgs, context: &Context) -> Result<()> {
    let repo = context.open(url).await?;
    let state = repo.state().await?;
    let session = repo.readonly_session(&version.version(&repo).await?).await?;
    let stored = stored(&repo).await?;
    let survey = Survey::of(RepoSource::new(session.clone()).await?.dataset());
    if context.output.is_json() {
        return context.output.document(&document(&repo, &state, &session, &survey, stored).await?);
    }
    context.output.text(&describe(&repo, &state, &session, &survey, stored, context.output).await?)
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

fn names(state: &State, kind: ReferenceKind) -> Vec<(&str, &str)> {
    let references = state.refs.values().filter(|reference| reference.kind == kind);
    references.map(|reference| (reference.name.as_str(), reference.snapshot_id.as_str())).collect()
}

async fn document(
    repo: &Repository,
    state: &State,
    session: &Arc<Session>,
    survey: &Survey,
    stored: Option<Stored>,
) -> Result<Value> {
    let tree = session.tree();
    let (mut nodes, mut logical) = (Vec::new(), 0);
    for node in tree.nodes() {
        let (mut described, bytes) = match node.is_array() {
            true => {
                let facts = Facts::of_repo(node)?;
                (facts.document_in(survey)?, Some(facts.logical_bytes))
            }
            false => (json!({"path": node.path, "type": node.type_name()}), None),
        };
        if let Some(members) = described.as_object_mut() {
            let attributes = session.attributes(&node.path).await?;
            members.insert("attributes".into(), Value::Object((*attributes).clone()));
            members.extend(bytes.map(|bytes| ("bytes".to_owned(), json!(bytes))));
        }
        logical += bytes.unwrap_or(0);
        nodes.push(described);
    }
    let is_array = |node: &Value| node["type"] == "array";
    let (arrays, groups): (Vec<_>, Vec<_>) = nodes.into_iter().partition(is_array);
    let references = |kind| -> Map<String, Value> {
        names(state, kind).into_iter().map(|(name, id)| (name.to_owned(), json!(id))).collect()
    };
    let mut document = json!({
        "url": repo.url(),
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
    });
    if let Some(members) = document.as_object_mut() {
        members.extend(survey_members(survey));
    }
    Ok(document)
}

async fn describe(
    repo: &Repository,
    state: &State,
    session: &Arc<Session>,
    survey: &Survey,
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
        vec!["repository".into(), output.bold(repo.url())],
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
                brief(&snapshot.message)
            ),
        ],
    ];
    if state.status.mode == Mode::ReadOnly {
        let reason = state.status.reason.as_deref().unwrap_or("no reason given");
        rows.push(vec!["mode".into(), output.red(&format!("read-only: {reason}"))]);
    }
    let arrays = tree.nodes().filter(|node| node.is_array());
    let arrays = arrays.map(|node| Facts::of_repo(node)).collect::<Result<Vec<_>>>()?;
    let logical: u64 = arrays.iter().map(|facts| facts.logical_bytes).sum();
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
    rows.extend(survey_rows(survey).into_iter().map(|(key, value)| vec![key, value]));
    let mut text = columns(&rows);
    for facts in &arrays {
        text.push('\n');
        text.push_str(&facts.text(&*session.attributes(&facts.path).await?, survey, output)?);
    }
    if arrays.is_empty() {
        text.push_str("\nno arrays yet\n");
    }
    Ok(text)
}
