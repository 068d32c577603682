//! A labelmap of a DVID server: the versions of its repository, the data in it, and its scales.

use anyhow::Result;
use chunkyard_array::Region;
use chunkyard_engine::format::dvid_http::{DvidSource, Repo};
use chunkyard_engine::format::{Source, Survey};
use chunkyard_engine::store::ChunkRef;
use futures::TryStreamExt;
use serde_json::{Value, json};

use crate::output::{Output, columns};
use crate::printable::brief;
use crate::units::{count, short, size};

/// Stored blocks are counted where so many fit at most: a server has no count of them, so all are fetched.
const COUNTED_BLOCKS_MAX: u64 = 4096;

/// A scale in numbers.
struct Scale {
    path: String,
    shape: Vec<u64>,
    origin: Option<Vec<i64>>,
    /// How many blocks fit.
    possible: u64,
    /// Stored blocks and their bytes, if they were counted.
    stored: Option<(u64, u64)>,
}

/// Describes the labelmap that a source is.
pub(super) async fn run(url: &str, source: &DvidSource, output: Output) -> Result<()> {
    let survey = Survey::of(source.dataset());
    let mut scales = Vec::new();
    for (path, node) in source.dataset().arrays() {
        let possible = node.grid()?.num_chunks();
        let stored = match possible <= COUNTED_BLOCKS_MAX {
            true => Some(stored(source, path, node.spec.shape()).await?),
            false => None,
        };
        let (path, shape) = (path.to_owned(), node.spec.shape().to_vec());
        let origin = survey.space(&path).and_then(|space| space.origin.clone());
        scales.push(Scale { path, shape, origin, possible, stored });
    }
    output.result(&document(url, source, &scales), || text(url, source, &scales, output))
}

/// The stored blocks of an array, and their bytes.
async fn stored(source: &DvidSource, path: &str, shape: &[u64]) -> Result<(u64, u64)> {
    let whole = Region::whole(shape);
    let mut chunks = source.chunks(path, &whole);
    let (mut blocks, mut bytes) = (0, 0);
    while let Some((_, found)) = chunks.try_next().await? {
        blocks += 1;
        if let ChunkRef::Inline(block) = found {
            bytes += block.len() as u64;
        }
    }
    Ok((blocks, bytes))
}

/// The versions of a repository, by their numbers.
fn versions(repo: &Repo) -> Vec<&chunkyard_engine::format::dvid_http::Node> {
    let mut nodes: Vec<_> = repo.nodes().collect();
    nodes.sort_by_key(|node| node.version_id);
    nodes
}

/// The UUIDs of the parents of a version.
fn parents<'a>(repo: &'a Repo, ids: &[u64]) -> Vec<&'a str> {
    let uuid = |id: &u64| repo.nodes().find(|node| node.version_id == *id);
    ids.iter().filter_map(uuid).map(|node| node.uuid.as_str()).collect()
}

fn document(url: &str, source: &DvidSource, scales: &[Scale]) -> Value {
    let repo = source.repo();
    let versions = versions(repo).into_iter().map(|node| {
        json!({
            "uuid": node.uuid,
            "parents": parents(repo, &node.parents),
            "branch": node.branch,
            "note": node.note,
            "locked": node.locked,
            "updated": node.updated,
        })
    });
    let data = repo.data.iter().map(|(name, data)| {
        json!({"name": name, "type-name": data.type_name(), "data-uuid": data.data_uuid()})
    });
    let scales = scales.iter().map(|scale| {
        json!({
            "path": scale.path,
            "shape": scale.shape,
            "origin": scale.origin,
            "blocks-possible": scale.possible,
            "blocks": scale.stored.map(|(blocks, _)| blocks),
            "stored-bytes": scale.stored.map(|(_, bytes)| bytes),
        })
    });
    let info = source.info();
    let [x, y, z] = info.block_size;
    json!({
        "url": url,
        "format": "dvid-http",
        "repositories": [{
            "root": repo.root,
            "alias": repo.alias,
            "versions": versions.collect::<Vec<_>>(),
            "data": data.collect::<Vec<_>>(),
        }],
        "version": source.node().uuid,
        "labelmap": {
            "data-uuid": info.data_uuid,
            "block": [z, y, x],
            "scales": scales.collect::<Vec<_>>(),
        },
    })
}

fn text(url: &str, source: &DvidSource, scales: &[Scale], output: Output) -> String {
    let repo = source.repo();
    let mut text = columns(&[
        vec!["DVID server".into(), output.bold(url)],
        vec!["repository".into(), format!("{}  {}", short(&repo.root), brief(&repo.alias))],
        vec!["version".into(), source.node().uuid.clone()],
    ]);
    text.push_str("\nversions\n");
    let rows = versions(repo).into_iter().map(|node| {
        let on = parents(repo, &node.parents);
        let on: Vec<&str> = on.into_iter().map(short).collect();
        let branch = if node.branch.is_empty() { "master" } else { &node.branch };
        vec![
            format!("  {}", short(&node.uuid)),
            if on.is_empty() { "root".into() } else { format!("on {}", on.join(", ")) },
            brief(branch),
            if node.locked { String::new() } else { "open".into() },
            output.dim(&brief(&node.note)),
        ]
    });
    text.push_str(&columns(&rows.collect::<Vec<_>>()));
    text.push_str("\ndata\n");
    let rows = repo.data.iter();
    let rows = rows.map(|(name, data)| vec![format!("  {}", brief(name)), brief(data.type_name())]);
    text.push_str(&columns(&rows.collect::<Vec<_>>()));
    text.push_str("\nscales\n");
    let rows = scales.iter().map(|scale| {
        let stored = match scale.stored {
            Some((blocks, bytes)) => format!("{}, {}", count(blocks, "block"), size(bytes)),
            None => format!("{} at most, not counted", count(scale.possible, "block")),
        };
        let start = scale.origin.clone().unwrap_or_else(|| vec![0; scale.shape.len()]);
        let end =
            start.iter().zip(&scale.shape).map(|(from, more)| from.saturating_add_unsigned(*more));
        vec![
            format!("  {}", scale.path.trim_start_matches('/')),
            stored,
            format!("z, y, x from {start:?} to {:?}", end.collect::<Vec<i64>>()),
        ]
    });
    text.push_str(&columns(&rows.collect::<Vec<_>>()));
    text
}
