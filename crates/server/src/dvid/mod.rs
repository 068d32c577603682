//! Labelmaps by DVID's interface.

use axum::Router;

use crate::State;

/// The routes.
pub(crate) fn routes() -> Router<State> {
    Router::new()
}
