//! Looking something up anew for every request, at the price of one look for all callers that wait at the same time.
//!
//! A caller must see what was there when it asked, or something newer. So it may share a look that has not begun, and
//! never one that has: while one is under way, all that come wait for the next.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use tokio::sync::Mutex as Turns;

/// One look, for all callers that wait for it.
type Look<T> = Shared<BoxFuture<'static, T>>;

/// Looks something up, one look at a time. Cheap to clone.
#[derive(Debug)]
pub(super) struct Latest<T: Clone> {
    inner: Arc<Inner<T>>,
}

#[derive(Debug)]
struct Inner<T: Clone> {
    /// The look that has not begun, if a caller waits for one.
    next: Mutex<Option<Look<T>>>,
    turns: Turns<()>,
}

impl<T: Clone> Clone for Latest<T> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<T: Clone + Send + Sync + 'static> Latest<T> {
    pub(super) fn new() -> Self {
        Self { inner: Arc::new(Inner { next: Mutex::new(None), turns: Turns::new(()) }) }
    }

    /// What a look finds that begins after this call does.
    pub(super) async fn look<F>(&self, look: impl FnOnce() -> F + Send + 'static) -> T
    where
        F: Future<Output = T> + Send + 'static,
    {
        let waiting = {
            let mut next = self.inner.next.lock().unwrap_or_else(PoisonError::into_inner);
            next.get_or_insert_with(|| {
                // It holds no strong reference to where it waits: that would be a circle.
                let inner = Arc::downgrade(&self.inner);
                let turn = async move {
                    let inner = inner.upgrade();
                    let _turn = match &inner {
                        Some(inner) => {
                            let turn = inner.turns.lock().await;
                            // It begins: a caller that comes now waits for another.
                            *inner.next.lock().unwrap_or_else(PoisonError::into_inner) = None;
                            Some(turn)
                        }
                        None => None,
                    };
                    look().await
                };
                turn.boxed().shared()
            })
            .clone()
        };
        waiting.await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn callers_that_wait_share_a_look_that_begins_later() {
        let latest: Latest<usize> = Latest::new();
        let (looks, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
        let ask = || {
            let (latest, looks, gate) = (latest.clone(), looks.clone(), gate.clone());
            async move {
                let look = move || async move {
                    let number = looks.fetch_add(1, Ordering::SeqCst);
                    gate.acquire().await.unwrap().forget();
                    number
                };
                latest.look(look).await
            }
        };
        let mut first = Box::pin(ask());
        assert!(futures::poll!(&mut first).is_pending());
        assert_eq!(looks.load(Ordering::SeqCst), 1);
        // The first look is under way, so these share the second.
        let mut others: Vec<_> = (0..10).map(|_| Box::pin(ask())).collect();
        for other in &mut others {
            assert!(futures::poll!(other).is_pending());
        }
        gate.add_permits(2);
        assert_eq!(first.await, 0);
        for other in others {
            assert_eq!(other.await, 1);
        }
        assert_eq!(looks.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn a_look_that_all_gave_up_hinders_no_other() {
        let latest: Latest<u8> = Latest::new();
        let mut given_up = Box::pin(latest.look(futures::future::pending));
        assert!(futures::poll!(&mut given_up).is_pending());
        let mut waiting = Box::pin(latest.look(async || 2));
        assert!(futures::poll!(&mut waiting).is_pending());
        drop(given_up);
        assert_eq!(waiting.await, 2);
        assert_eq!(latest.look(async || 3).await, 3);
    }
}
