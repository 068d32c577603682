//! What can be typed: the top level, the global options, and how a version is named.

use anyhow::Result;
use chunkyard_array::{ArrayBuilder, ArraySpec, DType, parse_fill};
use chunkyard_engine::Error;
use chunkyard_engine::format::container::ContainerFormat;
use chunkyard_engine::format::{Format, Versions};
use chunkyard_engine::repo::{Repository, Version};
use clap::{Args, Parser};
use serde_json::Value;

use crate::cmd::Command;
use crate::context::Context;
use crate::units::{parse_pair, parse_shape, parse_time};

/// Chunked n-dimensional arrays: under version control, and between formats.
#[derive(Debug, Parser)]
#[command(name = "chunkyard", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  chunkyard demo                                        see all of it on generated data
  chunkyard repo init weather
  chunkyard set weather /t day.npy -m 'first day'       commit a NumPy file
  chunkyard get weather /t -o now.npy --region 0:10,5:20
  chunkyard repo log weather
  chunkyard convert sea.zarr weather --into sea         any format to any other
  chunkyard link /data/sea.nc weather --into sea        the same without copying
  chunkyard info sea.zarr
  chunkyard labels import brain segmentation.npy        a segmentation that people edit
  chunkyard export-shards brain shards                  for analysis and for viewers
  chunkyard serve brain sea.zarr                        over HTTP and Arrow Flight

A place is a path or a URL: file://, memory://, s3://, gs://, az://, http(s)://.
Exit codes: 1 store, 2 argument, 3 not found, 4 conflict, 5 corrupt, 6 not supported.";

/// Options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Print results as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Print nothing but results
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,

    /// A setting of the object store, such as region=eu-west-1 or endpoint=URL; may be repeated
    #[arg(long, global = true, value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub(crate) storage: Vec<(String, String)>,

    /// Read chunks that live outside the repository, below this URL; may be repeated
    #[arg(long, global = true, value_name = "URL_PREFIX")]
    pub(crate) allow: Vec<String>,
}

/// Which version a command looks at; by default the tip of the default branch.
#[derive(Debug, Args)]
pub(crate) struct VersionArgs {
    /// The tip of this branch
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,

    /// The version that this tag names
    #[arg(long, value_name = "NAME", conflicts_with = "branch")]
    tag: Option<String>,

    /// This snapshot, by its id or the beginning of it (at least 4 characters); of a container this
    /// layer, by its number
    #[arg(long, visible_alias = "at", value_name = "ID", conflicts_with_all = ["branch", "tag"])]
    snapshot: Option<String>,

    /// The branch as it was then: 2026-01-31T12:00:00Z, "2026-01-31 12:00" (UTC), or milliseconds
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with_all = ["tag", "snapshot"])]
    as_of: Option<i64>,
}

impl VersionArgs {
    /// The version that the options name.
    pub(crate) async fn version(&self, repo: &Repository) -> Result<Version> {
        Ok(match (&self.branch, &self.tag, &self.snapshot, self.as_of) {
            (_, Some(tag), _, _) => Version::Tag(tag.clone()),
            (_, _, Some(id), _) => Version::Snapshot(id.clone()),
            (branch, _, _, Some(time_ms)) => {
                let branch = branch_or_default(repo, branch.as_deref()).await?;
                Version::AsOf { branch, time_ms }
            }
            (Some(branch), ..) => Version::branch(branch),
            _ => Version::Default,
        })
    }

    /// The version that the options name, at a place of any format; `None` without options.
    pub(crate) async fn of_any(
        &self,
        format: &dyn Format,
        url: &str,
        context: &Context,
    ) -> Result<Option<Version>> {
        let Self { branch, tag, snapshot, as_of } = self;
        if branch.is_none() && tag.is_none() && snapshot.is_none() && as_of.is_none() {
            return Ok(None);
        }
        let refusal = match (format.versions(), snapshot) {
            (Versions::Commits, _) => {
                let repo = Repository::open(url, context.options()).await?;
                return Ok(Some(self.version(&repo).await?));
            }
            (Versions::Layers, Some(layer)) => return Ok(Some(Version::Snapshot(layer.clone()))),
            (Versions::Layers, None) => "whose versions are layers: name one with --snapshot",
            (Versions::One, _) => "of which there is one version only",
        };
        Err(Error::invalid(format!("{url} is {}, {refusal}", format.name())).into())
    }

