//! HTTP: one router for everything, and what all requests have in common.
//!
//! ```text
//!  request ─▶ observe ─▶ origins ─▶ compress ─▶ uniform ─▶ limits ─▶ roles ─▶ catch panics ─▶ views, dvid, jobs
//!              log and     pages of                errors     how many,   tokens
//!              metrics     others                  as JSON    how large, how long
//! ```

mod body;
mod failure;
mod limits;
mod observe;
mod openapi;
mod origins;
mod roles;
mod uniform;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State as Shared};
use axum::http::{HeaderMap, StatusCode, Uri, Version, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::IntoResponse;
use axum::routing::get;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::{CompressionLayer, Predicate as _, predicate::SizeAbove};

pub(crate) use self::failure::Failure;
use crate::State;
use crate::{dvid, jobs, views};

/// Everything that is answered over HTTP.
pub(crate) fn router(state: State) -> Router {
    common(routes(), state)
}

/// The routes of all rooms.
fn routes() -> Router<State> {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/metrics", get(metrics))
        .merge(views::routes())
        .merge(dvid::routes())
        .merge(jobs::routes())
        .route("/openapi.json", get(openapi::serve))
        .fallback(nothing)
}

/// Routes with what all requests have in common.
fn common(routes: Router<State>, state: State) -> Router {
    let shared = || state.clone();
    // What is added last is met first.
    routes
        .layer(CatchPanicLayer::custom(uniform::panicked))
        // The body has a bound of its own, below.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(shared(), roles::guard))
        .layer(from_fn_with_state(limits::Bounds::new(shared()), limits::limit))
        .layer(from_fn(uniform::uniform))
        .layer(CompressionLayer::new().compress_when(SizeAbove::new(1024).and(is_text)))
        .layer(from_fn_with_state(shared(), origins::origins))
        .layer(from_fn_with_state(shared(), observe::observe))
        .with_state(state)
}

/// Whether an answer is worth compressing here. Chunks are compressed already, and what has an ETag is the business of the
/// handler that gave it one: it stands for exactly these bytes.
fn is_text(_: StatusCode, _: Version, headers: &HeaderMap, _: &axum::http::Extensions) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map_or(&b""[..], |kind| kind.as_bytes());
    let text = kind.starts_with(b"application/json") || kind.starts_with(b"text/");
    text && !headers.contains_key(header::ETAG) && !headers.contains_key(header::CONTENT_RANGE)
}

/// The answer at paths where nothing is.
async fn nothing(uri: Uri) -> Failure {
    Failure::new(StatusCode::NOT_FOUND, format!("there is nothing at {}", uri.path()))
}

/// Counts, for Prometheus.
async fn metrics(Shared(state): Shared<State>) -> impl IntoResponse {
    let streams = state.streams();
    let text = state.metrics().text(&[
        ("chunkyard_flight_streams", "Open streams of record batches.", streams.open() as u64),
        (
            "chunkyard_flight_waiting_bytes",
            "Bytes of record batches that are ready and were not taken yet.",
            streams.waiting_bytes(),
        ),
    ]);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text)
}

#[cfg(test)]
mod tests;
