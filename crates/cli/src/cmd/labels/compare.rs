//! `chunkyard labels diff`, `merge`, `blame` and `log`: versions, in bodies.

use anyhow::Result;
use chunkyard_engine::labels::{
    Author, BodyChange, LabelDiff, Mutation, Resolution, Side, diff, merge_branch,
};
use chunkyard_engine::repo::Version;
use clap::Args;
use futures::TryStreamExt;
use serde_json::json;

use super::Place;
use crate::args::{VersionArgs, branch_or_default};
use crate::context::Context;
use crate::output::{Output, columns};
use crate::units::{count, short, time};

/// Compare two versions, in bodies
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard labels diff brain v1 main
  chunkyard labels diff brain v1 main --blocks          body,z,y,x of what to do again")]
pub(crate) struct Diff {
    #[command(flatten)]
    place: Place,

    /// A branch, a tag, or a snapshot's id or the beginning of it
    from: String,

    /// The same
    to: String,

    /// Print only the blocks in which bodies differ, as CSV
    #[arg(long)]
    blocks: bool,
}

impl Diff {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let repo = self.place.open(context).await?;
        let named = |name: &str| Version::Named(name.to_owned());
        let (from, to) = (named(&self.from), named(&self.to));
        let path = self.place.group(&repo.readonly_session(&to).await?).await?;
        let found = diff(&repo, &from, &to, &path).await?;
        if self.blocks && !context.output.is_json() {
            let row = |(body, [z, y, x]): &(u64, [u32; 3])| format!("{body},{z},{y},{x}\n");
            let rows: String = found.blocks.iter().map(row).collect();
            return context.output.text(&format!("body,z,y,x\n{rows}"));
        }
        context.output.result(&found, || describe(&found, context.output))
    }
}

/// One line per body that differs.
pub(crate) fn describe(diff: &LabelDiff, output: Output) -> String {
    if diff.is_empty() {
        return "no difference\n".into();
    }
    let mut lines = Vec::new();
    let sizes =
        |body: &BodyChange| format!("{} → {} voxels", body.voxels_before, body.voxels_after);
    for body in &diff.appeared {
        let text = format!("+ body {}: {} voxels", body.body, body.voxels_after);
        lines.push(output.green(&text));
    }
    for body in &diff.vanished {
        lines.push(output.red(&format!("- body {}: {} voxels", body.body, body.voxels_before)));
    }
    for body in diff.grown.iter().chain(&diff.shrunk) {
        lines.push(format!("~ body {}: {}", body.body, sizes(body)));
    }
    for body in &diff.changed {
        lines.push(format!("~ body {}: {} voxels, edited", body.body, body.voxels_after));
    }
    for body in &diff.renamed {
        lines.push(format!("> body {} is now {}", body.was.unwrap_or(0), body.body));
    }
    let (mutations, blocks) = (diff.mutations.len() as u64, diff.blocks.len() as u64);
    lines.push(format!("{}, {} concerned", count(mutations, "mutation"), count(blocks, "block")));
    lines.join("\n")
}

/// Bring the edits of another branch into one
///
/// Edits of different bodies come together. Where both branches edited the same body, say whose edits stay:
/// the decision counts for all bodies that were edited together with it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard labels merge brain alice
  chunkyard labels merge brain alice --theirs 17 --ours 23")]
pub(crate) struct Merge {
    #[command(flatten)]
    place: Place,

    /// The branch, tag or snapshot whose edits come in
    theirs: String,

    /// Merge into this branch instead of the default one
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,

    /// Keep our edits of this body; may be repeated
    #[arg(long, value_name = "BODY")]
    ours: Vec<u64>,

    /// Take their edits of this body; may be repeated
    #[arg(long = "theirs", value_name = "BODY")]
    their_bodies: Vec<u64>,

    /// Keep our edits of all bodies that both edited
    #[arg(long, conflicts_with = "theirs_all")]
    ours_all: bool,

    /// Take their edits of all bodies that both edited
    #[arg(long)]
    theirs_all: bool,

    /// What the commit does, for people
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
}

