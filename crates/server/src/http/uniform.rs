//! Errors of every origin as one kind of answer.

use std::any::Any;

use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::Failure;

/// Bytes of a reason that are kept.
const REASON_BYTES_MAX: usize = 4096;

/// Turns errors of the framework, which are text or nothing, into JSON with a reason.
pub(super) async fn uniform(request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let answer = next.run(request).await;
    let is_error = answer.status().is_client_error() || answer.status().is_server_error();
    let kind = answer.headers().get(header::CONTENT_TYPE);
    // What the range could have been is in a header.
    let is_error = is_error && answer.status() != StatusCode::RANGE_NOT_SATISFIABLE;
    if !is_error || kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json")) {
        return answer;
    }
    let (parts, body) = answer.into_parts();
    let text = to_bytes(body, REASON_BYTES_MAX).await.unwrap_or_default();
    let mut reason = String::from_utf8_lossy(&text).trim().to_owned();
    let status = match parts.status {
        // JSON that is sound but not what was asked for: the caller's argument, as any other.
        StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
        status => status,
    };
    if reason.is_empty() {
        reason = match status {
            StatusCode::METHOD_NOT_ALLOWED => format!("{path} does not answer {method}"),
            _ => status.canonical_reason().unwrap_or("the request failed").to_lowercase(),
        };
    }
    let mut uniform = Failure::new(status, reason).into_response();
    for (name, value) in &parts.headers {
        if name != header::CONTENT_TYPE && name != header::CONTENT_LENGTH {
            uniform.headers_mut().append(name, value.clone());
        }
    }
    uniform
}

/// The answer where a handler panicked, which is a defect of ours and of this request alone.
pub(super) fn panicked(payload: Box<dyn Any + Send>) -> Response {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    tracing::error!("a handler panicked: {}", text.unwrap_or("without a message"));
    let reason = "the server has a defect, and this request met it; the log says more";
    Failure::new(StatusCode::INTERNAL_SERVER_ERROR, reason).into_response()
}
