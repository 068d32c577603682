//! Neuroglancer itself: the built client from a directory, unchanged, and the few answers that it wants from its server.
//!
//! The client of the PyPI package `neuroglancer` reads its own address: it lies at `PREFIX/v/TOKEN/`, and asks for the rest
//! below `PREFIX`. Its state is in the address, behind `#!`, so nothing of it is kept here.

use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::extract::{Path, State as Shared};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use twox_hash::XxHash64;

use super::answer::{self, Content, Kind, Request};
use super::kept;
use crate::State;
use crate::http::Failure;

/// Bytes of a file of the client at most.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// How often the client hears that its server lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Types of files by their endings; others are no files of the client.
const TYPES: &[(&str, &str)] = &[
    (".html", "text/html; charset=utf-8"),
    (".js", "text/javascript; charset=utf-8"),
    (".css", "text/css; charset=utf-8"),
    (".wasm", "application/wasm"),
    (".map", "application/json"),
    (".svg", "image/svg+xml"),
    (".txt", "text/plain; charset=utf-8"),
];

/// The routes.
pub(super) fn routes() -> Router<State> {
    Router::new()
        .route("/neuroglancer", get(async || Redirect::temporary("/neuroglancer/v/1/")))
        .route("/neuroglancer/", get(async || Redirect::temporary("/neuroglancer/v/1/")))
        .route("/neuroglancer/v/{token}", get(with_slash))
        .route("/neuroglancer/v/{token}/", get(page))
        .route("/neuroglancer/v/{token}/{file}", get(file))
        .route("/neuroglancer/events/{token}", get(events))
        // The client sends its state and asks for credentials; both change nothing here.
        .route("/neuroglancer/state/{token}", post(async || Json(json!({"g": "chunkyard/0"}))))
        .route("/neuroglancer/action/{token}", post(async || StatusCode::OK))
        .route("/neuroglancer/credentials/{token}", post(credentials))
}

/// Anonymous credentials, which is what sources of DVID ask for.
async fn credentials() -> Json<Value> {
    Json(json!({"generation": 1, "credentials": {}}))
}

async fn with_slash(Path(token): Path<String>) -> Redirect {
    Redirect::temporary(&format!("/neuroglancer/v/{}/", super::percent(&token)))
}

async fn page(
    state: Shared<State>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    serve(&state, "index.html", &method, &headers).await
}

async fn file(
    state: Shared<State>,
    Path((_token, file)): Path<(String, String)>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    serve(&state, &file, &method, &headers).await
}

/// A file of the client.
async fn serve(
    state: &State,
    name: &str,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response, Failure> {
    let missing = |why: &str| Failure::new(StatusCode::NOT_FOUND, why);
    let Some(directory) = &state.config().neuroglancer else {
        return Err(missing(
            "this server has no Neuroglancer: name the directory of its client as `neuroglancer` in the configuration",
        ));
    };
    let known = TYPES.iter().find(|(ending, _)| name.ends_with(ending));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let Some((_, content_type)) = known.filter(|_| name.bytes().all(plain)) else {
        return Err(missing("no file of Neuroglancer has this name"));
    };
    let path = std::path::Path::new(directory).join(name);
    let meta = tokio::fs::metadata(&path).await;
    if !meta.is_ok_and(|meta| meta.is_file() && meta.len() <= FILE_BYTES_MAX) {
        return Err(missing("Neuroglancer has no such file"));
    }
    let bytes = tokio::fs::read(&path).await.map(Bytes::from).map_err(|error| {
        Failure::new(StatusCode::INTERNAL_SERVER_ERROR, format!("cannot read {name}: {error}"))
    })?;
    let tag = kept::tag(XxHash64::oneshot(0, &bytes), false);
    let request = Request { method, headers, pinned: false, open: true };
    let content = Content::plain(kept::Value { bytes, tag });
    Ok(answer::whole(&request, Kind::File(content_type), content))
}

/// A stream in which nothing ever happens: while it is open, the client knows that its server lives.
async fn events(Shared(state): Shared<State>) -> Response {
    let lines = stream::unfold((state.stopping(), true), |(mut stopping, first)| async move {
        if !first {
            tokio::select! {
                () = tokio::time::sleep(KEEP_ALIVE) => {}
                () = stopping.wait() => return None,
            }
        }
        Some((Ok::<_, Infallible>(Bytes::from_static(b": keep\n\n")), (stopping, false)))
    });
    let head = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    (head, axum::body::Body::from_stream(lines.fuse())).into_response()
}
