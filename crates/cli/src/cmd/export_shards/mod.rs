//! `chunkyard export-shards`: a segmentation as Arrow shards and as a volume for Neuroglancer.

mod describe;
mod job;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use chunkyard_engine::Error;
use chunkyard_engine::export::{
    ArrowOptions, Codec, Container, Emit, Exporter, IndexKind, Plan, Progress, Request,
};
use chunkyard_engine::format::dvid::DvidUrl;
use chunkyard_engine::format::{OpenOptions, Place, Version, Versions};
use chunkyard_engine::labels::Ids;
use chunkyard_engine::store::Store;
use clap::{Args, ValueEnum};

pub(super) use self::watch::Watch;

use self::job::Shared;
use super::convert::Machine;
use crate::args::VersionArgs;
use crate::context::Context;
use crate::failure::{Input, Target, Unsound};
use crate::units::parse_shape;

/// Export a segmentation as Arrow shards, as a Neuroglancer volume, or both
///
/// The source is a labelmap of a repository, a labelmap of DVID (its store or its server), or an array of unsigned integers of
/// any format. Finished shards are usable at once, each with a line in export.jsonl. The same command, run again, goes on where
/// it was interrupted, and leaves finished shards alone.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard export-shards brain.repo shards                            Arrow shards, sharding chosen
  chunkyard export-shards brain.repo shards --spec spec.json --scales 3
  chunkyard export-shards brain.repo s3://bucket/seg --emit arrow,precomputed
  chunkyard export-shards 'dvid+badger:///data/badger?uuid=28841c&data=seg' shards --spec spec.json
  chunkyard export-shards brain.repo braid --stream --index csv        as Janelia's BRAID reads it
  chunkyard export-shards brain.repo shards --check                    is all of it there?
  chunkyard export-shards brain.repo s3://bucket/seg --job s3://bucket/jobs/seg   for chunkyard work, on many machines")]
pub(crate) struct ExportShards {
    /// What to export
    source: String,

    /// Where to: a directory or a place in a bucket
    target: String,

    /// The volume to write, as the info file of a sharded Neuroglancer volume; chosen and written to spec.json without it
    #[arg(long, value_name = "FILE")]
    spec: Option<PathBuf>,

    /// How many scales; by default as many as the source and the specification have
    #[arg(long, value_name = "N")]
    scales: Option<usize>,

    /// What to write
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',', default_value = "arrow")]
    emit: Vec<EmitArg>,

    /// The segmentation, if the source holds several: an array, or a group of scales
    #[arg(long, value_name = "PATH")]
    array: Option<String>,

    /// The version: a branch, tag or snapshot of a repository, a UUID of a DVID store
    #[arg(long = "version", id = "named-version", value_name = "NAME", conflicts_with_all = ["branch", "tag", "snapshot", "as_of"])]
    named: Option<String>,

    #[command(flatten)]
    version: VersionArgs,

    /// What labels are: bodies at the version, or supervoxels
    #[arg(long, value_name = "IDS", value_enum, default_value = "bodies")]
    ids: IdsArg,

    /// Take every N-th voxel along x, y and z
    #[arg(long, value_name = "X,Y,Z", default_value = "1,1,1")]
    factor: String,

    #[command(flatten)]
    arrow: ArrowArgs,

    /// Write nothing: compare what is there with what must be there, and read every file
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    shared: Shared,

    #[command(flatten)]
    machine: Machine,
}

/// How Arrow shards are written.
#[derive(Debug, Args)]
struct ArrowArgs {
    /// Compression of blocks: zstd:1 to zstd:19, or keep for what the source has
    #[arg(long, value_name = "CODEC", default_value = "zstd:3")]
    codec: Codec,

    /// The indices beside each shard
    #[arg(long, value_name = "FORM", value_enum, value_delimiter = ',', default_value = "json")]
    index: Vec<IndexArg>,

    /// Write the streaming form of Arrow IPC instead of the file form
    #[arg(long)]
    stream: bool,

    /// Blocks in a record batch
    #[arg(long, value_name = "N", default_value_t = 1)]
    batch: u32,

