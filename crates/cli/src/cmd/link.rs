//! `chunkyard link`: existing data under version control, by reference.

use anyhow::{Context as _, Result};
use chunkyard_engine::format::{CreateOptions, Node, Place};
use chunkyard_engine::pipeline::{Linked, Wishes, link, stem};
use chunkyard_engine::repo::RepoFormat;
use chunkyard_engine::store::Limits;
use clap::Args;
use serde_json::json;

use crate::args::VersionArgs;
use crate::context::Context;
use crate::failure::Target;
use crate::units::{count, short, size};

/// Put existing data under version control without copying it
///
/// Each chunk of the source becomes a reference to its place, in one commit. Readers of the
/// repository must allow that place, with --allow. A source that changed since is an error, never
/// old or mixed data.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard link /data/sea.zarr weather                   all arrays of a Zarr hierarchy
  chunkyard link s3://archive/2024.nc weather --into 2024 a NetCDF file, under a group of its own
  chunkyard repo get weather /2024/t -o t.npy --allow s3://archive")]
pub(crate) struct Link {
    /// What to link
    source: String,

    /// The repository, which is created if there is none
    repo: String,

    /// Only this array, or all in this group; may be repeated
    #[arg(long = "array", value_name = "PATH")]
    arrays: Vec<String>,

    /// Put everything into this group of the repository
    #[arg(long, value_name = "GROUP")]
    into: Option<String>,

    /// Accept this loss, by the name that the refusal gives it; may be repeated
    #[arg(long, value_name = "NAME")]
    lossy: Vec<String>,

    /// Replace existing arrays
    #[arg(long)]
    overwrite: bool,

    #[command(flatten)]
    version: VersionArgs,

    /// Branch to commit to, instead of the default one
    #[arg(long, value_name = "NAME")]
    to_branch: Option<String>,

    /// What the commit does, for people
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
}

impl Link {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let (place, format, mut options) =
            context.recognise(&self.source, Limits::default()).await?;
        options.version = self.version.of_any(format, &self.source, context).await?;
        let source = format.open(&place, &options).await?;
        let is_array = matches!(source.dataset().nodes.get("/"), Some(Node::Array(_)));
        let name = if is_array { stem(&self.source) } else { "" };
        let wishes = Wishes {
            arrays: self.arrays.clone(),
            into: self.into.clone().unwrap_or_default(),
            lossy: self.lossy.iter().cloned().collect(),
            ..Wishes::default()
        };
        let message = self.message.clone().unwrap_or_else(|| format!("link {}", self.source));
        let create = CreateOptions {
            store: options.store.clone(),
            overwrite: self.overwrite,
            message: Some(message),
            branch: self.to_branch.clone(),
            ..CreateOptions::default()
        };
        let repo = Place::new(&self.repo, &options.store)?;
        context.writes_to(&self.repo, &RepoFormat);
        let watch = context.watch("linking");
        let meter = context.options().meter;
        let linked =
            link(&source, &place, &repo, &wishes, name, create, &meter).await.context(Target)?;
        drop(watch);
        let allow = source.fetcher().store().object_url("");
        context.output.done(&self.document(&linked, &allow), || self.summary(&linked, &allow))
    }

    fn document(&self, linked: &Linked, allow: &str) -> serde_json::Value {
        json!({
            "source": self.source,
            "repository": self.repo,
            "arrays": linked.arrays,
            "references": linked.chunks,
            "bytes": linked.bytes,
            "copied-chunks": linked.copied.0,
            "copied-bytes": linked.copied.1,
            "snapshot": linked.published.snapshot,
            "allow": allow,
        })
    }

    fn summary(&self, linked: &Linked, allow: &str) -> String {
        let mut text = format!(
            "linked {} of {}: {} to {}",
            count(linked.arrays, "array"),
            self.source,
            count(linked.chunks, "reference"),
            size(linked.bytes)
        );
        if linked.copied.0 > 0 {
            text.push_str(&format!(
                ", and {} copied, {}",
                count(linked.copied.0, "small chunk"),
                size(linked.copied.1)
            ));
        }
        if let Some(snapshot) = &linked.published.snapshot {
            text.push_str(&format!(", commit {}", short(snapshot)));
        }
        format!("{text}\nread it with --allow {allow}")
    }
}
