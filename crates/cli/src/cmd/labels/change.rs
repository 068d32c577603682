//! The commands that edit: each is one commit, `edit` many edits in one.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use chunkyard_engine::labels::{Author, Edit, Runs, commit_edits};
use chunkyard_engine::{Error, Noun};
use clap::Args;
use serde_json::json;

use super::import::read_pairs;
use super::{Place, parse_three};
use crate::args::branch_or_default;
use crate::context::Context;
use crate::npy;
use crate::units::short;

/// Where an edit goes, by whom it is and why.
#[derive(Debug, Args)]
pub(super) struct EditArgs {
    /// Commit to this branch instead of the default one
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,

    /// What the commit does, for people [default: what the edit does]
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,

    /// By whom, for the log of mutations [default: $USER]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// Why, for the log of mutations
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,
}

impl EditArgs {
    async fn commit(
        &self,
        place: &Place,
        edits: &[Edit],
        default: String,
        context: &Context,
    ) -> Result<()> {
        let repo = place.open(context).await?;
        let branch = branch_or_default(&repo, self.branch.as_deref()).await?;
        let path = place.group_on(&repo, &branch).await?;
        let user = self.user.clone().or_else(|| std::env::var("USER").ok()).unwrap_or_default();
        let author = Author { user, note: self.note.clone() };
        let message = self.message.clone().unwrap_or(default);
        let (mutations, snapshot) =
            commit_edits(&repo, &branch, &path, edits, &author, &message).await?;
        let id = &snapshot.snapshot_id;
        let document = json!({"snapshot": id, "branch": branch, "mutations": mutations});
        context.output.done(&document, || {
            let mut lines = Vec::new();
            for mutation in &mutations {
                let made = match mutation.other {
                    0 => String::new(),
                    other => format!(" → {other}"),
                };
                let (kind, number) = (mutation.kind.name(), mutation.mutation);
                lines.push(format!("{kind} {}{made}: mutation {number}", mutation.body));
            }
            lines.push(format!("{message} ({})", short(id)));
            lines.join("\n")
        })
    }
}

/// Make bodies part of another one
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard labels merge-bodies brain 17 23 42")]
pub(crate) struct MergeBodies {
    #[command(flatten)]
    place: Place,

    /// The body that stays
    target: u64,

    /// The bodies that go into it
    #[arg(required = true)]
    bodies: Vec<u64>,

    #[command(flatten)]
    edit: EditArgs,
}

impl MergeBodies {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let edit = Edit::Merge { target: self.target, bodies: self.bodies.clone() };
        let message = format!("merge {} into body {}", listed(&self.bodies), self.target);
        self.edit.commit(&self.place, &[edit], message, context).await
    }
}

/// Take supervoxels out of a body; they become one of their own
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard labels cleave brain 17 1023 1044")]
pub(crate) struct Cleave {
    #[command(flatten)]
    place: Place,

    /// The body
    body: u64,

    /// The supervoxels that leave it
    #[arg(required = true)]
    supervoxels: Vec<u64>,

    /// The id of the new body [default: chosen]
    #[arg(long, value_name = "ID")]
    new_body: Option<u64>,

    #[command(flatten)]
    edit: EditArgs,
}

impl Cleave {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let edit = Edit::Cleave {
            body: self.body,
            supervoxels: self.supervoxels.clone(),
            new_body: self.new_body,
        };
        let message = format!("cleave {} from body {}", listed(&self.supervoxels), self.body);
        self.edit.commit(&self.place, &[edit], message, context).await
    }
}

/// Voxels that are cut out.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct VoxelArgs {
    /// A .npy file of bool or uint8, true where voxels are cut out; see --at
    #[arg(long, value_name = "FILE", conflicts_with = "rle")]
    mask: Option<PathBuf>,

    /// Where the first voxel of the mask is: z,y,x
    #[arg(long, value_name = "Z,Y,X", default_value = "0,0,0", value_parser = parse_three::<u64>)]
    at: [u64; 3],

    /// The runs of a sparse volume in DVID's form
    #[arg(long, value_name = "FILE")]
    rle: Option<PathBuf>,
}

impl VoxelArgs {
    fn read(&self) -> Result<Runs> {
        if let Some(file) = &self.rle {
            return Ok(Runs::parse_dvid(&read_file(file)?)?);
        }
        let Some(file) = &self.mask else {
            return Err(Error::invalid("name the voxels with --mask or --rle").into());
        };
        let mut reader = npy::Reader::open(file)?;
        let header = reader.header();
        let (name, shape) = (header.dtype.name().to_owned(), header.shape.clone());
        let three = <[u64; 3]>::try_from(shape.as_slice());
        let (Ok(three), "bool" | "uint8") = (three, name.as_str()) else {
            return Err(Error::invalid(format!(
                "{}: a mask has the axes z, y, x and the type bool or uint8, not {name} {shape:?}",
                file.display()
            ))
            .into());
        };
        let mask: Vec<bool> =
            reader.read_slab(&shape)?.into_iter().map(|value| value != 0).collect();
        Ok(Runs::of_mask(self.at, three, &mask)?)
    }
}

