//! `chunkyard convert`: any format to any format.

mod describe;
mod dvid;
mod job;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use chunkyard_engine::Meter;
use chunkyard_engine::format::{CreateOptions, Place};
use chunkyard_engine::labels::Ids;
use chunkyard_engine::pipeline::{Conversion, Origin, Request, RunOptions, Wishes};
use chunkyard_engine::store::Limits;
use clap::{Args, ValueEnum};

use self::describe::Sides;
use crate::args::VersionArgs;
use crate::context::Context;
use crate::failure::{Target, Unsound};
use crate::progress::Watch;
use crate::units::{parse_shape, parse_size};

/// Convert arrays from any format to any other
///
/// The source's format is recognised by its content. The target's format follows from existing data
/// at that place, or from its name: .zarr is plain Zarr, .repo a repository, .blz superchunks, .blp a
/// single Bloscpack file of one array. The target appears when it is complete. The same command, run
/// again, continues an interrupted conversion.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard convert sea.zarr sea.repo                         into a repository, one commit
  chunkyard convert sea.repo out.zarr --tag v1 --array /ocean/temperature
  chunkyard convert in.zarr out.zarr --chunks 64,64,64 --shards 512,512,512 --codec zstd:3
  chunkyard convert in.zarr s3://bucket/out.zarr --dtype float32 --lossy rounding --verify
  chunkyard convert in.zarr/ocean out.blp                     one array, a single Bloscpack file
  chunkyard convert brain.repo bodies.zarr --array /labels/s0 --ids bodies
  chunkyard convert 'dvid+badger:///data/badger?uuid=28841c' brain.repo --versions all
  chunkyard convert in.zarr out.zarr --job jobs/one           many processes: chunkyard work jobs/one
  chunkyard convert in.zarr out.zarr --region 0:10,: --dry-run")]
pub(crate) struct Convert {
    /// What to convert
    source: String,

    /// Where to
    target: String,

    #[command(flatten)]
    wished: Wished,

    #[command(flatten)]
    version: VersionArgs,

    #[command(flatten)]
    written: Written,

    #[command(flatten)]
    shared: job::Shared,

    #[command(flatten)]
    machine: Machine,

    /// Versions of DVID's store to import into a repository: all, or UUIDs separated by commas [default: the
    /// version that the URL names]
    #[arg(long, value_name = "all|UUID,…")]
    versions: Option<String>,

    /// Print what would be done, and touch nothing
    #[arg(long)]
    dry_run: bool,
}

/// What the target is to hold.
#[derive(Debug, Args)]
struct Wished {
    /// Only this array, or all in this group; may be repeated
    #[arg(long = "array", value_name = "PATH")]
    arrays: Vec<String>,

    /// Only this box of each array: start:end per dimension, negative from the end
    #[arg(long, value_name = "REGION", allow_hyphen_values = true)]
    region: Option<String>,

    /// Chunk shape, such as 64,64,64; by default as in the source
    #[arg(long, value_name = "SHAPE")]
    chunks: Option<String>,

    /// Shard shape, such as 512,512,512, or none; by default as in the source
    #[arg(long, value_name = "SHAPE|none")]
    shards: Option<String>,

    /// Codecs: none, zstd:3, gzip:5, blosc:lz4:5:shuffle, zstd:3+crc32c
    #[arg(long, value_name = "CODEC")]
    codec: Option<String>,

    /// Data type, such as float32; every value must fit it exactly
    #[arg(long, value_name = "NAME")]
    dtype: Option<String>,

    /// Labels of a segmentation: the bodies of the version, or the supervoxels as stored
    #[arg(long, value_name = "IDS", value_enum)]
    ids: Option<IdsArg>,

    /// The same as --ids supervoxels
    #[arg(long, conflicts_with = "ids")]
    supervoxels: bool,

    /// Accept this loss, by the name that the refusal gives it; may be repeated
    #[arg(long, value_name = "NAME")]
    lossy: Vec<String>,

    /// Put everything into this group of the target
    #[arg(long, value_name = "GROUP")]
    into: Option<String>,
}

/// Which labels the voxels of a segmentation have.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum IdsArg {
    /// Bodies at the version that is read
    Bodies,
    /// Supervoxels, as they are stored
    Supervoxels,
}

impl From<IdsArg> for Ids {
    fn from(ids: IdsArg) -> Self {
        match ids {
            IdsArg::Bodies => Self::Bodies,
            IdsArg::Supervoxels => Self::Supervoxels,
        }
    }
}

/// How the target is written.
#[derive(Debug, Args)]
struct Written {
    /// Format of the target, where its name does not tell
    #[arg(long, value_name = "FORMAT")]
    to: Option<String>,

    /// Replace existing data, once the new data is complete
    #[arg(long)]
    overwrite: bool,

    /// Begin anew, without the work of an interrupted conversion to the same target
    #[arg(long)]
    restart: bool,

    /// Read everything back and compare it with the source before it becomes visible
    #[arg(long)]
    verify: bool,

    /// Leave chunks out that cannot be read, list them, and end with exit code 5
    #[arg(long, conflicts_with = "verify")]
    skip_corrupt: bool,

