//! A segmentation under version control: supervoxels, the bodies they belong to, and every edit.
//!
//! A segmentation is a volume of supervoxel ids that rarely change, and a mapping from supervoxels to
//! bodies that changes all day while people proofread.
//!
//! ```text
//!  voxels ──▶ supervoxel ──mapping at a version──▶ body
//!  label blocks, array::codec      Mapping                ▲
//!                                                         │ Replay
//!                                  a DVID's mutation logs ┘
//! ```
//!
//! - [`Mapping`] is the mapping of one version in memory: immutable, sorted, shared by all threads.
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

pub mod dvid_log;
mod mapping;

pub use mapping::{Mapping, MappingBuilder};
