//! HTTP: one router for everything, and what all requests have in common.

mod failure;
mod roles;

use axum::Router;
use axum::http::{StatusCode, Uri};
use axum::middleware;
use axum::routing::get;

pub(crate) use self::failure::Failure;
use crate::State;
use crate::{dvid, jobs, views};

/// Everything that is answered over HTTP.
pub(crate) fn router(state: State) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .merge(views::routes())
        .merge(dvid::routes())
        .merge(jobs::routes())
        .fallback(nothing)
        .layer(middleware::from_fn_with_state(state.clone(), roles::guard))
        .with_state(state)
}

/// The answer at paths where nothing is.
async fn nothing(uri: Uri) -> Failure {
    Failure::new(StatusCode::NOT_FOUND, format!("there is nothing at {}", uri.path()))
}
