//! The one bridge from async code to worker threads.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::alone::in_place;
use crate::error::{Error, Result};

/// Runs `work` on the compute threads and waits for it without blocking this one.
///
/// Codecs run here, never on threads that have something else to wait for. A panic in `work` continues in the
/// caller.
pub async fn cpu<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let work = match in_place(work) {
        Ok(done) => return Ok(done),
        Err(work) => work,
    };
    let (sender, receiver) = tokio::sync::oneshot::channel();
    rayon::spawn(move || {
        // Fails only if the caller is gone; then nobody wants the result.
        drop(sender.send(catch_unwind(AssertUnwindSafe(work))));
    });
    match receiver.await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(panic)) => resume_unwind(panic),
        Err(closed) => Err(Error::store("compute", "a chunk", closed)),
    }
}
