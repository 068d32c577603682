//! Bodies that are watched while they are sent or received.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::BoxError;
use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

/// A body that tells how many bytes of it have passed, and when it has ended.
struct Watched<W> {
    body: Body,
    watch: W,
}

/// What passes through a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passed {
    /// So many bytes.
    Bytes(usize),
    /// The end.
    End,
}

/// A body that tells what passes through it. `watch` lives as long as the body.
pub(super) fn watched(body: Body, watch: impl FnMut(Passed) + Send + Unpin + 'static) -> Body {
    Body::new(Watched { body, watch })
}

impl<W: FnMut(Passed) + Unpin> HttpBody for Watched<W> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    let bytes = data.len();
                    (self.watch)(Passed::Bytes(bytes));
                }
                if self.body.is_end_stream() {
                    (self.watch)(Passed::End);
                }
            }
            Poll::Ready(None) => (self.watch)(Passed::End),
            Poll::Ready(Some(Err(_))) | Poll::Pending => {}
        }
        polled.map(|frame| frame.map(|frame| frame.map_err(axum::Error::into_inner)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
