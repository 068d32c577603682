//! Housekeeping: expiring snapshots, collecting garbage, merging manifests, rewriting packs.
//!
//! None of it changes what any kept snapshot says, and all of it goes through the same swap as
//! commits, so it is safe beside running readers and writers.

mod collection_list;
mod expire;
mod gc;
mod mark;
mod optimise;
mod repack;

pub use expire::{ExpireOptions, Expired};
pub use gc::{GcOptions, GcReport};
pub use optimise::OptimiseReport;
pub use repack::{RepackOptions, RepackReport};

pub(super) use expire::forget;
pub(super) use mark::DATA_DIRECTORIES;
