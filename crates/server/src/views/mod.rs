//! Whatever is served, as Zarr v3 and as volumes for Neuroglancer.
//!
//! ```text
//!  /data/NAME[@REF]/zarr/KEY            documents and chunks of a Zarr v3 hierarchy
//!  /data/NAME[@REF]/precomputed/KEY     info and chunks of volumes
//!        │        │      │
//!     look: which view of which version     kept: opened views, and values that were made or fetched
//!                        │
//!     values: what a key is             answer: conditions, ranges, validators, caching
//! ```
//!
//! A version that is named by the whole id of a snapshot never changes, and clients may keep what they got. Anything else is
//! looked up anew for every request: a branch by reading the state of its repository, other formats by opening them again
//! when they were opened some seconds ago.
//!
//! `viewer` serves Neuroglancer itself, from a directory.

mod answer;
mod kept;
mod latest;
mod look;
mod values;
mod viewer;

use axum::Router;
use axum::extract::{Path, State as Shared};
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use axum::routing::get;
use axum::{Json, http::StatusCode};
use serde_json::{Value, json};

pub(crate) use self::kept::Kept;
use self::look::Look;
use crate::State;
use crate::http::Failure;

/// The routes.
pub(crate) fn routes() -> Router<State> {
    Router::new()
        .route("/data", get(list))
        .route("/data/{place}/{look}/{*key}", get(value))
        .merge(viewer::routes())
}

/// What is served, and where.
async fn list(Shared(state): Shared<State>) -> Json<Value> {
    let looks = |name: &str| {
        let url = |look: &str| format!("/data/{}/{look}/", percent(name));
        json!({"name": name, "zarr": url("zarr"), "precomputed": url("precomputed")})
    };
    let data: Vec<Value> = state.places().names().map(looks).collect();
    Json(json!({ "data": data }))
}

/// The value of a key.
async fn value(
    Shared(state): Shared<State>,
    Path((place, look, key)): Path<(String, String, String)>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let look = Look::named(&look).ok_or_else(|| {
        let known = Look::NAMES.join(", ");
        Failure::new(StatusCode::NOT_FOUND, format!("there is no view {look:?}; there are {known}"))
    })?;
    let (name, at) = match place.split_once('@') {
        Some((name, at)) => (name, Some(at)),
        None => (&*place, None),
    };
    let found = values::find(&state, name, at, look, &key, &method, &headers).await;
    match found? {
        Some(response) => Ok(response),
        None => Err(Failure::new(StatusCode::NOT_FOUND, format!("there is no {key:?} here"))),
    }
}

/// A name as a part of a URL.
fn percent(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    name.bytes().map(byte).collect()
}
