//! The voxels of a body as runs along x: `sparsevol`, block by block.
//!
//! ```text
//!  format=rles    u8 0, 3 axes, axis 0, 0 │ u32 0 │ u32 runs │ i32 x, y, z, length │ …             little-endian
//!  format=srles   i32 x, y, z, length │ …
//! ```
//!
//! `sparsevol-coarse` is the same of blocks.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use axum::extract::{Path, RawQuery, State as Shared};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use chunkyard_array::codec::label_block::Block;
use chunkyard_engine::labels::Ids;
use chunkyard_engine::store::cpu;
use chunkyard_engine::{Error, Result};

use super::address::resolve;
use super::answer::{bounded, bytes, streamed};
use super::ask::{Settings, bad, label};
use super::segmentation::{At, Segmentation};
use crate::State;
use crate::http::Failure;

/// Blocks that are decoded at a time.
const BATCH_BLOCKS: usize = 16;
/// Bytes before the runs, and of a run.
const HEAD: usize = 12;
const RUN: usize = 16;

/// The voxels that are wanted.
#[derive(Debug)]
struct Wanted {
    scale: usize,
    /// The supervoxels in each block of the scale.
    blocks: Vec<(At, Arc<HashSet<u64>>)>,
    /// The first and the last position along each axis.
    low: At,
    high: At,
}

/// `GET` and `HEAD` of `sparsevol/LABEL`.
pub(super) async fn get_sparse(
    Shared(state): Shared<State>,
    method: Method,
    Path((uuid, data, body)): Path<(String, String, String)>,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let settings = Settings::parse(query.as_deref());
    let (scale, ids) = (settings.scale()?, settings.ids());
    let limit = state.config().limits.answer_bytes_max;
    let streams = match settings.get("format") {
        None | Some("rles") => false,
        Some("srles") => true,
        Some(other) => {
            return Err(Failure::new(
                StatusCode::NOT_IMPLEMENTED,
                format!("format={other}: sparse volumes are sent as rles or srles"),
            ));
        }
    };
    if let Some(other) = settings.get("compression") {
        return Err(Failure::new(
            StatusCode::NOT_IMPLEMENTED,
            format!(
                "compression={other}: sparse volumes are sent as they are; ask for gzip by accept-encoding"
            ),
        ));
    }
    let bounds = bounds(&settings)?;
    let wanted_label = label(&body)?;
    let seg = Segmentation::open(&state, &resolve(&state, &uuid, &data).await?).await?;
    seg.frame().check_scale(scale)?;
    let wanted = wanted(&seg, wanted_label, ids, scale, bounds, limit).await?;
    if method == Method::HEAD {
        // DVID says so that there is no such body.
        let status = if wanted.is_some() { StatusCode::OK } else { StatusCode::NO_CONTENT };
        return Ok(status.into_response());
    }
    let Some(wanted) = wanted else { return Err(missing(wanted_label)) };
    if streams {
        return streamed(None, move |out| async move {
            for some in wanted.blocks.chunks(BATCH_BLOCKS) {
                if !out.push(runs(&seg, &wanted, some).await?).await {
                    break;
                }
            }
            Ok(())
        })
        .await;
    }
    let permit = state.dvid().room(limit as u64).await?;
    let mut made = vec![0; HEAD];
    for some in wanted.blocks.chunks(BATCH_BLOCKS) {
        made.extend(runs(&seg, &wanted, some).await?);
        bounded(made.len() as u64, limit, "the runs of this label, if not by format=srles,")?;
    }
    drop(permit);
    Ok(bytes(with_head(made)?))
}

/// `GET sparsevol-coarse/LABEL`: the blocks of a label, as if each were a voxel.
pub(super) async fn get_coarse(
    Shared(state): Shared<State>,
    Path((uuid, data, body)): Path<(String, String, String)>,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let settings = Settings::parse(query.as_deref());
    let limit = state.config().limits.answer_bytes_max;
    let bounds = bounds(&settings)?;
    let wanted_label = label(&body)?;
    let seg = Segmentation::open(&state, &resolve(&state, &uuid, &data).await?).await?;
    let Some(wanted) = wanted(&seg, wanted_label, settings.ids(), 0, bounds, limit).await? else {
        return Err(missing(wanted_label));
    };
    let mut made = vec![0; HEAD];
    // Blocks come by z, y and x.
    let beside = |a: &(At, _), b: &(At, _)| a.0[..2] == b.0[..2] && a.0[2] + 1 == b.0[2];
    for run in wanted.blocks.chunk_by(beside) {
        let Some(([z, y, x], _)) = run.first() else { continue };
        for number in [*x, *y, *z, run.len() as i64] {
            made.extend((number as i32).to_le_bytes());
        }
    }
    Ok(bytes(with_head(made)?))
}

