//! Bounds on requests: how many, how large, how long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::{Body, HttpBody};
use axum::extract::{MatchedPath, Request, State as Shared};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::Limited;
use tokio::sync::Semaphore;

use super::Failure;
use super::body::{Passed, watched};
use crate::State;
use crate::metrics::Gauge;

/// The bounds of a server, and what of them is taken.
#[derive(Debug, Clone)]
pub(super) struct Bounds {
    state: State,
    requests: Arc<Semaphore>,
}

/// What answers also when the server is busy, so that it can be watched.
const ALWAYS: [&str; 2] = ["/healthz", "/metrics"];

impl Bounds {
    pub(super) fn new(state: State) -> Self {
        let requests = Arc::new(Semaphore::new(state.config().limits.requests));
        Self { state, requests }
    }
}

/// Answers a request within the bounds.
pub(super) async fn limit(
    Shared(bounds): Shared<Bounds>,
    request: Request,
    next: Next,
) -> Response {
    let limits = &bounds.state.config().limits;
    let metrics = bounds.state.metrics();
    let route = request.extensions().get::<MatchedPath>();
    let always = route.is_some_and(|route| ALWAYS.contains(&route.as_str()));
    let place = match bounds.requests.clone().try_acquire_owned() {
        Ok(place) => Some(place),
        Err(_) if always => None,
        Err(_) => return busy("too many requests are under way"),
    };
    if metrics.now(Gauge::Waiting) > limits.waiting_bytes_max as u64 && !always {
        return busy("too many answers wait for clients to take them");
    }
    let bytes_max = limits.body_bytes_max;
    let told = request.body().size_hint().exact();
    if let Some(bytes) = told.filter(|bytes| *bytes > bytes_max as u64) {
        let reason = format!("the body has {bytes} bytes, and may have {bytes_max}");
        return Failure::new(StatusCode::PAYLOAD_TOO_LARGE, reason).into_response();
    }
    let whole = Arc::new(AtomicBool::new(request.body().is_end_stream()));
    let seen = whole.clone();
    let request = request.map(|body| {
        let body = watched(body, move |passed| {
            if passed == Passed::End {
                seen.store(true, Ordering::Relaxed);
            }
        });
        Body::new(Limited::new(body, bytes_max))
    });
    let Ok(answer) = tokio::time::timeout(limits.request_time(), next.run(request)).await else {
        let seconds = limits.request_seconds;
        return match whole.load(Ordering::Relaxed) {
            true => Failure::new(
                StatusCode::GATEWAY_TIMEOUT,
                format!("the answer did not begin within {seconds} s"),
            ),
            false => Failure::new(
                StatusCode::REQUEST_TIMEOUT,
                format!("the body did not come within {seconds} s"),
            ),
        }
        .into_response();
    };
    // A stream is made as fast as it is taken; what is there as a whole waits in memory.
    let waiting = answer.body().size_hint().exact().unwrap_or(0);
    let kept = (place, metrics.open(Gauge::Waiting, waiting));
    answer.map(|body| {
        watched(body, move |_| {
            let _until_sent = &kept;
        })
    })
}

fn busy(reason: &str) -> Response {
    let mut answer = Failure::new(StatusCode::SERVICE_UNAVAILABLE, reason).into_response();
    answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    answer
}
