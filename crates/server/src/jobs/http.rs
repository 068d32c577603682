//! Exports over HTTP: started for a labelmap by DVID's interface, watched and cancelled.

use std::sync::Arc;

use axum::extract::{Path, State as Shared};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use chunkyard_engine::export::Codec;
use chunkyard_engine::format::Version;
use chunkyard_engine::labels::Ids;
use chunkyard_engine::{Error, Noun};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::make::Source;
use super::request::{bodies, no_factor};
use super::{Failed, JobId, Live, Outcome, Request, Told};
use crate::State;
use crate::dvid::address::{Address, Holder, resolve};
use crate::http::Failure;

/// The routes.
pub(super) fn routes() -> Router<State> {
    Router::new()
        .route("/api/node/{uuid}/{data}/export", post(start))
        .route("/api/node/{uuid}/{data}/export/{job}", get(tell_of_data).delete(cancel_of_data))
        .route("/jobs", get(list))
        .route("/jobs/{job}", get(tell).delete(cancel))
}

/// What the body of `POST …/export` may say; all of it may be left out.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    #[serde(default)]
    key: Option<String>,
    #[serde(default = "bodies")]
    ids: Ids,
    #[serde(default)]
    scales: Option<usize>,
    #[serde(default)]
    spec: Option<Value>,
    #[serde(default = "no_factor")]
    factor: [u64; 3],
    #[serde(default)]
    codec: Codec,
}

#[derive(Debug, Serialize)]
struct Answer<T> {
    #[serde(flatten)]
    content: T,
    /// Where it can be watched.
    url: String,
}

async fn start(
    Shared(state): Shared<State>,
    Path((uuid, data)): Path<(String, String)>,
    body: Bytes,
) -> Result<impl IntoResponse, Failure> {
    let body: &[u8] = if body.trim_ascii().is_empty() { b"{}" } else { &body };
    let asked: Asked = serde_json::from_slice(body)
        .map_err(|error| Error::invalid(format!("the body of an export: {error}")))?;
    let address = resolve(&state, &uuid, &data).await?;
    let source = source(&state, &address)?;
    let Asked { key, ids, scales, spec, factor, codec } = asked;
    let Address { place, path, version, .. } = address;
    let request = Request {
        key,
        source: place,
        at: Some(version),
        path: Some(path),
        ids,
        scales,
        spec,
        factor,
        codec,
    };
    let content = state.jobs().start(&state, request, source).await?;
    let url = format!("/jobs/{}", content.job.as_str());
    Ok((StatusCode::ACCEPTED, Json(Answer { content, url })))
}

/// What to open for an address.
fn source(state: &State, address: &Address) -> Result<Option<Source>, Error> {
    match &address.holder {
        // The request says it all.
        Holder::Repository(_) => Ok(None),
        Holder::Store { .. } => {
            let (url, version): (String, Option<Version>) = address.open_as(state)?;
            Ok(Some(Source { url, version, path: None }))
        }
    }
}

async fn list(Shared(state): Shared<State>) -> Result<Json<Value>, Failure> {
    let mut jobs = Vec::new();
    for live in state.jobs().all().await.map_err(Failure::from)? {
        jobs.push(live.told().await?);
    }
    Ok(Json(json!({ "jobs": jobs })))
}

async fn tell(
    Shared(state): Shared<State>,
    Path(job): Path<String>,
) -> Result<Json<Told>, Failure> {
    Ok(Json(find(&state, &job).await?.told().await?))
}

async fn cancel(
    Shared(state): Shared<State>,
    Path(job): Path<String>,
) -> Result<Json<Value>, Failure> {
    let live = find(&state, &job).await?;
    Ok(Json(json!({ "cancelled": live.cancel().await? })))
}

async fn tell_of_data(
    Shared(state): Shared<State>,
    Path((uuid, data, job)): Path<(String, String, String)>,
) -> Result<Json<Told>, Failure> {
    Ok(Json(find_of_data(&state, &uuid, &data, &job).await?.told().await?))
}

async fn cancel_of_data(
    Shared(state): Shared<State>,
    Path((uuid, data, job)): Path<(String, String, String)>,
) -> Result<Json<Value>, Failure> {
    let live = find_of_data(&state, &uuid, &data, &job).await?;
    Ok(Json(json!({ "cancelled": live.cancel().await? })))
}

/// A job by what the URL calls it; what cannot be the name of a job names none.
async fn find(state: &State, job: &str) -> Outcome<Arc<Live>> {
    let name: String = job.chars().take(64).collect();
    let id =
        JobId::parse(job).map_err(|_| Failed::from(Error::NotFound { what: Noun::Job, name }))?;
    state.jobs().get(&id).await
}

/// A job of the data that the URL names. The version may be another one by now: a branch moves on.
async fn find_of_data(state: &State, uuid: &str, data: &str, job: &str) -> Outcome<Arc<Live>> {
    let address = resolve(state, uuid, data).await?;
    let live = find(state, job).await?;
    let request = live.request();
    let same = request.source == address.place
        && request.path.as_ref().is_none_or(|path| *path == address.path);
    match same {
        true => Ok(live),
        false => Err(Failed::from(Error::NotFound {
            what: Noun::Job,
            name: format!("{job} (there is one of that name, of other data)"),
        })),
    }
}
