//! A segmentation as shards: Arrow files for analysis and a volume for Neuroglancer, in one bounded pass.
//!
//! ```text
//!  Request ──▶ Plan ──▶ Exporter ──┬─ shards     which shards hold anything, listed lazily
//!              export.json         ├─ run_shard  one shard: fetch ▶ unpack ▶ map ▶ compress ▶ files ▶ Line
//!                                  ├─ rows       one shard as rows for a caller, without files
//!                                  ├─ run        all of them, several at a time, resumable
//!                                  └─ check      what is there, against what must be there
//! ```
//!
//! - `segmentation` finds the scales in a source, `spec` the volume to write, `geometry` how the two lie to each other.
//! - A [`Shard`] is a box of blocks in one file, the unit of work, of resume and of distribution: another process opens the
//!   same [`Plan`] and writes any shard of it.
//! - `segments` lists the bodies of a labelmap for the volume.
//! - `blocks` gives label blocks in any order: those that are stored as such lose their outer compression and are looked at no
//!   further than their table of labels.
//! - A [`Line`] tells of a finished shard. It is written after the shard is durable, so what has a line is done.
//!
//! Nothing is ever appended to a shard, and none has its name before it is complete. docs/export.md is the walk,
//! docs/formats/arrow-shards.md the files.

mod arrow;
mod blocks;
mod budget;
mod cells;
mod check;
mod exporter;
mod files;
mod geometry;
mod held;
mod lines;
mod plan;
mod progress;
mod report;
mod rows;
mod run;
mod segmentation;
mod segments;
mod shards;
mod spec;
mod stripped;
mod table;
mod volume;

pub use arrow::{ArrowOptions, Codec, Container, IndexKind, schema};
pub use blocks::{BlockPlace, LabelBlock};
pub use check::{Checked, Difference, ShardName};
pub use exporter::Exporter;
pub use files::NewFile;
pub use geometry::Level;
pub use lines::{LINES, Line, Lines, Sizes, Spread};
pub use plan::{Emit, PLAN, Plan, Request, SPEC};
pub use progress::{Progress, Reached};
pub use report::{LOG, Report, ScaleReport, Totals};
pub use rows::{BlockRow, BlockRows};
pub use shards::{Shard, Shards};
pub use stripped::{join_labels, split_labels};
