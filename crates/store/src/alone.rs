//! Work for somebody who waits for nothing else.
//!
//! One chunk is read by four changes of thread: to one that may block, back, to one that computes,
//! back. Each wakes a sleeping thread, and all together they take as long as decoding. Whoever reads
//! one chunk and nothing beside it can as well do all of it himself.

use tokio::runtime::{Handle, RuntimeFlavor};

tokio::task_local! {
    static ALONE: ();
}

/// Runs a future that never waits for two things at once: what blocks may then block it.
pub async fn alone<F: Future>(future: F) -> F::Output {
    ALONE.scope((), future).await
}

/// Does work in place, if it is done for somebody who waits for nothing else; otherwise hands it
/// back.
pub(crate) fn in_place<T, W: FnOnce() -> T>(work: W) -> Result<T, W> {
    let waits = ALONE.try_with(|()| ()).is_ok();
    // Elsewhere there is no other thread that could take over what else this one had to do.
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    match waits && matches!(flavor, Ok(RuntimeFlavor::MultiThread)) {
        true => Ok(tokio::task::block_in_place(work)),
        false => Err(work),
    }
}
