//! Work for a caller that waits for nothing else.
//!
//! Reading one chunk changes threads four times: to one that may block, back, to one that computes,
//! back. Each change wakes a sleeping thread, and together they take as long as decoding. A caller
//! that reads one chunk and nothing else can do all of it on its own thread.

use tokio::runtime::{Handle, RuntimeFlavor};

tokio::task_local! {
    static ALONE: ();
}

/// Runs a future that never waits for two things at once, so blocking work may block it.
pub async fn alone<F: Future>(future: F) -> F::Output {
    ALONE.scope((), future).await
}

/// Does work in place if the caller waits for nothing else; otherwise hands it back.
pub(crate) fn in_place<T, W: FnOnce() -> T>(work: W) -> Result<T, W> {
    let waits = ALONE.try_with(|()| ()).is_ok();
    // Only a multi-threaded runtime has another thread to take over this one's other tasks.
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    match waits && matches!(flavor, Ok(RuntimeFlavor::MultiThread)) {
        true => Ok(tokio::task::block_in_place(work)),
        false => Err(work),
    }
}
