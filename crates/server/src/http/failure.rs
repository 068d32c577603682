//! A request that failed: the status and a JSON body that says why.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chunkyard_engine::Error;
use serde_json::json;

use crate::access::Refusal;
use crate::error::{message, status};

/// Why a request failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The status.
    pub(crate) status: StatusCode,
    /// The reason, for people.
    pub(crate) reason: String,
}

impl Failure {
    /// A failure with a status of its own.
    pub(crate) fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self { status, reason: reason.into() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { status: status(error.kind()), reason: message(&error) }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Unknown => Self::new(
                StatusCode::UNAUTHORIZED,
                "a token is needed: authorization: Bearer TOKEN",
            ),
            Refusal::Forbidden => {
                Self::new(StatusCode::FORBIDDEN, "this token does not allow that")
            }
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut answer = (self.status, Json(json!({ "error": self.reason }))).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            answer.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        answer
    }
}
