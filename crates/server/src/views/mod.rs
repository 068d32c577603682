//! Whatever is served, as Zarr and as a volume for Neuroglancer.

use axum::Router;

use crate::State;

/// The routes.
pub(crate) fn routes() -> Router<State> {
    Router::new()
}