    /// Branch of a repository to commit to, instead of the default one
    #[arg(long, value_name = "NAME")]
    to_branch: Option<String>,

    /// Message of the commit to a repository
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
}

/// How much of the machine may be used.
#[derive(Debug, Args)]
pub(super) struct Machine {
    /// Memory to stay within
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_size)]
    memory: u64,

    /// Threads that decode and encode; one per core if not given
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// Requests to a store at a time
    #[arg(long, value_name = "N")]
    requests: Option<NonZeroUsize>,
}

impl Convert {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let began = Instant::now();
        let limits = self.machine.apply()?;
        let wishes = self.wished.wishes()?;
        let (place, format, mut open) = context.recognise(&self.source, limits).await?;
        open.version = self.version.of_any(format, &self.source, context).await?;
        open.skip_corrupt = self.written.skip_corrupt;
        let target = Place::new(&self.target, &open.store)?;
        let named = self.written.to.clone();
        let asked = Request { to: named, ..Request::default() };
        let to = asked.target_format(&target).await.context(Target)?;
        context.writes_to(&self.target, to);
        if self.is_import(format.name(), to.name()) {
            self.shared.refuse("an import of DVID's versions")?;
            return dvid::run(self, limits, context).await;
        }
        self.refuse_versions(&target)?;
        let source = context.open_source(&place, format, &open).await?;
        let read = source.clone();
        let request = Request {
            source: self.source.clone(),
            target: self.target.clone(),
            open,
            to: self.written.to.clone(),
            wishes,
        };
        let origin = Origin { place, format, source };
        let conversion = Conversion::between(request, origin, target, to).await?;
        let (plan, create) = (&conversion.plan, self.written.create_options());
        conversion.check(&create).context(Target)?;
        plan.check(&limits)?;
        let sides = Sides { source: (&self.source, format), target: (&self.target, to) };
        if self.dry_run {
            let document = describe::document(&sides, plan, None);
            return context
                .output
                .result(&document, || describe::plan(&sides, plan, context.output));
        }

        if let Some(job) = &self.shared.job {
            return self
                .shared
                .make(job, &conversion, create, &self.written, limits, context)
                .await;
        }
        let sink = conversion.create(create).await.context(Target)?;
        context.resumable();
        let meter = Arc::new(Meter::default());
        let watch = Watch::new("converting", meter.clone(), context.output.talks());
        let (verify, skip_corrupt) = (self.written.verify, self.written.skip_corrupt);
        let run_options = RunOptions { limits, verify, skip_corrupt, meter };
        let outcome = conversion.fill(sink, &run_options).await?;
        drop(watch);
        let left_out = read.left_out();
        let done = describe::Done {
            outcome: &outcome,
            left_out: &left_out,
            time: began.elapsed(),
            verified: self.written.verify,
        };
        let document = describe::document(&sides, plan, Some(&done));
        context.output.done(&document, || describe::summary(&sides, plan, &done))?;
        for damaged in &outcome.damaged {
            let (array, chunk, error) = (&damaged.array, &damaged.chunk, &damaged.error);
            context.output.warn(&format!("left out: chunk {chunk:?} of {array}: {error}"));
        }
        dvid::list_parts(&left_out, context);
        match outcome.damaged.len() + left_out.len() {
            0 => Ok(()),
            errors => Err(Unsound { errors }.into()),
        }
    }
}

impl Wished {
    /// The options, as the engine takes them.
    fn wishes(&self) -> Result<Wishes> {
        let shards = match self.shards.as_deref() {
            None => None,
            Some("none") => Some(None),
            Some(text) => Some(Some(parse_shape(text)?)),
        };
        Ok(Wishes {
            arrays: self.arrays.clone(),
            region: self.region.clone(),
            chunks: self.chunks.as_deref().map(parse_shape).transpose()?,
            shards,
            codec: self.codec.clone(),
            dtype: self.dtype.clone(),
            ids: match self.supervoxels {
                true => Some(Ids::Supervoxels),
                false => self.ids.map(Ids::from),
            },
            lossy: self.lossy.iter().cloned().collect(),
            into: self.into.clone().unwrap_or_default(),
            ..Wishes::default()
        })
    }
}

impl Written {
    fn create_options(&self) -> CreateOptions {
        CreateOptions {
            overwrite: self.overwrite,
            // What an earlier attempt left out is not known.
            restart: self.restart || self.skip_corrupt,
            message: self.message.clone(),
            branch: self.to_branch.clone(),
            ..CreateOptions::default()
        }
    }
}

impl Machine {
    /// The limits. The limit on threads holds for the whole process.
    pub(super) fn apply(&self) -> Result<Limits> {
        let mut limits = Limits {
            bytes_in_flight: usize::try_from(self.memory).unwrap_or(usize::MAX),
            ..Limits::default()
        };
        if let Some(threads) = self.threads {
            limits.threads = threads.get();
            limits.packs_in_flight = threads.get().saturating_mul(2);
            rayon::ThreadPoolBuilder::new().num_threads(threads.get()).build_global()?;
        }
        if let Some(requests) = self.requests {
            limits.requests = requests.get();
        }
        Ok(limits)
    }
}