    /// The layer of a container that the options name.
    pub(crate) async fn layer(&self, url: &str, context: &Context) -> Result<Option<u64>> {
        let Some(Version::Snapshot(typed)) = self.of_any(&ContainerFormat, url, context).await?
        else {
            return Ok(None);
        };
        let number = typed.parse();
        Ok(Some(number.map_err(|_| Error::invalid(format!("{typed:?} is no number of a layer")))?))
    }

    /// The branch to change, for commands that also read older versions.
    pub(crate) fn branch_to_change(&self) -> Result<Option<&str>> {
        if self.tag.is_some() || self.snapshot.is_some() || self.as_of.is_some() {
            let what = "only the newest version can change: name it with --branch, or not at all";
            return Err(Error::invalid(what).into());
        }
        Ok(self.branch.as_deref())
    }
}

/// The named branch, or the default one of the repository.
pub(crate) async fn branch_or_default(repo: &Repository, branch: Option<&str>) -> Result<String> {
    match branch {
        Some(branch) => Ok(branch.to_owned()),
        None => Ok(repo.state().await?.default_branch.clone()),
    }
}

/// Where and how a change is committed.
#[derive(Debug, Default, Args)]
pub(crate) struct CommitArgs {
    /// Commit to this branch of a repository instead of the default one
    #[arg(long, value_name = "NAME")]
    pub(crate) branch: Option<String>,

    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// How a change is committed, for commands whose branch is among the [`VersionArgs`].
#[derive(Debug, Default, Args)]
pub(crate) struct ChangeArgs {
    /// What the commit to a repository does, for people
    #[arg(long, short, value_name = "TEXT")]
    pub(crate) message: Option<String>,

    /// If the branch of a repository moved meanwhile, put the change on top, unless the two collide
    #[arg(long)]
    pub(crate) rebase: bool,

    /// Replace the tip of the branch of a repository instead of adding to it
    #[arg(long)]
    pub(crate) amend: bool,
}

impl ChangeArgs {
    /// Whether any option was given.
    pub(crate) fn any(&self) -> bool {
        self.message.is_some() || self.rebase || self.amend
    }
}

/// Properties of a new array that a file of elements does not give.
#[derive(Debug, Args)]
pub(crate) struct NewArrayArgs {
    /// Chunk shape of a new array, such as 250,250; about 1 MiB if not given
    #[arg(long, value_name = "SHAPE")]
    chunks: Option<String>,

    /// Fill value of a new array, such as 0 or NaN
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    fill: Option<String>,

    /// Dimension names of a new array, such as time,lat,lon
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    dims: Option<Vec<String>>,
}

impl NewArrayArgs {
    /// Whether any option was given.
    pub(crate) fn any(&self) -> bool {
        self.chunks.is_some() || self.fill.is_some() || self.dims.is_some()
    }

    /// A new array of that shape and type.
    pub(crate) fn builder(
        &self,
        shape: &[u64],
        dtype: Value,
        item_size: usize,
    ) -> Result<ArrayBuilder> {
        let chunks = match &self.chunks {
            Some(text) => parse_shape(text)?,
            None => chunkyard_array::guess_chunks(shape, item_size),
        };
        let mut builder = ArraySpec::builder(shape, &chunks, dtype.clone());
        if let Some(fill) = &self.fill {
            builder = builder.fill_value(parse_fill(&DType::parse(&dtype)?, fill)?);
        }
        if let Some(names) = &self.dims {
            builder = builder.dimension_names(names.iter().cloned());
        }
        Ok(builder)
    }
}
