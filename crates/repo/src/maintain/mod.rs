//! Housekeeping: expiring snapshots, collecting garbage, merging manifests, rewriting packs.
//!
//! None of it changes the content of a kept snapshot, and all of it goes through the same swap as
//! commits, so it is safe beside running readers and writers.

pub(super) mod collection_list;
mod expire;
mod gc;
mod mark;
mod optimise;
mod repack;

use chunkyard_store::{Error, Noun, Result};

use super::Repository;
use super::swap::Loaded;

pub use expire::{ExpireOptions, Expired};
pub use gc::{GcOptions, GcReport};
pub use optimise::OptimiseReport;
pub use repack::{RepackOptions, RepackReport};

pub(super) use collection_list::is_collectable;
pub(super) use expire::forget;
pub(super) use mark::DATA_DIRECTORIES;
pub(super) use optimise::Rewrite;

impl Repository {
    /// Maintenance that misses a file starts again if the state moved on: another process may have
    /// expired and collected it. Otherwise the error stands.
    pub(super) async fn overtaken(&self, current: &Loaded, error: Error) -> Result<()> {
        let gone = matches!(
            error,
            Error::NotFound { what: Noun::Object, .. } | Error::SnapshotExpired { .. }
        );
        if gone && self.state().await?.generation > current.state.generation {
            return Ok(());
        }
        Err(error)
    }
}
