//! Label indices: which supervoxels a body has in which block. And what is summed up from them.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State as Shared};
use axum::http::StatusCode;
use axum::response::Response;
use chunkyard_engine::format::dvid::LabelIndex;
use chunkyard_engine::labels::Ids;

use super::address::resolve;
use super::answer::{bytes, json, numbers, streamed};
use super::ask::{self, INDICES_MAX, Settings, bad, label};
use super::segmentation::Segmentation;
use super::wire;
use crate::State;
use crate::http::Failure;

/// The index of a body of a path, and what it is of.
async fn found(state: &State, uuid: &str, data: &str, body: u64) -> Result<LabelIndex, Failure> {
    let seg = Segmentation::open(state, &resolve(state, uuid, data).await?).await?;
    let limit = state.config().limits.answer_bytes_max;
    match seg.index(body, limit).await? {
        Some(index) => Ok(index),
        None => Err(Failure::new(StatusCode::NOT_FOUND, format!("body {body} is not there"))),
    }
}

/// The voxels of each supervoxel of an index.
fn counts(index: &LabelIndex) -> BTreeMap<u64, u64> {
    let mut counts = BTreeMap::new();
    for (supervoxel, voxels) in index.blocks.values().flatten() {
        *counts.entry(*supervoxel).or_insert(0) += u64::from(*voxels);
    }
    counts
}

/// `GET index/LABEL`.
pub(super) async fn get_index(
    Shared(state): Shared<State>,
    Path((uuid, data, body)): Path<(String, String, String)>,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let settings = Settings::parse(query.as_deref());
    if settings.get("mutid").is_some() {
        return Err(Failure::new(
            StatusCode::NOT_IMPLEMENTED,
            "mutid: ask for the index at a version; every edit is one",
        ));
    }
    let index = found(&state, &uuid, &data, label(&body)?).await?;
    Ok(match settings.is("metadata-only") {
        true => json(
            serde_json::json!({
                "num_voxels": index.voxels(),
                "last_mutid": index.mutation,
                "last_mod_time": index.time,
                "last_mod_user": index.user,
                "last_mod_app": "",
            })
            .to_string(),
        ),
        false => bytes(wire::index(index)),
    })
}

/// `GET lastmod/LABEL`.
pub(super) async fn get_lastmod(
    Shared(state): Shared<State>,
    Path((uuid, data, body)): Path<(String, String, String)>,
) -> Result<Response, Failure> {
    let index = found(&state, &uuid, &data, label(&body)?).await?;
    let about = serde_json::json!({
        "mutation id": index.mutation,
        "last mod user": index.user,
        "last mod app": "",
        "last mod time": index.time,
    });
    Ok(json(about.to_string()))
}

/// `GET supervoxels/LABEL`.
pub(super) async fn get_supervoxels(
    Shared(state): Shared<State>,
    Path((uuid, data, body)): Path<(String, String, String)>,
) -> Result<Response, Failure> {
    let index = found(&state, &uuid, &data, label(&body)?).await?;
    Ok(json(numbers(counts(&index).keys())))
}

/// `GET supervoxel-sizes/LABEL`.
pub(super) async fn get_supervoxel_sizes(
    Shared(state): Shared<State>,
    Path((uuid, data, body)): Path<(String, String, String)>,
) -> Result<Response, Failure> {
    let index = found(&state, &uuid, &data, label(&body)?).await?;
    let counts = counts(&index);
    let (ids, sizes) = (numbers(counts.keys()), numbers(counts.values()));
    Ok(json(format!("{{\n  \"supervoxels\": {ids},\n  \"sizes\": {sizes}\n}}")))
}

/// `GET sparsevol-size/LABEL`.
pub(super) async fn get_sparse_size(
    Shared(state): Shared<State>,
    Path((uuid, data, body)): Path<(String, String, String)>,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let ids = Settings::parse(query.as_deref()).ids();
    let wanted = label(&body)?;
    let seg = Segmentation::open(&state, &resolve(&state, &uuid, &data).await?).await?;
    let limit = state.config().limits.answer_bytes_max;
    let body = match ids {
        Ids::Bodies => wanted,
        Ids::Supervoxels => seg.bodies_of(&[wanted]).await?.first().copied().unwrap_or(0),
    };
    let mut index = seg.index(body, limit).await?.unwrap_or_default();
    if ids == Ids::Supervoxels {
        index.blocks.retain(|_, counts| {
            counts.retain(|supervoxel, _| *supervoxel == wanted);
            !counts.is_empty()
        });
    }
    let mut places = index.blocks.keys().copied();
    let Some(first) = places.next() else {
        return Err(Failure::new(StatusCode::NOT_FOUND, format!("label {wanted} is not there")));
    };
    let (mut low, mut high) = (first, first);
    for at in places {
        low = std::array::from_fn(|axis| low[axis].min(at[axis]));
        high = std::array::from_fn(|axis| high[axis].max(at[axis]));
    }
    let edge = seg.frame().block.map(i64::from);
    let least = [2, 1, 0].map(|axis: usize| i64::from(low[axis]) * edge[axis]);
    let greatest = [2, 1, 0].map(|axis: usize| (i64::from(high[axis]) + 1) * edge[axis] - 1);
    let spaced = |at: [i64; 3]| format!("[{}, {}, {}]", at[0], at[1], at[2]);
    Ok(json(format!(
        "{{\"voxels\": {}, \"numblocks\": {}, \"minvoxel\": {}, \"maxvoxel\": {}}}",
        index.voxels(),
        index.blocks.len(),
        spaced(least),
        spaced(greatest)
    )))
}

/// `GET indices` of a list of bodies.
pub(super) async fn get_indices(
    shared: Shared<State>,
    path: Path<(String, String)>,
    body: Body,
) -> Result<Response, Failure> {
    stream_indices(shared, path, body, wire::listed_index).await
}

/// `GET indices-compressed` of a list of bodies.
pub(super) async fn get_indices_compressed(
    shared: Shared<State>,
    path: Path<(String, String)>,
    body: Body,
) -> Result<Response, Failure> {
    stream_indices(shared, path, body, wire::packed_index).await
}

async fn stream_indices(
    Shared(state): Shared<State>,
    Path((uuid, data)): Path<(String, String)>,
    body: Body,
    render: fn(u64, Option<LabelIndex>) -> chunkyard_engine::Result<Vec<u8>>,
) -> Result<Response, Failure> {
    let labels: Vec<u64> = ask::json(body).await?;
    if labels.len() > INDICES_MAX {
        return Err(bad(format!(
            "{} labels: indices of {INDICES_MAX} are sent at a time",
            labels.len()
        )));
    }
    let seg = Segmentation::open(&state, &resolve(&state, &uuid, &data).await?).await?;
    let limit = state.config().limits.answer_bytes_max;
    streamed(None, move |out| async move {
        for label in labels {
            let index = seg.index(label, limit).await?;
            if !out.push(render(label, index)?).await {
                break;
            }
        }
        Ok(())
    })
    .await
}
