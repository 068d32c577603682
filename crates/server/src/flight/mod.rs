//! Arrow Flight.

use axum::Router;

use crate::State;

/// What answers on the port of Arrow Flight.
pub(crate) fn router(_state: State) -> Router {
    // Answers `UNIMPLEMENTED` to every call.
    tonic::service::Routes::default().into_axum_router()
}
