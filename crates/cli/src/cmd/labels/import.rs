//! `chunkyard labels create` and `import`: a labelmap, empty or from a volume.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use chunkyard_engine::labels::{ArrayVolume, Imported, Labelmap, Layout, Mapping, Volume};
use chunkyard_engine::repo::{CreateOptions, Repository};
use chunkyard_engine::store::Limits;
use chunkyard_engine::{Error, Noun};
use clap::Args;
use serde_json::json;

use super::npy_volume::NpyVolume;
use super::parse_three;
use crate::args::branch_or_default;
use crate::context::Context;
use crate::units::{count, short};

/// What a new labelmap looks like.
#[derive(Debug, Args)]
struct LayoutArgs {
    /// The group to make
    #[arg(long, value_name = "PATH", default_value = "/labels")]
    path: String,

    /// Voxels of a block along z,y,x: multiples of 16
    #[arg(long, value_name = "Z,Y,X", default_value = "64,64,64", value_parser = parse_three::<u32>)]
    block: [u32; 3],

    /// How many scales, each of half the resolution [default: until one block holds all]
    #[arg(long, value_name = "COUNT")]
    scales: Option<usize>,

    /// Size of a voxel along z,y,x
    #[arg(long, value_name = "Z,Y,X", default_value = "1,1,1", value_parser = parse_three::<f64>)]
    voxel_size: [f64; 3],

    /// Unit of the voxel size, such as nanometer
    #[arg(long, value_name = "UNIT")]
    unit: Option<String>,

    /// Commit to this branch instead of the default one
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,

    /// What the commit does, for people
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
}

impl LayoutArgs {
    fn layout(&self, shape: [u64; 3]) -> Result<Layout> {
        let mut layout = Layout::new(shape).with_block(self.block);
        if let Some(scales) = self.scales {
            layout.scales = scales;
        }
        layout.voxel_size = self.voxel_size;
        layout.unit.clone_from(&self.unit);
        layout.check()?;
        Ok(layout)
    }
}

/// Make an empty labelmap
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard labels create brain --shape 4096,4096,4096")]
pub(crate) struct Create {
    /// The repository; made if it is not there
    repo: String,

    /// Voxels along z,y,x
    #[arg(long, value_name = "Z,Y,X", value_parser = parse_three::<u64>)]
    shape: [u64; 3],

    #[command(flatten)]
    layout: LayoutArgs,
}

impl Create {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let layout = self.layout.layout(self.shape)?;
        let repo = open_or_create(&self.repo, context).await?;
        let branch = branch_or_default(&repo, self.layout.branch.as_deref()).await?;
        let session = repo.writable_session(&branch).await?;
        let map = Labelmap::create(&session, &self.layout.path, layout).await?;
        let message = self.layout.message.as_deref().unwrap_or("create a labelmap");
        let snapshot = map.commit(message).await?;
        let document = json!({"path": map.path(), "snapshot": snapshot.snapshot_id});
        context.output.done(&document, || {
            format!("{} is an empty labelmap ({})", map.path(), short(&snapshot.snapshot_id))
        })
    }
}

/// Make a labelmap from a volume of supervoxels
///
/// The volume is an array of unsigned integers with the axes z, y, x: a .npy file, or an array of any format.
/// It is read tile by tile, and seen when all of it is there.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard labels import brain segmentation.npy --voxel-size 8,8,8 --unit nanometer
  chunkyard labels import brain s3://bucket/seg.zarr /s0 --mapping agglomeration.csv")]
pub(crate) struct Import {
    /// The repository; made if it is not there
    repo: String,

    /// A .npy file, or a place of any format
    source: String,

    /// The array, if the source is a place
    #[arg(default_value = "/")]
    array: String,

    /// Bodies of supervoxels that are not bodies of their own: a CSV file with lines supervoxel,body
    #[arg(long, value_name = "FILE")]
    mapping: Option<PathBuf>,

    #[command(flatten)]
    layout: LayoutArgs,
}

impl Import {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let volume = self.volume(context).await?;
        let layout = self.layout.layout(volume.shape())?;
        let mapping = match &self.mapping {
            Some(file) => {
                let mut pairs = read_pairs(file)?;
                pairs.sort_unstable();
                let (keys, bodies) = pairs.into_iter().unzip();
                Mapping::from_sorted(keys, bodies)?
            }
            None => Mapping::default(),
        };
        let repo = open_or_create(&self.repo, context).await?;
        let branch = branch_or_default(&repo, self.layout.branch.as_deref()).await?;
        let session = repo.writable_session(&branch).await?;
        let watch = context.watch("importing");
        let (map, imported) = Labelmap::import(
            &session,
            &self.layout.path,
            layout,
            &*volume,
            &mapping,
            context.meter(),
        )
        .await?;
        let default = format!("import {}", self.source);
        let message = self.layout.message.as_deref().unwrap_or(&default);
        let snapshot = map.commit(message).await?;
        drop(watch);
        let id = &snapshot.snapshot_id;
        let document = json!({"path": map.path(), "snapshot": id, "imported": imported});
        context
            .output
            .done(&document, || format!("{}: {} ({})", map.path(), describe(&imported), short(id)))
    }

    async fn volume(&self, context: &Context) -> Result<Box<dyn Volume>> {
        let path = Path::new(&self.source);
        if path.extension().is_some_and(|ending| ending == "npy") {
            return Ok(Box::new(NpyVolume::open(path)?));
        }
        let (place, format, options) = context.recognise(&self.source, Limits::default()).await?;
        let source = context.open_source(&place, format, &options).await?;
        Ok(Box::new(ArrayVolume::of(&source, &self.array)?))
    }
}

fn describe(imported: &Imported) -> String {
    format!(
        "{} of {} in {}, {} stored",
        count(imported.supervoxels, "supervoxel"),
        count(imported.voxels, "voxel"),
        match imported.bodies {
            1 => "1 body".to_owned(),
            bodies => format!("{bodies} bodies"),
        },
        count(imported.blocks, "block")
    )
}

/// Opens a repository, or makes one where nothing is.
async fn open_or_create(url: &str, context: &Context) -> Result<Repository> {
    context.about(url);
    match Repository::open(url, context.options()).await {
        Err(Error::NotFound { what: Noun::Repository, .. }) => {
            Ok(Repository::create(url, context.options(), CreateOptions::default()).await?)
        }
        other => Ok(other?),
    }
}

/// Pairs of numbers, one pair a line, after an optional line of names.
pub(super) fn read_pairs(file: &Path) -> Result<Vec<(u64, u64)>> {
    let name = file.display().to_string();
    let text = fs::read_to_string(file).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::NotFound { what: Noun::File, name: name.clone() },
        _ => Error::store("read", &name, error),
    })?;
    let mut pairs = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let pair = line
            .split_once(',')
            .and_then(|(a, b)| Some((a.trim().parse().ok()?, b.trim().parse().ok()?)));
        match pair {
            Some(pair) => pairs.push(pair),
            None if line.trim().is_empty() => {}
            // Names of columns, as programs write them.
            None if number == 0 && !line.bytes().any(|byte| byte.is_ascii_digit()) => {}
            None => {
                let line = format!("line {} is {line:?}, not supervoxel,body", number + 1);
                let error = Error::invalid(format!("{name}: {line}"));
                return Err(error.into());
            }
        }
    }
    Ok(pairs)
}
