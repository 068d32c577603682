//! `chunkyard labels at`, `body` and `bodies`: questions.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use chunkyard_array::Region;
use chunkyard_engine::Error;
use chunkyard_engine::labels::{Bounds, Ids};
use clap::Args;
use futures::TryStreamExt;
use serde_json::json;

use super::{Place, parse_three};
use crate::args::VersionArgs;
use crate::context::Context;
use crate::npy::Writer;

/// Show which body, or supervoxel, is at points
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard labels at brain 100,2048,4096
  cut -d, -f1-3 synapses.csv | chunkyard labels at brain -")]
pub(crate) struct At {
    #[command(flatten)]
    place: Place,

    /// Points z,y,x; - reads one a line from standard input
    #[arg(required = true)]
    points: Vec<String>,

    /// Supervoxels instead of bodies
    #[arg(long)]
    supervoxels: bool,

    #[command(flatten)]
    version: VersionArgs,
}

impl At {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let mut points = Vec::new();
        for text in &self.points {
            if text == "-" {
                for line in io::stdin().lock().lines() {
                    points.push(parse_three(&line?).map_err(Error::invalid)?);
                }
            } else {
                points.push(parse_three(text).map_err(Error::invalid)?);
            }
        }
        let map = self.place.at(&self.version, context).await?;
        let ids = if self.supervoxels { Ids::Supervoxels } else { Ids::Bodies };
        let labels = map.labels_at(&points, ids).await?;
        context
            .output
            .result(&labels, || labels.iter().map(|label| format!("{label}\n")).collect::<String>())
    }
}

/// Show one body: size, box, supervoxels, blocks
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard labels body brain 17 --supervoxels
  chunkyard labels body brain 1023 --of-supervoxel      the body that supervoxel 1023 belongs to
  chunkyard labels body brain 17 --rle 17.rle          its voxels in DVID's form")]
pub(crate) struct Body {
    #[command(flatten)]
    place: Place,

    /// The body
    body: u64,

    /// The number is the id of a supervoxel: show the body that it belongs to
    #[arg(long)]
    of_supervoxel: bool,

    /// List its supervoxels
    #[arg(long)]
    supervoxels: bool,

    /// List the blocks it is in
    #[arg(long)]
    blocks: bool,

    /// Write its voxels to a file, as the runs of a sparse volume of DVID
    #[arg(long, value_name = "FILE")]
    rle: Option<PathBuf>,

    /// Write its voxels to a file, as the masks of a sparse volume of DVID, block by block
    #[arg(long, value_name = "FILE")]
    masks: Option<PathBuf>,

    #[command(flatten)]
    version: VersionArgs,
}

impl Body {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let map = self.place.at(&self.version, context).await?;
        let id = match self.of_supervoxel {
            true => map.body_of(self.body).await?,
            false => self.body,
        };
        let body = map.body(id).await?;
        if let Some(file) = &self.rle {
            write(file, &map.sparse_volume(id, None).await?.render_dvid()?)?;
        }
        if let Some(file) = &self.masks {
            write(file, &map.binary_blocks(id, None).await?)?;
        }
        let supervoxels = match self.supervoxels {
            true => Some(map.supervoxels_of(id).await?),
            false => None,
        };
        let blocks = match self.blocks {
            true => Some(map.blocks_of(id).await?),
            false => None,
        };
        let document = json!({"body": body, "supervoxels": supervoxels, "blocks": blocks});
        context.output.result(&document, || {
            let mut text = format!(
                "body {}: {} voxels, {} supervoxels, box {}{}\n",
                body.body,
                body.voxels,
                body.supervoxels,
                region(&body.bounds),
                match body.mutation {
                    0 => String::new(),
                    mutation => format!(", last changed by mutation {mutation}"),
                }
            );
            for one in supervoxels.iter().flatten() {
                let at = region(&one.bounds);
                text +=
                    &format!("  supervoxel {}: {} voxels, box {at}\n", one.supervoxel, one.voxels);
            }
            for ([z, y, x], voxels) in blocks.iter().flatten() {
                text += &format!("  block {z},{y},{x}: {voxels} voxels\n");
            }
            text
        })
    }
}

/// List bodies with their sizes and boxes
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard labels bodies brain --min-voxels 1000000
  chunkyard labels bodies brain --in 0:64,0:512,0:512 --json")]
pub(crate) struct Bodies {
    #[command(flatten)]
    place: Place,

    /// Only bodies with voxels in this box: start:end along z,y,x
    #[arg(long = "in", value_name = "REGION", allow_hyphen_values = true)]
    region: Option<String>,

    /// Only bodies of at least this size
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    min_voxels: u64,

    #[command(flatten)]
    version: VersionArgs,
}

impl Bodies {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let map = self.place.at(&self.version, context).await?;
        let mut rows = match &self.region {
            None => map.all_bodies(0)?,
            Some(text) => {
                let region = Region::parse(text, &map.layout().shape)?;
                let ids = map.labels_in(&region, Ids::Bodies).await?;
                let found = map.find_bodies(&ids).await?.into_iter().flatten().collect();
                Box::pin(futures::stream::iter([Ok(found)]))
            }
        };
        let mut out = io::BufWriter::new(io::stdout().lock());
        if !context.output.is_json() {
            writeln!(out, "body,voxels,supervoxels,z0,y0,x0,z1,y1,x1,mutation")?;
        }
        // Lines, since there may be more bodies than fit in memory.
        while let Some(bodies) = rows.try_next().await? {
            for body in bodies.iter().filter(|body| body.voxels >= self.min_voxels) {
                if context.output.is_json() {
                    serde_json::to_writer(&mut out, body).map_err(io::Error::from)?;
                    writeln!(out)?;
                    continue;
                }
                let Bounds { start: [a, b, c], end: [d, e, f] } = body.bounds;
                let (id, voxels, parts) = (body.body, body.voxels, body.supervoxels);
                writeln!(out, "{id},{voxels},{parts},{a},{b},{c},{d},{e},{f},{}", body.mutation)?;
            }
        }
        out.flush()?;
        Ok(())
    }
}

/// Writes a file that is there as a whole or not at all.
fn write(file: &Path, bytes: &[u8]) -> chunkyard_engine::Result<()> {
    let (writer, target) = Writer::begin(file, bytes)?;
    writer.finish()?;
    target.appear()
}

fn region(bounds: &Bounds) -> String {
    let axes = bounds.start.iter().zip(bounds.end);
    axes.map(|(start, end)| format!("{start}:{end}")).collect::<Vec<_>>().join(",")
}
