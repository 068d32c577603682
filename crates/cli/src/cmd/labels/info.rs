//! `chunkyard labels info`: what a labelmap has.

use anyhow::Result;
use chunkyard_engine::labels::{Mutation, TABLES};
use clap::Args;
use futures::TryStreamExt;
use serde_json::{Map, json};

use super::Place;
use crate::args::VersionArgs;
use crate::context::Context;
use crate::output::columns;
use crate::units::{count, shape, size};

/// Show shape, scales, sizes and counts of a labelmap
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard labels info brain --tag v1")]
pub(crate) struct Info {
    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    version: VersionArgs,
}

impl Info {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let map = self.place.at(&self.version, context).await?;
        let layout = map.layout();
        let (bodies, voxels) = (map.count_of_bodies().await?, map.count_of_voxels().await?);
        let (mut mutations, mut last) = (0, None::<Mutation>);
        let mut log = map.mutations(0)?;
        while let Some(batch) = log.try_next().await? {
            mutations += batch.len() as u64;
            last = batch.into_iter().next_back().or(last);
        }
        let mut tables = Map::new();
        let mut rows = Vec::new();
        for name in TABLES {
            let stats = map.table(name)?.stats()?;
            rows.push(vec![
                format!("  {name}"),
                format!("≤ {}", count(stats.rows_max, "row")),
                size(stats.bytes),
                count(stats.runs, "run"),
            ]);
            let stats =
                json!({"rows-max": stats.rows_max, "bytes": stats.bytes, "runs": stats.runs});
            tables.insert(name.into(), stats);
        }
        let document = json!({
            "path": map.path(),
            "snapshot": map.session().snapshot().snapshot_id,
            "layout": layout,
            "bodies": bodies,
            "voxels": voxels,
            "mutations": mutations,
            "last-mutation": last,
            "tables": tables,
        });
        context.output.result(&document, || {
            let unit = layout.unit.as_deref().unwrap_or("");
            let size = layout.voxel_size.map(|size| size.to_string()).join(" × ");
            let last = last.as_ref().map_or(String::new(), |last| {
                format!(", the last one {} {}", last.kind.name(), last.mutation)
            });
            format!(
                "{}\n  {} voxels in blocks of {}, {}, voxels of {size} {unit}\n  {bodies} bodies of {voxels} voxels\n  \
                 {}{last}\n{}",
                context.output.bold(map.path()),
                shape(&layout.shape),
                shape(&layout.block.map(u64::from)),
                count(layout.scales as u64, "scale"),
                count(mutations, "mutation"),
                columns(&rows)
            )
        })
    }
}
