//! Exports to workers: started, watched and cancelled over HTTP.

use axum::Router;

use crate::State;

/// The routes.
pub(crate) fn routes() -> Router<State> {
    Router::new()
}
