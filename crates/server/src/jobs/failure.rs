//! Why something about a job could not be done, in the words of both surfaces.

use axum::http::StatusCode;
use chunkyard_engine::Error;
use tonic::{Code, Status};

use crate::access::Refusal;
use crate::error::{code, message};
use crate::http::Failure;

/// The result of what is done about jobs.
pub(crate) type Outcome<T> = Result<T, Failed>;

/// Why something could not be done.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The engine says so.
    Engine(Error),
    /// The claim is no longer the worker's, or the job is over or cancelled.
    Gone(String),
    /// The job was cancelled while it streamed.
    Cancelled(String),
    /// Another stream took the place of this one.
    Replaced(String),
    /// Too much at a time.
    Busy(String),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl From<Failed> for Status {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Engine(error) => Self::new(code(error.kind()), message(&error)),
            Failed::Gone(why) => Self::new(Code::FailedPrecondition, why),
            Failed::Cancelled(why) => Self::new(Code::Cancelled, why),
            Failed::Replaced(why) => Self::new(Code::Aborted, why),
            Failed::Busy(why) => Self::new(Code::ResourceExhausted, why),
        }
    }
}

impl From<Failed> for Failure {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Engine(error) => error.into(),
            Failed::Gone(why) | Failed::Cancelled(why) | Failed::Replaced(why) => {
                Self::new(StatusCode::CONFLICT, why)
            }
            Failed::Busy(why) => Self::new(StatusCode::SERVICE_UNAVAILABLE, why),
        }
    }
}

/// A caller without the role, as gRPC says it.
pub(crate) fn refused(refusal: Refusal) -> Status {
    match refusal {
        Refusal::Unknown => {
            Status::unauthenticated("a token is needed: authorization: Bearer TOKEN")
        }
        Refusal::Forbidden => Status::permission_denied("this token does not allow that"),
    }
}
