//! A store of DVID: its versions, and its labelmaps at one of them.

use anyhow::Result;
use chunkyard_engine::format::dvid::{DvidOptions, DvidStore, DvidUrl, InstanceInfo, Repo};
use chunkyard_engine::labels::dvid::list;
use chunkyard_engine::store::Limits;
use serde_json::{Value, json};

use crate::context::Context;
use crate::output::{Output, columns};
use crate::printable::brief;
use crate::units::{count, short, size, time};

/// Describes a store of DVID at the version that its URL names; of a store with several versions that could be
/// meant, only the versions.
pub(super) async fn run(url: &str, context: &Context) -> Result<()> {
    let parsed = DvidUrl::parse(url)?;
    let options =
        DvidOptions { store: context.store_options(Limits::default()), skip_corrupt: false };
    let store = DvidStore::open(&parsed, &options).await?;
    store.cautions().iter().for_each(|caution| context.output.warn(caution));
    let clear = parsed.uuid.is_some() || store.find(None).is_ok();
    let labelmaps = match clear {
        true => list(&store, parsed.uuid.as_deref()).await?,
        false => Vec::new(),
    };
    context.output.result(&document(url, &store, &labelmaps), || {
        text(url, &store, &labelmaps, context.output)
    })
}

fn document(url: &str, store: &DvidStore, labelmaps: &[InstanceInfo]) -> Value {
    let repos: Vec<Value> = store
        .repos()
        .iter()
        .map(|repo| {
            let versions = repo.dag.versions().map(|node| {
                let uuid = |id: &u32| repo.dag.get(*id).map(|node| node.uuid.clone());
                json!({
                    "uuid": node.uuid,
                    "parents": node.parents.iter().filter_map(uuid).collect::<Vec<_>>(),
                    "branch": node.branch,
                    "note": node.note,
                    "created-ms": node.created_ms,
                    "locked": node.locked,
                })
            });
            json!({
                "root": repo.root,
                "alias": repo.alias,
                "versions": versions.collect::<Vec<_>>(),
                "data": repo.instances,
            })
        })
        .collect();
    json!({"url": url, "format": "dvid", "logs": store.has_logs(), "repositories": repos, "labelmaps": labelmaps})
}

fn text(url: &str, store: &DvidStore, labelmaps: &[InstanceInfo], output: Output) -> String {
    let logs = if store.has_logs() { "found" } else { "none: every supervoxel is a body" };
    let mut text = columns(&[
        vec!["DVID store".into(), output.bold(url)],
        vec!["mutation logs".into(), logs.into()],
    ]);
    for repo in store.repos() {
        text.push_str(&format!("\nrepository {}  {}\n", short(&repo.root), brief(&repo.alias)));
        text.push_str(&columns(&versions(repo, output)));
    }
    if labelmaps.is_empty() {
        text.push_str("\nname a version with ?uuid=… in the URL to see its labelmaps\n");
    }
    for labelmap in labelmaps {
        let (name, version) = (&labelmap.instance.name, short(&labelmap.version));
        text.push_str(&format!("\nlabelmap {} at {version}\n", output.bold(name)));
        let rows: Vec<Vec<String>> = labelmap
            .scales
            .iter()
            .map(|scale| {
                vec![
                    format!("  s{}", scale.scale),
                    count(scale.blocks, "block"),
                    size(scale.stored_bytes),
                    format!("z, y, x from {:?} to {:?}", scale.start, scale.end),
                ]
            })
            .collect();
        text.push_str(&columns(&rows));
        if labelmap.conflicts > 0 {
            let blocks = count(labelmap.conflicts as u64, "block");
            text.push_str(&format!("  {blocks} changed by two parents cannot be read\n"));
        }
    }
    text
}

fn versions(repo: &Repo, output: Output) -> Vec<Vec<String>> {
    let leaves = repo.dag.leaves();
    let ids = repo.dag.in_order();
    let nodes = ids.iter().filter_map(|id| repo.dag.get(*id));
    nodes
        .map(|node| {
            let parents = node.parents.iter().filter_map(|id| repo.dag.get(*id));
            let parents: Vec<&str> = parents.map(|parent| short(&parent.uuid)).collect();
            let branch = if node.branch.is_empty() { "master" } else { &node.branch };
            let state = match (node.locked, leaves.contains(&node.id)) {
                (true, _) => "",
                (false, true) => "open",
                (false, false) => "open, with children",
            };
            vec![
                format!("  {}", short(&node.uuid)),
                if parents.is_empty() {
                    "root".into()
                } else {
                    format!("on {}", parents.join(", "))
                },
                branch.to_owned(),
                node.created_ms.map(time).unwrap_or_default(),
                state.to_owned(),
                output.dim(&brief(&node.note)),
            ]
        })
        .collect()
}
