//! Repairs, each asked for by name. Nothing here runs by itself, and verification never writes.
//!
//! - [`Repository::republish`]: the published state is broken, a claim is whole.
//! - [`Repository::rebuild_state`]: the state is lost; structure files say which snapshot they are.
//! - [`Repository::drop_unreadable`]: snapshots whose structure file is gone and that no reference
//!   needs.
//! - [`Repository::recover_references`]: a manifest is gone; the packs say what is in them.
//! - [`Repository::forget_missing`]: chunks whose bytes are gone become fill value, in a new commit.

mod chunks;
mod rebuild;
mod references;
mod snapshots;

pub use chunks::Forgotten;
pub use rebuild::{Rebuilt, Republished};
pub use references::Recovered;
