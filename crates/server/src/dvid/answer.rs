//! Answers: JSON as DVID writes it, bytes, and streams that are made while they are sent.

use std::fmt::Display;
use std::io;

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use chunkyard_engine::{Error, Result};
use futures::{StreamExt, stream};
use tokio::sync::mpsc;

use crate::error::message;
use crate::http::Failure;

const BYTES: &str = "application/octet-stream";
const JSON: &str = "application/json";

/// JSON that is written already.
pub(super) fn json(text: String) -> Response {
    ([(CONTENT_TYPE, JSON)], text).into_response()
}

/// A list of numbers as JSON.
pub(super) fn numbers(numbers: impl IntoIterator<Item = impl Display>) -> String {
    let mut text = String::from("[");
    for number in numbers {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&number.to_string());
    }
    text.push(']');
    text
}

/// Bytes.
pub(super) fn bytes(bytes: impl Into<Body>) -> Response {
    ([(CONTENT_TYPE, BYTES)], bytes.into()).into_response()
}

/// Where a stream that is being made goes. Not more than one part waits to be sent.
pub(super) struct Out(mpsc::Sender<Result<Option<Bytes>>>);

impl Out {
    /// Sends a part; false if the client is gone.
    pub(super) async fn push(&self, part: impl Into<Bytes>) -> bool {
        let part: Bytes = part.into();
        part.is_empty() || self.0.send(Ok(Some(part))).await.is_ok()
    }
}

/// An answer that is made while it is sent. If making it fails before there is any of it, that is the answer; later the
/// connection breaks off, so no client takes a part for the whole.
pub(super) async fn streamed<F, Made>(
    content_type: Option<&'static str>,
    make: F,
) -> Result<Response, Failure>
where
    F: FnOnce(Out) -> Made,
    Made: Future<Output = Result<()>> + Send + 'static,
{
    let (sender, mut receiver) = mpsc::channel(1);
    let made = make(Out(sender.clone()));
    tokio::spawn(async move {
        let end = made.await.map(|()| None);
        // An error here says that the client is gone.
        drop(sender.send(end).await);
    });
    let first = receiver.recv().await.transpose()?;
    let rest = stream::unfold((first, receiver), |(ahead, mut receiver)| async move {
        let part = match ahead {
            Some(part) => Some(Ok(part)),
            None => receiver.recv().await,
        };
        match part {
            Some(Ok(Some(part))) => Some((Ok(part), (None, receiver))),
            Some(Ok(None)) => None,
            Some(Err(error)) => {
                tracing::warn!(error = message(&error), "an answer broke off");
                Some((Err(io::Error::other(error)), (Some(None), receiver)))
            }
            None => {
                let broken = io::Error::other("the answer broke off");
                Some((Err(broken), (Some(None), receiver)))
            }
        }
    });
    // What compresses answers asks again after the end.
    let body = Body::from_stream(rest.fuse().boxed());
    Ok(([(CONTENT_TYPE, content_type.unwrap_or(BYTES))], body).into_response())
}

/// Refuses an answer that would have to be made as a whole and is too large.
pub(super) fn bounded(bytes: u64, bytes_max: usize, what: &str) -> Result<usize> {
    match usize::try_from(bytes) {
        Ok(bytes) if bytes <= bytes_max => Ok(bytes),
        _ => Err(Error::invalid(format!(
            "{what} would take {bytes} bytes, and an answer may have {bytes_max}; ask for less at a time"
        ))),
    }
}