/// Cut a supervoxel in two; both stay in its body
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  chunkyard labels split-supervoxel brain 1023 --mask half.npy --at 64,0,128"
)]
pub(crate) struct SplitSupervoxel {
    #[command(flatten)]
    place: Place,

    /// The supervoxel
    supervoxel: u64,

    #[command(flatten)]
    voxels: VoxelArgs,

    /// The id of what is cut out [default: chosen]
    #[arg(long, value_name = "ID")]
    part: Option<u64>,

    /// The id of what is left [default: chosen]
    #[arg(long, value_name = "ID")]
    rest: Option<u64>,

    #[command(flatten)]
    edit: EditArgs,
}

impl SplitSupervoxel {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let edit = Edit::SplitSupervoxel {
            supervoxel: self.supervoxel,
            voxels: self.voxels.read()?,
            part: self.part,
            rest: self.rest,
        };
        let message = format!("split supervoxel {}", self.supervoxel);
        self.edit.commit(&self.place, &[edit], message, context).await
    }
}

/// Cut voxels out of a body; they become one of their own
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard labels split-body brain 17 --rle wrong.rle")]
pub(crate) struct SplitBody {
    #[command(flatten)]
    place: Place,

    /// The body
    body: u64,

    #[command(flatten)]
    voxels: VoxelArgs,

    /// The id of the new body [default: chosen]
    #[arg(long, value_name = "ID")]
    new_body: Option<u64>,

    #[command(flatten)]
    edit: EditArgs,
}

impl SplitBody {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let edit = Edit::SplitBody {
            body: self.body,
            voxels: self.voxels.read()?,
            new_body: self.new_body,
            halves: Vec::new(),
        };
        let message = format!("split body {}", self.body);
        self.edit.commit(&self.place, &[edit], message, context).await
    }
}

/// Give a body another id
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard labels renumber brain 17 1000017")]
pub(crate) struct Renumber {
    #[command(flatten)]
    place: Place,

    /// The id it has
    body: u64,

    /// The id it gets
    new_body: u64,

    #[command(flatten)]
    edit: EditArgs,
}

impl Renumber {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let edit = Edit::Renumber { body: self.body, new_body: self.new_body };
        let message = format!("renumber body {} to {}", self.body, self.new_body);
        self.edit.commit(&self.place, &[edit], message, context).await
    }
}

/// Give many supervoxels to bodies
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard labels map brain agglomeration.csv")]
pub(crate) struct Map {
    #[command(flatten)]
    place: Place,

    /// A CSV file with lines supervoxel,body
    file: PathBuf,

    #[command(flatten)]
    edit: EditArgs,
}

impl Map {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let mapping = read_pairs(&self.file)?;
        let message = format!("map {} supervoxels", mapping.len());
        self.edit.commit(&self.place, &[Edit::Map { mapping }], message, context).await
    }
}

/// Make many edits as one commit
///
/// Each line of the file is an edit as JSON, such as {"edit": "renumber", "body": 17, "new_body": 23}. All of
/// them are committed, or none.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard labels edit brain session.jsonl -m 'monday'")]
pub(crate) struct EditFile {
    #[command(flatten)]
    place: Place,

    /// The file, one edit a line
    file: PathBuf,

    #[command(flatten)]
    edit: EditArgs,
}

impl EditFile {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let text = String::from_utf8_lossy(&read_file(&self.file)?).into_owned();
        let mut edits: Vec<Edit> = Vec::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            edits.push(serde_json::from_str(line).map_err(|error| {
                let (name, line) = (self.file.display(), number + 1);
                Error::invalid(format!("{name}: line {line} is no edit: {error}"))
            })?);
        }
        let message = format!("{} edits", edits.len());
        self.edit.commit(&self.place, &edits, message, context).await
    }
}

/// Undo an edit, if no later one decided about the same supervoxels
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard labels revert brain 185622338212345")]
pub(crate) struct Revert {
    #[command(flatten)]
    place: Place,

    /// The mutation, as `labels log` shows it
    mutation: u64,

    #[command(flatten)]
    edit: EditArgs,
}

impl Revert {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let edit = Edit::Revert { mutation: self.mutation };
        let message = format!("revert mutation {}", self.mutation);
        self.edit.commit(&self.place, &[edit], message, context).await
    }
}

fn read_file(file: &Path) -> Result<Vec<u8>> {
    let name = file.display().to_string();
    Ok(fs::read(file).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::NotFound { what: Noun::File, name },
        _ => Error::store("read", name, error),
    })?)
}

/// A few ids, and how many there are if there are many.
fn listed(ids: &[u64]) -> String {
    match ids {
        [_, _, _, _, ..] => format!("{} ids", ids.len()),
        few => few.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    }
}
