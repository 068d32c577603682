//! What a key of a view is, and the answer to it.

use std::ops::Range;
use std::sync::Arc;

use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use chunkyard_array::ChunkIndex;
use chunkyard_array::codec::{gunzip, gzip_onto};
use chunkyard_engine::format::keys::ByteRange;
use chunkyard_engine::store::ChunkRef;
use chunkyard_engine::view::{ArrayView, Hierarchy, Value as Named, Volumes};
use chunkyard_engine::{Error, Result};
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use twox_hash::XxHash64;

use super::answer::{self, Content, Kind, Request, accepts_gzip};
use super::kept::{Value, View, tag};
use super::look::{Look, Seen};
use crate::State;
use crate::http::Failure;

/// Smaller answers are not worth compressing.
const GZIP_BYTES_MIN: usize = 512;
/// How hard they are compressed.
const GZIP_LEVEL: u32 = 1;
/// Bytes of a large value that are in hand at a time, for each request.
const PIECE_BYTES: u64 = 1 << 20;

/// The answer to a request for a key; `None` if nothing is there.
pub(super) async fn find(
    state: &State,
    name: &str,
    at: Option<&str>,
    look: Look,
    key: &str,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Option<Response>, Failure> {
    let again = match attempt(state, name, at, look, key, method, headers).await {
        (Some(view), Err(failure)) if may_be_stale(&failure) => {
            if !state.views().forget(&view).await {
                return Err(failure);
            }
            attempt(state, name, at, look, key, method, headers).await
        }
        done => done,
    };
    again.1
}

/// Whether a failure can come from a file that was replaced since it was opened.
fn may_be_stale(failure: &Failure) -> bool {
    failure.status.is_server_error() && failure.status != StatusCode::NOT_IMPLEMENTED
}

async fn attempt(
    state: &State,
    name: &str,
    at: Option<&str>,
    look: Look,
    key: &str,
    method: &Method,
    headers: &HeaderMap,
) -> (Option<Arc<View>>, Result<Option<Response>, Failure>) {
    let (view, pinned) = match state.views().view(state, name, at, look).await {
        Ok(found) => found,
        Err(failure) => return (None, Err(failure)),
    };
    let open = !state.access().is_closed();
    let request = Request { method, headers, pinned, open };
    let found = match &view.seen {
        Seen::Hierarchy(hierarchy) => of_hierarchy(state, &view, hierarchy, key, &request).await,
        Seen::Volumes(volumes) => of_volumes(state, &view, volumes, key, &request).await,
    };
    (Some(view), found)
}

async fn of_hierarchy(
    state: &State,
    view: &View,
    hierarchy: &Hierarchy,
    key: &str,
    request: &Request<'_>,
) -> Result<Option<Response>, Failure> {
    if key.ends_with(chunkyard_engine::format::keys::DOCUMENT) {
        let document = async {
            match hierarchy.value(key)? {
                Some(Named::Document(bytes)) => Ok(Some(bytes)),
                Some(Named::Chunk(..)) | None => Ok(None),
            }
        };
        return packed(state, view, key, request, Kind::Json, 0, document).await;
    }
    let Some(Named::Chunk(array, index)) = hierarchy.value(key)? else { return Ok(None) };
    if array.has_parts() {
        return in_parts(view, array, &index, request).await;
    }
    let chunk = async { array.chunk(&index).await };
    let found = state.views().value(view, key, false, array.bytes_in_hand(), chunk).await?;
    Ok(found.map(|value| answer::whole(request, Kind::Chunk, Content::plain(value))))
}

async fn of_volumes(
    state: &State,
    view: &View,
    volumes: &Volumes,
    key: &str,
    request: &Request<'_>,
) -> Result<Option<Response>, Failure> {
    if let Some(info) = volumes.info(key) {
        return packed(state, view, key, request, Kind::Json, 0, async { info.map(Some) }).await;
    }
    let Some((volume, scale, index)) = volumes.chunk(key) else { return Ok(None) };
    let in_hand = volume.bytes_in_hand(scale);
    if !volume.is_gzip(scale) {
        let chunk = async { volume.chunk(scale, &index).await.map(Some) };
        return packed(state, view, key, request, Kind::Volume, in_hand, chunk).await;
    }
    // Compressed as they are stored; unpacked for callers that did not say that they can do that.
    let gzip = request.may_compress() && accepts_gzip(request.headers);
    let chunk = async {
        let bytes = volume.chunk(scale, &index).await?;
        match gzip {
            true => Ok(Some(bytes)),
            false => {
                let most = state.config().limits.answer_bytes_max;
                Ok(Some(gunzip(&bytes, most)?.into()))
            }
        }
    };
    let found = state.views().value(view, key, gzip, in_hand, chunk).await?;
    let content = found.map(|value| Content { value, gzip, varies: true });
    Ok(content.map(|content| answer::whole(request, Kind::Volume, content)))
}

/// A value that is compressed for callers that can unpack it.
async fn packed(
    state: &State,
    view: &View,
    key: &str,
    request: &Request<'_>,
    kind: Kind,
    in_hand: usize,
    make: impl Future<Output = Result<Option<Bytes>>>,
) -> Result<Option<Response>, Failure> {
    let plain = state.views().value(view, key, false, in_hand, make).await?;
    let Some(plain) = plain else { return Ok(None) };
    let worth = plain.bytes.len() >= GZIP_BYTES_MIN;
    let gzip = worth && request.may_compress() && accepts_gzip(request.headers);
    if !gzip {
        let content = Content { value: plain, gzip: false, varies: worth };
        return Ok(Some(answer::whole(request, kind, content)));
    }
    let length = plain.bytes.len();
    let compress = async {
        let bytes = plain.bytes;
        let made = chunkyard_engine::store::cpu(move || {
            let mut out = Vec::new();
            gzip_onto(&bytes, GZIP_LEVEL, &mut out).map(|()| out)
        });
        Ok(Some(made.await??.into()))
    };
    let found = state.views().value(view, key, true, length, compress).await?;
    let content = found.map(|value| Content { value, gzip: true, varies: true });
    Ok(content.map(|content| answer::whole(request, kind, content)))
}

/// A chunk with parts that readers ask for: what is asked for is read, and nothing of it is kept.
async fn in_parts(
    view: &View,
    array: ArrayView,
    index: &ChunkIndex,
    request: &Request<'_>,
) -> Result<Option<Response>, Failure> {
    let Some(reference) = array.locate(index).await? else { return Ok(None) };
    let Some(length) = reference.len() else {
        // Its length is known when it is there.
        let Some(bytes) = array.part(index, reference, None).await? else { return Ok(None) };
        let tag = tag(XxHash64::oneshot(0, &bytes), false);
        let value = Value { bytes, tag };
        return Ok(Some(answer::whole(request, Kind::Chunk, Content::plain(value))));
    };
    let name = format!("{} {reference:?}", view.identity);
    let tag = tag(XxHash64::oneshot(0, name.as_bytes()), false);
    let read = |range: Range<u64>| pieces(array, index.clone(), reference, range);
    Ok(Some(answer::streamed(request, length, tag, read)))
}

/// A range of a chunk, some megabytes at a time.
fn pieces(
    array: ArrayView,
    index: ChunkIndex,
    reference: ChunkRef,
    range: Range<u64>,
) -> BoxStream<'static, Result<Bytes>> {
    let start = range.start;
    let next = move |from: u64| {
        let (array, index, reference) = (array.clone(), index.clone(), reference.clone());
        let end = range.end.min(from.saturating_add(PIECE_BYTES));
        async move {
            if from >= end {
                return Ok(None);
            }
            let bytes = array.part(&index, reference, Some(ByteRange::Within(from..end))).await?;
            let bytes = bytes.ok_or_else(|| Error::invalid("a chunk that has gone"))?;
            Ok::<_, Error>(Some((bytes, end)))
        }
    };
    stream::try_unfold(start, next).into_stream().boxed()
}
