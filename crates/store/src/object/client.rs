//! How requests are sent: timeouts, retries, connections.
//!
//! | Setting | Value | Why |
//! |---|---|---|
//! | `connect_timeout` | 5 s | a handshake takes milliseconds; a server that needs longer is not there |
//! | `timeout`, of one request | 120 s | the largest, a put of 64 MiB, passes at 5 Mbit/s |
//! | `retries` | 10 | with pauses from 0.1 s to 10 s: rides out half a minute of «slow down» |
//! | `retry_timeout_ms` | 180,000 | a request that hung is sent once more, not ten times |
//! | `pool_idle_timeout` | 15 s | less than services wait before they close an idle connection: one that was closed under a put loses the reply |
//! | `pool_max_idle_per_host` | `Limits::requests` | that many requests run at once, and each keeps its connection |
//!
//! Retries are for a service that has hiccups. An address that has never answered is a typing error
//! or a cable, and [`FirstContact`] says so within seconds.
//!
//! What is repeated: everything that failed before it was sent, and answers 408, 429 and 5xx.
//! Reads, unconditional puts and deletes are also repeated after a timeout or a broken connection.
//! Conditional puts are not: the committing code finds out whether they happened.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    ReqwestConnector,
};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};

use crate::Limits;

pub(crate) const RETRIES: usize = 10;
pub(crate) const RETRY_TIMEOUT_MS: u64 = 180_000;

/// Settings of the client, by the names that object stores give them.
pub(crate) fn settings(limits: &Limits) -> [(&'static str, String); 4] {
    [
        ("connect_timeout", "5s".into()),
        ("timeout", "120s".into()),
        ("pool_idle_timeout", "15s".into()),
        ("pool_max_idle_per_host", limits.requests.to_string()),
    ]
}

/// When to repeat a request, and when to stop.
pub(crate) fn retry(max_retries: usize, retry_timeout: Duration) -> RetryConfig {
    let backoff =
        BackoffConfig { max_backoff: Duration::from_secs(10), ..BackoffConfig::default() };
    RetryConfig { backoff, max_retries, retry_timeout }
}

/// Clients that give up soon on a server that has never answered.
#[derive(Debug, Default)]
pub(crate) struct FirstContact;

/// This many refused connections in a row are final if the server has never answered.
const REFUSALS_MAX: u32 = 3;

/// The count of refusals once the server has answered.
const ANSWERED: u32 = u32::MAX;

impl HttpConnector for FirstContact {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let inner = connect(options)?;
        Ok(HttpClient::new(Cautious { inner, refusals: AtomicU32::default() }))
    }
}

/// A client whose TLS uses *ring*. A program that has chosen another provider keeps it.
fn connect(options: &ClientOptions) -> object_store::Result<HttpClient> {
    install_crypto();
    ReqwestConnector::default().connect(options)
}

/// Makes TLS use *ring*, unless the program has chosen another provider.
pub(crate) fn install_crypto() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Of two threads that install one at once, either may win: both install the same.
        rustls::crypto::ring::default_provider().install_default().ok();
    }
}

#[derive(Debug)]
struct Cautious {
    inner: HttpClient,
    refusals: AtomicU32,
}

#[async_trait]
impl HttpService for Cautious {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let is_listing = request.uri().query().is_some_and(is_listing);
        let outcome = self.inner.execute(request).await;
        match outcome {
            Ok(reply) => {
                self.refusals.store(ANSWERED, Ordering::Relaxed);
                match reply.status().as_u16() {
                    404 if is_listing => Err(HttpError::new(HttpErrorKind::Unknown, NoBucket)),
                    _ => Ok(reply),
                }
            }
            Err(error) if self.is_hopeless(error.kind()) => {
                // The only kind of error after which the client does not resend.
                Err(HttpError::new(HttpErrorKind::Unknown, error))
            }
            Err(error) => Err(error),
        }
    }
}

/// There is no bucket of that name. Only listings tell, where an empty prefix is no error; to a
/// request for an object, a missing bucket looks like a missing object. The crate buries the status
/// of a listing in its text, so it is noted here.
#[derive(Debug, thiserror::Error)]
#[error("there is no such bucket")]
pub(super) struct NoBucket;

/// S3, services that speak like it, and Azure.
fn is_listing(query: &str) -> bool {
    query.split('&').any(|part| part == "list-type=2" || part == "comp=list")
}

/// Whether a missing bucket is the cause of an error.
pub(super) fn is_no_bucket(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source()).any(|error| error.is::<NoBucket>())
}

impl Cautious {
    fn is_hopeless(&self, kind: HttpErrorKind) -> bool {
        let count = |refusals: u32| (refusals != ANSWERED).then(|| refusals.saturating_add(1));
        match kind {
            HttpErrorKind::Connect => self
                .refusals
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, count)
                .is_ok_and(|before| before + 1 >= REFUSALS_MAX),
            HttpErrorKind::Timeout => self.refusals.load(Ordering::Relaxed) != ANSWERED,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cautious() -> Cautious {
        let inner = connect(&ClientOptions::new()).unwrap();
        Cautious { inner, refusals: AtomicU32::default() }
    }

    #[test]
    fn refused_connections_are_tried_a_few_times() {
        let client = cautious();
        let refused: Vec<bool> =
            (0..4).map(|_| client.is_hopeless(HttpErrorKind::Connect)).collect();
        assert_eq!(refused, [false, false, true, true]);
    }

    #[test]
    fn silence_at_first_is_final_and_later_it_is_not() {
        let client = cautious();
        assert!(client.is_hopeless(HttpErrorKind::Timeout));
        client.refusals.store(ANSWERED, Ordering::Relaxed);
        for kind in [HttpErrorKind::Timeout, HttpErrorKind::Connect, HttpErrorKind::Interrupted] {
            assert!((0..9).all(|_| !client.is_hopeless(kind)), "{kind:?}");
        }
    }
}
