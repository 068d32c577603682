//! From DVID's store into a labelmap: every version a commit, every branch a branch.
//!
//! ```text
//!  DVID                                         labelmap
//!  blocks of a version, all scales      ──▶     chunks, the very label blocks
//!  mutation logs of its first parents   ──▶     mapping, mutations, history
//!  blocks and mapping, counted          ──▶     index, bodies, supervoxels
//!  label indices                        ──▶     compared with these, and nothing else
//! ```
//!
//! A version writes only what differs from the one it continues. Nothing is visible until all versions are
//! imported.

mod import;
mod logs;
mod version;

pub use self::import::{
    DamagedBlock, ImportOptions, ImportReport, ImportedVersion, IndexDifference, WhichVersions,
    import_history, list,
};
pub use self::logs::mapping_at;
