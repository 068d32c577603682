//! HTTP: one router for everything, and what all requests have in common.

mod failure;

use axum::Router;
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
        .with_state(state)
}
