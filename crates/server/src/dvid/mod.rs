//! Labelmaps by DVID's interface, for programs that know DVID: Neuroglancer's `dvid://`, and DVID's own clients.
//!
//! ```text
//!  request ──▶ address    which labelmap at which version is meant
//! ```
//!
//! docs/server.md has all requests, and where the answers differ from those of DVID.

pub(crate) mod address;
mod kept;
mod meant;
mod served;

use axum::Router;

pub(crate) use self::kept::Kept;
use crate::State;

/// The routes.
pub(crate) fn routes() -> Router<State> {
    Router::new()
}
