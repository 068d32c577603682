//! Errors of the engine as statuses of HTTP and of gRPC.

use axum::http::StatusCode;
use chunkyard_engine::ErrorKind;
use tonic::Code;

/// The status of HTTP for a kind of error.
pub fn status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::Invalid => StatusCode::BAD_REQUEST,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::Corrupt => StatusCode::INTERNAL_SERVER_ERROR,
        ErrorKind::Unsupported => StatusCode::NOT_IMPLEMENTED,
        ErrorKind::Store => StatusCode::BAD_GATEWAY,
    }
}

/// The code of gRPC for a kind of error.
pub fn code(kind: ErrorKind) -> Code {
    match kind {
        ErrorKind::Invalid => Code::InvalidArgument,
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::Conflict => Code::Aborted,
        ErrorKind::Corrupt => Code::DataLoss,
        ErrorKind::Unsupported => Code::Unimplemented,
        ErrorKind::Store => Code::Unavailable,
    }
}

/// An error and its causes as one line.
pub fn message(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}
