//! Questions about points, bodies and the mapping, answered with numbers.

use axum::body::Body;
use axum::extract::{Path, RawQuery, State as Shared};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use chunkyard_engine::labels::Ids;
use futures::TryStreamExt;

use super::address::resolve;
use super::answer::{json, numbers, streamed};
use super::ask::{self, Settings, label, triple};
use super::segmentation::{At, Segmentation};
use crate::State;
use crate::http::Failure;

/// Labels that a list has at most, as in DVID.
const LISTED_MAX: u64 = 10_000_000;
/// The type of a mapping as text.
const TEXT: &str = "text/plain";

async fn open(
    state: &State,
    uuid: &str,
    data: &str,
) -> Result<std::sync::Arc<Segmentation>, Failure> {
    Ok(Segmentation::open(state, &resolve(state, uuid, data).await?).await?)
}

fn missing(what: &str, label: u64) -> Response {
    Failure::new(StatusCode::NOT_FOUND, format!("{what} {label} is not there")).into_response()
}

/// `GET label/X_Y_Z`.
pub(super) async fn get_label(
    Shared(state): Shared<State>,
    Path((uuid, data, at)): Path<(String, String, String)>,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let settings = Settings::parse(query.as_deref());
    let (scale, ids) = (settings.scale()?, settings.ids());
    let point = triple(&at, '_')?;
    let seg = open(&state, &uuid, &data).await?;
    seg.frame().check_scale(scale)?;
    let labels = seg.labels_at(scale, &[point], ids).await?;
    Ok(json(format!("{{\"Label\": {}}}", labels.first().copied().unwrap_or(0))))
}

/// `GET labels` of a list of points.
pub(super) async fn get_labels(
    Shared(state): Shared<State>,
    Path((uuid, data)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Result<Response, Failure> {
    let settings = Settings::parse(query.as_deref());
    let (scale, ids) = (settings.scale()?, settings.ids());
    let points: Vec<[i32; 3]> = ask::json(body).await?;
    let points: Vec<At> = points.iter().map(|[x, y, z]| [*z, *y, *x].map(i64::from)).collect();
    let seg = open(&state, &uuid, &data).await?;
    seg.frame().check_scale(scale)?;
    Ok(json(numbers(seg.labels_at(scale, &points, ids).await?)))
}

/// `GET mapping` of a list of supervoxels.
pub(super) async fn get_mapping(
    Shared(state): Shared<State>,
    Path((uuid, data)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Result<Response, Failure> {
    let settings = Settings::parse(query.as_deref());
    let supervoxels: Vec<u64> = ask::json(body).await?;
    let seg = open(&state, &uuid, &data).await?;
    let mapped = seg.mapped(&supervoxels).await?;
    let mut bodies: Vec<u64> =
        supervoxels.iter().zip(&mapped).map(|(id, body)| body.unwrap_or(*id)).collect();
    if !settings.is("nolookup") {
        // A supervoxel that was never mapped is its own body, if there is such a thing.
        let unmapped = supervoxels.iter().zip(&mapped).filter(|(_, body)| body.is_none());
        let unmapped: Vec<u64> = unmapped.map(|(id, _)| *id).collect();
        let mut sizes = seg.sizes(&unmapped, Ids::Bodies).await?.into_iter();
        for (body, _) in bodies.iter_mut().zip(&mapped).filter(|(_, known)| known.is_none()) {
            if sizes.next() == Some(0) {
                *body = 0;
            }
        }
    }
    Ok(json(numbers(bodies)))
}

/// `GET mappings`: all supervoxels that belong to another body.
pub(super) async fn get_mappings(
    Shared(state): Shared<State>,
    Path((uuid, data)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let settings = Settings::parse(query.as_deref());
    let binary = settings.get("format") == Some("binary");
    let seg = open(&state, &uuid, &data).await?;
    let content_type = (!binary).then_some(TEXT);
    streamed(content_type, move |out| async move {
        let mut batches = seg.mapping_rows().await?;
        while let Some(batch) = batches.try_next().await? {
            let mut part = Vec::new();
            for (supervoxel, body) in batch.into_iter().filter(|(id, body)| id != body) {
                match binary {
                    true => [supervoxel, body].iter().for_each(|id| part.extend(id.to_le_bytes())),
                    false => part.extend(format!("{supervoxel} {body}\n").into_bytes()),
                }
            }
            if !out.push(part).await {
                break;
            }
        }
        Ok(())
    })
    .await
}

/// `GET sizes` of a list of bodies or supervoxels.
pub(super) async fn get_sizes(
    Shared(state): Shared<State>,
    Path((uuid, data)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Result<Response, Failure> {
    let ids = Settings::parse(query.as_deref()).ids();
    let labels: Vec<u64> = ask::json(body).await?;
    let seg = open(&state, &uuid, &data).await?;
    Ok(json(numbers(seg.sizes(&labels, ids).await?)))
}

/// `GET size/LABEL`.
pub(super) async fn get_size(
    Shared(state): Shared<State>,
    Path((uuid, data, body)): Path<(String, String, String)>,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let ids = Settings::parse(query.as_deref()).ids();
    let body = label(&body)?;
    let seg = open(&state, &uuid, &data).await?;
    Ok(match seg.sizes(&[body], ids).await?.first() {
        None | Some(0) => missing("label", body),
        Some(voxels) => json(format!("{{\"voxels\": {voxels}}}")),
    })
}

/// `GET listlabels`: all bodies as numbers of 64 bits, with their voxels if asked.
pub(super) async fn get_list(
    Shared(state): Shared<State>,
    Path((uuid, data)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let settings = Settings::parse(query.as_deref());
    let from = settings.number("start")?.unwrap_or(0);
    let mut left = settings.number("number")?.unwrap_or(LISTED_MAX).min(LISTED_MAX);
    let sizes = settings.is("sizes");
    let seg = open(&state, &uuid, &data).await?;
    streamed(None, move |out| async move {
        let mut batches = seg.bodies(from)?;
        while left > 0
            && let Some(batch) = batches.try_next().await?
        {
            let mut part = Vec::new();
            let count = usize::try_from(left).unwrap_or(usize::MAX).min(batch.len());
            for (body, voxels) in batch.into_iter().take(count) {
                part.extend(body.to_le_bytes());
                if sizes {
                    part.extend(voxels.to_le_bytes());
                }
            }
            left -= count as u64;
            if !out.push(part).await {
                break;
            }
        }
        Ok(())
    })
    .await
}

/// `GET existing-labels`: all bodies as a list of JSON.
pub(super) async fn get_existing(
    Shared(state): Shared<State>,
    Path((uuid, data)): Path<(String, String)>,
) -> Result<Response, Failure> {
    let seg = open(&state, &uuid, &data).await?;
    streamed(Some("application/json"), move |out| async move {
        let mut batches = seg.bodies(0)?;
        let mut opening = "[";
        while let Some(batch) = batches.try_next().await? {
            if batch.is_empty() {
                continue;
            }
            let listed: Vec<String> = batch.iter().map(|(body, _)| body.to_string()).collect();
            if !out.push(format!("{opening}{}", listed.join(","))).await {
                return Ok(());
            }
            opening = ",";
        }
        out.push(if opening == "[" { "[]" } else { "]" }).await;
        Ok(())
    })
    .await
}

/// `GET maxlabel`.
pub(super) async fn get_max(
    Shared(state): Shared<State>,
    Path((uuid, data)): Path<(String, String)>,
) -> Result<Response, Failure> {
    let seg = open(&state, &uuid, &data).await?;
    Ok(json(format!("{{\"maxlabel\": {}}}", seg.greatest_id().await?)))
}