    /// Leave the label list out of blocks: it is the column supervoxels
    #[arg(long)]
    strip_labels: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum EmitArg {
    /// Arrow shards
    Arrow,
    /// A Neuroglancer volume
    Precomputed,
    /// Block tables, a Parquet file for each shard
    Table,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum IdsArg {
    /// Bodies at the version
    Bodies,
    /// Supervoxels, as they are stored
    Supervoxels,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum IndexArg {
    /// A JSON object from voxel coordinates to record numbers
    Json,
    /// Block coordinates with the bytes of the batch of each record
    Csv,
}

impl ExportShards {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let began = Instant::now();
        let limits = self.machine.apply()?;
        let source = self.source_url()?;
        let (place, format, mut open) = context.recognise(&source, limits).await?;
        open.version = match &self.named {
            Some(name) if format.versions() == Versions::Commits => {
                Some(Version::Named(name.clone()))
            }
            Some(_) if DvidUrl::is_one(&source) => None,
            Some(name) => {
                return Err(Error::invalid(format!(
                    "{source} is {}, whose URL names the version, so {name} cannot be chosen besides",
                    format.name()
                ))
                .into());
            }
            None => self.version.of_any(format, &source, context).await?,
        };
        context.writes_to(&self.target, format);
        let target = Store::open(&self.target, &open.store).context(Target)?;
        if self.check {
            return self.compare(&source, &place, target, &open, context).await;
        }
        let request = self.request(source, &open)?;
        let source = context.open_source(&place, format, &open).await?;
        let plan = Plan::of(&source, &place, &request, &target)?;
        let exporter = Exporter::new(plan, source, target, limits).await?;
        if let Some(url) = &self.shared.job {
            return self.shared.make(url, &exporter, &open.store, context).await;
        }
        context.resumable();
        let progress = Arc::new(Progress::default());
        let watch = Watch::new(progress.clone(), context.output.talks());
        let report = exporter.run(&progress).await?;
        drop(watch);
        let document = describe::document(&self.target, &report);
        context.output.done(&document, || describe::summary(&self.target, &report, began.elapsed()))
    }

    /// The source, with the version in its URL if that is where it belongs.
    fn source_url(&self) -> Result<String> {
        let Some(name) = &self.named else { return Ok(self.source.clone()) };
        if !DvidUrl::is_one(&self.source) {
            return Ok(self.source.clone());
        }
        if let Some(uuid) = DvidUrl::parse(&self.source)?.uuid {
            return Err(Error::invalid(format!(
                "the URL names the version {uuid}, so {name} cannot be chosen besides"
            ))
            .into());
        }
        let more = if self.source.contains('?') { '&' } else { '?' };
        Ok(format!("{}{more}uuid={name}", self.source))
    }

    fn request(&self, source: String, open: &OpenOptions) -> Result<Request> {
        let read = |path: &PathBuf| {
            std::fs::read(path)
                .map_err(|error| Error::store("read", path.display().to_string(), error))
                .context(Input)
        };
        let factor = parse_shape(&self.factor)?;
        let factor = <[u64; 3]>::try_from(factor).map_err(|given| {
            Error::invalid(format!("--factor is for x, y and z, and has {} numbers", given.len()))
        })?;
        let emit = self.emit.iter().map(|emit| match emit {
            EmitArg::Arrow => Emit::Arrow,
            EmitArg::Precomputed => Emit::Precomputed,
            EmitArg::Table => Emit::Table,
        });
        Ok(Request {
            source,
            open: open.clone(),
            spec: self.spec.as_ref().map(read).transpose()?,
            array: self.array.clone(),
            scales: self.scales,
            ids: match self.ids {
                IdsArg::Bodies => Ids::Bodies,
                IdsArg::Supervoxels => Ids::Supervoxels,
            },
            emit: emit.collect(),
            arrow: self.arrow.options(),
            factor,
        })
    }

    /// Compares what is in the target with what must be there.
    async fn compare(
        &self,
        source: &str,
        place: &Place,
        target: Store,
        open: &OpenOptions,
        context: &Context,
    ) -> Result<()> {
        let Some(plan) = Plan::read(&target).await.context(Target)? else {
            let what = format!("{} holds no export: there is no export.json", self.target);
            return Err(Error::invalid(what)).context(Target);
        };
        plan.refuse_other_source(place)?;
        let exporter = Exporter::open(plan, target, open).await?;
        if self.spec.is_some() || self.scales.is_some() {
            let plan = exporter.plan();
            let asked = self.request(source.to_owned(), open)?;
            let request = Request { emit: plan.emit.clone(), ..asked };
            let wanted = Plan::of(exporter.source(), place, &request, exporter.target())?;
            if wanted.spec != plan.spec {
                let what = format!("{} holds an export with another specification", self.target);
                return Err(Error::invalid(what)).context(Input);
            }
        }
        let watch = context.watch("checking");
        let checked = exporter.check().await?;
        drop(watch);
        context.output.result(&checked, || describe::checked(&self.target, &checked))?;
        match checked.errors() {
            0 => Ok(()),
            errors => Err(Unsound { errors }.into()),
        }
    }
}

impl ArrowArgs {
    fn options(&self) -> ArrowOptions {
        let index = self.index.iter().map(|index| match index {
            IndexArg::Json => IndexKind::Json,
            IndexArg::Csv => IndexKind::Csv,
        });
        let mut index: Vec<IndexKind> = index.collect();
        index.sort_unstable();
        index.dedup();
        ArrowOptions {
            codec: self.codec,
            container: if self.stream { Container::Stream } else { Container::File },
            index,
            batch: self.batch,
            strip_labels: self.strip_labels,
        }
    }
}
