//! One line of the log and one entry of the metrics per request.

use std::time::Instant;

use axum::extract::{MatchedPath, Request, State as Shared};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;

use super::body::{Passed, watched};
use crate::State;
use crate::metrics::{Gauge, Metrics, Open};

/// What is known of a request; told when it is dropped, which is when the answer has been sent or the client is gone.
struct Record {
    metrics: Metrics,
    _in_flight: Open,
    began: Instant,
    method: &'static str,
    route: String,
    path: String,
    /// `None` until the answer begins.
    status: Option<StatusCode>,
    bytes: u64,
}

impl Record {
    fn passes(&mut self, passed: Passed) {
        if let Passed::Bytes(bytes) = passed {
            self.bytes += bytes as u64;
        }
    }
}

/// The status in logs and metrics where the client went away before the answer began, as nginx has it.
const GONE: u16 = 499;

impl Drop for Record {
    fn drop(&mut self) {
        let Self { method, route, path, bytes, .. } = self;
        let time = self.began.elapsed();
        let status = self.status.map_or(GONE, |status| status.as_u16());
        let ms = time.as_secs_f64() * 1e3;
        // Neither headers nor queries: they may hold secrets.
        if status >= 500 {
            tracing::warn!(method, route, path, status, ms, bytes, "request");
        } else {
            tracing::info!(method, route, path, status, ms, bytes, "request");
        }
        self.metrics.served(method, route, status, time, *bytes);
    }
}

/// Logs and counts a request.
pub(super) async fn observe(
    Shared(state): Shared<State>,
    request: Request,
    next: Next,
) -> Response {
    let metrics = state.metrics().clone();
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let mut record = Record {
        _in_flight: metrics.open(Gauge::Requests, 1),
        began: Instant::now(),
        method: known(request.method()),
        route: route.unwrap_or("none").to_owned(),
        path: request.uri().path().to_owned(),
        status: None,
        bytes: 0,
        metrics,
    };
    let answer = next.run(request).await;
    record.status = Some(answer.status());
    answer.map(|body| {
        watched(body, move |passed| {
            record.passes(passed);
        })
    })
}

/// A method as a label: clients can invent any number of them.
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        Method::PATCH => "PATCH",
        _ => "OTHER",
    }
}
