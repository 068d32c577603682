//! A segmentation under version control: supervoxels, the bodies they belong to, and every edit.
//!
//! A segmentation is a volume of supervoxel ids that rarely change, and a mapping from supervoxels to
//! bodies that changes all day while people proofread.
//!
//! ```text
//!  voxels ──▶ supervoxel ──mapping at a version──▶ body
//!  s0, s1, …                mapping                bodies, supervoxels   what there is, how large, where
//!  label blocks                                    index                 which body is in which block
//!                                                  mutations, history    who decided it, and when
//! ```
//!
//! All of it is one group of a [repository](chunkyard_repo): arrays and tables that change together, in one
//! commit. Versions, branches and tags are the repository's.
//!
//! - [`Labelmap`] is that group in a session: import, questions, edits.
//! - [`Edit`] is what people do: merge, cleave, split, renumber. [`commit_edits`] does it as one commit.
//! - [`diff`] compares two versions body by body, [`merge_branch`] brings two branches of edits together.
//! - [`Mapping`] is the mapping of one version in memory: immutable, sorted, shared by all threads.
//! - [`dvid`] imports a labelmap of a DVID store, with all of its versions.
//! - [`dvid_log`] reads the mutation logs of a DVID server and says what they do to the mapping.
//!
//! ```
//! use chunkyard_labels::Mapping;
//!
//! let mapping = Mapping::from_sorted(vec![4, 7, 9], vec![4, 4, 0])?;
//! assert_eq!(mapping.body(7), 4);      // merged into body 4
//! assert_eq!(mapping.body(9), 0);      // retired by a split
//! assert_eq!(mapping.body(5), 5);      // never edited: a body of its own
//! # Ok::<(), chunkyard_store::Error>(())
//! ```

#![forbid(unsafe_code)]

mod binary_blocks;
mod blocks;
mod diff;
pub mod dvid;
pub mod dvid_log;
mod edit;
mod import;
mod join;
mod labelmap;
mod layout;
mod line;
mod mapping;
mod query;
mod rows;
mod runs;
mod streams;
mod tiles;
mod verify;

pub use diff::{BodyChange, LabelDiff, diff};
pub use edit::{Author, Edit, commit_edits};
pub use import::{ArrayVolume, Imported, Volume, widen};
pub use join::{Joined, Resolution, Side, merge_branch};
pub use labelmap::Labelmap;
pub use layout::{Layout, TABLES};
pub use mapping::{Mapping, MappingBuilder};
pub use query::Ids;
pub use rows::{Body, Bounds, Kind, Mutation, Supervoxel};
pub use runs::{Run, Runs};
pub use streams::{BodyBlock, MappingPairs};
pub use verify::Verified;