/// Fills in the head of runs.
fn with_head(mut made: Vec<u8>) -> Result<Vec<u8>, Failure> {
    let count = u32::try_from(made.len().saturating_sub(HEAD) / RUN)
        .map_err(|_| bad("more runs than the head can say; ask for format=srles"))?;
    if let Some(head) = made.first_chunk_mut::<HEAD>() {
        let [a, b, c, d] = count.to_le_bytes();
        *head = [0, 3, 0, 0, 0, 0, 0, 0, a, b, c, d];
    }
    Ok(made)
}

/// The first and the last position along z, y and x that are asked for.
fn bounds(settings: &Settings<'_>) -> Result<(At, At), Failure> {
    let mut bounds = ([i64::MIN; 3], [i64::MAX; 3]);
    for (axis, name) in ["z", "y", "x"].into_iter().enumerate() {
        bounds.0[axis] = settings.number::<i32>(&format!("min{name}"))?.map_or(i64::MIN, i64::from);
        bounds.1[axis] = settings.number::<i32>(&format!("max{name}"))?.map_or(i64::MAX, i64::from);
    }
    Ok(bounds)
}

fn missing(label: u64) -> Failure {
    Failure::new(StatusCode::NOT_FOUND, format!("label {label} is not there"))
}

async fn wanted(
    seg: &Segmentation,
    label: u64,
    ids: Ids,
    scale: usize,
    (low, high): (At, At),
    limit: usize,
) -> Result<Option<Wanted>> {
    let body = match ids {
        Ids::Bodies => label,
        Ids::Supervoxels => seg.bodies_of(&[label]).await?.first().copied().unwrap_or(0),
    };
    let Some(index) = seg.index(body, limit).await? else { return Ok(None) };
    let edge = seg.frame().block.map(i64::from);
    let mut blocks: BTreeMap<At, HashSet<u64>> = BTreeMap::new();
    for (at, counts) in index.blocks {
        let supervoxels = counts.into_keys();
        let supervoxels: BTreeSet<u64> = match ids {
            Ids::Bodies => supervoxels.collect(),
            Ids::Supervoxels => supervoxels.filter(|id| *id == label).collect(),
        };
        let at = at.map(|at| i64::from(at) >> scale);
        let meets = (0..3).all(|axis| {
            at[axis] * edge[axis] <= high[axis] && (at[axis] + 1) * edge[axis] > low[axis]
        });
        if meets && !supervoxels.is_empty() {
            blocks.entry(at).or_default().extend(supervoxels);
        }
    }
    let blocks: Vec<_> = blocks.into_iter().map(|(at, ids)| (at, Arc::new(ids))).collect();
    Ok((!blocks.is_empty()).then_some(Wanted { scale, blocks, low, high }))
}

/// The runs of some blocks, by position.
async fn runs(
    seg: &Segmentation,
    wanted: &Wanted,
    some: &[(At, Arc<HashSet<u64>>)],
) -> Result<Vec<u8>> {
    let at: Vec<At> = some.iter().map(|(at, _)| *at).collect();
    let blocks = seg.blocks(wanted.scale, &at, Ids::Supervoxels).await?;
    let ids: Vec<Arc<HashSet<u64>>> = some.iter().map(|(_, ids)| ids.clone()).collect();
    let (edge, count) = (seg.frame().block, seg.frame().block_voxels());
    let (low, high) = (wanted.low, wanted.high);
    cpu(move || {
        let mut out = Vec::new();
        let mut decoded = vec![0u64; count];
        for ((at, block), ids) in at.iter().zip(&blocks).zip(&ids) {
            let Some(block) = block else { continue };
            let block = Block::parse(block)?;
            if block.voxel_count() != count {
                return Err(Error::invalid(format!(
                    "block {at:?} has another size than the others"
                )));
            }
            block.decode_into(&mut decoded)?;
            runs_of(&decoded, *at, edge, ids, (low, high), &mut out);
        }
        Ok(out)
    })
    .await?
}

fn runs_of(
    decoded: &[u64],
    at: At,
    edge: [u32; 3],
    ids: &HashSet<u64>,
    (low, high): (At, At),
    out: &mut Vec<u8>,
) {
    let edge = edge.map(i64::from);
    let first: At = std::array::from_fn(|axis| at[axis] * edge[axis]);
    let width = usize::try_from(edge[2]).unwrap_or(1).max(1);
    for (row, labels) in decoded.chunks_exact(width).enumerate() {
        let (z, y) = (first[0] + row as i64 / edge[1], first[1] + row as i64 % edge[1]);
        if !(low[0]..=high[0]).contains(&z) || !(low[1]..=high[1]).contains(&y) {
            continue;
        }
        let mut x = first[2];
        for same in labels.chunk_by(|a, b| a == b || ids.contains(a) == ids.contains(b)) {
            let end = x + same.len() as i64;
            let (from, to) = (x.max(low[2]), end.min(high[2].saturating_add(1)));
            if from < to && same.first().is_some_and(|label| ids.contains(label)) {
                // Positions have 32 bits, and a row is no longer than a block.
                for number in [from, y, z, to - from] {
                    out.extend((number as i32).to_le_bytes());
                }
            }
            x = end;
        }
    }
}
