//! The one bridge from async code to worker threads.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use tokio::sync::oneshot;

use crate::alone::in_place;
use crate::error::{Error, Result};

/// Runs `work` on the compute threads and waits for it without blocking this one.
///
/// Codecs run here, never on threads that serve other tasks. A panic in `work` continues in the
/// caller.
pub async fn cpu<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    match in_place(work) {
        Ok(done) => Ok(done),
        Err(work) => start(work).wait().await,
    }
}

/// Starts `work` on the compute threads, for a caller that wants the result later.
pub fn start<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Started<T> {
    let (sender, result) = oneshot::channel();
    rayon::spawn(move || {
        // Fails only if the caller is gone and the result is not wanted.
        drop(sender.send(catch_unwind(AssertUnwindSafe(work))));
    });
    Started { result }
}

/// Work under way on the compute threads. It runs to its end even if this is dropped.
#[derive(Debug)]
pub struct Started<T> {
    result: oneshot::Receiver<std::thread::Result<T>>,
}

impl<T> Started<T> {
    /// Waits for it; a panic continues here.
    pub async fn wait(self) -> Result<T> {
        match self.result.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(closed) => Err(Error::store("compute", "a chunk", closed)),
        }
    }
}