impl Merge {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let repo = self.place.open(context).await?;
        let branch = branch_or_default(&repo, self.branch.as_deref()).await?;
        let path = self.place.group_on(&repo, &branch).await?;
        let others = match (self.ours_all, self.theirs_all) {
            (true, _) => Some(Side::Ours),
            (_, true) => Some(Side::Theirs),
            _ => None,
        };
        let mut resolution = Resolution { others, ..Resolution::default() };
        resolution.bodies.extend(self.ours.iter().map(|body| (*body, Side::Ours)));
        resolution.bodies.extend(self.their_bodies.iter().map(|body| (*body, Side::Theirs)));
        let message = self.message.clone();
        let note = message.unwrap_or_else(|| format!("merge {} into {branch}", self.theirs));
        let author = Author { user: String::new(), note };
        let theirs = Version::Named(self.theirs.clone());
        context.settles();
        let joined = merge_branch(&repo, &branch, &theirs, &path, &resolution, &author).await?;
        context.output.done(&joined, || match &joined.snapshot {
            None => format!("{branch} has all edits of {} already", self.theirs),
            Some(snapshot) => format!(
                "{} came over, {} left out, {} of {branch} given up; {} bodies changed ({})",
                count(joined.taken.len() as u64, "edit"),
                joined.left_out.len(),
                joined.given_up.len(),
                joined.bodies.len(),
                short(snapshot)
            ),
        })
    }
}

/// Show which edits, in which commits, decided where a supervoxel belongs
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard labels blame brain 1023")]
pub(crate) struct Blame {
    #[command(flatten)]
    place: Place,

    /// The supervoxel
    supervoxel: u64,

    #[command(flatten)]
    version: VersionArgs,
}

impl Blame {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let map = self.place.at(&self.version, context).await?;
        let found = map.blame(self.supervoxel).await?;
        let mut commits = Vec::with_capacity(found.len());
        for (mutation, ..) in &found {
            let commit = map.commit_of(mutation.mutation).await?;
            commits.push(commit.map(|commit| commit.snapshot_id.clone()));
        }
        let step = |((mutation, before, after), commit): (
            &(Mutation, u64, u64),
            &Option<String>,
        )| {
            json!({"mutation": mutation, "before": before, "after": after, "commit": commit})
        };
        let document: Vec<_> = found.iter().zip(&commits).map(step).collect();
        context.output.result(&document, || {
            if found.is_empty() {
                return format!("supervoxel {} was never edited\n", self.supervoxel);
            }
            let row =
                |((mutation, before, after), commit): (&(Mutation, u64, u64), &Option<String>)| {
                    let mut row = cells(mutation);
                    row.insert(1, format!("body {before} → {after}"));
                    let commit = commit.as_deref().map_or("unknown", short);
                    row.insert(2, format!("in {commit}"));
                    row
                };
            columns(&found.iter().zip(&commits).map(row).collect::<Vec<_>>())
        })
    }
}

/// List edits, newest first
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard labels log brain -n 20")]
pub(crate) struct Log {
    #[command(flatten)]
    place: Place,

    /// How many
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 50)]
    limit: usize,

    #[command(flatten)]
    version: VersionArgs,
}

impl Log {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let map = self.place.at(&self.version, context).await?;
        let mut kept: std::collections::VecDeque<Mutation> = Default::default();
        let mut batches = map.mutations(0)?;
        while let Some(batch) = batches.try_next().await? {
            kept.extend(batch);
            kept.drain(..kept.len().saturating_sub(self.limit));
        }
        let newest: Vec<Mutation> = kept.into_iter().rev().collect();
        context.output.result(&newest, || {
            if newest.is_empty() {
                return "no edits\n".into();
            }
            columns(&newest.iter().map(cells).collect::<Vec<_>>())
        })
    }
}

/// A mutation as cells of a line.
fn cells(mutation: &Mutation) -> Vec<String> {
    let bodies: Vec<String> = mutation.bodies.iter().take(6).map(u64::to_string).collect();
    let more = if mutation.bodies.len() > 6 { " …" } else { "" };
    vec![
        mutation.mutation.to_string(),
        mutation.kind.name().to_owned(),
        format!("bodies {}{more}", bodies.join(" ")),
        time(mutation.time_ms),
        mutation.user.clone(),
        mutation.note.clone(),
    ]
}
